// Policies, and the segments of messages, give the same results as in Rust and Python.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Runtime } from "tympan";

import { root } from "./support.mjs";

const read = (name) => JSON.parse(readFileSync(join(root, "fixtures/bindings", name), "utf8"));

const ways = {
  render: (runtime, prompt, inputs) => runtime.render(prompt, inputs),
  messages: (runtime, prompt, inputs) => runtime.parse(prompt, new Runtime().render(prompt, inputs)),
  prepare: (runtime, prompt, inputs) => runtime.prepare(prompt, inputs),
  run: (runtime, prompt, inputs) => runtime.invoke(prompt, inputs, { provider: "echo" }),
  turn: (runtime, prompt, inputs) => runtime.turn(prompt, inputs, { run: { provider: "echo" } }),
};

for (const [way, use] of Object.entries(ways)) {
  test(`the policy is enforced by ${way}`, async () => {
    for (const { name, prompt: text, inputs, policy, error } of read("policy.json")) {
      const runtime = new Runtime({ policy });
      const prompt = runtime.loadStr(text);
      const used = async () => use(runtime, prompt, inputs);
      if (error === null) {
        await used();
        continue;
      }
      await assert.rejects(used, (found) => {
        assert.deepEqual([found.code, found.line], ["policy_violation", error.line], name);
        return found.message.includes(error.input);
      });
    }
  });
}

test("a render can have its own policy", async () => {
  const runtime = new Runtime();
  for (const { name, prompt: text, inputs, policy, error } of read("policy.json")) {
    const prompt = runtime.loadStr(text);
    const renders = [
      async () => runtime.render(prompt, inputs, { policy }),
      async () => prompt.render(inputs, { policy }),
      () => runtime.renderAsync(prompt, inputs, { policy }),
    ];
    for (const render of renders) {
      if (error === null) await render();
      else await assert.rejects(render, { code: "policy_violation", line: error.line }, name);
    }
  }
});

test("a render cannot allow more than the runtime", () => {
  const runtime = new Runtime({ policy: { untrusted: ["user"] } });
  const prompt = runtime.loadStr("system:\n{{ q }}");
  const render = (untrusted) => runtime.render(prompt, { q: "Hi" }, { policy: { untrusted } });
  assert.throws(() => render(["system", "user"]), { code: "policy_violation" });
  assert.throws(() => render(["nobody"]), /untrusted/);
});

test("messages name the inputs of their bytes", () => {
  const runtime = new Runtime();
  for (const { name, prompt: text, inputs, messages } of read("segments.json")) {
    const prompt = runtime.loadStr(text);
    assert.deepEqual(prompt.messagesWithSegments(runtime.render(prompt, inputs)), messages, name);
  }
});
