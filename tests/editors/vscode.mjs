// Uses the extension in Visual Studio Code, which runs in a browser without a screen.
//
// Usage: vscode.mjs TYMPAN VSIX

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { chromium } from "playwright-core";

const PROMPT = `---
name: ticket
descripton: Answers a ticket
model: {id: gpt-4o, provider: echo, options: {temprature: 0.2}}
inputs:
  - {name: ticket,kind: string, example: It broke}
---
system:
Answer politely.

user:
{{ticket | uper}}
`;

const SECONDS = 60;
const own = dirname(fileURLToPath(import.meta.url));
const [tympan, vsix] = process.argv.slice(2).map((path) => resolve(path));
const installed = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
const browserPath = process.env.CHROMIUM ?? installed;
if (browserPath === undefined) {
  console.log("SKIPPED: the test with Visual Studio Code, which needs Chromium (apt-get install -y chromium)");
  process.exit(0);
}

const folder = mkdtempSync(join(tmpdir(), "tympan-vscode-"));
const workspace = join(folder, "workspace");
const prompt = join(workspace, "ticket.prompty");
const screenshots = join(own, "screenshots");
for (const path of [workspace, screenshots, join(folder, "data/User"), join(folder, "data/Machine")]) {
  mkdirSync(path, { recursive: true });
}
writeFileSync(prompt, PROMPT);
writeFileSync(join(folder, "config.yaml"), "");
const userSettings = {
  "files.autoSave": "afterDelay",
  "files.autoSaveDelay": 100,
  "security.workspace.trust.enabled": false,
  "telemetry.telemetryLevel": "off",
  "terminal.integrated.gpuAcceleration": "off",
  "workbench.startupEditor": "none",
};
writeFileSync(join(folder, "data/User/settings.json"), JSON.stringify(userSettings));
/** Sets the path of the command. The editor notices the change. */
const setPath = (path) =>
  writeFileSync(join(folder, "data/Machine/settings.json"), JSON.stringify({ "tympan.path": path }));
setPath(tympan);

const entry = join(own, "node_modules/code-server/out/node/entry.js");
const options = ["--config", join(folder, "config.yaml"), "--user-data-dir", join(folder, "data")];
options.push("--extensions-dir", join(folder, "extensions"));
const added = spawnSync(process.execPath, [entry, ...options, "--install-extension", vsix], { encoding: "utf8" });
assert.equal(added.status, 0, added.stdout + added.stderr);

const port = await new Promise((done) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const { port } = server.address();
    server.close(() => done(port));
  });
});
const serving = ["--auth", "none", "--bind-addr", `127.0.0.1:${port}`, "--disable-telemetry", "--disable-update-check"];
const server = spawn(process.execPath, [entry, ...options, ...serving], { stdio: "ignore", detached: true });
const launch = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"];
launch.push("--disable-sync", "--no-first-run");
let browser;
let page;

/** Waits until a condition is true. */
async function until(what, isTrue) {
  const end = Date.now() + SECONDS * 1000;
  while (!(await isTrue())) {
    assert.ok(Date.now() < end, `${what}\n${readFileSync(prompt, "utf8")}`);
    await new Promise((done) => setTimeout(done, 100));
  }
}

/** Waits until the saved prompt contains a text. */
const saved = (text) => until(`the prompt contains: ${text}`, () => readFileSync(prompt, "utf8").includes(text));
const screenshot = (name) => page.screenshot({ path: join(screenshots, `${name}.png`) });

/** Executes a command of the editor. */
async function command(name) {
  await page.keyboard.press("F1");
  await page.locator(".quick-input-widget input[type=text]").fill(`>${name}`);
  await page.locator(".quick-input-list .monaco-list-row", { hasText: name }).first().click();
}

/** Moves the cursor. */
async function moveTo(line, column) {
  await command("Go to Line/Column...");
  await page.locator(".quick-input-widget input[type=text]").fill(`:${line}:${column}`);
  await page.keyboard.press("Enter");
}

async function test(name, run) {
  await run();
  await screenshot(name.replaceAll(" ", "-"));
  console.log(`ok: ${name}`);
}

try {
  const isUp = () => fetch(`http://127.0.0.1:${port}/healthz`).then((answer) => answer.ok, () => false);
  await until("the server answers", isUp);
  browser = await chromium.launch({ executablePath: browserPath, args: launch });
  page = await browser.newPage({ viewport: { width: 1300, height: 800 } });
  page.setDefaultTimeout(SECONDS * 1000);
  const toasts = page.locator(".notification-toast");

  await test("diagnostics", async () => {
    await page.goto(`http://127.0.0.1:${port}/?folder=${workspace}`);
    await page.locator(".explorer-folders-view .monaco-list-row", { hasText: "ticket.prompty" }).dblclick();
    await page.locator(".squiggly-error").first().waitFor();
    await until("two warnings", async () => (await page.locator(".squiggly-warning").count()) >= 2);
  });
  await test("quick fix", async () => {
    await moveTo(12, 13);
    await command("Quick Fix...");
    await page.locator(".action-widget .action.focused", { hasText: "Replace `uper` with `upper`" }).waitFor();
    await page.keyboard.press("Enter");
    await saved("{{ticket | upper}}");
  });
  await test("all fixes", async () => {
    await command("Fix All");
    await saved("temperature: 0.2");
    await saved("description: Answers a ticket");
  });
  await test("formatting", async () => {
    await command("Format Document");
    await saved("- {name: ticket, kind: string, example: It broke}");
    await saved("{{ ticket | upper }}");
  });
  await test("hover", async () => {
    await moveTo(12, 5);
    await command("Show or Focus Hover");
    await page.locator(".monaco-hover", { hasText: "user message (line 11): through a filter" }).waitFor();
    await page.keyboard.press("Escape");
  });
  await test("completion", async () => {
    await moveTo(13, 1);
    await page.keyboard.type("Really: {{ ti", { delay: 50 });
    await page.locator(".suggest-widget .monaco-list-row", { hasText: "ticket" }).first().waitFor();
    await page.keyboard.press("Enter");
    await saved("Really: {{ ticket }}");
    await page.keyboard.press("End");
    await page.keyboard.type("\n{% if ticket", { delay: 50 });
    await page.keyboard.press("Escape");
    await page.keyboard.press("End");
    await page.keyboard.type("\n{# a comment", { delay: 50 });
    await page.keyboard.press("End");
    await page.keyboard.type("\n{% endif", { delay: 50 });
    await page.keyboard.press("Escape");
    await saved("Really: {{ ticket }}\n{% if ticket %}\n{# a comment #}\n{% endif %}");
  });
  await test("rendering", async () => {
    await page.locator(".codelens-decoration a", { hasText: "Render with sample" }).click();
    await page.locator(".editor-group-container", { hasText: "IT BROKE" }).first().waitFor();
  });
  await test("running", async () => {
    await page.locator(".codelens-decoration a", { hasText: /^Run$/ }).click();
    await page.locator(".xterm-rows", { hasText: "Really: It broke" }).waitFor();
    assert.equal(await toasts.count(), 0, "no notifications");
  });
  await test("missing command", async () => {
    setPath(join(folder, "missing"));
    await toasts.filter({ hasText: "cannot start" }).waitFor();
    assert.equal(await toasts.count(), 1, "one notification");
    setPath(tympan);
    await page.locator(".codelens-decoration a", { hasText: "Render with sample" }).waitFor();
  });
} catch (error) {
  if (page !== undefined) await screenshot("failure");
  console.error(error);
  process.exitCode = 1;
} finally {
  await browser?.close();
  // The server has child processes.
  process.kill(-server.pid);
  rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
}
