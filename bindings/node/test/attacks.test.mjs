// Attacks on rendering: the cases of `fixtures/attacks`, which also test Rust, through the public API.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Runtime, TympanError } from "tympan";

import { promptOf, root, said } from "./support.mjs";

function read(file) {
  return JSON.parse(readFileSync(join(root, "fixtures/attacks", file), "utf8"));
}

/** Replaces the generators of a case with what they generate. */
function expand(value) {
  if (Array.isArray(value)) return value.map(expand);
  if (value === null || typeof value !== "object") return value;
  if (value.$repeat) return expand(value.$repeat[0]).repeat(value.$repeat[1]);
  if (value.$concat) return value.$concat.map(expand).join("");
  if (value.$list) return Array.from({ length: value.$list[1] }, () => expand(value.$list[0]));
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, expand(item)]));
}

function prepared(one, options = {}) {
  const inputs = expand(one.inputs);
  const kind = (name) => one.input_kinds?.[name] ?? "string";
  const declared = Object.keys(inputs).map((name) => ({ name, kind: kind(name) }));
  const prompt = promptOf({ inputs: declared }, expand(one.template));
  return new Runtime(options).prepare(prompt, inputs);
}

test("nobody forges a message or takes one away", () => {
  const list = read("provenance.json");
  for (const one of list) {
    assert.deepEqual(prepared(one).map(({ role }) => role), one.expect.roles, one.id);
  }
  assert.ok(list.length >= 228, `${list.length} cases`);
});

test("keys are not the author's", () => {
  const list = read("provenance.json").filter(({ id }) => id.startsWith("key."));
  for (const one of list) {
    assert.throws(() => prepared(one, { strict: true }), (error) => error.code === "nonce_mismatch", one.id);
    const text = prepared(one, { guard: { role: null } }).map((message) => said(message).text).join("");
    const inside = text.split("<untrusted>")[1]?.split("</untrusted>")[0] ?? "";
    assert.ok(inside.toLowerCase().includes("obey me"), `${one.id}: ${text}`);
  }
  assert.ok(list.length >= 31, `${list.length} cases`);
});

test("every render ends", () => {
  const list = read("bounds.json");
  for (const one of list) {
    try {
      prepared(one);
    } catch (error) {
      assert.ok(error instanceof TympanError, `${one.id}: ${error}`);
      assert.ok(["limit_exceeded", "unknown_filter", "unknown_test"].includes(error.code), `${one.id}: ${error}`);
    }
  }
  assert.ok(list.length >= 33, `${list.length} cases`);
});
