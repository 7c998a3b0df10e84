// Uses the HTML report in Chromium, without a screen: with a mouse, with a keyboard, on a phone, in both color schemes,
// with texts that try to break out, and with many cases.
//
// Usage: page.mjs PROGRAM FIXTURES

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

import { AxeBuilder } from "@axe-core/playwright";
import { chromium } from "playwright-core";

const installed = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
const browserPath = process.env.CHROMIUM ?? installed;
if (browserPath === undefined) {
  console.log("SKIPPED: the HTML report in a browser, which needs Chromium (apt-get install -y chromium)");
  process.exit(0);
}

const [program, fixtures] = process.argv.slice(2).map((path) => resolve(path));
const folder = mkdtempSync(join(tmpdir(), "tympan-report-"));
const screenshots = join(dirname(fileURLToPath(import.meta.url)), "screenshots");
mkdirSync(screenshots, { recursive: true });
const lines = (run) => readFileSync(join(fixtures, run), "utf8").split("\n").filter((line) => line !== "");
const results = (run) => lines(run).map((line) => JSON.parse(line));

/** Writes a page about a saved run, and returns its address. */
function write(name, ...runs) {
  const path = join(folder, `${name}.html`);
  const html = execFileSync(program, ["html", ...runs], { maxBuffer: 1 << 30 });
  writeFileSync(path, html);
  return pathToFileURL(path).href;
}

const run = write("run", join(fixtures, "run.jsonl"), join(fixtures, "before.jsonl"));
const hostile = write("hostile", join(fixtures, "hostile.jsonl"));
const launch = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"];
launch.push("--disable-sync", "--no-first-run");
const browser = await chromium.launch({ executablePath: browserPath, args: launch });

/** Opens a page. Whatever it prints, loads or asks is a mistake. */
async function withPage(address, { allowed = /^$/, ...options }, use) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, offline: true, ...options });
  const page = await context.newPage();
  const mistakes = [];
  page.on("console", (message) => mistakes.push(`console: ${message.text()}`));
  page.on("pageerror", (error) => mistakes.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => mistakes.push(`dialog: ${dialog.message()}`) && dialog.dismiss());
  page.on("request", (request) => request.url().split("#")[0] !== address && mistakes.push(`request: ${request.url()}`));
  try {
    await page.goto(address);
    await use(page);
    assert.deepEqual(mistakes.filter((mistake) => !allowed.test(mistake)), []);
  } catch (error) {
    await page.screenshot({ path: join(screenshots, "failure.png") });
    throw error;
  } finally {
    await context.close();
  }
}

async function test(name, address, options, use) {
  await withPage(address, options, use);
  console.log(`ok: ${name}`);
}

const names = (page) => page.locator(".case .name").allTextContents();
const caseRow = (page, name) => page.locator(".case", { has: page.getByRole("button", { name, exact: true }) });
const screenshot = (page, name) => page.screenshot({ path: join(screenshots, `${name}.png`) });

/** Asserts that axe finds nothing in what is shown, and that nothing is wider than the window. */
async function assertAccessible(page, what) {
  const { violations } = await new AxeBuilder({ page }).analyze();
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).slice(0, 3).join(" ")}`);
  assert.deepEqual(found, [], what);
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(overflow <= 0, `${what}: ${overflow} pixels too wide`);
}

try {
  await test("overview and order", run, {}, async (page) => {
    assert.equal(await page.locator("#status").textContent(), "6 of 29 cases failed");
    assert.equal(await page.locator(".case").count(), 29);
    assert.equal((await names(page))[0], "snapshot of the formal letter", "failures are first");
    const costs = async () =>
      (await page.locator(".case td[data-label=Cost]").allTextContents()).filter((text) => text !== "").map((text) => Number(text.slice(1)));
    const sort = page.getByRole("columnheader", { name: "Cost" });
    await sort.getByRole("button").click();
    assert.equal(await sort.getAttribute("aria-sort"), "descending");
    const falling = await costs();
    assert.equal(falling.length, 16);
    assert.deepEqual(falling, [...falling].sort((one, other) => other - one));
    await sort.getByRole("button").click();
    assert.equal(await sort.getAttribute("aria-sort"), "ascending");
    assert.deepEqual(await costs(), [...falling].sort((one, other) => one - other));
  });

  await test("filters", run, {}, async (page) => {
    const failed = page.getByRole("group", { name: "Verdict" }).getByRole("button", { name: "Failed" });
    await failed.click();
    assert.equal(await failed.getAttribute("aria-pressed"), "true");
    assert.equal(await page.locator(".case").count(), 6);
    assert.equal(await page.locator("#count").textContent(), "6 of 29 cases");
    await page.getByLabel("File", { exact: true }).selectOption("prompts/support/refund.test.yaml");
    assert.equal(await page.locator(".case").count(), 3);
    await page.getByLabel("Model", { exact: true }).selectOption("openai/gpt-4o-mini");
    assert.equal(await page.locator(".case").count(), 2);
    await page.getByLabel("Search", { exact: true }).fill("INVOICE refund");
    assert.deepEqual(await names(page), ["a missing invoice [gpt-4o-mini]"]);
    await page.reload();
    assert.deepEqual(await names(page), ["a missing invoice [gpt-4o-mini]"], "the address has the filters");
    await page.getByLabel("Search", { exact: true }).fill("no such case");
    assert.equal(await page.locator(".none").textContent(), "No case matches the filters.");
  });

  await test("differences", run, {}, async (page) => {
    const why = caseRow(page, "snapshot of the formal letter").locator(".why");
    assert.equal(await why.textContent(), "the messages differ from the snapshot `greeting/formal-en.txt`");
    await page.getByRole("button", { name: "snapshot of the formal letter" }).click();
    assert.equal(await why.isVisible(), false);
    const details = page.locator(".details");
    assert.deepEqual(await details.locator("del").allTextContents(), ["thank you", " been", "on"]);
    assert.deepEqual(await details.locator("ins").allTextContents(), ["thanks", "by", " support"]);
    await details.getByRole("button", { name: "Side by side" }).click();
    const [expected, actual] = await details.locator("pre").allTextContents();
    const { expected: before, actual: after } = results("run.jsonl")[6].attempts[0].checks[1];
    assert.deepEqual([expected, actual], [before, after]);
  });

  await test("attempts", run, {}, async (page) => {
    await page.getByRole("button", { name: "a cancelled trip [gpt-4o-mini]" }).click();
    const details = page.locator(".details");
    await details.getByText("5 of 10 attempts passed: 50 % (95 % interval: 24 % to 76 %), 80 % required.").waitFor();
    const attempts = details.getByRole("group", { name: "Attempts" }).getByRole("button");
    assert.equal(await attempts.count(), 10);
    assert.equal(await attempts.nth(0).getAttribute("aria-label"), "Attempt 1: failed");
    await details.getByText('expected the text "business days", found none').waitFor();
    await attempts.nth(3).click();
    await details.getByText("3 assertions passed").waitFor();
    assert.match(await details.getByRole("group", { name: "Answer" }).textContent(), /was approved/);
  });

  await test("keyboard", run, {}, async (page) => {
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the cases");
    await page.keyboard.press("Enter");
    await page.keyboard.press("/");
    await page.keyboard.type("triage");
    assert.equal(await page.locator(".case").count(), 4);
    await caseRow(page, "invalid ticket").getByRole("button").focus();
    await page.keyboard.press("Enter");
    await page.locator(".details", { hasText: "the prompt does not load" }).waitFor();
    await page.keyboard.press("ArrowDown");
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "urgent ticket");
    await page.keyboard.press("ArrowUp");
    await page.keyboard.press("Enter");
    assert.equal(await page.locator(".details").count(), 0);
    await page.getByRole("tab", { name: "Cases" }).focus();
    await page.keyboard.press("ArrowRight");
    assert.equal(await page.getByRole("tab", { name: "Charts" }).getAttribute("aria-selected"), "true");
    assert.equal(await page.locator("#charts figure").count(), 5);
    await page.keyboard.press("ArrowRight");
    await page.getByRole("tabpanel", { name: "Baseline" }).getByText("5 improved, 0 regressed of").waitFor();
  });

  await test("charts and baseline lead to cases", run, {}, async (page) => {
    await page.getByRole("tab", { name: "Charts" }).click();
    await page.locator("#charts .hit").first().click();
    assert.equal(await page.locator(".details").count(), 1);
    assert.match(await page.evaluate(() => document.activeElement.textContent), /cancelled trip/);
    await page.getByRole("tab", { name: "Baseline" }).click();
    await page.getByText("Improved: 5").click();
    await page.locator("#comparison .link").first().click();
    assert.equal(await page.evaluate(() => document.activeElement.textContent), "a double charge [gpt-4o-mini]");
  });

  for (const colorScheme of ["light", "dark"]) {
    for (const [device, width] of [["desktop", 1280], ["phone", 360]]) {
      const name = `${colorScheme}-${device}`;
      await test(`accessible, ${name}`, run, { colorScheme, viewport: { width, height: 900 } }, async (page) => {
        await screenshot(page, `${name}-overview`);
        await page.getByRole("button", { name: "snapshot of the formal letter" }).click();
        await page.getByRole("button", { name: "a cancelled trip [gpt-4o-mini]" }).click();
        await page.getByRole("button", { name: "urgent ticket" }).click();
        await page.getByRole("button", { name: "ticket with an attachment" }).click();
        await assertAccessible(page, "cases");
        await page.locator(".details").nth(1).scrollIntoViewIfNeeded();
        await screenshot(page, `${name}-details`);
        await page.getByRole("button", { name: "Side by side" }).first().click();
        await assertAccessible(page, "side by side");
        for (const view of ["Charts", "Baseline"]) {
          await page.getByRole("tab", { name: view }).click();
          await assertAccessible(page, view);
          await screenshot(page, `${name}-${view.toLowerCase()}`);
        }
      });
    }
  }

  await test("the other color scheme", run, { colorScheme: "light" }, async (page) => {
    const background = () => page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    const light = await background();
    await page.getByRole("button", { name: "Use dark colors" }).click();
    assert.notEqual(await background(), light);
    await assertAccessible(page, "dark");
    await page.getByRole("button", { name: "Use light colors" }).click();
    assert.equal(await background(), light);
  });

  const control = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff\ufffe\uffff\u{e0000}-\u{e007f}]/gu;
  const label = (char) => `U+${char.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;
  for (const width of [1280, 360]) {
    await test(`hostile texts, ${width} pixels`, hostile, { viewport: { width, height: 900 } }, async (page) => {
      const expected = results("hostile.jsonl");
      // Every name is shown as it is, with control characters written out.
      const shown = await names(page);
      const written = expected.map(({ name, id }) => (name || id).replace(control, label)).filter((name) => name.length < 1000);
      for (const name of written) assert.ok(shown.includes(name), name);
      assert.equal(shown.length, expected.length);
      for (const name of await page.locator(".case .name").all()) await name.click();
      assert.equal(await page.locator(".details").count(), expected.length);
      assert.equal(await page.evaluate(() => document.body.dataset.owned), undefined, "no text is executed");
      const elements = await page.evaluate(() => [...new Set([...document.body.querySelectorAll("*")].map((node) => node.localName))]);
      const allowed = "a b button circle code dd del details div dl dt figcaption figure form h1 h2 header input ins label li line main noscript"
        + " option p path pre polyline rect script section select span summary svg table tbody td text th thead title tr ul";
      assert.deepEqual(elements.filter((name) => !allowed.split(" ").includes(name)), []);
      assert.equal(await page.locator("script").count(), 2);
      assert.equal(await page.locator("a").count(), 1, "only the link to the cases");
      const raw = await page.evaluate(() => document.body.innerText);
      assert.doesNotMatch(raw, /[\u001b\u009b\u202e\u2066\u200b\u2028]/u, "no control characters");
      await assertAccessible(page, "hostile");
      await screenshot(page, `hostile-${width}`);
      await page.getByLabel("Model", { exact: true }).selectOption({ index: 1 });
      assert.equal(await page.locator(".case").count(), 1);
    });
  }

  // The policy is a second lock: a text that became an element would still not be executed.
  const blocking = { allowed: /Content Security Policy|TrustedHTML|TrustedScript|Trusted Type/ };
  await test("the policy blocks what the page does not do", hostile, blocking, async (page) => {
    const blocked = await page.evaluate(() => {
      const isBlocked = (use) => {
        try {
          use();
          return false;
        } catch {
          return true;
        }
      };
      const element = (tag) => document.createElement(tag);
      return {
        parsed: isBlocked(() => (element("div").innerHTML = "<b>text</b>")),
        script: isBlocked(() => (element("script").textContent = "document.body.dataset.owned = 1")),
      };
    });
    assert.deepEqual(blocked, { parsed: true, script: true });
  });

  const MANY = 10_000;
  const one = results("run.jsonl");
  const many = Array.from({ length: MANY }, (_, index) => {
    const result = one[index % one.length];
    return JSON.stringify({ ...result, id: `${result.id} ${index}`, name: `${result.name} ${index}`, file: `prompts/${index % 100}.test.yaml` });
  });
  writeFileSync(join(folder, "many.jsonl"), many.join("\n"));
  await test(`${MANY} cases`, write("many", join(folder, "many.jsonl")), {}, async (page) => {
    assert.ok((await page.locator(".case").count()) <= 200, "only the first rows are there");
    for (const count of [100, 200]) {
      await page.locator("#more").scrollIntoViewIfNeeded();
      await page.locator(".case").nth(count).waitFor();
    }
    await page.getByLabel("Search", { exact: true }).fill(`${MANY - 1}`);
    assert.equal(await page.locator(".case").count(), 1);
    await page.getByLabel("Search", { exact: true }).fill("");
    await page.getByRole("columnheader", { name: "Case" }).getByRole("button").click();
    assert.equal(await page.locator("#count").textContent(), "10,000 cases");
    await page.locator(".case .name").first().click();
    await page.locator(".details").waitFor();
    assert.ok((await page.locator("#charts .hit").count()) <= 60);
    await screenshot(page, "many");
  });
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  await browser.close();
  rmSync(folder, { recursive: true, force: true });
}
