import type { Finding } from "./error.cjs";
import { nativePrompt, type Prompt } from "./prompt.cjs";
import { defaultRuntime, type Runtime } from "./runtime.cjs";
import type { Inputs, TurnOptions, TurnRun } from "./types.cjs";

// The methods of the default runtime, as functions.

/** Loads a prompt file. */
export const load: Runtime["load"] = (...args) => defaultRuntime().load(...args);
/** As `load`, beside the event loop. */
export const loadAsync: Runtime["loadAsync"] = (...args) => defaultRuntime().loadAsync(...args);
/** Loads a prompt from the text of a prompt file. */
export const loadStr: Runtime["loadStr"] = (...args) => defaultRuntime().loadStr(...args);
/** Fills in defaults and checks that nothing required is missing. */
export const validateInputs: Runtime["validateInputs"] = (...args) => defaultRuntime().validateInputs(...args);
/** Renders a prompt. */
export const render: Runtime["render"] = (...args) => defaultRuntime().render(...args);
/** As `render`, beside the event loop. */
export const renderAsync: Runtime["renderAsync"] = (...args) => defaultRuntime().renderAsync(...args);
/** Splits a rendered prompt into messages. */
export const parse: Runtime["parse"] = (...args) => defaultRuntime().parse(...args);
/** As `parse`, beside the event loop. */
export const parseAsync: Runtime["parseAsync"] = (...args) => defaultRuntime().parseAsync(...args);
/** Renders a prompt and splits it into messages, ready for a model. */
export const prepare: Runtime["prepare"] = (...args) => defaultRuntime().prepare(...args);
/** As `prepare`, beside the event loop. */
export const prepareAsync: Runtime["prepareAsync"] = (...args) => defaultRuntime().prepareAsync(...args);
/** Makes a result of a provider's answer. */
export const process: Runtime["process"] = (...args) => defaultRuntime().process(...args);
/** As `process`, beside the event loop. */
export const processAsync: Runtime["processAsync"] = (...args) => defaultRuntime().processAsync(...args);
/** Calls the model of a prompt with these messages. */
export const run: Runtime["run"] = (...args) => defaultRuntime().run(...args);
/** As `run`, with the answer as it arrives. */
export const stream: Runtime["stream"] = (...args) => defaultRuntime().stream(...args);
/** From a prompt and its inputs to a result. */
export const invoke: Runtime["invoke"] = (...args) => defaultRuntime().invoke(...args);
/** Goes through a turn: calls the model, and the tools it asks for, until it answers. */
export const turn: Runtime["turn"] = (...args) => defaultRuntime().turn(...args);
/** Goes on with a turn that has died, from its journal. */
export const resume: Runtime["resume"] = (...args) => defaultRuntime().resume(...args);

/** Loads a prompt file, and goes through a turn with it. */
export function invokeAgent(file: string | URL, inputs: Inputs = {}, options: TurnOptions = {}): Promise<TurnRun> {
  return turn(file, inputs, options);
}

/** Looks for what works in a prompt, but may not be what its author wants. */
export function check(prompt: Prompt): Finding[] {
  nativePrompt(prompt);
  return prompt.check();
}
