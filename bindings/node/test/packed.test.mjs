// Plain inputs cross in a quicker way than all others, and nobody can tell.

import assert from "node:assert/strict";
import { test } from "node:test";

import { TympanError, loadStr, prepare } from "tympan";

import { promptOf } from "./support.mjs";

const any = loadStr("---\nname: any\n---\nsystem:\nÆ\n\nuser:\n{{ x | tojson }}|{{ x }}|{{ y }}\n");

/** What plain inputs become, which is what they become in a Map: that one is not plain. */
function same(prompt, inputs) {
  const messages = prepare(prompt, inputs);
  assert.deepEqual(messages, prepare(prompt, new Map(Object.entries(inputs))));
  return messages;
}

test("values are the same whichever way they take", () => {
  const values = [
    "", "text", "Ærø", "東京", "🌊", null, true, false, 0, -0, 1, -1, 1.5, -0.1, 1e-7, 1e300, 2 ** 31, -(2 ** 53) + 1, 2 ** 60, 1e21,
    [], {}, [undefined, 1], [[[]], [{}]], { a: undefined, b: null }, { 2: "two", 1: "one", a: { a: { a: "a" } } },
    [{ role: "user", n: 1 }, { n: 2, role: "🌊" }, { other: 3 }], { "": "", "ключ": "ключ", __proto__: null }, [, 1],
    JSON.parse('{"__proto__": 1}'), Array.from({ length: 3000 }, (_, at) => ({ at, text: `${at}` })),
  ];
  for (const x of values) same(any, { x, y: "" });
});

test("text is the same wherever a character of more than one unit stands", () => {
  for (const character of ["é", "€", "🌊"]) {
    for (let length = 0; length < 40; length++) {
      for (let at = 0; at <= length; at++) {
        const x = "a".repeat(at) + character + "b".repeat(length - at);
        const [, user] = prepare(any, { x, y: character.repeat(length) });
        assert.equal(user.content[0].value, `"${x}"|${x}|${character.repeat(length)}`);
      }
    }
  }
});

test("half of a surrogate pair is refused, with its place", () => {
  for (const half of ["\ud83c", "\udf0a"]) {
    for (let at = 0; at < 20; at++) {
      const x = { deep: [`${"a".repeat(at)}${half}${"b".repeat(19 - at)}`] };
      assert.throws(() => prepare(any, { x, y: "" }), { code: "invalid_input", message: /inputs\.x\.deep\[0\]/ });
    }
    assert.throws(() => prepare(any, { x: { [half]: 1 }, y: "" }), { code: "invalid_input" });
  }
});

test("what is not plain takes the other way", () => {
  class Point {
    x = 1;
  }
  const text = (x) => prepare(any, { x, y: "" })[1].content[0].value.split("|")[0];
  assert.equal(text(new Point()), '{"x": 1}');
  assert.equal(text({ toJSON: () => "mine" }), '"mine"');
  assert.equal(text(Object.defineProperty({}, "toJSON", { value: () => "mine" })), '"mine"');
  assert.equal(text([new Date(0)]), '["1970-01-01T00:00:00+00:00"]');
  assert.equal(text(2n ** 60n), "1152921504606846976");
  const endless = {};
  endless.endless = endless;
  for (const x of [NaN, Infinity, () => {}, Symbol("x"), endless]) {
    assert.throws(() => prepare(any, { x, y: "" }), TympanError);
  }
  for (const inputs of [[], 1, "text", [1]]) assert.throws(() => prepare(any, inputs), { code: "invalid_input" });
});

test("a property may be computed, and prepare another prompt meanwhile", () => {
  const hello = loadStr("user:\nHello {{ name }}!\n");
  const inputs = {
    x: "one",
    get y() {
      return prepare(hello, { name: "Ada" })[0].content[0].value;
    },
  };
  assert.match(prepare(any, inputs)[1].content[0].value, /\|Hello Ada!$/);
  const failing = {
    get x() {
      throw new RangeError("mine");
    },
  };
  assert.throws(() => prepare(any, failing), RangeError);
  assert.equal(prepare(hello, { name: "Bo" })[0].content[0].value, "Hello Bo!");
});

test("messages with more than a text are the same too", () => {
  const inputs = [{ name: "history", kind: "thread" }, { name: "picture", kind: "image" }];
  const prompt = promptOf({ inputs }, "system:\nYou see.\n\n{{ history }}\n\nuser:\nLook: {{ picture }}\n");
  const calls = [{ id: "1", name: "look", arguments: "{}" }];
  const history = [
    { role: "assistant", content: "I look.", metadata: { tool_calls: calls } },
    { role: "tool", content: "A tree.", metadata: { tool_call_id: "1" } },
  ];
  const messages = same(prompt, { history, picture: "https://example.com/a.png" });
  assert.deepEqual(messages.map(({ role }) => role), ["system", "assistant", "tool", "user"]);
  assert.equal(messages[3].content.at(-1).kind, "image");
});
