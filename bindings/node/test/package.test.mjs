// The package as its users see it.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { fileURLToPath } from "node:url";
import { execFileSync } from "node:child_process";
import { compileFunction, createContext } from "node:vm";

import * as tympan from "tympan";

import { root } from "./support.mjs";

const require = createRequire(import.meta.url);
const package_ = fileURLToPath(new URL("..", import.meta.url));

test("both kinds of modules are the same", () => {
  const required = require("tympan");
  assert.deepEqual(Object.keys(required).sort(), Object.keys(tympan).sort());
  for (const name of Object.keys(tympan)) assert.equal(required[name], tympan[name], name);
});

test("the lock file names no place where packages come from", () => {
  assert.ok(!readFileSync(join(package_, "package-lock.json"), "utf8").includes('"resolved"'));
});

/** Returns the first code block of a page. */
function firstExample(page) {
  return /```(?:js|ts|typescript)\n([^]*?)```/.exec(readFileSync(page, "utf8"))[1];
}

test("the first examples of the READMEs run as they are printed", () => {
  for (const readme of [join(package_, "README.md"), join(root, "README.md")]) {
    // The paths in the README are relative to the root of the repository.
    const example = firstExample(readme).replaceAll('"examples/', '"../../examples/');
    const output = program(example);
    const printed = example.split("\n").flatMap((line) => /console\.log\(.*\); \/\/ (.*)$/.exec(line)?.[1] ?? []);
    assert.ok(printed.length >= 1, readme);
    assert.equal(output, printed.map((line) => `${line}\n`).join(""));
  }
});

test("the examples of the guide run", () => {
  const guide = readFileSync(join(root, "docs/guide/typescript.md"), "utf8");
  const examples = Array.from(guide.matchAll(/```ts\n([^]*?)```/g), ([, example]) => example);
  assert.ok(examples.length >= 6);
  examples.forEach(program);
});

/** Runs a program in a separate process and returns its output. */
function program(code) {
  return execFileSync(process.execPath, ["--input-type=module", "--eval", code], { cwd: package_, encoding: "utf8" });
}

test("a program ends when its work is done, and when it says so", () => {
  const begin = `
    import { invoke, loadStr, turn } from "tympan";
    await invoke("../../examples/echo.prompty", { question: "?" });
    const script = [{ tool_calls: [{ name: "t", arguments: {} }] }];
    const model = { id: "echo", provider: "echo", options: { additionalProperties: { script } } };
    const prompt = loadStr("---\\n" + JSON.stringify({ model, tools: [{ name: "t", kind: "function" }] }) + "\\n---\\nuser:\\nx");
  `;
  assert.equal(program(`${begin} console.log("end");`), "end\n");
  const never = "turn(prompt, {}, { tools: { t: () => { console.log('runs'); process.exit(0); } } });";
  assert.equal(program(`${begin} ${never}`), "runs\n");
});

/** Loads the package in a context with globals of its own, as Jest does. */
function isolated(file, context = createContext({ process, Buffer, TextEncoder, AbortSignal }), cache = new Map()) {
  if (cache.has(file)) return cache.get(file).exports;
  const module = { exports: {} };
  cache.set(file, module);
  const load = (name) =>
    name.endsWith(".cjs") ? isolated(join(dirname(file), name), context, cache) : createRequire(file)(name);
  const parameters = ["exports", "require", "module"];
  const body = compileFunction(readFileSync(file, "utf8"), parameters, { parsingContext: context, filename: file });
  body(module.exports, load, module);
  return module.exports;
}

test("errors are the same where the globals are others", () => {
  const { TympanError, load } = isolated(join(package_, "dist/index.cjs"));
  assert.throws(
    () => load("missing.prompty"),
    (error) => error instanceof TympanError && error.code === "file_not_found" && !(error instanceof Error),
  );
});

test("threads have the package too", async () => {
  const code = `
    const { parentPort } = require("node:worker_threads");
    const { invoke } = require("tympan");
    invoke("../../examples/echo.prompty", { question: "thread" }).then((run) => parentPort.postMessage(run.result));
  `;
  const workers = [1, 2, 3].map(() => new Worker(code, { eval: true }));
  const answers = await Promise.all(workers.map((worker) => once(worker, "message")));
  assert.deepEqual(answers.flat(), ["thread", "thread", "thread"]);
  await Promise.all(workers.map((worker) => worker.terminate()));
});
