// What several tests need.

import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { loadStr } from "tympan";

/** The root of the repository. */
export const root = fileURLToPath(new URL("../../../", import.meta.url));

/** The cases of all files in `fixtures/<stage>`, each with a name that says where it stands. */
export function cases(stage) {
  const directory = join(root, "fixtures", stage);
  return readdirSync(directory).flatMap((file) =>
    exactly(readFileSync(join(directory, file), "utf8")).map((one) => ({ ...one, name: `${file}: ${one.name}` })),
  );
}

/** Reads JSON in which large integers keep all their digits. */
function exactly(text) {
  const marked = text.replace(/(?<=[:[,]\s*)-?\d{16,}(?=\s*[,}\]])/g, '"@integer $&"');
  const revive = (_, value) => (/^@integer /.test(value) ? BigInt(value.slice(9)) : value);
  return JSON.parse(marked, revive);
}

/** A prompt file whose front matter is this. JSON is YAML too. */
export function promptOf(frontMatter, template) {
  return loadStr(`---\n${JSON.stringify(frontMatter)}\n---\n${template}`, { name: "case.prompty" });
}

/** The prompt of a case: all its inputs are declared, and untrusted if it does not say otherwise. */
export function casePrompt({ template, inputs, format = "jinja2", trusted = [], undeclared = [], threads = [] }) {
  const declared = Object.keys(inputs)
    .filter((name) => !undeclared.includes(name))
    .map((name) => ({ name, kind: threads.includes(name) ? "thread" : "string", trusted: trusted.includes(name) }));
  return promptOf({ inputs: declared, template: { format } }, template);
}

/** The words of a message. */
export function said({ role, content, metadata }) {
  const text = content.map((part) => (part.kind === "text" ? part.value : "")).join("");
  return metadata === undefined ? { role, text } : { role, text, metadata };
}

/** A prompt that `echo` answers by a script: a list of rounds. */
export function scripted(script, more = {}, template = "user:\nGo.\n") {
  const model = { id: "echo", provider: "echo", options: { additionalProperties: { script } } };
  return promptOf({ name: "scripted", model, ...more }, template);
}

/** A file beside the repository that only some checkouts have. */
export function shared(path) {
  const file = join(root, "..", "shared", path);
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined;
}
