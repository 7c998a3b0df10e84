import { guarded, type Finding } from "./error.cjs";
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
/** As `load`, beside the event loop. */
export const loadAsync = method("loadAsync");
/** Loads a prompt from the text of a prompt file. */
export const loadStr = method("loadStr");
/** Fills in defaults and checks that nothing required is missing. */
export const validateInputs = method("validateInputs");
/** Renders a prompt. */
export const render = ((prompt: Prompt, inputs?: Inputs, options?: RenderOptions) =>
  defaultRuntime().render(prompt, inputs, options)) as Runtime["render"];
/** As `render`, beside the event loop. */
export const renderAsync = method("renderAsync");
/** Splits a rendered prompt into messages. */
export const parse = method("parse");
/** As `parse`, beside the event loop. */
export const parseAsync = method("parseAsync");
/** Renders a prompt and splits it into messages, ready for a model. */
export const prepare = ((prompt: Prompt, inputs?: Inputs) =>
  defaultRuntime().prepare(prompt, inputs)) as Runtime["prepare"];
/** As `prepare`, beside the event loop. */
export const prepareAsync = method("prepareAsync");
/** Makes a result of a provider's answer. */
export const process = method("process");
/** As `process`, beside the event loop. */
export const processAsync = method("processAsync");
/** Calls the model of a prompt with these messages. */
export const run = method("run");
/** As `run`, with the answer as it arrives. */
export const stream = method("stream");
/** From a prompt and its inputs to a result. */
export const invoke = method("invoke");
/** Goes through a turn: calls the model, and the tools it asks for, until it answers. */
export const turn = method("turn");
/** Goes on with a turn that has died, from its journal. */
export const resume = method("resume");

/** Loads a prompt file, and goes through a turn with it. */
export const invokeAgent = method("invokeAgent");

/** Looks for what works in a prompt, but may not be what its author wants. */
export function check(prompt: Prompt<any>): Finding[] {
  nativePrompt(prompt);
  return prompt.check();
}

/**
 * Splits a bare string into messages. All of it counts as the author's text, so this is only safe with a nonce, or with
 * text that no input had a part in.
 */
export function parseText(text: string, options: ParseTextOptions = {}): Message[] {
  const threads = encodeMap(options.threads, "threads");
  return guarded(() => decode(native.parseText(text, options.nonce, threads)));
}

/** Writes a nonce into every role marker of a template, for callers who render it elsewhere. `parseText` checks it. */
export function preRender(text: string, nonce: string): string {
  return guarded(() => native.preRender(text, nonce));
}
