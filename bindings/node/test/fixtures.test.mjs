// The fixtures shared with Rust's tests, through the public API.

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Prompt, Runtime, TympanError, parse, prepare, render } from "tympan";

import { casePrompt, cases, promptOf, root, said, shared } from "./support.mjs";

/** Returns the outcome of a case: a value, or the code of an error. */
function outcome(work) {
  try {
    return { value: work() };
  } catch (error) {
    assert.ok(error instanceof TympanError, String(error));
    return { error };
  }
}

/**
 * Runs all cases and reports all mismatches at once. The cases are counted, because an empty folder would always pass.
 */
function all(stage, atLeast, complaint) {
  const list = cases(stage).filter((one) => !withoutNumbers.includes(one.name));
  const complaints = list.flatMap((one) => complaint(one) ?? []);
  assert.deepEqual(complaints, []);
  assert.ok(list.length >= atLeast, `${list.length} cases`);
}

const lenient = new Runtime({ lenient: true });
const strictly = new Runtime({ lenient: false });

function rendered(one) {
  // Leading white space of a prompt file's body is dropped, so a line is put before the template to preserve it.
  const before = /^\s/.test(one.template) ? "^\n" : "";
  const prompt = casePrompt({ ...one, template: before + one.template });
  const runtime = one.lenient ? lenient : strictly;
  return outcome(() => runtime.render(prompt, one.inputs).text.slice(before.length));
}

/** Cases with a whole float, which JavaScript cannot represent. */
const withoutNumbers = ["variables.json: a float that is whole", "interpolation.json: a decimal without a fraction"];

test("jinja", () => {
  all("jinja", 450, (one) => {
    const { value, error } = rendered(one);
    if (value === one.text && error?.code === one.error) return;
    return `${one.name}: ${JSON.stringify(value ?? error)}`;
  });
});

test("mustache", () => {
  all("mustache", 150, (one) => {
    const { value, error } = rendered({ ...one, format: "mustache" });
    if (value === one.expected && error?.code === one.error?.code && error?.column === one.error?.column) return;
    return `${one.name}: ${JSON.stringify(value ?? error)}`;
  });
});

test("origins", () => {
  all("origins", 100, (one) => {
    const prompt = casePrompt(one);
    const text = render(prompt, one.inputs);
    const segments = text.segments.map(({ origins, ...rest }) => ({ ...rest, inputs: origins }));
    assert.deepEqual(segments, one.segments, one.name);
    assert.equal(text.segments.map((segment) => segment.text).join(""), text.text, one.name);
    assert.deepEqual(parse(prompt, text).map(said), one.messages, one.name);
    return undefined;
  });
});

test("guard", () => {
  const guards = [false, true].map((isLenient) => new Runtime({ guard: true, lenient: isLenient }));
  all("guard", 50, (one) => {
    const runtime = guards[one.lenient ? 1 : 0];
    const prompt = casePrompt(one);
    const { value, error } = outcome(() => runtime.render(prompt, one.inputs));
    if (error?.code !== one.error) return `${one.name}: ${error?.message}`;
    if (value === undefined) return;
    // Without an untrusted input there is nothing to explain.
    const isUntrusted = Object.keys(one.inputs).some((name) => !one.trusted?.includes(name));
    if (isUntrusted) assert.ok(value.advisory.includes("<untrusted>"), one.name);
    // A conversation's placeholder is different in each render.
    if (one.text !== undefined && !one.threads) assert.equal(value.text, one.text, one.name);
    if (one.messages) assert.deepEqual(runtime.parse(prompt, value).map(said), one.messages, one.name);
    return;
  });
});

const unvalidated = { validator: false };
const readers = { json: Prompt.fromJson, yaml: Prompt.fromYaml, toml: Prompt.fromToml };

function definition(directory, file) {
  const text = readFileSync(join(root, "fixtures/definition", directory, file), "utf8");
  return readers[file.split(".").at(-1)](text, unvalidated);
}

test("definitions are the same in every syntax", () => {
  const files = readdirSync(join(root, "fixtures/definition/accepted"));
  assert.ok(files.length >= 9);
  for (const file of files) {
    const same = definition("accepted", file.replace(/\.\w+$/, ".json"));
    assert.equal(definition("accepted", file).definitionHash, same.definitionHash, file);
  }
});

test("definitions that are wrong are refused, with a place", () => {
  const files = readdirSync(join(root, "fixtures/definition/rejected"));
  assert.ok(files.length >= 9);
  for (const file of files) {
    const { error } = outcome(() => definition("rejected", file));
    assert.ok(error?.line >= 1 && error.column >= 1, file);
  }
});

test("prompt files load, or are refused, as the snapshots of Rust's tests say", () => {
  const envVars = {
    TEST_REGION: "north",
    TEST_EMPTY: "",
    TEST_SECRET: "s3cr3t",
    TEST_USER: "user-7",
    TEST_ENDPOINT: "https://azure.example.com",
    TEST_TEMPERATURE: "0.7",
    TEST_REFERENCE: "${env:TEST_SECRET} ${file:data/notes.txt}",
    HOME: "/home/someone",
  };
  const runtime = new Runtime({ load: { env: ["TEST_*"], envVars } });
  const files = readdirSync(join(root, "fixtures/load")).filter((file) => file.endsWith(".prompty"));
  assert.ok(files.length >= 100);
  for (const file of files) {
    const snapshot = readFileSync(join(root, "fixtures/load/snapshots", file.replace(".prompty", ".snap")), "utf8");
    const [head, ...rest] = snapshot.replace(/^---\n[^]*?\n---\n/, "").split("\n");
    const { value, error } = outcome(() => runtime.load(join(root, "fixtures/load", file)));
    if (error) {
      const place = error.line === undefined ? "" : ` ${error.line}:${error.column}`;
      assert.equal(`${error.class} ${error.code}${place}`, head, file);
      continue;
    }
    const end = rest.indexOf("}");
    const expected = JSON.parse([head, ...rest.slice(0, end + 1)].join("\n"));
    // The template is not part of these snapshots.
    const loaded = value.warnings.filter((one) => one.code !== "unmentioned_thread");
    const warnings = loaded.map((one) => `${one.severity} ${one.code} ${one.line}:${one.column}`);
    assert.deepEqual(
      warnings,
      rest.slice(end + 1).filter((line) => /^(warning|error) /.test(line)),
      file,
    );
    assert.deepEqual([value.name, value.description], [expected.name, expected.description], file);
    // Default values of credentials are redacted here, but not in the fixture.
    if (JSON.stringify(value.inputs).includes("[REDACTED]")) continue;
    // Snapshots have a JSON Schema once for a whole list, and in another place.
    const declared = (list) => list.map(({ schema, ...rest }) => rest);
    assert.deepEqual(declared(value.inputs), expected.inputs ?? [], file);
    assert.deepEqual(declared(value.outputs), expected.outputs ?? [], file);
  }
});

const conformance = shared("conformance/definition.json");

test("definitions of the specification", { skip: conformance === undefined }, () => {
  for (const [name, valid] of Object.entries(conformance.valid)) {
    const prompt = Prompt.fromDefinition(valid, unvalidated);
    assert.deepEqual([prompt.name, prompt.role, prompt.body], [valid.name, valid.role, valid.body], name);
  }
  for (const [name, text] of Object.entries(conformance.invalid)) {
    assert.ok(outcome(() => Prompt.fromJson(text, unvalidated)).error, name);
  }
});

const list = (value) => value.map(native);
const object = (value) => Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, native(inner)]));

/** Builds native values from the types of their descriptions. Types that JavaScript does not have are missing. */
const natives = {
  null: () => null,
  undefined: () => undefined,
  bool: (value) => value,
  int: BigInt,
  big_int: BigInt,
  float: Number,
  string: (value) => value,
  bytes: (value) => Buffer.from(value, "hex"),
  bytearray: (value) => new Uint8Array(Buffer.from(value, "hex")).buffer,
  datetime: (value) => new Date(value),
  // A date without a time is passed as text.
  date: (value) => value,
  array: list,
  js_array: list,
  js_typed_array: (value) => new Float64Array(value),
  js_set: (value) => new Set(list(value)),
  object,
  js_object: object,
  js_map: (value) => new Map(Object.entries(object(value))),
  nan: () => NaN,
  infinity: () => -Infinity,
  half_surrogate: () => "half \ud83e",
  cycle: () => {
    const cycle = [];
    cycle.push(cycle);
    return cycle;
  },
  deep: () => Array.from({ length: 1000 }).reduce((inner) => [inner], 1),
  function: () => () => 1,
  number_keys: () => new Map([[1, 2]]),
};

function native({ type, value }) {
  return natives[type](value);
}

/** Returns whether JavaScript can represent a value. It has no whole floats. */
function expressible({ type, value }) {
  if (
    typeof value === "object" &&
    value !== null &&
    !Object.values(value).every((inner) => inner.type === undefined || expressible(inner))
  ) {
    return false;
  }
  return Object.hasOwn(natives, type) && !(type === "float" && Number.isInteger(value));
}

test("values cross as the table says", () => {
  const cases = JSON.parse(readFileSync(join(root, "fixtures/bindings/values.json"), "utf8"));
  const [asJson, asText] = ["{{ x | tojson }}", "{{ x }}"].map((template) => promptOf({ name: "values" }, template));
  const known = cases.filter(({ input }) => expressible(input));
  assert.ok(known.length >= 40, `${known.length} cases`);
  for (const { name, input, json, text, error } of known) {
    const x = native(input);
    if (error) {
      assert.throws(() => asText.render({ x }), { code: error }, name);
      assert.throws(() => prepare(asText, { x }), { code: error }, name);
      continue;
    }
    // Jinja's filter writes a space after commas and colons.
    assert.equal(asJson.render({ x }).text.replace(/(?<=[,:]) /g, ""), json.replace(/(?<=[,:]) /g, ""), name);
    assert.equal(asText.render({ x }).text, text, name);
    assert.equal(said(prepare(asText, { x })[0]).text.trim(), text.trim(), name);
  }
});

test("values of the specification", { skip: conformance === undefined }, () => {
  assert.ok(conformance.marshaling.length >= 3);
  for (const { case: name, definition, input, variant, expected } of conformance.marshaling) {
    const inputs = Object.fromEntries(Object.entries(input).map(([key, value]) => [key, native(value)]));
    const made = Prompt.fromDefinition(definition, unvalidated).render(inputs, { variant: variant ?? undefined });
    assert.deepEqual(
      { text: made.text, render_hash: made.renderHash, template_hash: made.templateHash },
      expected,
      name,
    );
  }
});
