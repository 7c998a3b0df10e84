// `tympan/testing`, on the cases in fixtures/eval, whose names start with their verdicts.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

import { Runtime } from "tympan";
import * as testing from "tympan/testing";

import { root } from "./support.mjs";

const { describeResult, findTestFiles, loadCases, runCases, testPrompts } = testing;
const package_ = fileURLToPath(new URL("..", import.meta.url));
const fixtures = join(root, "fixtures/eval");
const command = join(process.env.CARGO_TARGET_DIR ?? join(root, "target"), "debug/tympan");
const VERDICTS = { pass: "passed", fail: "failed", line: "failed", not: "not_run", not_run: "not_run", skipped: "skipped" };
// What a terminal, or a reader, could be misled by.
const UNSAFE = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]/;

const folders = [];
after(() => folders.forEach((folder) => rmSync(folder, { recursive: true })));

/** Creates a project with these files and a prompt. The package is installed in it. */
function project(files = {}) {
  const folder = mkdtempSync(join(tmpdir(), "tympan-"));
  folders.push(folder);
  mkdirSync(join(folder, "node_modules"));
  const prompt = "---\ninputs:\n  - {name: who, kind: string, default: Ada}\n---\nuser:\nHello {{ who }}!\nBye.\n";
  const all = { "greeting.prompty": prompt, ...files };
  for (const [name, text] of Object.entries(all)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  return folder;
}

/** The verdict that the name of a case states. */
function expected({ name }) {
  const [, word] = /^(pass|fail|not_run|not|line|skipped)/.exec(name) ?? assert.fail(name);
  return VERDICTS[word];
}

function fixtureFiles() {
  const files = readdirSync(fixtures, { recursive: true }).map(String);
  return files.filter((file) => file.endsWith(".test.yaml")).concat("messages/embedded.prompty").sort();
}

const specifier = JSON.stringify(new URL("../dist/testing.mjs", import.meta.url).href);

/** Runs a test program with `node --test` in a folder, and returns its output. */
function nodeTest(folder, calls, { reporter = "tap", flags = [] } = {}) {
  const program = join(folder, "prompts.test.mjs");
  writeFileSync(program, `import { testPrompts } from ${specifier};\n${calls}\n`);
  const options = ["--test", `--test-reporter=${reporter}`, ...flags, program];
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const { stdout, stderr, status } = spawnSync(process.execPath, options, { cwd: folder, encoding: "utf8", env });
  const count = (what) => Number(new RegExp(`# ${what} (\\d+)`).exec(stdout)?.[1]);
  const totals = { passed: count("pass"), failed: count("fail"), skipped: count("skipped") };
  return { text: stdout, stderr, status, totals };
}

test("verdicts are those of the names", async () => {
  for (const file of fixtureFiles()) {
    const results = await runCases(join(fixtures, file), { allowPrograms: file.startsWith("answers") });
    assert.ok(results.length > 0, file);
    for (const result of results) assert.equal(result.verdict, expected(result), describeResult(result));
  }
});

/** Removes the times, and what depends on them, from a result. */
function untimed({ seconds: _, attempts, ...result }) {
  const camel = (usage) => JSON.parse(JSON.stringify(usage).replace(/_([a-z])/g, (_, letter) => letter.toUpperCase()));
  const shown = ({ seconds: _, ...attempt }) => ({ ...attempt, ...(attempt.usage && { usage: camel(attempt.usage) }) });
  return { ...result, attempts: attempts.map(shown) };
}

test("results are those of the command", { skip: existsSync(command) ? false : "the command is not built" }, async () => {
  const files = fixtureFiles().map((file) => join("fixtures/eval", file));
  const options = ["test", "--allow-programs", "--output-format", "json-lines", "--no-config", ...files];
  const { stdout } = spawnSync(command, options, { cwd: root, encoding: "utf8", maxBuffer: Infinity });
  const lines = stdout.trim().split("\n").map((line) => JSON.parse(line));
  const theirs = lines.filter(({ kind }) => kind === "case").map(({ kind: _, ...result }) => untimed(result));
  const here = [];
  const before = process.cwd();
  process.chdir(root);
  try {
    for (const file of files) here.push(...(await runCases(file, { allowPrograms: true })).map(untimed));
  } finally {
    process.chdir(before);
  }
  assert.ok(here.length > 150);
  const byId = (one, other) => (one.id < other.id ? -1 : 1);
  assert.deepEqual(here.sort(byId), theirs.sort(byId));
});

test("each case is a test with its verdict", () => {
  const folder = project();
  cpSync(fixtures, join(folder, "prompts"), { recursive: true });
  const { text, status, totals } = nodeTest(folder, 'testPrompts("prompts", { allowPrograms: true });');
  const cases = fixtureFiles().flatMap((file) => loadCases(join(folder, "prompts", file)));
  const count = (...verdicts) => cases.filter((one) => verdicts.includes(expected(one))).length;
  assert.ok(cases.length > 150);
  assert.deepEqual(totals, { passed: count("passed"), failed: count("failed", "not_run"), skipped: count("skipped") });
  assert.equal(status, 1);
  for (const one of cases) {
    const name = one.name.replaceAll("\\", "\\\\").replaceAll("#", "\\#");
    const line = text.split("\n").find((line) => /^ *(not )?ok /.test(line) && line.includes(` - ${name}`));
    assert.ok(line, name);
    assert.equal(/^ *ok/.test(line), ["passed", "skipped"].includes(expected(one)), line);
  }
  assert.ok(!UNSAFE.test(text));
  assert.equal(nodeTest(folder, 'testPrompts("prompts", { only: "pass: messages" });').status, 0);
});

test("failures show the message, the position and the difference", () => {
  const text = 'cases:\n  - name: greets\n    expect:\n      - message: {equals: "Hello Bob!\\nBye."}\n';
  const folder = project({ "greeting.test.yaml": text });
  const tap = nodeTest(folder, 'testPrompts("greeting.test.yaml");');
  assert.deepEqual(tap.totals, { passed: 0, failed: 1, skipped: 0 });
  for (const part of [
    /greets \(greeting\.test\.yaml:2\)/,
    /greeting\.test\.yaml:4: message: expected /,
    /  -Hello Bob!/,
    /  \+Hello Ada!/,
    /code: 'ERR_ASSERTION'/,
    /expected: \|-\n +Hello Bob!\n +Bye\./,
    /actual: \|-\n +Hello Ada!\n +Bye\./,
  ]) {
    assert.match(tap.text, part);
  }
  // One difference is enough.
  assert.doesNotMatch(tap.text, /\+ actual - expected/);
  const spec = nodeTest(folder, 'testPrompts(".");', { reporter: "spec" });
  assert.ok(spec.text.includes(`at ${join(folder, "greeting.test.yaml")}:4:1`), spec.text);
  assert.doesNotMatch(spec.text, /^ +at .*testing\.cjs/m);
});

test("cases that cannot run are failures unless they are allowed", () => {
  const text = "cases:\n  - name: asks\n    model: gpt-4o\n    expect: [{result: {contains: a}}]\n";
  const folder = project({ "greeting.test.yaml": text });
  const refused = nodeTest(folder, 'testPrompts(".");');
  assert.deepEqual(refused.totals, { passed: 0, failed: 1, skipped: 0 });
  assert.match(refused.text, /greeting\.test\.yaml:4: result: .*cassette/);
  const allowed = nodeTest(folder, 'testPrompts(".", { allowMissing: true });');
  assert.deepEqual(allowed.totals, { passed: 0, failed: 0, skipped: 1 });
  assert.match(allowed.text, /ok 1 - asks # SKIP .*cassette/);
});

test("skipped cases have their reason", () => {
  const folder = project({ "greeting.test.yaml": "cases:\n  - {name: later, skip: no time, expect: []}\n" });
  const { text, totals } = nodeTest(folder, 'testPrompts(".");');
  assert.deepEqual(totals, { passed: 0, failed: 0, skipped: 1 });
  assert.match(text, /ok 1 - later # SKIP no time/);
});

test("a broken file is one failing test with its position, and other files still run", () => {
  const folder = project({
    "a/broken.test.yaml": "prompt: ../greeting.prompty\ncases:\n  - nmae: one\n",
    "b/other.test.yaml": "prompt: ../greeting.prompty\ncases:\n  - {name: one, expect: [{messages: 1}]}\n",
    "c/lonely.test.yaml": "cases:\n  - {name: one, expect: [{messages: 1}]}\n",
  });
  const { text, status, totals } = nodeTest(folder, 'testPrompts(".");');
  assert.deepEqual(totals, { passed: 1, failed: 2, skipped: 0 });
  assert.equal(status, 1);
  assert.match(text, /^not ok 1 - a\/broken\.test\.yaml$/m);
  assert.match(text, /error: .*nmae.*a\/broken\.test\.yaml:3:\d+/s);
  assert.ok(text.includes(`${join(folder, "a/broken.test.yaml")}:3:1`), text);
  assert.match(text, /no prompt file `lonely\.prompty`/);
});

test("finding nothing is a failing test", () => {
  const folder = project({ "greeting.test.yaml": "cases:\n  - {name: one, expect: [{messages: 1}]}\n" });
  mkdirSync(join(folder, "empty"));
  const none = nodeTest(folder, 'testPrompts("empty");');
  assert.deepEqual(none.totals, { passed: 0, failed: 1, skipped: 0 });
  assert.match(none.text, /no tests of prompts found in empty: add `NAME\.test\.yaml` beside a prompt file/);
  assert.match(nodeTest(folder, 'testPrompts(".", { only: "two" });').text, /no case is selected by `only`/);
  assert.match(nodeTest(folder, 'testPrompts("nowhere");').text, /error: .*nowhere/);
});

test("names select cases", async () => {
  const text =
    "cases:\n  - name: one\n    matrix: {inputs: {who: [Ada, Bob]}}\n    expect: [{messages: 1}]\n" +
    "  - {name: two, expect: [{messages: 2}]}\n";
  const folder = project({ "greeting.test.yaml": text });
  const passed = (count) => ({ passed: count, failed: 0, skipped: 0 });
  const run = (options, flags) => nodeTest(folder, `testPrompts(".", ${options});`, { flags });
  for (const [only, count] of [['"ONE"', 2], ["/bob/i", 1], ['({ name }) => name.endsWith("[who=Ada]")', 1]]) {
    assert.deepEqual(run(`{ only: ${only} }`, []).totals, passed(count), only);
  }
  // Node also counts tests that the pattern does not select, as skipped or not at all.
  const { totals, text: tap } = run("{}", ["--test-name-pattern", "Bob"]);
  assert.deepEqual([totals.passed, totals.failed], [1, 0], tap);
});

test("no text of a file controls the terminal", () => {
  const evil = "\\e[2J\\u202e\\u009b\\r";
  const text =
    `cases:\n  - name: "a ${evil}"\n    inputs: {who: "${evil}", "${evil}": b}\n` +
    `    expect:\n      - message: {equals: "b ${evil}"}\n` +
    `  - {name: "c ${evil}", skip: "${evil}", expect: []}\n`;
  const folder = project({ "greeting.test.yaml": text });
  for (const reporter of ["tap", "spec"]) {
    const { text, stderr } = nodeTest(folder, 'testPrompts(".");', { reporter });
    assert.ok(text.includes("u{1b}[2J"), text);
    assert.ok(!UNSAFE.test((text + stderr).replace(/\x1b\[\d+m/g, "")), text);
  }
});

test("snapshots are written and programs run on request", async () => {
  const program = JSON.stringify([process.execPath, "-e", "console.log('{\"pass\": true}')"]);
  const folder = project({
    "greeting.test.yaml": "cases:\n  - {name: one, expect: [{message: {snapshot: true}}]}\n",
    "other.test.yaml":
      "prompt: greeting.prompty\ncases:\n  - name: one\n    answer: {text: hi}\n" +
      `    expect:\n      - program: {command: ${program}}\n`,
  });
  const verdict = async (file, options) => (await runCases(join(folder, file), options))[0].verdict;
  assert.equal(await verdict("greeting.test.yaml"), "failed");
  assert.equal(await verdict("greeting.test.yaml", { accept: true }), "passed");
  assert.equal(await verdict("greeting.test.yaml"), "passed");
  assert.ok(existsSync(join(folder, "snapshots/greeting/one.txt")));
  assert.equal(await verdict("other.test.yaml"), "not_run");
  assert.equal(await verdict("other.test.yaml", { allowPrograms: true }), "passed");
});

test("answers are recorded on request, and replayed without a network", async () => {
  const answer = { id: "a", model: "m", choices: [{ index: 0, message: { role: "assistant", content: "Hi!" }, finish_reason: "stop" }] };
  let calls = 0;
  const server = createServer((_, response) => {
    calls += 1;
    response.setHeader("content-type", "application/json").end(JSON.stringify(answer));
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const endpoint = `http://127.0.0.1:${server.address().port}/v1`;
  const folder = project({
    "asks.prompty": `---\nmodel: {id: m, provider: openai, connection: {kind: key, endpoint: "${endpoint}", apiKey: k}}\n---\nuser:\nHi?\n`,
    "asks.test.yaml": "cases:\n  - {name: one, expect: [{result: {equals: Hi!}}]}\n",
  });
  const run = async (options) => (await runCases(join(folder, "asks.test.yaml"), options))[0];
  assert.equal((await run({})).verdict, "not_run");
  assert.equal(calls, 0);
  const recorded = await run({ record: true });
  assert.equal(recorded.verdict, "passed", describeResult(recorded));
  assert.equal((await run({ live: true })).verdict, "passed");
  assert.equal(calls, 2);
  server.close();
  assert.equal((await run({})).verdict, "passed");
  assert.ok(readdirSync(join(folder, "cassettes")).length > 0);
});

test("functions of a runtime are there", async () => {
  const folder = project({
    "loud.prompty":
      "---\ninputs: [{name: who}]\ntests:\n  - {name: shouts, inputs: {who: Ada}, expect: [{message: {equals: ADA}}]}\n" +
      "---\nuser:\n{{ who | shouted_for_a_test }}\n",
  });
  const runtime = new Runtime();
  runtime.registerFilter("shouted_for_a_test", (text) => text.toUpperCase());
  const [result] = await runCases(join(folder, "loud.prompty"), { runtime });
  assert.equal(result.verdict, "passed", describeResult(result));
});

test("directories have the tests that the command finds", { skip: !existsSync(command) }, () => {
  const cases = "prompt: ../greeting.prompty\ncases:\n  - {name: one, expect: [{messages: 1}]}\n";
  const prompt = (tests) => `---\nname: a\n${tests}---\nuser:\nHello\n`;
  const folder = project({
    ".gitignore": "ignored\n",
    "tympan.toml": '[check]\nexclude = ["excluded"]\n',
    "a/one.test.yaml": cases,
    "a/two.test.json": JSON.stringify({ prompt: "../greeting.prompty", cases: [{ name: "two", expect: [{ messages: 1 }] }] }),
    "a/three.prompty": prompt("tests: [{name: three, expect: [{messages: 1}]}]\n"),
    "a/four.prompty": prompt(""),
    "a/five.prompty": "---\ninputs: [\n",
    "a/settings.yaml": "tests: 7\n",
    ...Object.fromEntries(["ignored", "excluded", ".hidden", "node_modules"].map((name) => [`${name}/one.test.yaml`, cases])),
  });
  const { stdout } = spawnSync(command, ["test", "--output-format", "json-lines"], { cwd: folder, encoding: "utf8" });
  const lines = stdout.trim().split("\n").map((line) => JSON.parse(line));
  const theirs = lines.filter(({ kind }) => kind === "case").map(({ id }) => id);
  const before = process.cwd();
  process.chdir(folder);
  try {
    const here = findTestFiles(".").flatMap((file) => loadCases(file).map(({ id }) => id));
    assert.deepEqual(here.sort(), theirs.sort());
    assert.deepEqual(here, ["a/one.test.yaml::one", "a/three.prompty::three", "a/two.test.json::two"]);
    // A file that is named is there, also twice.
    assert.deepEqual(findTestFiles(["excluded/one.test.yaml", "a", new URL(`file://${folder}/a/one.test.yaml`)]), [
      "excluded/one.test.yaml",
      "a/one.test.yaml",
      "a/three.prompty",
      "a/two.test.json",
    ]);
  } finally {
    process.chdir(before);
  }
});

/** A test runner that records what is defined, and passes this context to tests. */
function recorder(...context) {
  const tests = [];
  const describe = (name, body) => (tests.push({ describe: name }), body());
  const define = (name, body) => tests.push({ name, run: () => body(...context), parameters: body.length });
  define.skip = (name) => tests.push({ name, isSkipped: true });
  return { tests, describe, test: define };
}

test("other test runners work too", async () => {
  const text =
    "cases:\n  - {name: one, expect: [{messages: 1}]}\n  - {name: two, expect: [{messages: 2}]}\n" +
    "  - {name: three, skip: later, expect: []}\n  - {name: four, model: gpt-4o, expect: [{result: {exists: true}}]}\n";
  const folder = project({ "greeting.test.yaml": text });
  const jest = recorder();
  testPrompts(folder, { describe: jest.describe, test: jest.test, allowMissing: true });
  const [group, one, two, three, four] = jest.tests;
  assert.equal(group.describe, join(folder, "greeting.test.yaml"));
  assert.deepEqual([one.name, two.name, three.name, four.name], ["one", "two", "three", "four"]);
  // Jest waits for a callback if a function declares a parameter.
  assert.deepEqual([one.parameters, two.parameters], [0, 0]);
  await one.run();
  await assert.rejects(two.run(), { name: "AssertionError", message: /two.*messages/s });
  assert.ok(three.isSkipped);
  const warned = [];
  const listen = (warning) => warned.push(warning.message);
  process.on("warning", listen);
  await four.run();
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", listen);
  assert.match(warned.join(), /four: not run: .*cassette/);
  const reasons = [];
  const vitest = recorder({ skip: (reason) => reasons.push(reason), signal: new AbortController().signal });
  testPrompts(new URL(`file://${folder}/`), { describe: vitest.describe, test: vitest.test, allowMissing: true });
  await vitest.tests.at(-1).run();
  assert.match(reasons.join(), /cassette/);
});

test("a test whose signal is aborted ends", async () => {
  const [one] = loadCases(join(root, "examples/hello.test.yaml"));
  await assert.rejects(one.run({ signal: AbortSignal.abort() }), { code: "cancelled" });
});

test("wrong arguments are errors", () => {
  const { describe, test } = recorder();
  for (const [options, message] of [
    [{ recrod: true }, /unknown option `recrod`/],
    [{ only: 7, describe, test }, /only: expected a string, a regular expression or a function/],
    [{ describe }, /expected both functions of a test runner/],
    [{ describe, test: () => {} }, /expected both functions of a test runner/],
  ]) {
    assert.throws(() => testPrompts(join(root, "examples"), options), { code: "invalid_input", message });
  }
  assert.throws(() => testPrompts(7), { code: "invalid_input" });
  assert.throws(() => loadCases("nowhere.test.yaml"), { code: "file_not_found" });
  assert.throws(() => loadCases(join(root, "examples/hello.test.yaml"), { lvie: true }), { code: "invalid_input" });
  assert.deepEqual(loadCases(join(root, "examples/hello.prompty")), []);
});

test("descriptions of large texts are short", async () => {
  const [result] = await runCases(join(root, "examples/hello.test.yaml"));
  const check = { assertion: "message", line: 3, status: "failed", expected: "a\n".repeat(1e5), actual: "b".repeat(1e6) };
  assert.ok(describeResult({ ...result, attempts: [{ passed: false, checks: [check, check, check] }] }).length < 20_000);
});

test("both kinds of modules are the same", () => {
  const required = createRequire(import.meta.url)("tympan/testing");
  assert.deepEqual(Object.keys(required).sort(), Object.keys(testing).sort());
  for (const name of Object.keys(testing)) assert.equal(required[name], testing[name], name);
});

test("the example of the guide runs as printed", () => {
  const page = readFileSync(join(root, "docs/guide/testing.md"), "utf8");
  const [, code, options, printed] = /```js\n(\/\/ prompts\.test\.mjs\n[^`]*)```\s+```text\n\$ node --test (.*)\n([^`]*)```/.exec(page);
  const folder = project();
  cpSync(join(root, "examples"), join(folder, "examples"), { recursive: true });
  writeFileSync(join(folder, "prompts.test.mjs"), code.replace('"tympan/testing"', specifier));
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const arguments_ = ["--test", ...options.split(" ")];
  const { stdout } = spawnSync(process.execPath, arguments_, { cwd: folder, encoding: "utf8", env });
  const shown = stdout.replace(/\(\d+(\.\d+)?ms\)/g, "([..]ms)").split("\n");
  const total = shown.findIndex((line) => line.startsWith("ℹ"));
  // Versions of Node mark the end of a group differently.
  const same = (line) => line.replace(/^▶/, "✔");
  assert.deepEqual(shown.slice(0, total).filter((line) => line !== "").map(same), printed.trim().split("\n").map(same), stdout);
});
