// Helpers shared by several tests.

import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

import { loadStr } from "tympan";

/** The root of the repository. */
export const root = fileURLToPath(new URL("../../../", import.meta.url));

/** Returns the cases of all files in `fixtures/<stage>`, each with a name that includes its file. */
export function cases(stage) {
  const directory = join(root, "fixtures", stage);
  return readdirSync(directory).flatMap((file) =>
    exactly(readFileSync(join(directory, file), "utf8")).map((one) => ({ ...one, name: `${file}: ${one.name}` })),
  );
}

/** Parses JSON without losing digits of large integers. */
function exactly(text) {
  const marked = text.replace(/(?<=[:[,]\s*)-?\d{16,}(?=\s*[,}\]])/g, '"@integer $&"');
  const revive = (_, value) => (/^@integer /.test(value) ? BigInt(value.slice(9)) : value);
  return JSON.parse(marked, revive);
}

/** Creates a prompt with this front matter, as JSON, which is also YAML. */
export function promptOf(frontMatter, template) {
  return loadStr(`---\n${JSON.stringify(frontMatter)}\n---\n${template}`, { name: "case.prompty" });
}

/** Creates the prompt of a case. All of its inputs are declared, and untrusted unless the case says otherwise. */
export function casePrompt({ template, inputs, format = "jinja2", trusted = [], undeclared = [], threads = [] }) {
  const declared = Object.keys(inputs)
    .filter((name) => !undeclared.includes(name))
    .map((name) => ({
      name,
      kind: threads.includes(name) ? "thread" : "string",
      trusted: trusted.includes(name),
      // For optional inputs, null counts as absent.
      required: inputs[name] === null,
    }));
  return promptOf({ inputs: declared, template: { format } }, template);
}

/** Returns the role, the text and the metadata of a message. */
export function said({ role, content, metadata }) {
  const text = content.map((part) => (part.kind === "text" ? part.value : "")).join("");
  return metadata === undefined ? { role, text } : { role, text, metadata };
}

/** Creates a prompt that `echo` answers from a script, which is a list of rounds. */
export function scripted(script, more = {}, template = "user:\nGo.\n") {
  const model = { id: "echo", provider: "echo", options: { additionalProperties: { script } } };
  return promptOf({ name: "scripted", model, ...more }, template);
}

/** Returns a file next to the repository, which exists only in some checkouts. */
export function shared(path) {
  const file = join(root, "..", "shared", path);
  return existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined;
}
