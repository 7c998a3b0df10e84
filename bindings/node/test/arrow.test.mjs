// Prompts over tables in Arrow's IPC format.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { Field, List, RecordBatchFileWriter, Schema, Struct, Table, Utf8, tableFromArrays, tableFromIPC, tableFromJSON, tableToIPC, vectorFromArray } from "apache-arrow";

import { Prompt, Runtime, load, loadStr, mapArrow } from "tympan";

import { root } from "./support.mjs";

const batch = join(root, "fixtures/batch");
const cases = JSON.parse(readFileSync(join(batch, "tables.json"), "utf8"));
const greet = loadStr("system:\nBe kind.\n\nuser:\nHi {{ name }}");

const plain = (value) => JSON.parse(JSON.stringify(value, (_, inner) => (typeof inner === "bigint" ? Number(inner) : inner)));
const rowsOf = (bytes) => plain(tableFromIPC(bytes).toArray());
const texts = async (bytes) => rowsOf(await bytes).map((row) => row.messages.at(-1).content);
const camel = (name) => name.replace(/_([a-z])/g, (_, letter) => letter.toUpperCase());

/** Returns a table of plain data. `tableFromJSON` does not know lists of texts. */
function tableOf({ rows, schema = Object.keys(rows[0] ?? {}) }) {
  const columns = schema.map((name) => {
    const values = rows.map((row) => row[name]);
    const texts = new List(new Field("item", new Utf8(), true));
    const kind = rows.length === 0 ? new Utf8() : Array.isArray(values[0]) ? texts : undefined;
    return [name, kind ? vectorFromArray(values, kind) : vectorFromArray(values)];
  });
  return new Table(Object.fromEntries(columns));
}

for (const { name, prompt, options, columns, expected, fails, ...given } of cases) {
  test(`tables are those of all languages: ${name}`, async () => {
    const loaded = load(join(batch, prompt));
    const settings = Object.fromEntries(Object.entries(options).map(([key, value]) => [camel(key), value]));
    const mapped = loaded.mapArrow(tableToIPC(tableOf(given)), settings);
    if (fails !== undefined) {
      await assert.rejects(mapped, { name: "TympanError", message: fails });
      return;
    }
    const bytes = await mapped;
    assert.deepEqual(tableFromIPC(bytes).schema.names, columns);
    const rows = rowsOf(bytes);
    const place = (row) => row.error?.replace(batch + "/", "") ?? null;
    const shown = expected.map((wanted, index) => {
      const row = rows[index];
      return Object.fromEntries(Object.keys(wanted).map((key) => [key, key === "error" ? place(row) : row[key]]));
    });
    assert.deepEqual(shown, expected);
    assert.equal(rows.length, expected.length);
  });
}

test("files in Arrow's file format go in as well", async () => {
  const table = tableFromArrays({ name: ["Ada", "Bob"] });
  const file = RecordBatchFileWriter.writeAll(table).toUint8Array(true);
  assert.equal(new TextDecoder().decode(file.slice(0, 6)), "ARROW1");
  assert.deepEqual(await texts(mapArrow(greet, file)), ["Hi Ada", "Hi Bob"]);
});

test("rows keep their order on all threads", async () => {
  const names = Array.from({ length: 20_000 }, (_, index) => `n${index}`);
  const found = await texts(mapArrow(greet, tableToIPC(tableFromArrays({ name: names })), { threads: 3 }));
  assert.deepEqual(found, names.map((name) => `Hi ${name}`));
});

test("filters in JavaScript run while other threads wait", async () => {
  const runtime = new Runtime();
  runtime.registerFilter("loud", (text) => text.toUpperCase());
  const prompt = runtime.loadStr("user:\n{{ name | loud }}");
  const names = Array.from({ length: 500 }, (_, index) => `n${index}`);
  const found = await texts(runtime.mapArrow(prompt, tableToIPC(tableFromArrays({ name: names })), { threads: 2 }));
  assert.deepEqual(found, names.map((name) => name.toUpperCase()));
});

test("what is no table is refused", async () => {
  await assert.rejects(mapArrow(greet, [{ name: "Ada" }]), { code: "invalid_input", message: /expected a table as an Arrow IPC stream/ });
  await assert.rejects(mapArrow(greet, new Uint8Array([1, 2, 3])), { code: "invalid_rows", message: /not an Arrow IPC stream/ });
  await assert.rejects(mapArrow(greet, new TextEncoder().encode("name\nAda\n")), { code: "invalid_rows" });
  const table = tableToIPC(tableFromArrays({ name: ["Ada"] }));
  await assert.rejects(mapArrow(greet, table, { outputs: "text" }), { code: "invalid_input", message: /unknown field `outputs`/ });
});

test("a damaged stream is an error, wherever it is cut or changed", async () => {
  const table = tableToIPC(tableFromArrays({ name: ["Ada", "Bob"] }));
  for (let end = 0; end < table.length - 8; end += 7) {
    await assert.rejects(mapArrow(greet, table.slice(0, end)), { name: "TympanError" }, `cut at ${end}`);
  }
  const file = RecordBatchFileWriter.writeAll(tableFromArrays({ name: ["Ada", "Bob"] })).toUint8Array(true);
  for (const bytes of [table, file]) {
    for (let at = 0; at < bytes.length; at += 1) {
      const changed = Uint8Array.from(bytes);
      changed[at] ^= 0xff;
      // Some changes do not matter. None may panic.
      await mapArrow(greet, changed).catch((error) => assert.equal(error.code, "invalid_rows", error.stack));
    }
  }
});

test("a validator of single calls is not passed over", async () => {
  const { z } = await import("zod");
  const definition = {
    name: "greet",
    role: "user",
    body: "Hi {{ name }}",
    variables: { name: { type: "string", trusted: false, validation_required: true } },
  };
  const table = tableToIPC(tableFromArrays({ name: ["Ada"] }));
  const checked = Prompt.fromDefinition(definition, { validator: z.object({ name: z.string() }) });
  await assert.rejects(checked.mapArrow(table), { message: /not validated one by one/ });
  assert.deepEqual(await texts(Prompt.fromDefinition(definition, { validator: false }).mapArrow(table)), ["Hi Ada"]);
});
