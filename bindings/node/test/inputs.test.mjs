// Inputs without a value, the check of kinds, and warnings about inputs.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Prompt, Runtime, TympanError, invoke, loadStr, prepare, renderAsync, turn, validateInputs } from "tympan";

import { root } from "./support.mjs";

const cases = (name) => JSON.parse(readFileSync(join(root, "fixtures/inputs", name), "utf8"));

/** Returns the warnings that work emits. */
async function warned(work) {
  const found = [];
  const listen = (warning) => warning.name === "InputWarning" && found.push(warning);
  process.on("warning", listen);
  try {
    await work();
    // Warnings are emitted on the next tick.
    await new Promise((resolve) => setImmediate(resolve));
  } finally {
    process.off("warning", listen);
  }
  return found.map(({ code, message }) => [code, message]);
}

for (const item of cases("optional.json")) {
  test(`optional inputs: ${item.name}`, () => {
    const format = item.template ?? "jinja2";
    const prompt = loadStr(`---\ntemplate: ${format}\ninputs:\n  ${item.declared}\n---\n${item.body}`);
    if (item.error !== undefined) {
      assert.throws(() => prompt.render(item.inputs ?? {}), { code: item.error });
      return;
    }
    const rendered = prompt.render(item.inputs ?? {});
    if (item.text !== undefined) assert.equal(rendered.text, item.text);
    const roles = prompt.messages(rendered).map((message) => message.role);
    if (item.roles !== undefined) assert.deepEqual(roles, item.roles);
  });
}

for (const item of cases("kinds.json")) {
  test(`kinds: ${item.name}`, async () => {
    const prompt = loadStr(`---\ninputs:\n  x: ${item.declared}\n---\nuser:\nHi`);
    const strict = new Runtime({ kinds: "error" });
    const warning = new Runtime({ kinds: "warn" });
    const accepted = await warned(() => {
      for (const x of item.accepted) {
        for (const kinds of ["off", "warn", "error"]) prompt.render({ x }, { kinds });
        strict.validateInputs(prompt, { x });
        strict.prepare(prompt, { x });
      }
    });
    assert.deepEqual(accepted, []);
    for (const [x, found] of item.refused) {
      const message = `input \`${item.path ?? "x"}\`: expected ${item.expected}, found ${found}`;
      // A thread becomes messages, so it is read in any case.
      if (!item.always_read) prompt.render({ x });
      const attempts = [
        () => prompt.render({ x }, { kinds: "error" }),
        () => strict.render(prompt, { x }),
        () => strict.prepare(prompt, { x }),
        () => strict.validateInputs(prompt, { x }),
      ];
      for (const attempt of attempts) {
        assert.throws(attempt, (error) => {
          assert(error instanceof TympanError && error.code === "invalid_input");
          assert(error.message.includes(message), error.message);
          return true;
        });
      }
      await assert.rejects(strict.renderAsync(prompt, { x }), { code: "invalid_input" });
      if (item.always_read) continue;
      for (const attempt of [() => prompt.render({ x }, { kinds: "warn" }), () => warning.prepare(prompt, { x })]) {
        const [[code, text]] = await warned(attempt);
        assert.equal(code, "invalid_input");
        assert(text.startsWith(message), text);
      }
    }
  });
}

test("an unknown setting is refused", () => {
  assert.throws(() => loadStr("Hi").render({}, { kinds: "maybe" }), { code: "invalid_input" });
});

test("unknown inputs are warnings, once for each prompt and name", async () => {
  const source = "---\ninputs:\n  question: {kind: string}\n---\nuser:\n{{ question }}{{ extra }}";
  const inputs = { question: "a", extra: "b" };
  const attempts = [
    (prompt, given) => prompt.render(given),
    (prompt, given) => renderAsync(prompt, given),
    (prompt, given) => prepare(prompt, given),
    (prompt, given) => validateInputs(prompt, given),
  ];
  for (const attempt of attempts) {
    const prompt = loadStr(source);
    assert(prompt instanceof Prompt);
    assert.deepEqual(await warned(() => attempt(prompt, inputs)), []);
    const expected = [["unknown_input", "the prompt has no input `questoin`; did you mean `question`?"]];
    const misspelt = { ...inputs, questoin: "c" };
    assert.deepEqual(await warned(() => attempt(prompt, misspelt)), expected);
    assert.deepEqual(await warned(() => attempt(prompt, misspelt)), []);
  }
});

test("prompts given as a path warn as well", async () => {
  const file = join(root, "examples/hello.prompty");
  const options = { provider: "echo", model: "echo" };
  const inputs = { name: "Ada", nmae: "b" };
  const expected = [["unknown_input", "the prompt has no input `nmae`; did you mean `name`?"]];
  assert.deepEqual(await warned(() => invoke(file, inputs, options)), expected);
  assert.deepEqual(await warned(() => turn(file, inputs, { run: options })), expected);
});
