// Memory stays flat, however much is rendered.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

const program = `
import { Prompt, prepare } from "tympan";

const prompt = Prompt.fromYaml("{name: a, role: user, body: 'Hello {{ x }}', variables: {x: {type: string, trusted: false}}}");

async function round(renders) {
  for (let i = 0; i < renders; i++) {
    prompt.render({ x: "Ada " + i }).text;
    prepare(prompt, { x: "Ada " + i });
    // What is to be forgotten is forgotten between two turns of the event loop.
    if (i % 10_000 === 0) await new Promise(setImmediate);
  }
  await new Promise(setImmediate);
  gc();
  return process.memoryUsage().rss;
}

const before = await round(50_000);
const after = await round(100_000);
console.log((after - before) / 100_000);
`;

test("renders leave nothing behind", () => {
  const package_ = fileURLToPath(new URL("..", import.meta.url));
  const flags = ["--expose-gc", "--max-semi-space-size=1", "--input-type=module", "--eval", program];
  const grown = Number(execFileSync(process.execPath, flags, { cwd: package_, encoding: "utf8" }));
  // The smallest rendered prompt has some hundred bytes.
  assert.ok(grown < 150, `${grown} bytes for each render`);
});
