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
  mapBy,
  renderBy,
  validInputs,
  warn,
  warnAboutUnknown,
  type Validation,
} from "./prompt.cjs";
import {
  Registry,
  type Parser,
  type CredentialProvider,
  type Provider,
  type Renderer,
  type TemplateFunction,
  type TemplateTest,
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
  ModelInfo,
  RenderOptions,
  RunOptions,
  RuntimeOptions,
  Stoppable,
  TableOptions,
  TraceStatus,
  TurnOptions,
} from "./types.cjs";
import { decode, encode, encodeMap } from "./values.cjs";
import { perform } from "./work.cjs";

/** A prompt, or the path of a prompt file. */
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

/** Serializes the options of a render, if there are any. */
function manner(options: RenderOptions | undefined): string | undefined {
  return options === undefined ? undefined : encodeOptions(options);
}

/** Returns the native object of a runtime. */
export function nativeRuntime(runtime: Runtime): NativeRuntime {
  if (runtime instanceof Runtime) return runtime[NATIVE];
  throw invalid("expected a Runtime");
}

function nativeSteering(steering: Steering | undefined): NativeSteering | undefined {
  if (steering === undefined || steering instanceof Steering) return steering?.[NATIVE];
  throw invalid("options: steering: expected a Steering");
}

/** The options for loading a text. */
export interface LoadOptions {
  /** The name of the text in errors. */
  name?: string;
  /** The directory for relative paths in the text. */
  baseDir?: string;
}

/** Options, registries, and all operations on prompts. The functions of the same names use a default runtime. */
export class Runtime {
  /** @internal */
  readonly [NATIVE]: NativeRuntime;
  #registered: Registry | undefined;
  readonly #kinds: RuntimeOptions["kinds"];

  constructor(options: RuntimeOptions = {}) {
    this[NATIVE] = guarded(() => new native.NativeRuntime(encodeOptions(options)));
    this.#kinds = options.kinds;
  }

  /** Warns about values that do not match their declaration, if the options say so. Returns the inputs. */
  #checked(prompt: Prompt<any>, inputs: string, kinds = this.#kinds): string {
    if (kinds === "warn") warn("invalid_input", guarded(() => prompt[NATIVE].kindWarnings(inputs)));
    return inputs;
  }

  /** The registry, which is created when something is registered. */
  get #registry(): Registry {
    return (this.#registered ??= new Registry(this[NATIVE]));
  }

  #register<
    Kind extends
      | "renderer"
      | "parser"
      | "provider"
      | "credential"
      | "handler"
      | "trace"
      | "filter"
      | "test"
      | "function",
  >(
    kind: Kind,
    name: string,
    given: unknown,
  ): void {
    if (typeof name !== "string") throw invalid(`name of a ${kind}: expected a string`);
    if (typeof given !== "function") throw invalid(`${kind} ${JSON.stringify(name)}: expected a function`);
    const registry = this.#registry;
    guarded(() => this[NATIVE].register(kind, name));
    (registry[kind] as Map<string, unknown>).set(name, given);
  }

  /**
   * Registers a renderer for a template format, replacing any existing one. The origins in its text are unknown, so
   * only role markers from the template start a message.
   */
  registerRenderer(kind: string, renderer: Renderer): void {
    this.#register("renderer", kind, renderer);
  }

  /**
   * Registers a filter for templates, replacing any registered one. It receives the value and the arguments. The result
   * counts as written by all inputs that contributed to the arguments.
   */
  registerFilter(name: string, filter: TemplateFunction): void {
    this.#register("filter", name, filter);
  }

  /** Registers a test for templates, replacing any registered one. It receives the value and the arguments. */
  registerTest(name: string, test: TemplateTest): void {
    this.#register("test", name, test);
  }

  /**
   * Registers a function for templates, replacing any registered one. The result counts as written by all inputs that
   * contributed to the arguments.
   */
  registerFunction(name: string, fn: TemplateFunction): void {
    this.#register("function", name, fn);
  }

  /** Registers a parser for rendered text, replacing any existing one. */
  registerParser(kind: string, parser: Parser): void {
    this.#register("parser", kind, parser);
  }

  /** Registers a custom provider, replacing any existing one, including built-in providers. */
  registerProvider(name: string, provider: Provider): void {
    this.#register("provider", name, provider);
  }

  /** Returns the provider that is registered under a name. */
  getProvider(name: string): Provider | undefined {
    return this.#registered?.provider.get(name);
  }

  /**
   * Registers a credential provider for connections without a key, by their kind: `foundry`, `oauth`, `anonymous`. The
   * kind `*` matches all kinds without a provider of their own, except `key` and `anonymous`.
   */
  registerCredentialProvider(kind: string, provider: CredentialProvider): void {
    this.#register("credential", kind, provider);
  }

  /**
   * Registers a program that prints an access token, as a credential provider for connections of this kind. It runs
   * without a shell, for at most `timeout` seconds.
   */
  registerCredentialCommand(kind: string, command: readonly string[], timeout = 30): void {
    guarded(() => this[NATIVE].registerCredentialCommand(kind, [...command], timeout));
  }

  /** Returns the function that is registered as the credential provider for a kind of connections. */
  getCredentialProvider(kind: string): CredentialProvider | undefined {
    return this.#registered?.credential.get(kind);
  }

  /** Removes all credential providers, and the tokens that they returned. */
  clearCredentialProviders(): void {
    this[NATIVE].clearCredentialProviders();
    this.#registered?.credential.clear();
  }

  /** Registers a connection for prompts that refer to it with `{kind: reference, name: …}`. */
  registerConnection(name: string, connection: Connection): void {
    guarded(() => this[NATIVE].registerConnection(name, encodeMap(connection, "connection")));
  }

  /** Returns the connection that is registered under a name. Credentials are replaced by `[REDACTED]`. */
  getConnection(name: string): Connection | undefined {
    const found = guarded(() => this[NATIVE].getConnection(name));
    return found === null ? undefined : decode(found);
  }

  /** Removes all connections. */
  clearConnections(): void {
    this[NATIVE].clearConnections();
  }

  /** Registers a tool, replacing any existing one. Only prompts that declare the tool can use it. */
  registerTool(name: string, tool: Tool | ToolFunction): void {
    for (const [known, made] of asTools({ [name]: tool })) {
      this.#registry.tools.set(known, made);
      guarded(() => this[NATIVE].registerTool(nativeTool(known, made)));
    }
  }

  /** Returns the tool that is registered under a name. */
  getTool(name: string): Tool | undefined {
    return this.#registered?.tools.get(name);
  }

  /** Removes all tools. */
  clearTools(): void {
    this[NATIVE].clearTools();
    this.#registered?.tools.clear();
  }

  /**
   * Registers a handler for all tools of a kind, replacing any existing one, including built-in handlers. The kind `*`
   * matches all custom kinds without a handler of their own.
   */
  registerToolHandler(kind: string, handler: ToolHandler): void {
    this.#register("handler", kind, handler);
  }

  /** Returns the handler that is registered for a kind of tools. */
  getToolHandler(kind: string): ToolHandler | undefined {
    return this.#registered?.handler.get(kind);
  }

  /** Removes all tool handlers. */
  clearToolHandlers(): void {
    this[NATIVE].clearToolHandlers();
    this.#registered?.handler.clear();
  }

  /** Adds a trace backend, replacing any existing one of this name. It receives the traces that start from now on. */
  addTraceBackend(name: string, backend: TraceBackend): void {
    if (typeof backend === "function") return this.#register("trace", name, backend);
    guarded(() => this[NATIVE].addTraceBackend(name, encodeOptions(backend)));
  }

  /** Removes a trace backend. Returns whether there was one. */
  removeTraceBackend(name: string): boolean {
    return guarded(() => this[NATIVE].removeTraceBackend(name));
  }

  /** Waits until all traces so far are delivered, for at most `timeout` seconds. Returns whether they were. */
  async flushTraces(timeout = 10): Promise<boolean> {
    const [flushed] = await perform((listener) => this[NATIVE].flushTraces(timeout, listener));
    return decode(flushed);
  }

  /** Returns the status of the trace backends. */
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

  /** Loads a prompt file without blocking the event loop. */
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

  /**
   * Validates inputs with the prompt's validator, fills in default values, and checks that no required input is
   * missing.
   */
  validateInputs<In>(prompt: Prompt<In>, ...given: Given<In, never>): Record<string, unknown>;
  validateInputs(prompt: Prompt<any>, inputs?: unknown): Record<string, unknown> {
    const [known, given] = [nativePrompt(prompt), this.#checked(prompt, givenInputs(prompt, inputs))];
    return guarded(() => decode(this[NATIVE].validateInputs(known, given)));
  }

  /** Renders a prompt. */
  render<In>(prompt: Prompt<In>, ...given: Given<In, RenderOptions>): Rendered;
  render(prompt: Prompt<any>, inputs?: unknown, options?: RenderOptions): Rendered {
    const known = nativePrompt(prompt);
    const given = this.#checked(prompt, givenInputs(prompt, inputs), options?.kinds);
    try {
      return Rendered[NATIVE](this[NATIVE].render(known, given, manner(options)));
    } catch (thrown) {
      throw translated(thrown);
    }
  }

  /** Renders a prompt without blocking the event loop. */
  async renderAsync<In>(prompt: Prompt<In>, ...[inputs, options]: Given<In, RenderOptions>): Promise<Rendered> {
    const [known, how] = [nativePrompt(prompt), manner(options)];
    const given = this.#checked(prompt, await givenInputsAsync(prompt, inputs), options?.kinds);
    const [, , rendered] = await perform((listener) => this[NATIVE].renderAsync(known, given, how, listener));
    return Rendered[NATIVE](rendered!);
  }

  /** Splits a rendered prompt into messages. */
  parse(prompt: Prompt<any>, rendered: Rendered): Message[] {
    return guarded(() => decode(this[NATIVE].parse(nativePrompt(prompt), nativeRendered(rendered))));
  }

  /** Splits a rendered prompt into messages without blocking the event loop. */
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
    if (this.#kinds === "warn") this.#checked(prompt, encodeMap(given, "inputs"));
    try {
      const packed = preparePacked(this[NATIVE], known, given);
      const messages = packed ?? decode<Message[]>(this[NATIVE].prepare(known, encodeMap(given, "inputs")));
      warnAboutUnknown(prompt, given);
      return messages;
    } catch (thrown) {
      throw translated(thrown);
    }
  }

  /** Renders a prompt and splits it into messages without blocking the event loop. */
  async prepareAsync<In>(prompt: Prompt<In>, ...[inputs]: Given<In, never>): Promise<Message[]> {
    const [known, given] = [nativePrompt(prompt), this.#checked(prompt, await givenInputsAsync(prompt, inputs))];
    const [messages] = await perform((listener) => this[NATIVE].prepareAsync(known, given, listener));
    return decode(messages);
  }

  /**
   * Renders the prompt for every row of a table, on other threads. The table is an Arrow IPC stream or file, as is the
   * result: `tableFromIPC(await mapArrow(prompt, tableToIPC(table)))`. The columns of the table become the inputs of the
   * same names. A row that cannot be rendered has only the column `error`.
   */
  async mapArrow(prompt: Prompt<any>, table: Uint8Array, options: TableOptions = {}): Promise<Uint8Array> {
    const known = nativePrompt(prompt);
    if (!(table instanceof Uint8Array)) {
      throw invalid("expected a table as an Arrow IPC stream: a Uint8Array, as `tableToIPC` of apache-arrow returns");
    }
    if (prompt.validator !== undefined && prompt.validator !== false) {
      throw invalid("rows of a table are not validated one by one: validate the table, and pass `validator: false`");
    }
    const { guard, kinds, ...others } = options;
    const [how, settings] = [encodeOptions({ guard, kinds }), encodeOptions(others)];
    const made = new native.NativeTable();
    await perform((listener) => made.map(this[NATIVE], known, table, how, settings, listener));
    return made.take()!;
  }

  /** Converts a provider's response, as text or as parsed JSON, to a result. */
  process(prompt: Prompt<any>, body: unknown, options: RunOptions = {}): Run {
    const text = typeof body === "string" ? body : encode(body, "body");
    return guarded(() => readRun(this[NATIVE].process(nativePrompt(prompt), text, encodeOptions(options))));
  }

  /** Converts a provider's response to a result without blocking the event loop. */
  async processAsync(prompt: Prompt<any>, body: unknown, options: RunOptions = {}): Promise<Run> {
    const text = typeof body === "string" ? body : encode(body, "body");
    const [known, settings] = [nativePrompt(prompt), encodeOptions(options)];
    const [processed] = await perform((listener) => this[NATIVE].processAsync(known, text, settings, listener));
    return readRun(processed);
  }

  /** Calls the prompt's model with these messages. */
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

  /** Calls the prompt's model with these messages and streams the answer. */
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

  /** Lists the models of the provider in the options, or else of the prompt's provider. */
  async listModels(prompt?: Prompt<any>, options: RunOptions & Stoppable = {}): Promise<ModelInfo[]> {
    const [signal, data] = split(options);
    const [known, settings] = [prompt === undefined ? undefined : nativePrompt(prompt), encodeOptions(data)];
    const [models] = await perform((listener) => this[NATIVE].listModels(known, settings, listener), { signal });
    return decode<Record<string, unknown>[]>(models).map(camel<ModelInfo>);
  }

  /** Loads the prompt if necessary. A file that requires validation must be loaded with `load` and a validator. */
  async #prompt(source: PromptSource<any>): Promise<Prompt<any>> {
    return source instanceof Prompt ? source : this.loadAsync(source);
  }

  /** Renders a prompt, calls its model, and returns the result. */
  async invoke<In = Inputs>(
    prompt: PromptSource<In>,
    ...[inputs, options = {}]: Given<In, RunOptions & Stoppable>
  ): Promise<Run> {
    const [signal, data] = split<RunOptions & Stoppable>(options);
    const [from, settings] = [await this.#prompt(prompt), encodeOptions(data)];
    const given = this.#checked(from, await givenInputsAsync(from, inputs));
    const [run] = await perform((listener) => this[NATIVE].invoke(from[NATIVE], given, settings, listener), { signal });
    return readRun(run);
  }

  /** Runs a turn: calls the model and the requested tools until the model gives an answer. */
  async turn<In = Inputs>(prompt: PromptSource<In>, ...[inputs, options]: Given<In, TurnOptions>): Promise<TurnRun> {
    const from = await this.#prompt(prompt);
    return this.#turn(from, this.#checked(from, await givenInputsAsync(from, inputs)), options ?? {});
  }

  /** Loads a prompt file and runs a turn with it. */
  invokeAgent(file: string | URL, inputs: Inputs = {}, options: TurnOptions = {}): Promise<TurnRun> {
    return this.turn(file, inputs, options);
  }

  /** Resumes a crashed turn from the journal in the options. The journal also contains the inputs. */
  async resume(prompt: PromptSource<any>, options: TurnOptions & { journal: string }): Promise<TurnRun> {
    return this.#turn(await this.#prompt(prompt), undefined, options);
  }

  async #turn(prompt: Prompt<any>, inputs: string | undefined, options: TurnOptions): Promise<TurnRun> {
    const { signal, tools: given, onEvent, steering, compact, ...rest } = options;
    const { approve, judgeInput, judgeOutput, judgeTool, messages, ...data } = rest;
    // The turn's own tools take precedence over registered ones.
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
      messages: messages === undefined ? undefined : encode(messages, "messages"),
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

/** Returns the native object of the summarizer, if it is a prompt. */
function compacting(compact: TurnOptions["compact"]): ReturnType<typeof nativePrompt> | undefined {
  if (compact === undefined || typeof compact === "boolean" || typeof compact === "function") return undefined;
  const known = nativePrompt(compact);
  if (compact.validator) throw invalid("options: compact: a prompt with a validator is not supported");
  return known;
}

let shared: Runtime | undefined;

/** Returns the default runtime. */
export function defaultRuntime(): Runtime {
  return (shared ??= new Runtime());
}

mapBy((prompt, table, options) => defaultRuntime().mapArrow(prompt, table, options));
renderBy((prompt, inputs, options) => defaultRuntime().render(prompt, inputs, options));
