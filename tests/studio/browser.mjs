// Chromium without a screen, and what all tests of the studio check.

import assert from "node:assert/strict";
import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

import { AxeBuilder } from "@axe-core/playwright";
import { chromium } from "playwright-core";

const installed = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
const browserPath = process.env.CHROMIUM ?? installed;
if (browserPath === undefined) {
  console.log("SKIPPED: the studio in a browser, which needs Chromium (apt-get install -y chromium)");
  process.exit(0);
}

export const screenshots = join(dirname(fileURLToPath(import.meta.url)), "screenshots");
mkdirSync(screenshots, { recursive: true });

const launch = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"];
launch.push("--disable-sync", "--no-first-run");
const browser = await chromium.launch({ executablePath: browserPath, args: launch });
export const close = () => browser.close();

export const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
export const DESKTOP = { viewport: { width: 1440, height: 900 } };

const only = process.env.ONLY;

/**
 * Runs a test in a fresh browser profile. Whatever the page prints, asks, or loads from elsewhere is a mistake, and so is
 * what violates its policy.
 */
export async function test(name, address, { allowed = /^$/, ...options }, use) {
  if (only !== undefined && !name.includes(only)) return;
  const context = await browser.newContext({ ...DESKTOP, permissions: ["clipboard-read", "clipboard-write"], ...options });
  const page = await context.newPage();
  const mistakes = [];
  page.on("console", (message) => mistakes.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => mistakes.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => {
    if (dialog.type() !== "beforeunload") mistakes.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  const origin = new URL(address).origin;
  page.on("request", (request) => {
    const url = request.url();
    const isOwn = new URL(url).origin === origin || /^(data|blob):/.test(url);
    if (!isOwn) mistakes.push(`request: ${url}`);
  });
  page.setDefaultTimeout(15_000);
  try {
    await page.goto(address);
    await use(page, context);
    assert.deepEqual(mistakes.filter((mistake) => !allowed.test(mistake)), []);
    console.log(`ok: ${name}`);
  } catch (error) {
    await page.screenshot({ path: join(screenshots, `failed-${name.replace(/\W+/g, "-")}.png`) }).catch(() => null);
    console.log(`FAILED: ${name}\n${error.stack}`, mistakes);
    process.exitCode = 1;
  } finally {
    await context.close();
  }
}

export const screenshot = (page, name) => page.screenshot({ path: join(screenshots, `${name}.png`), animations: "disabled" });

/** Asserts that axe finds nothing in what is shown, and that nothing is wider than the window. */
export async function assertAccessible(page, what) {
  const { violations } = await new AxeBuilder({ page }).analyze();
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.html.slice(0, 300)} ${node.failureSummary}`).slice(0, 3).join("\n")}`);
  assert.deepEqual(found, [], what);
  const overflow = await page.evaluate(() => [document.documentElement.scrollWidth - innerWidth, document.documentElement.scrollHeight - innerHeight]);
  assert.ok(overflow.every((pixels) => pixels <= 0), `${what}: ${overflow} pixels too large`);
}

/** The messages as the page shows them: role and text. */
export const messagesOf = (page) =>
  page.locator("ol.messages").first().locator("li.message").evaluateAll((items) =>
    items.map((item) => ({ role: item.querySelector("h3").textContent, text: item.querySelector(".text")?.textContent ?? "" })));

/** Waits until the messages are as expected. */
export async function waitForMessages(page, expected) {
  const deadline = Date.now() + 15_000;
  for (;;) {
    const found = await messagesOf(page);
    try {
      expected(found);
      return;
    } catch (error) {
      if (Date.now() > deadline) throw error;
    }
    await page.waitForTimeout(25);
  }
}

/** Pastes a text. */
export const paste = (locator, text) =>
  locator.evaluate((element, text) => {
    const data = new DataTransfer();
    data.setData("text/plain", text);
    element.dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  }, text);

/** Replaces the text in the editor, as a user would. */
export async function type(page, text) {
  await page.locator(".editor .cm-content").click();
  await page.keyboard.press("ControlOrMeta+a");
  await paste(page.locator(".editor .cm-content"), text);
}
