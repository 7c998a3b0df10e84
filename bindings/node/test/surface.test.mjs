// The public names, which are the same in all languages: fixtures/bindings/surface.json.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";

import ts from "typescript";

import * as tympan from "tympan";

import { root } from "./support.mjs";

const surface = JSON.parse(readFileSync(join(root, "fixtures/bindings/surface.json"), "utf8"));

const camel = (name) => name.replace(/(?<=[a-z])_([a-z])/g, (_, letter) => letter.toUpperCase());

/** The names of records that differ in this language. */
const NAMES = { Part: "ContentPart", Event: "AgentEvent" };

/** The names that exist only in this language. */
const own = Object.keys(surface.only.node).map(camel);

/** Operations that return a promise here, under the name without `Async`. */
const WAITS = ["run", "stream", "listModels", "invoke", "invokeAgent", "turn", "resume"];
const withoutTwins = (names) =>
  names.filter((name) => !WAITS.includes(name.replace(/Async$/, "")) || !name.endsWith("Async"));

const expected = (names) => [...new Set(withoutTwins(names.map(camel)))].sort();

const program = ts.createProgram([fileURLToPath(new URL("../dist/index.d.cts", import.meta.url))], {
  module: ts.ModuleKind.Node16,
  types: ["node"],
});
const checker = program.getTypeChecker();
const [entry] = program.getRootFileNames();
const exported = new Map(
  checker
    .getExportsOfModule(checker.getSymbolAtLocation(program.getSourceFile(entry)))
    .map((symbol) => [symbol.name, symbol]),
);

/** Returns the members of a type. For a union, these are the members of all alternatives. */
function typeMembers(name) {
  const symbol = exported.get(name);
  assert.ok(symbol, `there is no type ${name}`);
  const known = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
  const type = checker.getDeclaredTypeOfSymbol(known);
  const forms = type.isUnion() ? type.types : [type];
  return [...new Set(forms.flatMap((form) => form.getProperties().map((property) => property.name)))];
}

/** Returns the public names of a class: the members of its type, and its static members. */
function classMembers(name) {
  const own = Object.getOwnPropertyNames(tympan[name]).filter((one) => !["length", "name", "prototype"].includes(one));
  const inherited = name === "TympanError" ? Object.getOwnPropertyNames(new Error()).concat("name", "cause") : [];
  const members = typeMembers(name).filter((member) => !/^(__@|#)/.test(member) && !inherited.includes(member));
  return [...own, ...members];
}

/** Reports the names that are missing here, and those that are missing in the list. */
function same(found, wanted, what) {
  const isOwn = (name) => own.includes(`${what}.${name}`) || own.includes(`${what}.*`);
  const shown = found.filter((name) => !isOwn(name));
  const complaint = {
    lacks: wanted.filter((name) => !shown.includes(name)),
    has: shown.filter((name) => !wanted.includes(name)),
  };
  return complaint.lacks.length + complaint.has.length > 0 ? [{ what, ...complaint }] : [];
}

test("the functions and classes are those of all languages", () => {
  const values = Object.keys(tympan).filter((name) => !own.includes(name));
  const wanted = [...expected(surface.functions), ...Object.keys(surface.classes)];
  assert.deepEqual(values.sort(), wanted.sort());
});

test("classes have the same members", () => {
  const complaints = Object.entries(surface.classes).flatMap(([name, members]) =>
    same(classMembers(name), expected(members), name),
  );
  assert.deepEqual(complaints, []);
});

test("records have the same members", () => {
  const complaints = Object.entries(surface.records).flatMap(([name, members]) =>
    same(typeMembers(NAMES[name] ?? name), expected(members), name),
  );
  assert.deepEqual(complaints, []);
});
