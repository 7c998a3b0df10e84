// Uses `tympan studio` with a folder of prompts: edits, the language server, runs with approval, saves and conflicts, tests,
// and what other pages try.
//
// Usage: studio.mjs PROGRAM EXAMPLES

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";

import { assertAccessible, close, messagesOf, paste, screenshot, test, type, waitForMessages } from "./browser.mjs";

const [program, examples] = process.argv.slice(2).map((path) => resolve(path));
const folder = mkdtempSync(join(tmpdir(), "tympan-studio-"));
const project = join(folder, "bookshop");
for (const name of ["hello.prompty", "hello.test.yaml", "support.prompty", "retrieval.prompty", "echo.prompty", "hostile-page"]) {
  cpSync(join(examples, name), join(project, name), { recursive: true });
}
const git = (...args) => execFileSync("git", ["-C", project, "-c", "user.name=a", "-c", "user.email=a@example.com", ...args]);
git("init", "-q");
git("add", "-A");
git("commit", "-q", "-m", "one");

const environment = { ...process.env, HOME: folder, OPENAI_API_KEY: "", ANTHROPIC_API_KEY: "" };

/** Starts the server, and returns its address with the token. */
async function start(...args) {
  const child = spawn(program, ["studio", project, "--no-open", ...args], { cwd: dirname(examples), env: environment, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  const address = await new Promise((resolve, reject) => {
    const read = (data) => {
      output += data;
      const found = /http:\/\/(127\.0\.0\.1|localhost):\d+\/\?token=[\w-]+/.exec(output);
      if (found) resolve(found[0]);
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.on("exit", () => reject(new Error(`the server ended: ${output}`)));
  });
  return { address, child };
}

const TOOLS = ["--tools", join(examples, "hostile-page", "tools.toml")];
const inProject = (path) => join(project, path);
const onDisk = (path) => readFileSync(inProject(path), "utf8");
const pane = (page, name) => page.getByRole("tab", { name, exact: true }).click();
const running = [];

/** Runs a test with a server of its own, on a fresh copy of the files. */
async function inStudio(name, options, use) {
  git("reset", "-q", "--hard");
  git("clean", "-qfd");
  const { args = [], file = "hello.prompty", ...others } = options;
  const { address, child } = await start(...args);
  running.push(child);
  try {
    await test(name, address, others, async (page, context) => {
      await page.getByRole("link", { name: file.split("/").pop() }).first().click();
      await use(page, context, new URL(address).origin);
    });
  } finally {
    child.kill();
  }
}

/** Puts the cursor at the end of the editor and types. */
async function append(page, text) {
  await page.locator(".editor .cm-content").click();
  await page.keyboard.press("ControlOrMeta+End");
  await page.keyboard.type(text);
}

try {
  await inStudio("a prompt is opened, edited and saved", {}, async (page) => {
    await waitForMessages(page, (messages) => assert.equal(messages[1].text, "My name is Ada."));
    assert.ok(!page.url().includes("token"), "the token is not in the address");
    await append(page, "Bye {{ name }}.");
    await waitForMessages(page, (messages) => assert.equal(messages[1].text, "My name is Ada.\nBye Ada."));
    await page.locator(".toolbar .tag", { hasText: "Unsaved" }).waitFor();
    await assertAccessible(page, "edited");
    await page.keyboard.press("ControlOrMeta+s");
    await page.locator(".toolbar .tag", { hasText: "Unsaved" }).waitFor({ state: "detached" });
    assert.match(onDisk("hello.prompty"), /Bye {{ name }}\.$/);
    await screenshot(page, "studio");
  });

  await inStudio("the language server reports and fixes mistakes", {}, async (page) => {
    await type(page, "---\nname: hello\ndescripton: x\ninputs:\n  - {name: name, kind: string, example: Ada}\n---\nuser:\n{{ name | uper }}\n");
    await page.getByRole("tab", { name: /Findings/ }).click();
    const finding = page.locator(".lower li", { hasText: "descripton" });
    await finding.waitFor();
    await page.locator(".lower li", { hasText: "uper" }).waitFor();
    await page.locator(".editor .cm-lintRange").first().waitFor();
    await assertAccessible(page, "findings");
    await finding.getByRole("button", { name: "Fix" }).click();
    await finding.waitFor({ state: "detached" });
    assert.match(await page.locator(".editor .cm-content").innerText(), /description: x/);
  });

  await inStudio("completion, hover and rename", {}, async (page) => {
    await append(page, "{{ na");
    await page.keyboard.press("Control+Space");
    await page.locator(".editor .cm-tooltip-autocomplete li", { hasText: "name" }).first().waitFor();
    await page.keyboard.press("Enter");
    await page.keyboard.type(" }}");
    await page.locator(".editor .cm-line", { hasText: "My name is" }).getByText("name", { exact: true }).hover();
    await page.locator(".editor .hover-text").waitFor();
    await page.locator(".editor .cm-line", { hasText: "My name is" }).getByText("name", { exact: true }).click();
    await page.keyboard.press("F2");
    await page.getByLabel("New name").fill("who");
    await page.keyboard.press("Enter");
    await waitForMessages(page, (messages) => assert.match(messages[1].text, /^My name is Ada\./));
    assert.match(await page.locator(".editor .cm-content").innerText(), /name: who[\s\S]*{{ who }}/);
  });

  await inStudio("formatting", {}, async (page) => {
    await type(page, "---\nname:   hello\n---\nuser:\n{{name}}\n");
    await page.keyboard.press("Shift+Alt+F");
    await page.locator(".editor .cm-line", { hasText: "{{ name }}" }).waitFor();
  });

  await inStudio("a conflict never overwrites silently: keep mine", { allowed: /409/ }, async (page) => {
    await append(page, "Mine.");
    writeFileSync(inProject("hello.prompty"), "user:\nTheirs {{ name }}\n");
    await page.getByText("This file changed on disk, and you have unsaved changes.").waitFor();
    await page.keyboard.press("ControlOrMeta+s");
    const dialog = page.getByRole("dialog", { name: "The file changed on disk" });
    await dialog.waitFor();
    assert.equal(onDisk("hello.prompty"), "user:\nTheirs {{ name }}\n");
    await dialog.getByRole("button", { name: "Show both" }).click();
    assert.match(await dialog.textContent(), /Theirs {{ name }}/);
    await assertAccessible(page, "the merge dialog");
    await screenshot(page, "conflict");
    await dialog.getByRole("button", { name: "Keep mine" }).click();
    await page.getByText("Saved hello.prompty").waitFor();
    assert.match(onDisk("hello.prompty"), /Mine\.$/);
  });

  await inStudio("a conflict: take theirs", { allowed: /409/ }, async (page) => {
    await append(page, "Mine.");
    writeFileSync(inProject("hello.prompty"), "user:\nTheirs.\n");
    await page.getByRole("button", { name: "Decide" }).click();
    await page.getByRole("button", { name: "Take theirs" }).click();
    await waitForMessages(page, (messages) => assert.deepEqual(messages, [{ role: "user", text: "Theirs." }]));
    assert.equal(onDisk("hello.prompty"), "user:\nTheirs.\n");
  });

  await inStudio("changes from outside appear", {}, async (page) => {
    await waitForMessages(page, (messages) => assert.equal(messages.length, 2));
    writeFileSync(inProject("hello.prompty"), "user:\nFrom outside.\n");
    await waitForMessages(page, (messages) => assert.deepEqual(messages, [{ role: "user", text: "From outside." }]));
    writeFileSync(inProject("new.prompty"), "user:\nNew.\n");
    await page.getByRole("link", { name: "new.prompty" }).waitFor();
    rmSync(inProject("new.prompty"));
    await page.getByRole("link", { name: "new.prompty" }).waitFor({ state: "detached" });
  });

  await inStudio("a new prompt", {}, async (page) => {
    await page.getByRole("button", { name: "New prompt" }).click();
    await page.getByLabel("Path of the new file").fill("hostile-page/first");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("Saved hostile-page/first.prompty").waitFor();
    assert.match(onDisk("hostile-page/first.prompty"), /name: new-prompt/);
  });

  await inStudio("a run streams an answer", { file: "echo.prompty" }, async (page) => {
    await waitForMessages(page, (messages) => assert.equal(messages.length, 2));
    await page.keyboard.press("ControlOrMeta+Enter");
    await page.getByText("finished", { exact: true }).waitFor();
    assert.match(await page.locator(".answer").textContent(), /What is a tympan\?/);
    await assertAccessible(page, "a run");
  });

  await inStudio("a hostile answer is only text", { file: "echo.prompty" }, async (page) => {
    await page.getByRole("textbox", { name: "question" }).fill("<img src=x onerror=alert(1)>\u202eevil<script>alert(2)</script>");
    await page.keyboard.press("ControlOrMeta+Enter");
    await page.getByText("finished", { exact: true }).waitFor();
    assert.match(await page.locator(".answer").textContent(), /<img src=x onerror=alert\(1\)>U\+202Eevil/);
    assert.equal(await page.locator("main script, .right img").count(), 0);
    await page.locator(".lower").getByRole("textbox", { name: "question" }).click();
    await page.keyboard.press("ControlOrMeta+a");
    await paste(page.locator("#input-question"), "long ".repeat(400_000));
    await page.keyboard.press("ControlOrMeta+Enter");
    await page.locator(".answer", { hasText: "long long" }).waitFor({ timeout: 60_000 });
    await page.getByText("finished", { exact: true }).waitFor();
    assert.ok((await page.locator(".answer").textContent()).length < 100_000);
  });

  await inStudio("two models side by side, and a cassette", { file: "echo.prompty" }, async (page) => {
    await waitForMessages(page, (messages) => assert.equal(messages.length, 2));
    await pane(page, "Run");
    await page.getByRole("button", { name: "Two models" }).click();
    await page.getByLabel("Model 2").fill("echo");
    await page.getByLabel("Record a cassette").check();
    await page.getByRole("button", { name: "Run", exact: true }).click();
    await page.getByText("finished", { exact: true }).nth(1).waitFor();
    assert.equal(await page.locator(".answer").count(), 2);
    await screenshot(page, "run");
  });

  await inStudio("tests are run", { file: "hello.test.yaml" }, async (page) => {
    await page.getByRole("button", { name: "Run tests" }).click();
    await page.getByText("3 passed").waitFor();
    await assertAccessible(page, "tests");
  });

  await inStudio("tokens and prices", {}, async (page) => {
    await pane(page, "Tokens");
    await page.getByRole("cell", { name: "gpt-4o-mini" }).waitFor();
    await page.getByText("Tokens of each writer").waitFor();
    await assertAccessible(page, "tokens");
  });

  await inStudio("the difference to a revision", {}, async (page) => {
    await append(page, "Changed.");
    await page.keyboard.press("ControlOrMeta+s");
    await page.getByText("Saved hello.prompty").waitFor();
    await pane(page, "Diff");
    await page.getByText("No differences.").waitFor();
    await page.getByLabel("Compare with").selectOption("revision");
    await page.getByRole("region", { name: "Differences" }).getByText("Changed.").waitFor();
    await assertAccessible(page, "diff");
  });

  await inStudio("a tool call waits for approval", { file: "hostile-page/assistant.prompty", args: TOOLS }, async (page) => {
    await waitForMessages(page, (messages) => assert.match(messages.at(-1).text, /Sum up/));
    await page.keyboard.press("ControlOrMeta+Enter");
    const question = page.getByRole("alert").filter({ hasText: "Allow this call?" });
    // The model reads a page, and then does what the page says.
    await question.filter({ hasText: "fetch_page" }).getByRole("button", { name: "Allow once" }).click();
    const mail = question.filter({ hasText: "send_mail" });
    await mail.waitFor();
    assert.match(await mail.textContent(), /untrusted content from tool fetch_page/);
    await assertAccessible(page, "approval");
    await screenshot(page, "approval");
    await mail.getByRole("button", { name: "Deny" }).click();
    await page.getByText("finished", { exact: true }).waitFor();
  });

  await inStudio("a run is stopped", { file: "hostile-page/assistant.prompty", args: TOOLS }, async (page) => {
    await waitForMessages(page, (messages) => assert.match(messages.at(-1).text, /Sum up/));
    await page.keyboard.press("ControlOrMeta+Enter");
    await page.getByRole("alert").filter({ hasText: "Allow this call?" }).first().waitFor();
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByText("stopped", { exact: true }).waitFor();
  });

  await inStudio("traces and journals of a run", { file: "echo.prompty" }, async (page) => {
    const run = (...args) => execFileSync(program, ["run", inProject("echo.prompty"), "--quiet", ...args], { env: environment });
    run("--set", "question=What <b>did\u202e I ask?", "--trace", inProject("traces"));
    run("--sample", "--journal", inProject("turn.journal"));
    await page.getByRole("link", { name: /\.tracy/ }).click();
    await page.getByRole("list", { name: "Spans" }).getByRole("button", { name: "render", exact: true }).click();
    assert.match(await page.locator(".record-view").textContent(), /What <b>did/);
    await assertAccessible(page, "a trace");
    await screenshot(page, "trace");
    await page.getByRole("button", { name: "Use the inputs of this trace" }).click();
    await waitForMessages(page, (messages) => assert.match(messages[1].text, /^What <b>didU\+202E I ask\?$/));
    await page.getByRole("link", { name: "turn.journal" }).click();
    await page.getByText("the model responded").waitFor();
    await assertAccessible(page, "a journal");
  });

  await inStudio("nothing is written with --read-only", { args: ["--read-only"] }, async (page, _context, origin) => {
    await waitForMessages(page, (messages) => assert.equal(messages.length, 2));
    await page.getByText("Read-only").waitFor();
    assert.ok(await page.getByRole("button", { name: "Save" }).isDisabled());
    const before = onDisk("hello.prompty");
    const status = await page.request.put(`${origin}/api/file`, { data: { path: "hello.prompty", text: "x", base_hash: null }, headers: { origin } });
    assert.equal(status.status(), 403);
    assert.equal(onDisk("hello.prompty"), before);
  });

  await inStudio("other pages can neither read nor write", { allowed: /./ }, async (page, context, origin) => {
    await waitForMessages(page, (messages) => assert.equal(messages.length, 2));
    const evil = createServer((_, response) => response.writeHead(200, { "content-type": "text/html" }).end("<p>evil</p>"));
    await new Promise((resolve) => evil.listen(0, "127.0.0.1", resolve));
    const other = await context.newPage();
    await other.goto(`http://localhost:${evil.address().port}/`);
    const seen = await other.evaluate(async (origin) => {
      const read = await fetch(`${origin}/api/file?path=hello.prompty`, { credentials: "include" }).then((it) => it.text(), () => "refused");
      const write = await fetch(`${origin}/api/file`, { method: "PUT", credentials: "include", body: '{"path":"hello.prompty","text":"evil","base_hash":null}' }).then((it) => it.status, () => "refused");
      await fetch(`${origin}/api/file`, { method: "POST", mode: "no-cors", credentials: "include", body: "x" }).catch(() => null);
      const socket = await new Promise((resolve) => {
        const it = new WebSocket(`${origin.replace("http", "ws")}/api/lsp`);
        it.onopen = () => resolve("open");
        it.onerror = () => resolve("refused");
      });
      const frame = document.createElement("iframe");
      frame.src = `${origin}/`;
      document.body.append(frame);
      await new Promise((resolve) => setTimeout(resolve, 300));
      let framed = "refused";
      try { framed = frame.contentDocument === null ? "refused" : frame.contentDocument.title; } catch { framed = "refused"; }
      return { read, write, socket, framed };
    }, origin);
    assert.deepEqual(seen, { read: "refused", write: "refused", socket: "refused", framed: "refused" });
    assert.doesNotMatch(onDisk("hello.prompty"), /evil/);
    evil.close();
  });

  await inStudio("the messages stay when the server ends", { allowed: /./ }, async (page) => {
    await waitForMessages(page, (messages) => assert.equal(messages.length, 2));
    running.at(-1).kill();
    await append(page, "Still here.");
    await page.keyboard.press("ControlOrMeta+s");
    await page.getByText("The server does not answer.").waitFor();
    assert.match((await messagesOf(page))[1].text, /Still here\./);
    await page.locator(".toolbar .tag", { hasText: "Unsaved" }).waitFor();
  });
} finally {
  running.forEach((child) => child.kill());
  rmSync(folder, { recursive: true, force: true });
  await close();
}
