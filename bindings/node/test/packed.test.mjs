// Plain inputs take a faster path than others, with the same results.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { test } from "node:test";

import { TympanError, loadStr, prepare } from "tympan";

import { promptOf } from "./support.mjs";

const any = loadStr("---\nname: any\n---\nsystem:\nÆ\n\nuser:\n{{ x | tojson }}|{{ x }}|{{ y }}\n");

/** Checks that plain inputs give the same messages as a Map, which does not take the fast path. */
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

test("maps of a list are the same, alike or not", () => {
  const lists = [
    [{ a: 1, b: "x" }, { a: 2, b: "y" }, { b: "z", a: 3 }, { a: 4 }, { a: 5, b: "x" }, {}, {}],
    [{ a: undefined, b: 1 }, { a: 2, b: undefined }, { a: undefined, b: undefined }, { a: 4, b: 4 }],
    [{ a: { x: 1 } }, { a: { y: 2 } }, { a: [{ y: 3 }, { x: 4 }] }, { a: { x: { a: 5 } } }],
    [{ a: "a".repeat(127), b: "é".repeat(128) }, { a: "€".repeat(129), b: "" }, { a: "b", b: "🌊".repeat(64) }],
  ];
  for (const x of lists) same(any, { x, y: "" });
});

test("texts are the same, however many and however long", () => {
  for (const length of [127, 128, 32_767, 32_768, 100_000]) {
    same(any, { x: ["a".repeat(length), "b", "c".repeat(length)], y: "é".repeat(length) });
    same(any, { x: Array.from({ length: length / 100 }, (_, at) => `${at}`.repeat(30)), y: "" });
  }
});

test("long texts are the same where they come back by name", () => {
  const prompt = loadStr("system:\nRules: {{ a }}\n{% for d in docs %}[{{ loop.index }}] {{ d }}\n{% endfor %}\nuser:\n{{ q }}\n");
  const long = (character, length = 600) => `${character}“${"x y ".repeat(length / 4)}”${character}`;
  const docs = ["a", "é", "€", "🌊", "b"].map((character) => long(character));
  const alike = ["1", "2", "3"].map((end) => `${"the same beginning ".repeat(40)}${end}`);
  const cases = [
    { a: "short", docs, q: "short" },
    { a: long("a", 128), docs, q: long("q", 128) },
    { a: docs[0], docs, q: docs[4] },
    { a: "", docs: docs.toReversed(), q: docs.join("") },
    { q: docs[2], a: docs[1], docs: [docs[0], docs[0], "", docs[0]] },
    { unused: docs, more: { unused: docs }, a: "", docs, q: "" },
    { a: alike[0], docs: [alike[2], alike[1], ...alike], q: alike[0] },
    { q: "  " + docs[0] + "\n\n", a: docs[0].slice(1), docs: docs.map((text) => `${text}!`) },
  ];
  for (const inputs of cases) {
    const [system, user] = same(prompt, inputs);
    const numbered = inputs.docs.map((text, at) => `[${at + 1}] ${text}\n`).join("");
    assert.equal(system.content[0].value.trimEnd(), `Rules: ${inputs.a}\n${numbered}`.trimEnd());
    assert.equal(user.content[0].value.trim(), inputs.q.trim());
  }
});

test("messages of a thread are the same where they come back by name", () => {
  const prompt = promptOf({ inputs: [{ name: "history", kind: "thread" }] }, "system:\nBe kind.\n\n{{ history }}\n\nuser:\n{{ q }}\n");
  const texts = ["a", "“b”".repeat(50), "c".repeat(127), "d".repeat(128), "é".repeat(700), "", "f".repeat(5000)];
  const history = [...texts, ...texts.toReversed()].map((content, at) => ({ role: at % 2 ? "assistant" : "user", content }));
  const messages = same(prompt, { history, q: texts[4] });
  assert.deepEqual(messages.slice(1, -1).map(({ content }) => content[0].value), history.map(({ content }) => content));
  assert.equal(messages.at(-1).content[0].value, texts[4]);
});

test("maps with many entries are the same", () => {
  for (const length of [16, 17, 64, 65, 1000]) {
    const map = Object.fromEntries(Array.from({ length }, (_, at) => [`key ${at}`, at]));
    same(any, { x: map, y: [map] });
    same(any, { ...map, x: 1, y: 2 });
  }
});

test("properties that change while they are read, or that all objects have, take the other way", () => {
  const changing = {
    get a() {
      delete this.b;
      return 1;
    },
    b: 2,
  };
  // The cached keys would also fit here.
  prepare(any, { y: "", x: { a: 1, b: 2 } });
  assert.equal(prepare(any, { y: "", x: changing })[1].content[0].value.split("|")[0], '{"a": 1}');
  Object.prototype.shared = "shared";
  try {
    same(any, { x: [{ a: 1 }, { a: 2 }], y: "" });
  } finally {
    delete Object.prototype.shared;
  }
});

test("keys that begin like the ones before take nothing along", () => {
  const long = "long ".repeat(60);
  const items = [
    { a: { b: 1, c: long }, d: 2 },
    { a: { b: 1, c: long }, e: long },
    { a: { f: long, b: 1 }, e: 3, g: { b: 1 } },
    { a: { f: "", b: 1 } },
    { a: { b: 2, c: "" }, d: { b: 1, c: { b: 1 } } },
  ];
  same(any, { x: items, y: items.toReversed() });
  same(any, { x: [...items, ...items], y: long });
});

test("the replacement character is a character like any other", () => {
  for (const x of ["\ufffd", "a\ufffdb", "\ufffd".repeat(500), { "\ufffd": "\ufffd" }]) same(any, { x, y: "" });
});

test("half of a surrogate pair is refused, with its place", () => {
  for (const half of ["\ud83c", "\udf0a"]) {
    for (let at = 0; at < 20; at++) {
      const x = { deep: [`${"a".repeat(at)}${half}${"b".repeat(19 - at)}`] };
      assert.throws(() => prepare(any, { x, y: "" }), { code: "invalid_input", message: /inputs\.x\.deep\[0\]/ });
    }
    // Two halves of a surrogate pair in two texts are not a pair.
    assert.throws(() => prepare(any, { x: ["\ud83c", "\udf0a"], y: "" }), { code: "invalid_input" });
    assert.throws(() => prepare(any, { x: { [half]: 1 }, y: "" }), { code: "invalid_input" });
    assert.throws(() => prepare(any, { x: half + "a".repeat(200), y: "" }), { code: "invalid_input" });
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

test("plain inputs take the quick way", () => {
  const { native } = createRequire(import.meta.url)("../dist/native.cjs");
  const runtime = native.NativeRuntime.prototype;
  const slow = runtime.prepare;
  let slowly = 0;
  runtime.prepare = function (...given) {
    slowly++;
    return slow.apply(this, given);
  };
  try {
    for (const length of [0, 1, 127, 128, 129, 40_000]) {
      for (const x of ["a".repeat(length), "é🌊".repeat(length), { deep: [{ a: "b".repeat(length) }, { a: null }] }]) {
        prepare(any, { x, y: "" });
      }
    }
    assert.equal(slowly, 0);
    prepare(any, new Map([["x", 1], ["y", 2]]));
    assert.equal(slowly, 1);
  } finally {
    runtime.prepare = slow;
  }
});
