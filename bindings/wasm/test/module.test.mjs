// Compares the WebAssembly module with the engine of this machine, on all fixtures.
//
// PACKAGE is the directory that wasm-bindgen wrote, and NATIVE the file that the example `native` printed.
import assert from "node:assert/strict";
import { createReadStream, readFileSync, readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { before, test } from "node:test";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";

const directory = resolve(process.env.PACKAGE ?? "target/wasm/package");
const native = resolve(process.env.NATIVE ?? "target/wasm/native.jsonl");
const bytes = readFileSync(join(directory, "tympan_wasm_bg.wasm"));

/** The most bytes that the module may have when it is compressed. The aim is 700,000. */
const MAX_COMPRESSED = 1_150_000;

let tympan;

before(async () => {
  tympan = await import(pathToFileURL(join(directory, "tympan_wasm.js")).href);
  await tympan.default({ module_or_path: bytes });
});

test("the module is small", () => {
  const size = gzipSync(bytes, { level: 9 }).length;
  assert.ok(size < MAX_COMPRESSED, `${size} bytes, expected less than ${MAX_COMPRESSED}`);
});

test("neither the module nor the one of the studio contains paths of the machine that built it", () => {
  const assets = resolve("crates/tympan-studio/assets/assets");
  const built = readdirSync(assets).filter((name) => name.endsWith(".wasm"));
  assert.equal(built.length, 1);
  for (const module of [bytes, readFileSync(join(assets, built[0]))]) {
    assert.doesNotMatch(module.toString("latin1"), /registry\/src|\/home\/|\/root\//);
  }
});

test("all results are those of the native engine", async (t) => {
  t.mock.method(globalThis.crypto, "getRandomValues", (array) => {
    array.fill(0);
    array[0] = 7;
    return array;
  });
  let [files, renders, messages] = [0, 0, 0];
  for await (const line of createInterface({ input: createReadStream(native), crlfDelay: Infinity })) {
    const expected = JSON.parse(line);
    const prompt = tympan.open(expected.path, expected.text, expected.files);
    for (const name of ["info", "check", "format", "reach"]) {
      assert.equal(prompt[name](), expected[name], `${expected.path}: ${name}`);
    }
    for (const { inputs, options, render, request } of expected.renders) {
      assert.equal(prompt.render(inputs, options), render, `${expected.path}: render ${inputs} ${options}`);
      assert.equal(prompt.request(inputs, options), request, `${expected.path}: request ${inputs} ${options}`);
      messages += JSON.parse(render).messages?.length ?? 0;
      renders += 1;
    }
    prompt.free();
    files += 1;
  }
  assert.ok(files > 100 && renders > 1000 && messages > 1000, `${files} files, ${renders} renders, ${messages} messages`);
});

test("segments are slices of the text", () => {
  const prompt = tympan.open("a.prompty", "user:\n😀 {{ a }} ß {{ b }}!");
  const rendered = JSON.parse(prompt.render('{"a": "💥", "b": "é"}', '{"guard": true}'));
  const { text, segments } = rendered.messages[0].parts[0];
  const shown = segments.map(({ start, end, inputs, guard }) => [text.slice(start, end), ...inputs, guard]);
  const [open, close] = [["<untrusted>", true], ["</untrusted>", true]];
  assert.deepEqual(shown, [["😀 ", false], open, ["💥", "a", false], close, [" ß ", false], open, ["é", "b", false], close, ["!", false]]);
  prompt.free();
});

test("nonces are random", () => {
  const prompt = tympan.open("a.prompty", "---\ninputs:\n  c: {kind: thread}\n---\nuser:\n{{ c }}");
  const render = () => JSON.parse(prompt.render('{"c": [{"role": "user", "content": "Hi"}]}', "")).render_hash;
  assert.notEqual(render(), render());
  prompt.free();
});

test("deeply nested text is an error, not a crash", () => {
  const deep = ["[".repeat(100_000), "{{ " + "(".repeat(100_000), "{% if a %}".repeat(50_000), "{{ " + "-".repeat(100_000) + "1 }}"];
  const files = deep.flatMap((text) => [
    ["a.prompty", `user:\n${text}`],
    ["a.prompty", `---\nname: ${text}\n---\nuser:\nHi`],
    ["a.yaml", `role: user\nbody: ${JSON.stringify(text)}\nvariables: {a: {type: string}}`],
    ["a.json", text],
    ["a.toml", `a = ${text}`],
    ["a.md", `# T\n\n${text}`],
  ]);
  for (const [path, text] of files) {
    const prompt = tympan.open(path, text);
    for (const name of ["info", "check", "format", "reach"]) JSON.parse(prompt[name]());
    JSON.parse(prompt.render(`{"a": ${"[".repeat(200)}${"]".repeat(200)}}`, "{}"));
    prompt.free();
  }
});

test("arguments that are not what they should be are errors", () => {
  const prompt = tympan.open("a.prompty", "user:\n{{ a }}");
  for (const [inputs, options] of [["[", "{}"], ["[]", "{}"], ["{}", "[]"], ["{}", '{"guard": 1}'], ["{}", '{"variant": "x"}']]) {
    const { error } = JSON.parse(prompt.render(inputs, options));
    assert.equal(typeof error.message, "string");
    assert.equal(typeof JSON.parse(prompt.request(inputs, options)).error.message, "string");
  }
  assert.equal(JSON.parse(prompt.render("", "")).error.code, "undefined_variable");
  prompt.free();
});

test("forgeries stay in their message", () => {
  const prompt = tympan.open("a.prompty", "system:\nBe kind.\n\nuser:\n{{ q }}");
  const forgeries = JSON.parse(tympan.forgeries());
  assert.ok(forgeries.length > 10);
  for (const { id, title, text } of forgeries) {
    assert.ok(id && title && text);
    const { messages } = JSON.parse(prompt.render(JSON.stringify({ q: text }), "{}"));
    assert.deepEqual(messages.map(({ role }) => role), ["system", "user"], id);
  }
  prompt.free();
});

test("the version is the one of the workspace", () => {
  assert.match(tympan.version(), /^\d+\.\d+\.\d+$/);
});
