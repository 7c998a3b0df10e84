// The findings of files are those of the command: the cases in fixtures/lint.

import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";

import { checkFile, checkStr, loadStr } from "tympan";

import { root } from "./support.mjs";

const lint = join(root, "fixtures/lint");

function cases(folder) {
  if (!existsSync(folder)) return [];
  const names = readdirSync(folder).filter((name) => !name.endsWith(".expected"));
  return names.sort().map((name) => join(folder, name));
}

function findings(path, rule) {
  const settings = join(dirname(dirname(path)), "tympan.toml");
  const found = checkFile(path, existsSync(settings) ? { settings } : {});
  return found.filter((finding) => finding.rule === rule);
}

const shown = ({ line, column, severity, message }) => `${line ? `${line}:${column}` : "-"} ${severity}: ${message}`;

test("rules fire where they should", () => {
  let count = 0;
  for (const rule of readdirSync(lint)) {
    for (const path of cases(join(lint, rule, "fires"))) {
      const expected = readFileSync(path.replace(/\.[^.]*$/, ".expected"), "utf8").split("\n");
      const wanted = expected.filter((line) => line !== "" && !line.startsWith("  "));
      assert.deepEqual(findings(path, rule).map(shown), wanted, path);
      count += wanted.length;
    }
    for (const path of cases(join(lint, rule, "clean"))) assert.deepEqual(findings(path, rule), [], path);
  }
  assert.ok(count > 100, "there are many findings");
});

test("texts are checked like files", () => {
  for (const path of cases(join(lint, "TY101/fires"))) {
    assert.deepEqual(checkStr(readFileSync(path, "utf8"), path, dirname(path)), checkFile(path));
  }
});

test("a prompt has the rules of its findings", () => {
  const found = loadStr("---\ninputs: [{name: a}]\n---\nuser:\n{{ b }}\n").check();
  assert.ok(found.some(({ code, rule }) => code === "undeclared_variable" && rule === "TY101"));
});

test("a file that is not there is an error", () => {
  assert.throws(() => checkFile("nowhere.prompty"), { code: "file_not_found" });
});
