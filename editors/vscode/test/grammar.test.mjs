// The scopes that the grammar gives to the parts of a prompt.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";

const require = createRequire(import.meta.url);
const { createOnigScanner, createOnigString, loadWASM } = require("vscode-oniguruma");
const { INITIAL, Registry, parseRawGrammar } = require("vscode-textmate");

const path = new URL("../syntaxes/prompty.tmLanguage.json", import.meta.url);
const wasm = readFileSync(require.resolve("vscode-oniguruma/release/onig.wasm"));

/** Stands for the YAML grammar, which is part of the editor. */
const yaml = { scopeName: "source.yaml", patterns: [{ name: "entity.name.tag.yaml", match: "^\\s*[\\w-]+(?=:)" }] };

const onigLib = loadWASM(wasm.buffer.slice(wasm.byteOffset, wasm.byteOffset + wasm.byteLength)).then(() => ({
  createOnigScanner,
  createOnigString,
}));
const registry = new Registry({
  onigLib,
  loadGrammar: async (scope) =>
    scope === "source.yaml" ? yaml : parseRawGrammar(readFileSync(path, "utf8"), "prompty.tmLanguage.json"),
});

/** Returns `text: innermost scope` for every token that is not white space. */
async function tokens(text) {
  const grammar = await registry.loadGrammar("source.prompty");
  const found = [];
  let state = INITIAL;
  for (const line of text.split("\n")) {
    const result = grammar.tokenizeLine(line, state);
    state = result.ruleStack;
    for (const token of result.tokens) {
      const word = line.slice(token.startIndex, token.endIndex).trim();
      if (word) found.push(`${word}: ${token.scopes.at(-1)}`);
    }
  }
  return found;
}

test("front matter is YAML, up to its end", async () => {
  assert.deepEqual(await tokens("---\nname: a\nkey: ${env:KEY}\n---\nname: b"), [
    "---: punctuation.definition.begin.frontmatter.prompty",
    "name: entity.name.tag.yaml",
    ": a: meta.embedded.block.frontmatter",
    "key: entity.name.tag.yaml",
    ":: meta.embedded.block.frontmatter",
    "${env:KEY}: variable.other.reference.prompty",
    "---: punctuation.definition.end.frontmatter.prompty",
    "name: b: source.prompty",
  ]);
});

test("role markers have their line for themselves", async () => {
  assert.deepEqual(await tokens('system:\nuser: hi\nassistant[name="x"]:'), [
    "system: keyword.control.role.prompty",
    ":: punctuation.separator.role.prompty",
    "user: hi: source.prompty",
    "assistant: keyword.control.role.prompty",
    '[name="x"]: string.unquoted.prompty',
    ":: punctuation.separator.role.prompty",
  ]);
});

test("Jinja", async () => {
  assert.deepEqual(await tokens('{# a #}{% if x.y is odd %}{{ f(x) | upper ~ "s" }}{% endif %}'), [
    "{#: comment.block.prompty",
    "a: comment.block.prompty",
    "#}: comment.block.prompty",
    "{%: punctuation.section.embedded.begin.prompty",
    "if: keyword.control.prompty",
    "x: variable.other.prompty",
    ".: punctuation.accessor.prompty",
    "y: variable.other.property.prompty",
    "is: keyword.operator.word.prompty",
    "odd: variable.other.prompty",
    "%}: punctuation.section.embedded.end.prompty",
    "{{: punctuation.section.embedded.begin.prompty",
    "f: entity.name.function.prompty",
    "(: meta.expression.prompty",
    "x: variable.other.prompty",
    "): meta.expression.prompty",
    "|: keyword.operator.pipe.prompty",
    "upper: support.function.filter.prompty",
    "~: keyword.operator.prompty",
    '": string.quoted.double.prompty',
    "s: string.quoted.double.prompty",
    '": string.quoted.double.prompty',
    "}}: punctuation.section.embedded.end.prompty",
    "{%: punctuation.section.embedded.begin.prompty",
    "endif: keyword.control.prompty",
    "%}: punctuation.section.embedded.end.prompty",
  ]);
});

test("Mustache", async () => {
  assert.deepEqual(await tokens("{{! a }}{{#docs}}{{{text}}}{{/docs}}"), [
    "{{!: comment.block.prompty",
    "a: comment.block.prompty",
    "}}: comment.block.prompty",
    "{{: punctuation.section.embedded.begin.prompty",
    "#: keyword.operator.section.prompty",
    "docs: variable.other.prompty",
    "}}: punctuation.section.embedded.end.prompty",
    "{{{: punctuation.section.embedded.begin.prompty",
    "text: variable.other.prompty",
    "}}}: punctuation.section.embedded.end.prompty",
    "{{: punctuation.section.embedded.begin.prompty",
    "/: keyword.operator.section.prompty",
    "docs: variable.other.prompty",
    "}}: punctuation.section.embedded.end.prompty",
  ]);
});
