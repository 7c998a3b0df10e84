import { guarded, type FileFinding, type Finding } from "./error.cjs";
import { native } from "./native.cjs";
import { nativePrompt, type Prompt } from "./prompt.cjs";
import { defaultRuntime, type Runtime } from "./runtime.cjs";
import type { Inputs, Message, ParseTextOptions, RenderOptions } from "./types.cjs";
import { decode, encodeMap } from "./values.cjs";

// The methods of the default runtime, as functions.

function method<Name extends keyof Runtime>(name: Name): Runtime[Name] {
  const call = (...args: unknown[]) =>
    (defaultRuntime()[name] as (...args: unknown[]) => unknown).apply(defaultRuntime(), args);
  return call as Runtime[Name];
}

/** Loads a prompt file. */
export const load = method("load");
/** Loads a prompt file without blocking the event loop. */
export const loadAsync = method("loadAsync");
/** Loads a prompt from the text of a prompt file. */
export const loadStr = method("loadStr");
/** Fills in default values and checks that no required input is missing. */
export const validateInputs = method("validateInputs");
/** Renders a prompt. */
export const render = ((prompt: Prompt, inputs?: Inputs, options?: RenderOptions) =>
  defaultRuntime().render(prompt, inputs, options)) as Runtime["render"];
/** Renders a prompt without blocking the event loop. */
export const renderAsync = method("renderAsync");
/** Splits a rendered prompt into messages. */
export const parse = method("parse");
/** Splits a rendered prompt into messages without blocking the event loop. */
export const parseAsync = method("parseAsync");
/** Renders a prompt and splits it into messages, ready for a model. */
export const prepare = ((prompt: Prompt, inputs?: Inputs) =>
  defaultRuntime().prepare(prompt, inputs)) as Runtime["prepare"];
/** Renders a prompt and splits it into messages without blocking the event loop. */
export const prepareAsync = method("prepareAsync");
/** Renders the prompt for every row of a table in Arrow's IPC format, on other threads. */
export const mapArrow = method("mapArrow");
/** Converts a provider's response to a result. */
export const process = method("process");
/** Converts a provider's response to a result without blocking the event loop. */
export const processAsync = method("processAsync");
/** Calls the prompt's model with these messages. */
export const run = method("run");
/** Calls the prompt's model with these messages and streams the answer. */
export const stream = method("stream");
/** Lists the models of the provider in the options, or else of the prompt's provider. */
export const listModels = method("listModels");
/** Renders a prompt, calls its model, and returns the result. */
export const invoke = method("invoke");
/** Runs a turn: calls the model and the requested tools until the model gives an answer. */
export const turn = method("turn");
/** Resumes a crashed turn from its journal. */
export const resume = method("resume");

/** Loads a prompt file and runs a turn with it. */
export const invokeAgent = method("invokeAgent");

/** Checks a prompt and returns warnings about what works but is probably not intended. */
export function check(prompt: Prompt<any>): Finding[] {
  nativePrompt(prompt);
  return prompt.check();
}

/**
 * Checks a prompt file as `tympan check` does, and returns the findings as the command prints them with `--json`.
 * `settings` is the path of a `tympan.toml`.
 */
export function checkFile(path: string, options: { settings?: string } = {}): FileFinding[] {
  return guarded(() => decode(native.checkFile(path, options.settings)));
}

/**
 * Checks the text of a prompt file as `tympan check` does. The name implies its format, and its references are relative
 * to `baseDir`.
 */
export function checkStr(
  text: string,
  name = "<string>",
  baseDir = ".",
  options: { settings?: string } = {},
): FileFinding[] {
  return guarded(() => decode(native.checkStr(text, name, baseDir, options.settings)));
}

/**
 * Splits a text into messages. All of it counts as the author's text, so this is only safe with a nonce, or with text
 * that contains no input.
 */
export function parseText(text: string, options: ParseTextOptions = {}): Message[] {
  const threads = encodeMap(options.threads, "threads");
  return guarded(() => decode(native.parseText(text, options.nonce, threads)));
}

/** Writes a nonce into every role marker of a template, for callers who render it elsewhere. `parseText` checks it. */
export function preRender(text: string, nonce: string): string {
  return guarded(() => native.preRender(text, nonce));
}
