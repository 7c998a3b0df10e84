// Prompts and answers give the same results as in Rust and Python.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Runtime, TympanError, process } from "tympan";

import { promptOf, root } from "./support.mjs";

const read = (path) => JSON.parse(readFileSync(path, "utf8"));
const snake = (name) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

function outcome({ file, inputs, variant, guard = false }) {
  const runtime = new Runtime({ guard });
  const prompt = runtime.load(join(root, file), { validator: false });
  const rendered = runtime.render(prompt, inputs, { variant });
  return {
    name: prompt.name,
    definition_hash: prompt.definitionHash,
    template_hash: rendered.templateHash,
    render_hash: rendered.renderHash,
    variant: rendered.variant,
    text: rendered.text,
    segments: rendered.segments,
    messages: runtime.parse(prompt, rendered),
  };
}

function refusal(error) {
  assert.ok(error instanceof TympanError, String(error));
  const { code, help = null, line = null, column = null } = error;
  return { class: error.class, code, help, line, column };
}

test("prompts", () => {
  const cases = read(join(root, "fixtures/bindings/parity.json"));
  assert.ok(cases.length >= 20);
  for (const { expected, ...one } of cases) {
    let became;
    try {
      became = outcome(one);
    } catch (error) {
      became = refusal(error);
    }
    assert.deepEqual(became, expected, `${one.file} ${JSON.stringify(one.inputs)}`);
  }
});

const models = {
  anthropic_messages: { provider: "anthropic" },
  openai_chat: { provider: "openai" },
  openai_embeddings: { provider: "openai", apiType: "embedding" },
  openai_images: { provider: "openai", apiType: "image" },
  openai_responses: { provider: "openai", apiType: "responses" },
};

test("answers", () => {
  let count = 0;
  for (const [protocol, model] of Object.entries(models)) {
    const folder = join(root, "fixtures/response", protocol);
    for (const file of readdirSync(folder)) {
      const { response, outputs = [], expected } = read(join(folder, file));
      const prompt = promptOf({ model: { id: "m", ...model }, outputs }, "user:\nHi");
      const what = `${protocol}/${file}`;
      count++;
      if (expected.error) {
        assert.throws(() => process(prompt, response), (error) => {
          return error.code === expected.error && error.message.includes(expected.message ?? "");
        }, what);
        continue;
      }
      const run = process(prompt, response);
      assert.deepEqual(run.result, expected.result, what);
      const { id, model: answered, finishReason, problems, usage } = run;
      const numbers = usage && Object.fromEntries(Object.entries(usage).map(([name, value]) => [snake(name), value]));
      const said = { id, model: answered, finish_reason: finishReason, problems, usage: numbers };
      for (const [key, value] of Object.entries(said)) {
        if (expected[key] !== undefined && expected[key] !== null) assert.deepEqual(value, expected[key], `${what}: ${key}`);
      }
    }
  }
  assert.ok(count >= 45, `${count} answers`);
});
