// Inputs are validated before anything is rendered, and validation cannot be bypassed.

import assert from "node:assert/strict";
import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { z } from "zod";

import {
  Composition,
  Prompt,
  Runtime,
  invoke,
  load,
  loadAsync,
  loadStr,
  prepare,
  prepareAsync,
  process as processAnswer,
  render,
  renderAsync,
  turn,
  validateInputs,
} from "tympan";

import { scripted } from "./support.mjs";

const definition = {
  name: "greet",
  role: "user",
  body: "Hello {{ name }}!",
  variables: { name: { type: "string", trusted: false, validation_required: true } },
};
const text = JSON.stringify(definition);
const person = z.object({
  name: z
    .string()
    .min(3)
    .transform((name) => name.toUpperCase()),
});

/** Creates a minimal schema that implements only the standard and, optionally, has a JSON Schema. */
function standard(validate, jsonSchema) {
  const input = jsonSchema && { jsonSchema: { input: () => jsonSchema } };
  return { "~standard": { version: 1, vendor: "test", validate, ...input } };
}

function uncovered(make, words) {
  assert.throws(make, (error) => {
    assert.deepEqual([error.code, error.class], ["validation_uncovered", "ValueError"]);
    assert.ok(error.message.includes(words) && error.help.includes("validator"), `${error.message} / ${error.help}`);
    return true;
  });
}

test("a variable whose validation is required needs a validator that has it", async () => {
  const file = join(mkdtempSync(join(tmpdir(), "tympan-node-")), "greet.yaml");
  writeFileSync(file, text);
  const makers = [
    (options) => Prompt.fromYaml(text, options),
    (options) => Prompt.fromJson(text, options),
    (options) =>
      Prompt.fromToml(
        'name = "greet"\nrole = "user"\nbody = "{{ name }}"\n[variables.name]\ntype = "string"\ntrusted = false\nvalidation_required = true',
        options,
      ),
    (options) => Prompt.fromDefinition(definition, options),
    (options) => load(file, options),
    (options) => loadStr(text, { name: "greet.json", ...options }),
  ];
  for (const make of makers) {
    uncovered(() => make(), "no validator for `name`");
    uncovered(() => make({ validator: z.object({ nome: z.string() }) }), "no field for `name`");
    uncovered(() => make({ validator: standard((value) => ({ value })) }), "does not list its fields");
    assert.equal(make({ validator: person }).validator, person);
    assert.equal(make({ validator: false }).validator, false);
    assert.throws(() => make({ validator: {} }), { code: "invalid_input" });
    assert.throws(() => make({ validator: true }), { code: "invalid_input" });
  }
  await assert.rejects(loadAsync(file), { code: "validation_uncovered" });
  assert.equal((await loadAsync(file, { validator: person })).validator, person);
  // Passing the file name does not bypass validation.
  await assert.rejects(invoke(file, { name: "Ada" }), { code: "validation_uncovered" });
  await assert.rejects(turn(file, { name: "Ada" }), { code: "validation_uncovered" });
});

test("the fields of a validator are found wherever it shows them", () => {
  const name = z.string();
  const shape = { type: "object", properties: { name: {} } };
  const covering = [
    z.strictObject({ name }),
    z.object({ name }).and(z.object({ other: z.string() })),
    z.union([z.object({ name }), z.object({ name, more: z.string() })]),
    z.object({ name, when: z.date() }).transform((value) => value),
    z.object({ name }).refine(() => true),
    standard((value) => ({ value }), shape),
    standard((value) => ({ value }), { $ref: "#/$defs/person", $defs: { person: shape } }),
  ];
  for (const validator of covering) Prompt.fromDefinition(definition, { validator });
  const lacking = [
    z.union([z.object({ name }), z.object({ other: z.string() })]),
    z.record(z.string(), z.string()),
    z.any(),
    standard((value) => ({ value }), { $ref: "#/$defs/loop", $defs: { loop: { $ref: "#/$defs/loop" } } }),
  ];
  for (const validator of lacking) uncovered(() => Prompt.fromDefinition(definition, { validator }), "`name`");
});

test("a prompt that is derived keeps its validator, and is held to it", () => {
  const prompt = Prompt.fromDefinition(definition, { validator: person });
  assert.equal(prompt.derive({ body: "Hi {{ name }}" }).render({ name: "Ada" }).text, "Hi ADA");
  const more = { variables: { age: { type: "integer", trusted: false, validation_required: true } } };
  uncovered(() => prompt.derive(more), "no field for `age`");
  const exempt = Prompt.fromDefinition(definition, { validator: false });
  assert.equal(exempt.derive(more).validator, false);
});

const prompt = Prompt.fromDefinition(definition, { validator: person });
const ran = scripted([{ text: "Done." }], { inputs: [{ name: "name" }] }, "user:\n{{ name }}");
const called = loadStr(`---\n${JSON.stringify(ran.toJSON())}\n---\nuser:\n{{ name }}`, { validator: person });

test("what the validator made of the inputs is what is rendered, whoever renders", async () => {
  const given = { name: "Ada" };
  assert.equal(prompt.render(given).text, "Hello ADA!");
  assert.equal(render(prompt, given).text, "Hello ADA!");
  assert.equal(prompt.render(new Map([["name", "Ada"]])).text, "Hello ADA!");
  assert.equal((await renderAsync(prompt, given)).text, "Hello ADA!");
  const said = [{ role: "user", content: [{ kind: "text", value: "Hello ADA!" }] }];
  assert.deepEqual(prepare(prompt, given), said);
  assert.deepEqual(await prepareAsync(prompt, given), said);
  assert.deepEqual(new Composition().push(prompt, given).messages(), said);
  assert.deepEqual(validateInputs(prompt, given), { name: "ADA" });
  const { messages } = await turn(called, given);
  assert.deepEqual(messages[0].content, [{ kind: "text", value: "ADA" }]);
  const seen = [];
  const runtime = new Runtime();
  runtime.registerProvider("echo", ({ messages }) => void seen.push(messages) ?? "Done.");
  await runtime.invoke(called, given);
  assert.equal(seen[0][0].content[0].value, "ADA");
});

test("what the validator refuses is refused everywhere, and not repeated", async () => {
  const secret = "X9";
  const given = { name: secret };
  const refused = (error) => {
    assert.equal(error.code, "invalid_input");
    assert.ok(error.message.includes("name: too_small (minimum 3)"), error.message);
    assert.ok(!JSON.stringify([error.message, error.help, error.stack]).includes(secret));
    assert.equal(error.cause, undefined);
    return true;
  };
  for (const call of [
    () => prompt.render(given),
    () => render(prompt, given),
    () => prepare(prompt, given),
    () => new Composition().push(prompt, given),
    () => validateInputs(prompt, given),
  ]) {
    assert.throws(call, refused);
  }
  for (const call of [renderAsync, prepareAsync, invoke, turn]) await assert.rejects(call(called, given), refused);
  assert.throws(() => prompt.render(), { code: "invalid_input" });
  const quoting = standard((value) => ({ issues: [{ message: `bad: ${value.name}`, path: ["name"] }] }), {
    properties: { name: {} },
  });
  const quoted = Prompt.fromDefinition(definition, { validator: quoting });
  assert.throws(
    () => quoted.render(given),
    (error) => !error.message.includes(secret) && error.message.includes("name"),
  );
});

test("an asynchronous validator works where the caller waits, and is refused elsewhere", async () => {
  const slow = z.object({ name: z.string().refine(async (name) => name !== "nobody") });
  const patient = standard(
    async (value) =>
      slow.safeParseAsync(value).then(({ data, error }) => (error ? { issues: error.issues } : { value: data })),
    {
      properties: { name: {} },
    },
  );
  for (const validator of [slow, patient]) {
    const prompt = Prompt.fromDefinition(definition, { validator });
    assert.equal((await renderAsync(prompt, { name: "Ada" })).text, "Hello Ada!");
    await assert.rejects(prepareAsync(prompt, { name: "nobody" }), { code: "invalid_input" });
  }
  const waiting = Prompt.fromDefinition(definition, { validator: patient });
  for (const call of [render, prepare, validateInputs, (...args) => new Composition().push(...args)]) {
    assert.throws(() => call(waiting, { name: "Ada" }), /asynchronous/);
  }
});

test("an exception of the validator's own comes back as itself", () => {
  const own = new Error("mine");
  const failing = standard(
    () => {
      throw own;
    },
    { properties: { name: {} } },
  );
  assert.throws(
    () => Prompt.fromDefinition(definition, { validator: failing }).render({ name: "" }),
    (error) => error === own,
  );
});

const answered = (content) => {
  const prompt = loadStr("---\nmodel: {id: m, provider: openai}\noutputs: [{name: n, kind: integer}]\n---\nuser:\nHi");
  return processAnswer(prompt, { choices: [{ message: { role: "assistant", content } }] });
};

test("a result is cast by a schema", async () => {
  assert.deepEqual(await answered('{"n": 3}').cast(z.object({ n: z.number() })), { n: 3 });
  const asynchronous = z.object({ n: z.number().transform(async (n) => n + 1) });
  assert.deepEqual(await answered('{"n": 3}').cast(asynchronous), { n: 4 });
  const run = await invoke(scripted([{ text: "[1, 2]" }]));
  assert.deepEqual(await run.cast(z.array(z.number())), [1, 2]);
  assert.equal(await run.cast(z.string()), "[1, 2]");
  const turned = await turn(scripted([{ text: "plain words" }]));
  assert.equal(await turned.cast(z.string()), "plain words");
  const refused = (error) => {
    assert.equal(error.code, "invalid_result");
    assert.ok(!error.message.includes("plain"), error.message);
    return true;
  };
  await assert.rejects(turned.cast(z.object({ n: z.number() })), refused);
  await assert.rejects(answered('{"n": "plain"}').cast(z.object({ n: z.number() })), refused);
  await assert.rejects(run.cast({}), { code: "invalid_input" });
});
