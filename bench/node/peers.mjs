// The operations: each library is used as a program would use it, in the cheapest way.
//
// Everything that a program does once, such as loading, is done before. An operation converts inputs, which are plain
// data, to messages. Each must produce the expected text before it is measured.

import { readFileSync } from "node:fs";
import { join } from "node:path";

import { ChatPromptTemplate, MessagesPlaceholder } from "@langchain/core/prompts";
import { Dotprompt } from "dotprompt";
import { checkFile, checkStr, loadStr, prepare } from "tympan";

/** Reads a workload: the same work in each library's dialect. */
export function readWorkload(folder, name) {
  const read = (extension) => readFileSync(join(folder, `${name}.${extension}`), "utf8");
  return {
    name,
    prompty: read("prompty"),
    jinja: read("jinja"),
    inputs: JSON.parse(read("json")),
    expected: read("expected.txt"),
  };
}

/**
 * Splits a template into messages, as pairs of a role and a text. A loop over the history becomes a message `history`.
 */
function messagesOf({ jinja }) {
  const template = jinja.replace(/\{% for m in history %\}[^]*?\{% endfor %\}/, "history:\n\n\n");
  const parts = template.split(/(?:^|\n\n)(system|user|assistant|history):\n/).slice(1);
  return parts.flatMap((role, at) => (at % 2 === 0 ? [[role, parts[at + 1].trimEnd()]] : []));
}

/** Converts a template to dotprompt's Handlebars. Jinja's `loop.index` and `join` become helpers. */
function handlebars(text) {
  return text
    .replace(/\{\{ (\w+) \| default\("(.*?)"\) \}\}/g, "{{#if $1}}{{$1}}{{else}}$2{{/if}}")
    .replace(/\{\{ ([\w.]+) \| join\(", "\) \}\}/g, "{{join $1}}")
    .replace("{% for doc in docs %}", "{{#each docs}}")
    .replace("{{ loop.index }}", "{{number @index}}")
    .replace(/\{% if (.*?) %\}/g, "{{#if $1}}")
    .replace(/\{% else %\}/g, "{{else}}")
    .replace(/\{% endif %\}/g, "{{/if}}")
    .replace(/\{% endfor %\}/g, "{{/each}}")
    .replace(/(?<=\{\{.*)\bdoc\./g, "");
}

/** Converts a template to LangChain's Mustache. It cannot join or count, so `prepared` does that. */
function mustache(text) {
  return text
    .replace(/\{\{ (\w+) \| default\("(.*?)"\) \}\}/g, "{{$1}}{{^$1}}$2{{/$1}}")
    .replace(/\{\{ ([\w.]+) \| join\(", "\) \}\}/g, "{{$1}}")
    .replace("{% for doc in docs %}", "{{#docs}}")
    .replace("{{ loop.index }}", "{{index}}")
    .replace(/\{% if (.*?) %\}([^]*?)(?:\{% else %\}([^]*?))?\{% endif %\}/g, (_, name, yes, no) =>
      no === undefined ? `{{#${name}}}${yes}{{/${name}}}` : `{{#${name}}}${yes}{{/${name}}}{{^${name}}}${no}{{/${name}}}`,
    )
    .replace(/\{% endfor %\}/g, "{{/docs}}")
    .replace(/(?<=\{\{.*)\bdoc\./g, "");
}

function tympanPrepare({ prompty, inputs }) {
  const prompt = loadStr(prompty);
  const text = ({ content }) => content.map((part) => part.value).join("");
  return { run: () => prepare(prompt, inputs), pairs: (messages) => messages.map((one) => [one.role, text(one)]) };
}

async function dotpromptRender(workload) {
  const dotprompt = new Dotprompt({ helpers: { join: (list) => list.join(", "), number: (index) => index + 1 } });
  const template = messagesOf(workload).map(([role, text]) =>
    role === "history" ? "{{history}}" : `{{role "${role === "assistant" ? "model" : role}"}}${handlebars(text)}`,
  );
  const render = await dotprompt.compile(template.join(""));
  const { history, ...input } = workload.inputs;
  const messages = () =>
    history.map(({ role, content }) => ({ role: role === "assistant" ? "model" : role, content: [{ text: content }] }));
  const text = ({ content }) => content.map((part) => part.text).join("");
  return {
    isAsync: true,
    run: history ? () => render({ input, messages: messages() }) : () => render({ input }),
    pairs: (rendered) => rendered.messages.map((one) => [one.role === "model" ? "assistant" : one.role, text(one)]),
  };
}

/** Prepares the inputs for Mustache templates. */
const prepared = {
  w1: (inputs) => ({ tone: "", ...inputs }),
  w2: (inputs) => ({
    ...inputs,
    user: { ...inputs.user, groups: inputs.user.groups.join(", ") },
    docs: inputs.docs.map((doc, at) => ({ ...doc, index: at + 1, tags: doc.tags.join(", ") })),
  }),
  w3: (inputs) => inputs,
};

function langchain(call) {
  return (workload) => {
    const template = messagesOf(workload).map(([role, text]) =>
      role === "history" ? new MessagesPlaceholder("history") : [role, mustache(text)],
    );
    const prompt = ChatPromptTemplate.fromMessages(template, { templateFormat: "mustache" });
    const ready = prepared[workload.name];
    const roles = { human: "user", ai: "assistant", system: "system" };
    return {
      isAsync: true,
      run: () => call(prompt, ready(workload.inputs)),
      pairs: (messages) => messages.map((one) => [roles[one.getType()], one.content]),
    };
  };
}

/** Returns checks of a workload's prompt, as a text and as a file, with all rules. */
export function checks(folder, { name, prompty }) {
  const path = join(folder, `${name}.prompty`);
  const operations = { checkStr: () => checkStr(prompty, `${name}.prompty`), checkFile: () => checkFile(path) };
  for (const [what, run] of Object.entries(operations)) {
    if (!Array.isArray(run())) throw new Error(`${what} on ${name} returns no findings`);
  }
  return operations;
}

/** All operations, in the order of the table. */
export const rows = {
  "tympan prepare": tympanPrepare,
  "dotprompt render": dotpromptRender,
  "langchain formatMessages": langchain((prompt, inputs) => prompt.formatMessages(inputs)),
  "langchain invoke": langchain(async (prompt, inputs) => (await prompt.invoke(inputs)).toChatMessages()),
};

/** Prepares an operation and checks that it produces the workload's expected text. */
export async function operation(name, workload) {
  const ready = await rows[name](workload);
  const text = ready.pairs(await ready.run()).map(([role, text]) => `${role}:\n${text}`);
  if (text.join("\n\n") !== workload.expected) throw new Error(`${name} on ${workload.name} gives another text than is expected`);
  return ready;
}
