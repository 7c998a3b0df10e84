// Memory usage stays flat, however much is rendered.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

/** The number of renders, and of the other calls. */
const RENDERS = 1_000_000;
const OTHERS = 5_000;

const program = `
import { Prompt, Runtime, loadStr, prepare } from "tympan";
import { z } from "zod";

const definition = { name: "a", role: "user", body: "Hello {{ x }}", variables: { x: { type: "string", trusted: false } } };
const prompt = Prompt.fromDefinition(definition);
const validated = Prompt.fromDefinition(definition, { validator: z.object({ x: z.string() }) });
const runtime = new Runtime();
runtime.registerRenderer("own", (template, { x }) => template + x);
runtime.registerProvider("own", async function* () { yield "One"; throw new Error("mine"); });
const own = loadStr("---\\nmodel: {id: m, provider: own}\\ntemplate: {format: own}\\n---\\nuser:\\n");

async function memory() {
  await new Promise(setImmediate);
  gc();
  return process.memoryUsage().rss;
}

async function renders(count) {
  for (let i = 0; i < count; i++) {
    const x = "Ada " + i;
    if (i % 2 === 0) prepare(i % 4 === 0 ? prompt : validated, { x });
    else prompt.render({ x }).text;
    // Let the garbage collector run finalizers between two turns of the event loop.
    if (i % 10_000 === 0) await new Promise(setImmediate);
  }
  return memory();
}

async function others(count) {
  for (let i = 0; i < count; i++) {
    const x = "Ada " + i;
    runtime.prepare(own, { x });
    await runtime.prepareAsync(own, { x });
    await runtime.invoke(own, { x }).catch(() => {});
  }
  return memory();
}

const grown = async (work, count) => (-(await work(count / 4)) + (await work(count))) / count;
console.log(JSON.stringify([await grown(renders, ${RENDERS}), await grown(others, ${OTHERS})]));
`;

test("nothing is left behind", () => {
  const package_ = fileURLToPath(new URL("..", import.meta.url));
  const flags = ["--expose-gc", "--max-semi-space-size=1", "--input-type=module", "--eval", program];
  const [rendered, other] = JSON.parse(execFileSync(process.execPath, flags, { cwd: package_, encoding: "utf8" }));
  // Even the smallest rendered prompt has a few hundred bytes, and each of the other calls allocates many objects.
  assert.ok(rendered < 50, `${rendered} bytes for each render`);
  assert.ok(other < 2000, `${other} bytes for each call`);
});
