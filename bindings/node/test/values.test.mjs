// The conversion of values: the table in docs/guide/values.md.

import assert from "node:assert/strict";
import { test } from "node:test";

import { TympanError, loadStr, prepare, validateInputs } from "tympan";

const any = loadStr("---\nname: any\n---\n{{ x | tojson }}");

function shown(x) {
  return any.render({ x }).text;
}

function refused(inputs, words) {
  assert.throws(
    () => any.render(inputs),
    (error) => {
      assert.ok(error instanceof TympanError, String(error));
      assert.equal(error.code, "invalid_input");
      assert.ok(error.message.includes(words), error.message);
      return true;
    },
  );
}

test("numbers", () => {
  assert.equal(shown(1), "1");
  assert.equal(shown(2.5), "2.5");
  assert.equal(shown(-0), "0");
  assert.equal(shown(Number.MAX_SAFE_INTEGER), "9007199254740991");
  for (const x of [NaN, Infinity, -Infinity]) refused({ x }, "inputs.x: ");
});

test("BigInts are integers of 64 bits, and text beyond that", () => {
  assert.equal(shown(1n), "1");
  assert.equal(shown(2n ** 64n - 1n), "18446744073709551615");
  assert.equal(shown(-(2n ** 63n)), "-9223372036854775808");
  assert.equal(shown(2n ** 64n), '"18446744073709551616"');
  assert.equal(shown(-(2n ** 63n) - 1n), '"-9223372036854775809"');
  assert.equal(shown([10n ** 30n, { a: -(10n ** 30n) }]), `["1${"0".repeat(30)}", {"a": "-1${"0".repeat(30)}"}]`);
});

test("integers that numbers cannot hold come back as BigInts, and all else as it was", () => {
  const x = {
    list: [1, 2n ** 60n, "1152921504606846976"],
    __proto__: null,
    deep: { down: -(2n ** 62n) },
    safe: 2 ** 53 - 1,
  };
  const { x: back } = validateInputs(any, { x });
  assert.deepEqual(back, { list: x.list, deep: x.deep, safe: x.safe });
  assert.equal(validateInputs(any, { x: 2n ** 53n }).x, 2n ** 53n);
  assert.equal(validateInputs(any, { x: 2n ** 53n - 1n }).x, 2 ** 53 - 1);
});

test("Dates are written as Python writes them", () => {
  assert.equal(shown(new Date("2026-06-28T12:30:00Z")), '"2026-06-28T12:30:00+00:00"');
  assert.equal(shown(new Date("2026-06-28T12:30:00.050Z")), '"2026-06-28T12:30:00.050000+00:00"');
  refused({ x: new Date(NaN) }, "inputs.x: invalid Date");
});

test("undefined is left out of objects and null in arrays; null is null", () => {
  assert.equal(shown({ a: undefined, b: null }), '{"b": null}');
  assert.equal(shown([undefined, null]), "[null, null]");
  assert.throws(() => any.render({ x: undefined }), { code: "undefined_variable" });
  assert.equal(shown(null), "null");
});

test("bytes are base64, other typed arrays are lists", () => {
  assert.equal(shown(Buffer.from("hello")), '"aGVsbG8="');
  assert.equal(shown(new Uint8Array([1, 2, 3]).subarray(1)), '"AgM="');
  assert.equal(shown(new Uint8Array([255]).buffer), '"/w=="');
  assert.equal(shown(new Float64Array([0.5, 1])), "[0.5, 1]");
  assert.equal(shown(new BigInt64Array([-1n])), "[-1]");
});

test("Maps, Sets, boxes and toJSON", () => {
  assert.equal(shown(new Map([["a", new Set([1, 2])]])), '{"a": [1, 2]}');
  assert.equal(any.render(new Map([["x", 1]])).text, "1");
  refused({ x: new Map([[1, 2]]) }, "inputs.x: expected string keys in a Map");
  assert.equal(shown(Object("a")), '"a"');
  assert.equal(shown(new URL("https://example.com/")), '"https://example.com/"');
  assert.equal(shown({ toJSON: () => ({ a: 1n }) }), '{"a": 1}');
  class Point {
    #hidden = 0;
    x = 1;
    get y() {
      return this.#hidden;
    }
  }
  assert.equal(shown(new Point()), '{"x": 1}');
});

test("what JSON.stringify would write otherwise is written here", () => {
  const list = Object.assign([1], { toJSON: () => "never asked" });
  assert.equal(shown({ list }), '{"list": [1]}');
  assert.equal(shown([{ toJSON: () => undefined, a: 1 }]), "[null]");
  assert.equal(shown(Object.create({ toJSON: () => "inherited" })), '"inherited"');
  assert.equal(shown(Object.assign(Object.create(null), { a: [undefined, -0] })), '{"a": [null, 0]}');
  refused({ x: { list: [1, { deep: "\udc00" }] } }, "inputs.x.list[1].deep: the string contains a lone surrogate");
  refused({ x: { "\ud800": 1 } }, "the string contains a lone surrogate");
  refused({ x: { list: [NaN] } }, "inputs.x.list[0]: NaN");
  // Getters of otherwise plain values are read twice. The second value must follow the same rules.
  for (const second of [1n, "\ud800", () => 1]) {
    let reads = 0;
    const x = Object.defineProperty({}, "a", { enumerable: true, get: () => (reads++ === 0 ? 1 : second) });
    let text;
    try {
      text = shown(x);
    } catch (error) {
      continue;
    }
    assert.equal(text, "{}", String(second));
  }
});

test("what is no value is refused with its place", () => {
  refused({ x: { a: [() => 1] } }, "inputs.x.a[0]: a function");
  refused({ x: Symbol("s") }, "inputs.x: a symbol");
  refused({ x: { "odd key": "\ud800" } }, 'inputs.x["odd key"]: the string contains a lone surrogate');
  refused({ "\udfff": 1 }, "surrogate");
  const loop = { list: [] };
  loop.list.push({ loop });
  refused({ x: loop }, "inputs.x.list[0].loop: the value contains itself");
  const twice = { a: 1 };
  assert.equal(shown([twice, twice]), '[{"a": 1}, {"a": 1}]');
  refused([1], "expected an object");
  refused("text", "expected an object");
  let deep = 1;
  for (let i = 0; i < 100_000; i++) deep = [deep];
  refused({ x: deep }, "deep");
});

test("a value as deep as may be crosses both ways", () => {
  let deep = 1;
  for (let i = 0; i < 120; i++) deep = [deep];
  assert.deepEqual(validateInputs(any, { x: deep }).x, deep);
});

test("an exception of the caller's comes back as itself", () => {
  const own = new Error("{ not JSON");
  const x = Object.defineProperty({}, "a", {
    enumerable: true,
    get: () => {
      throw own;
    },
  });
  assert.throws(
    () => any.render({ x }),
    (thrown) => thrown === own,
  );
  assert.throws(
    () => validateInputs(any, { x }),
    (thrown) => thrown === own,
  );
});

test("keys that mean something in JavaScript are only keys", () => {
  const x = JSON.parse('{"__proto__": {"a": 18446744073709551615}, "constructor": 1}');
  x.__proto__.a = 2n ** 64n - 1n;
  const back = validateInputs(any, { x }).x;
  assert.ok(Object.hasOwn(back, "__proto__"));
  assert.equal(back["__proto__"].a, 2n ** 64n - 1n);
  assert.equal(Object.getPrototypeOf(back), Object.prototype);
});

test("bytes are what a rich input takes", () => {
  const prompt = loadStr("---\ninputs: [{name: picture, kind: image}]\n---\nuser:\nLook: {{ picture }} Well?");
  const png = Buffer.from("iVBORw0KGgo=", "base64");
  const text = (value) => ({ kind: "text", value });
  assert.deepEqual(prepare(prompt, { picture: png }), [
    { role: "user", content: [text("Look: "), { kind: "image", value: "iVBORw0KGgo=" }, text(" Well?")] },
  ]);
  assert.throws(() => prepare(prompt, { picture: "no picture" }), { code: "invalid_input" });
});
