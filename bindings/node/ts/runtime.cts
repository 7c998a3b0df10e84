import { fileURLToPath } from "node:url";

import { native, type Listener, type NativePrompt, type NativeRuntime, type NativeSteering } from "./native.cjs";
import { guarded, guardedAsync, invalid } from "./error.cjs";
import { camel, encodeOptions } from "./options.cjs";
import { preparePacked } from "./packed.cjs";
import { NATIVE, Prompt, Rendered, nativePrompt, nativeRendered, renderBy } from "./prompt.cjs";
import { Steering } from "./steering.cjs";
import { ResponseStream } from "./stream.cjs";
import { asTools, nativeTools, type Tool, type ToolFunction } from "./tool.cjs";
import type {
  Inputs,
  Message,
  MessageInput,
  RenderOptions,
  Run,
  RunOptions,
  RuntimeOptions,
  Stoppable,
  TurnOptions,
  TurnRun,
  Usage,
} from "./types.cjs";
import { decode, encode, encodeMap } from "./values.cjs";
import { perform } from "./work.cjs";

/** A prompt, or the path of its file. */
export type PromptSource = Prompt | string | URL;

function path(file: string | URL): string {
  if (typeof file === "string") return file;
  if (file instanceof URL) return fileURLToPath(file);
  throw invalid("expected the path of a prompt file");
}

function source(prompt: PromptSource): NativePrompt | string {
  return prompt instanceof Prompt ? nativePrompt(prompt) : path(prompt);
}

function readRun(record: Record<string, unknown>): Run {
  const usage = record["usage"] as Record<string, unknown> | null;
  return camel({ ...record, usage: usage && camel<Usage>(usage) });
}

function readTurn(text: string): TurnRun {
  const { run, turn_usage, resumed, ...rest } = decode<Record<string, any>>(text);
  return {
    ...readRun(run),
    ...(rest as Pick<TurnRun, "rounds" | "messages">),
    turnUsage: camel<Usage>(turn_usage),
    resumed: resumed && camel(resumed),
  };
}

function split<Options extends Stoppable>(options: Options): [AbortSignal | undefined, Omit<Options, "signal">] {
  const { signal, ...data } = options;
  return [signal, data];
}

/** What the engine knows as this runtime. */
export function nativeRuntime(runtime: Runtime): NativeRuntime {
  if (runtime instanceof Runtime) return runtime[NATIVE];
  throw invalid("expected a Runtime");
}

function nativeSteering(steering: Steering | undefined): NativeSteering | undefined {
  if (steering === undefined || steering instanceof Steering) return steering?.[NATIVE];
  throw invalid("options: steering: expected a Steering");
}

/** Options, and all that prompts are done with. The functions of the same names use one default runtime. */
export class Runtime {
  /** @internal */
  readonly [NATIVE]: NativeRuntime;
  readonly #tools = new Map<string, Tool>();

  constructor(options: RuntimeOptions = {}) {
    this[NATIVE] = guarded(() => new native.NativeRuntime(encodeOptions(options)));
  }

  /** Registers what runs the tool of this name, in place of any other. Only prompts that declare the tool get it. */
  registerTool(name: string, tool: Tool | ToolFunction): void {
    for (const [known, made] of asTools({ [name]: tool })) this.#tools.set(known, made);
  }

  /** What is registered to run the tool of this name. */
  getTool(name: string): Tool | undefined {
    return this.#tools.get(name);
  }

  /** Forgets all tools. */
  clearTools(): void {
    this.#tools.clear();
  }

  /** Loads a prompt file. */
  load(file: string | URL): Prompt {
    return guarded(() => Prompt[NATIVE](this[NATIVE].load(path(file))));
  }

  /** As `load`, beside the event loop. */
  loadAsync(file: string | URL): Promise<Prompt> {
    return guardedAsync(async () => Prompt[NATIVE](await this[NATIVE].loadAsync(path(file))));
  }

  /** Loads a prompt from the text of a prompt file. Files that it names are looked for in `baseDir`. */
  loadStr(text: string, options: { name?: string; baseDir?: string } = {}): Prompt {
    const { name = "<string>", baseDir = "." } = options;
    return guarded(() => Prompt[NATIVE](this[NATIVE].loadStr(text, name, baseDir)));
  }

  /** Fills in defaults and checks that nothing required is missing. */
  validateInputs(prompt: Prompt, inputs: Inputs = {}): Record<string, unknown> {
    return guarded(() => decode(this[NATIVE].validateInputs(nativePrompt(prompt), encodeMap(inputs, "inputs"))));
  }

  /** Renders a prompt. */
  render(prompt: Prompt, inputs: Inputs = {}, options: RenderOptions = {}): Rendered {
    const [known, given] = [nativePrompt(prompt), encodeMap(inputs, "inputs")];
    return guarded(() => Rendered[NATIVE](this[NATIVE].render(known, given, options.variant)));
  }

  /** As `render`, beside the event loop. */
  renderAsync(prompt: Prompt, inputs: Inputs = {}, options: RenderOptions = {}): Promise<Rendered> {
    return guardedAsync(async () => {
      const [known, given] = [nativePrompt(prompt), encodeMap(inputs, "inputs")];
      return Rendered[NATIVE](await this[NATIVE].renderAsync(known, given, options.variant));
    });
  }

  /** Splits a rendered prompt into messages. */
  parse(prompt: Prompt, rendered: Rendered): Message[] {
    return guarded(() => decode(this[NATIVE].parse(nativePrompt(prompt), nativeRendered(rendered))));
  }

  /** As `parse`, beside the event loop. */
  parseAsync(prompt: Prompt, rendered: Rendered): Promise<Message[]> {
    return guardedAsync(async () =>
      decode(await this[NATIVE].parseAsync(nativePrompt(prompt), nativeRendered(rendered))),
    );
  }

  /** Renders a prompt and splits it into messages, ready for a model. */
  prepare(prompt: Prompt, inputs: Inputs = {}): Message[] {
    const known = nativePrompt(prompt);
    return guarded(
      () =>
        preparePacked(this[NATIVE], known, inputs) ??
        decode(this[NATIVE].prepare(known, encodeMap(inputs, "inputs"))),
    );
  }

  /** As `prepare`, beside the event loop. */
  prepareAsync(prompt: Prompt, inputs: Inputs = {}): Promise<Message[]> {
    return guardedAsync(async () =>
      decode(await this[NATIVE].prepareAsync(nativePrompt(prompt), encodeMap(inputs, "inputs"))),
    );
  }

  /** Makes a result of a provider's answer: its body, as text or as the value that was read from it. */
  process(prompt: Prompt, body: unknown, options: RunOptions = {}): Run {
    const text = typeof body === "string" ? body : encode(body, "body");
    return guarded(() => readRun(decode(this[NATIVE].process(nativePrompt(prompt), text, encodeOptions(options)))));
  }

  /** As `process`, beside the event loop. */
  processAsync(prompt: Prompt, body: unknown, options: RunOptions = {}): Promise<Run> {
    return guardedAsync(async () => {
      const text = typeof body === "string" ? body : encode(body, "body");
      const processed = this[NATIVE].processAsync(nativePrompt(prompt), text, encodeOptions(options));
      return readRun(decode(await processed));
    });
  }

  /** Calls the model of a prompt with these messages. */
  async run(prompt: Prompt, messages: readonly MessageInput[], options: RunOptions & Stoppable = {}): Promise<Run> {
    const [signal, data] = split(options);
    const [known, said, settings] = [nativePrompt(prompt), encode(messages, "messages"), encodeOptions(data)];
    return readRun(decode(await perform((listener) => this[NATIVE].run(known, said, settings, listener), { signal })));
  }

  /** As `run`, with the answer as it arrives. */
  stream(prompt: Prompt, messages: readonly MessageInput[], options: RunOptions & Stoppable = {}): ResponseStream {
    const [signal, data] = split(options);
    const [known, said, settings] = [nativePrompt(prompt), encode(messages, "messages"), encodeOptions(data)];
    const stop = new AbortController();
    const either = signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]);
    const begin = async (onDelta: (text: string) => void) => {
      const handlers = { signal: either, onDelta };
      return readRun(decode(await perform((listener) => this[NATIVE].stream(known, said, settings, listener), handlers)));
    };
    return ResponseStream[NATIVE](begin, () => stop.abort());
  }

  /** From a prompt and its inputs to a result. */
  async invoke(prompt: PromptSource, inputs: Inputs = {}, options: RunOptions & Stoppable = {}): Promise<Run> {
    const [signal, data] = split(options);
    const [from, given, settings] = [source(prompt), encodeMap(inputs, "inputs"), encodeOptions(data)];
    return readRun(decode(await perform((listener) => this[NATIVE].invoke(from, given, settings, listener), { signal })));
  }

  /** Goes through a turn: calls the model, and the tools it asks for, until it answers. */
  async turn(prompt: PromptSource, inputs: Inputs = {}, options: TurnOptions = {}): Promise<TurnRun> {
    return this.#turn(prompt, encodeMap(inputs, "inputs"), options);
  }

  /** Goes on with a turn that has died, from the journal in the options. The inputs are in the journal. */
  async resume(prompt: PromptSource, options: TurnOptions & { journal: string }): Promise<TurnRun> {
    return this.#turn(prompt, undefined, options);
  }

  async #turn(prompt: PromptSource, inputs: string | undefined, options: TurnOptions): Promise<TurnRun> {
    const { signal, tools: given, onEvent, approve, steering, ...data } = options;
    // What a turn brings goes before what is registered.
    const [from, tools] = [source(prompt), new Map([...this.#tools, ...asTools(given)])];
    const turn = {
      settings: encodeOptions(data),
      tools: nativeTools(tools),
      events: onEvent !== undefined,
      approves: approve !== undefined,
    };
    const speaker = nativeSteering(steering);
    const handlers = { signal, endsItself: true, tools, onEvent, approve };
    const begin = (listener: Listener) => this[NATIVE].turn(from, inputs, turn, speaker, listener);
    return readTurn(await perform(begin, handlers));
  }
}

let shared: Runtime | undefined;

/** The runtime that the functions without one use. */
export function defaultRuntime(): Runtime {
  return (shared ??= new Runtime());
}

renderBy((prompt, inputs, options) => defaultRuntime().render(prompt, inputs, options));
