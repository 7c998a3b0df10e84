import { fileURLToPath } from "node:url";

import { native, type Listener, type NativeRuntime, type NativeSteering } from "./native.cjs";
import { guarded, invalid, translated } from "./error.cjs";
import { camel, encodeOptions } from "./options.cjs";
import { preparePacked } from "./packed.cjs";
import {
  NATIVE,
  Prompt,
  Rendered,
  givenInputs,
  givenInputsAsync,
  nativePrompt,
  nativeRendered,
  renderBy,
  validInputs,
  type Validation,
} from "./prompt.cjs";
import {
  Registry,
  type Parser,
  type Provider,
  type Renderer,
  type ToolHandler,
  type TraceBackend,
} from "./registry.cjs";
import { TurnRun, readRun, type Run } from "./results.cjs";
import type { Accepted, StandardSchema } from "./schema.cjs";
import { Steering } from "./steering.cjs";
import { Stream } from "./stream.cjs";
import { asTools, nativeTool, nativeTools, type Tool, type ToolFunction } from "./tool.cjs";
import type {
  Connection,
  Given,
  Inputs,
  Message,
  MessageInput,
  RenderOptions,
  RunOptions,
  RuntimeOptions,
  Stoppable,
  TraceStatus,
  TurnOptions,
} from "./types.cjs";
import { decode, encode, encodeMap } from "./values.cjs";
import { perform } from "./work.cjs";

/** A prompt, or the path of its file. */
export type PromptSource<In = Inputs> = Prompt<In> | string | URL;

function path(file: string | URL): string {
  if (typeof file === "string") return file;
  if (file instanceof URL) return fileURLToPath(file);
  throw invalid("expected the path of a prompt file");
}

function split<Options extends Stoppable>(options: Options): [AbortSignal | undefined, Omit<Options, "signal">] {
  const { signal, ...data } = options;
  return [signal, data];
}

/** The options of a render, if there are any. */
function manner(options: RenderOptions | undefined): string | undefined {
  return options === undefined ? undefined : encodeOptions(options);
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

/** How a text is loaded. */
export interface LoadOptions {
  /** What it is called in errors. */
  name?: string;
  /** Where files are looked for that it names. */
  baseDir?: string;
}

/** Options, registries, and all that prompts are done with. The functions of the same names use one default runtime. */
export class Runtime {
  /** @internal */
  readonly [NATIVE]: NativeRuntime;
  #registered: Registry | undefined;

  constructor(options: RuntimeOptions = {}) {
    this[NATIVE] = guarded(() => new native.NativeRuntime(encodeOptions(options)));
  }

  /** What is registered. Most runtimes never register anything. */
  get #registry(): Registry {
    return (this.#registered ??= new Registry(this[NATIVE]));
  }

  #register<Kind extends "renderer" | "parser" | "provider" | "handler" | "trace">(
    kind: Kind,
    name: string,
    given: unknown,
  ): void {
    if (typeof name !== "string") throw invalid(`the name of a ${kind} is a string`);
    if (typeof given !== "function") throw invalid(`the ${kind} ${JSON.stringify(name)} is no function`);
    (this.#registry[kind] as Map<string, unknown>).set(name, given);
    guarded(() => this[NATIVE].register(kind, name));
  }

  /**
   * Registers a renderer for templates of this format, in place of any other. Who wrote which part of its text is not
   * known, so only role markers that stand in the template begin a message.
   */
  registerRenderer(kind: string, renderer: Renderer): void {
    this.#register("renderer", kind, renderer);
  }

  /** Registers a parser of this kind, in place of any other. */
  registerParser(kind: string, parser: Parser): void {
    this.#register("parser", kind, parser);
  }

  /** Registers a provider of this name, in place of any other, one that is built in included. */
  registerProvider(name: string, provider: Provider): void {
    this.#register("provider", name, provider);
  }

  /** The provider that was registered here under this name. */
  getProvider(name: string): Provider | undefined {
    return this.#registered?.provider.get(name);
  }

  /** Registers a connection for prompts whose own is `{kind: reference, name: …}`. */
  registerConnection(name: string, connection: Connection): void {
    guarded(() => this[NATIVE].registerConnection(name, encodeMap(connection, "connection")));
  }

  /** The connection that was registered under this name; credentials read `[REDACTED]`. */
  getConnection(name: string): Connection | undefined {
    const found = guarded(() => this[NATIVE].getConnection(name));
    return found === null ? undefined : decode(found);
  }

  /** Forgets all connections. */
  clearConnections(): void {
    this[NATIVE].clearConnections();
  }

  /** Registers what runs the tool of this name, in place of any other. Only prompts that declare the tool get it. */
  registerTool(name: string, tool: Tool | ToolFunction): void {
    for (const [known, made] of asTools({ [name]: tool })) {
      this.#registry.tools.set(known, made);
      guarded(() => this[NATIVE].registerTool(nativeTool(known, made)));
    }
  }

  /** What is registered to run the tool of this name. */
  getTool(name: string): Tool | undefined {
    return this.#registered?.tools.get(name);
  }

  /** Forgets all tools. */
  clearTools(): void {
    this[NATIVE].clearTools();
    this.#registered?.tools.clear();
  }

  /**
   * Registers what makes functions of all tools of a kind, in place of any other, one that is built in included. `*`
   * stands for all custom kinds that have no handler of their own.
   */
  registerToolHandler(kind: string, handler: ToolHandler): void {
    this.#register("handler", kind, handler);
  }

  /** The handler that was registered here for a kind of tools. */
  getToolHandler(kind: string): ToolHandler | undefined {
    return this.#registered?.handler.get(kind);
  }

  /** Forgets all handlers. */
  clearToolHandlers(): void {
    this[NATIVE].clearToolHandlers();
    this.#registered?.handler.clear();
  }

  /** Adds a trace backend under a name, in place of any other. It gets the traces that begin from now on. */
  addTraceBackend(name: string, backend: TraceBackend): void {
    if (typeof backend === "function") return this.#register("trace", name, backend);
    guarded(() => this[NATIVE].addTraceBackend(name, encodeOptions(backend)));
  }

  /** Removes a trace backend. Returns whether there was one. */
  removeTraceBackend(name: string): boolean {
    return guarded(() => this[NATIVE].removeTraceBackend(name));
  }

  /** Waits until the trace backends have done their work, for at most so many seconds. Whether they have is the result. */
  async flushTraces(timeout = 10): Promise<boolean> {
    const [flushed] = await perform((listener) => this[NATIVE].flushTraces(timeout, listener));
    return decode(flushed);
  }

  /** How the trace backends are doing. */
  traceStatus(): TraceStatus[] {
    return guarded(() => decode<Record<string, unknown>[]>(this[NATIVE].traceStatus()).map(camel<TraceStatus>));
  }

  /** Loads a prompt file. */
  load(file: string | URL, options?: Partial<Validation<false>>): Prompt;
  load<Schema extends StandardSchema<any, any>>(
    file: string | URL,
    options: Validation<Schema>,
  ): Prompt<Accepted<Schema>>;
  load(file: string | URL, options: Partial<Validation> = {}): Prompt<any> {
    return Prompt[NATIVE](
      guarded(() => this[NATIVE].load(path(file))),
      options.validator,
    );
  }

  /** As `load`, beside the event loop. */
  loadAsync(file: string | URL, options?: Partial<Validation<false>>): Promise<Prompt>;
  loadAsync<Schema extends StandardSchema<any, any>>(
    file: string | URL,
    options: Validation<Schema>,
  ): Promise<Prompt<Accepted<Schema>>>;
  async loadAsync(file: string | URL, options: Partial<Validation> = {}): Promise<Prompt<any>> {
    const from = path(file);
    const [, prompt] = await perform((listener) => this[NATIVE].loadAsync(from, listener));
    return Prompt[NATIVE](prompt!, options.validator);
  }

  /** Loads a prompt from the text of a prompt file. */
  loadStr(text: string, options?: LoadOptions & Partial<Validation<false>>): Prompt;
  loadStr<Schema extends StandardSchema<any, any>>(
    text: string,
    options: LoadOptions & Validation<Schema>,
  ): Prompt<Accepted<Schema>>;
  loadStr(text: string, options: LoadOptions & Partial<Validation> = {}): Prompt<any> {
    const { name = "<string>", baseDir = ".", validator } = options;
    return Prompt[NATIVE](
      guarded(() => this[NATIVE].loadStr(text, name, baseDir)),
      validator,
    );
  }

  /** Has the validator of a prompt look at inputs, fills in defaults, and checks that nothing required is missing. */
  validateInputs<In>(prompt: Prompt<In>, ...given: Given<In, never>): Record<string, unknown>;
  validateInputs(prompt: Prompt<any>, inputs?: unknown): Record<string, unknown> {
    const [known, given] = [nativePrompt(prompt), givenInputs(prompt, inputs)];
    return guarded(() => decode(this[NATIVE].validateInputs(known, given)));
  }

  /** Renders a prompt. */
  render<In>(prompt: Prompt<In>, ...given: Given<In, RenderOptions>): Rendered;
  render(prompt: Prompt<any>, inputs?: unknown, options?: RenderOptions): Rendered {
    const known = nativePrompt(prompt);
    const given = givenInputs(prompt, inputs);
    try {
      return Rendered[NATIVE](this[NATIVE].render(known, given, manner(options)));
    } catch (thrown) {
      throw translated(thrown);
    }
  }

  /** As `render`, beside the event loop. */
  async renderAsync<In>(prompt: Prompt<In>, ...[inputs, options]: Given<In, RenderOptions>): Promise<Rendered> {
    const [known, given, how] = [nativePrompt(prompt), await givenInputsAsync(prompt, inputs), manner(options)];
    const [, , rendered] = await perform((listener) => this[NATIVE].renderAsync(known, given, how, listener));
    return Rendered[NATIVE](rendered!);
  }

  /** Splits a rendered prompt into messages. */
  parse(prompt: Prompt<any>, rendered: Rendered): Message[] {
    return guarded(() => decode(this[NATIVE].parse(nativePrompt(prompt), nativeRendered(rendered))));
  }

  /** As `parse`, beside the event loop. */
  async parseAsync(prompt: Prompt<any>, rendered: Rendered): Promise<Message[]> {
    const [known, text] = [nativePrompt(prompt), nativeRendered(rendered)];
    const [messages] = await perform((listener) => this[NATIVE].parseAsync(known, text, listener));
    return decode(messages);
  }

  /** Renders a prompt and splits it into messages, ready for a model. */
  prepare<In>(prompt: Prompt<In>, ...given: Given<In, never>): Message[];
  prepare(prompt: Prompt<any>, inputs?: unknown): Message[] {
    const known = nativePrompt(prompt);
    const given = validInputs(prompt, inputs);
    try {
      const packed = preparePacked(this[NATIVE], known, given);
      return packed ?? decode(this[NATIVE].prepare(known, encodeMap(given, "inputs")));
    } catch (thrown) {
      throw translated(thrown);
    }
  }

  /** As `prepare`, beside the event loop. */
  async prepareAsync<In>(prompt: Prompt<In>, ...[inputs]: Given<In, never>): Promise<Message[]> {
    const [known, given] = [nativePrompt(prompt), await givenInputsAsync(prompt, inputs)];
    const [messages] = await perform((listener) => this[NATIVE].prepareAsync(known, given, listener));
    return decode(messages);
  }

  /** Makes a result of a provider's answer: its body, as text or as the value that was read from it. */
  process(prompt: Prompt<any>, body: unknown, options: RunOptions = {}): Run {
    const text = typeof body === "string" ? body : encode(body, "body");
    return guarded(() => readRun(this[NATIVE].process(nativePrompt(prompt), text, encodeOptions(options))));
  }

  /** As `process`, beside the event loop. */
  async processAsync(prompt: Prompt<any>, body: unknown, options: RunOptions = {}): Promise<Run> {
    const text = typeof body === "string" ? body : encode(body, "body");
    const [known, settings] = [nativePrompt(prompt), encodeOptions(options)];
    const [processed] = await perform((listener) => this[NATIVE].processAsync(known, text, settings, listener));
    return readRun(processed);
  }

  /** Calls the model of a prompt with these messages. */
  async run(
    prompt: Prompt<any>,
    messages: readonly MessageInput[],
    options: RunOptions & Stoppable = {},
  ): Promise<Run> {
    const [signal, data] = split(options);
    const [known, said, settings] = [nativePrompt(prompt), encode(messages, "messages"), encodeOptions(data)];
    const [run] = await perform((listener) => this[NATIVE].run(known, said, settings, listener), { signal });
    return readRun(run);
  }

  /** As `run`, with the answer as it arrives. */
  stream(prompt: Prompt<any>, messages: readonly MessageInput[], options: RunOptions & Stoppable = {}): Stream {
    const [signal, data] = split(options);
    const [known, said, settings] = [nativePrompt(prompt), encode(messages, "messages"), encodeOptions(data)];
    const stop = new AbortController();
    const either = signal === undefined ? stop.signal : AbortSignal.any([signal, stop.signal]);
    const begin = async (onDelta: (text: string) => void) => {
      const handlers = { signal: either, onDelta };
      const [run] = await perform((listener) => this[NATIVE].stream(known, said, settings, listener), handlers);
      return readRun(run);
    };
    return Stream[NATIVE](begin, () => stop.abort());
  }

  /** The prompt itself, loaded if need be. What says that its validation is required can only be loaded by `load`. */
  async #prompt(source: PromptSource<any>): Promise<Prompt<any>> {
    return source instanceof Prompt ? source : this.loadAsync(source);
  }

  /** From a prompt and its inputs to a result. */
  async invoke<In = Inputs>(
    prompt: PromptSource<In>,
    ...[inputs, options = {}]: Given<In, RunOptions & Stoppable>
  ): Promise<Run> {
    const [signal, data] = split<RunOptions & Stoppable>(options);
    const [from, settings] = [await this.#prompt(prompt), encodeOptions(data)];
    const given = await givenInputsAsync(from, inputs);
    const [run] = await perform((listener) => this[NATIVE].invoke(from[NATIVE], given, settings, listener), { signal });
    return readRun(run);
  }

  /** Goes through a turn: calls the model, and the tools it asks for, until it answers. */
  async turn<In = Inputs>(prompt: PromptSource<In>, ...[inputs, options]: Given<In, TurnOptions>): Promise<TurnRun> {
    const from = await this.#prompt(prompt);
    return this.#turn(from, await givenInputsAsync(from, inputs), options ?? {});
  }

  /** Loads a prompt file, and goes through a turn with it. */
  invokeAgent(file: string | URL, inputs: Inputs = {}, options: TurnOptions = {}): Promise<TurnRun> {
    return this.turn(file, inputs, options);
  }

  /** Goes on with a turn that has died, from the journal in the options. The inputs are in the journal. */
  async resume(prompt: PromptSource<any>, options: TurnOptions & { journal: string }): Promise<TurnRun> {
    return this.#turn(await this.#prompt(prompt), undefined, options);
  }

  async #turn(prompt: Prompt<any>, inputs: string | undefined, options: TurnOptions): Promise<TurnRun> {
    const { signal, tools: given, onEvent, steering, compact, ...rest } = options;
    const { approve, judgeInput, judgeOutput, judgeTool, ...data } = rest;
    // What a turn brings goes before what is registered.
    const tools = new Map([...(this.#registered?.tools ?? []), ...asTools(given)]);
    const asked = {
      approve,
      judgeInput,
      judgeOutput,
      judgeTool,
      compact: typeof compact === "function" ? compact : undefined,
    };
    const turn = {
      settings: encodeOptions({ ...data, compact: typeof compact === "boolean" ? compact : undefined }),
      tools: nativeTools(tools),
      events: onEvent !== undefined,
      asks: Object.entries(asked).flatMap(([name, ask]) => (ask === undefined ? [] : [name])),
    };
    const [known, speaker, summary] = [nativePrompt(prompt), nativeSteering(steering), compacting(compact)];
    const handlers = { signal, endsItself: true, tools, onEvent, ...asked };
    const begin = (listener: Listener) => this[NATIVE].turn(known, inputs, turn, speaker, summary, listener);
    const [run] = await perform(begin, handlers);
    return TurnRun[NATIVE](run);
  }
}

/** The prompt that says in short what no longer fits. */
function compacting(compact: TurnOptions["compact"]): ReturnType<typeof nativePrompt> | undefined {
  if (compact === undefined || typeof compact === "boolean" || typeof compact === "function") return undefined;
  const known = nativePrompt(compact);
  if (compact.validator) throw invalid("options: compact: nobody asks the validator of this prompt");
  return known;
}

let shared: Runtime | undefined;

/** The runtime that the functions without one use. */
export function defaultRuntime(): Runtime {
  return (shared ??= new Runtime());
}

renderBy((prompt, inputs, options) => defaultRuntime().render(prompt, inputs, options));
