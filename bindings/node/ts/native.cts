// The exports of the addon: the names and types of `../src`.

/**
 * A function that the engine calls. It receives the kind of call, the number of a question or 0, the data as JSON, and
 * a prompt and a rendered prompt if there are any.
 */
export type Listener = (...told: Told) => void;
export type Told = [
  kind: string,
  question: number,
  text: string,
  prompt: NativePrompt | null,
  rendered: NativeRendered | null,
];

export interface NativePrompt {
  derive(fields: string, merge: boolean): NativePrompt;
  describe(): string;
  templateHash(variant: string | undefined): string;
  definitionHash(): string;
  getSource(variant: string | undefined): string;
  check(): string;
  checkSchemas(): string;
  validationRequired(): string[];
  unknownInputs(names: string[]): string[];
  kindWarnings(inputs: string): string[];
  variantMetadata(variant: string): string;
  messages(rendered: NativeRendered): string;
  messagesWithSegments(rendered: NativeRendered): string;
  provenanceAttributes(rendered: NativeRendered): string;
}

export interface NativeRendered {
  text(): string;
  segments(): string;
  name(): string | null;
  variant(): string;
  isDefault(): boolean;
  templateHash(): string;
  renderHash(): string;
  advisory(): string | null;
}

export interface NativeTool {
  name: string;
  parameters: string | undefined;
  idempotent: boolean | undefined;
  needsApproval: boolean | undefined;
  timeout: number | undefined;
  flow: string | undefined;
}

export interface NativeTurn {
  settings: string;
  messages: string | undefined;
  tools: NativeTool[];
  events: boolean;
  asks: string[];
}

export interface NativeRuntime {
  load(path: string): NativePrompt;
  loadAsync(path: string, listener: Listener): Work;
  loadStr(text: string, name: string, baseDir: string): NativePrompt;
  validateInputs(prompt: NativePrompt, inputs: string): string;
  render(prompt: NativePrompt, inputs: string, options: string | undefined): NativeRendered;
  renderAsync(prompt: NativePrompt, inputs: string, options: string | undefined, listener: Listener): Work;
  parse(prompt: NativePrompt, rendered: NativeRendered): string;
  parseAsync(prompt: NativePrompt, rendered: NativeRendered, listener: Listener): Work;
  prepare(prompt: NativePrompt, inputs: string): string;
  preparePacked(prompt: NativePrompt, texts: Uint16Array, tape: Float64Array): string | null;
  prepareAsync(prompt: NativePrompt, inputs: string, listener: Listener): Work;
  process(prompt: NativePrompt, body: string, options: string): string;
  processAsync(prompt: NativePrompt, body: string, options: string, listener: Listener): Work;
  run(prompt: NativePrompt, messages: string, options: string, listener: Listener): Work;
  stream(prompt: NativePrompt, messages: string, options: string, listener: Listener): Work;
  listModels(prompt: NativePrompt | undefined, options: string, listener: Listener): Work;
  invoke(prompt: NativePrompt, inputs: string, options: string, listener: Listener): Work;
  turn(
    prompt: NativePrompt,
    inputs: string | undefined,
    turn: NativeTurn,
    steering: NativeSteering | undefined,
    compact: NativePrompt | undefined,
    listener: Listener,
  ): Work;
  listen(listener: Listener, atOnce: (...told: Told) => string): void;
  answer(question: number, ok: boolean, text: string): void;
  register(kind: string, name: string): void;
  registerTool(tool: NativeTool): void;
  clearTools(): void;
  clearToolHandlers(): void;
  registerCredentialCommand(kind: string, command: string[], timeout: number): void;
  clearCredentialProviders(): void;
  registerConnection(name: string, connection: string): void;
  getConnection(name: string): string | null;
  clearConnections(): void;
  addTraceBackend(name: string, backend: string): void;
  removeTraceBackend(name: string): boolean;
  flushTraces(seconds: number, listener: Listener): Work;
  traceStatus(): string;
}

export interface NativeComposition {
  push(prompt: NativePrompt, inputs: string, variant: string | undefined): void;
  render(runtime: NativeRuntime): NativeRendered[];
  messages(runtime: NativeRuntime): string;
}

export interface NativeTable {
  map(
    runtime: NativeRuntime,
    prompt: NativePrompt,
    table: Uint8Array,
    render: string,
    options: string,
    listener: Listener,
  ): Work;
  take(): Uint8Array | null;
}

export interface NativeLoader {
  insert(name: string, prompt: NativePrompt): void;
  load(name: string): NativePrompt;
  names(): string[];
}

export interface NativeSteering {
  send(message: string): void;
  hasPending(): boolean;
}

export interface NativeTestFile {
  cases(): string;
  run(index: number, listener: Listener): Work;
}

/** Work in progress. */
export interface Work {
  stop(): void;
  cancel(): void;
  answer(question: number, ok: boolean, text: string): void;
}

interface Native {
  NativePrompt: { fromDefinition(text: string, syntax: string): NativePrompt };
  NativeRuntime: new (options: string) => NativeRuntime;
  NativeComposition: new () => NativeComposition;
  NativeTable: new () => NativeTable;
  NativeLoader: new (folder: string | undefined) => NativeLoader;
  NativeSteering: new () => NativeSteering;
  checkTools(prompt: NativePrompt, tools: NativeTool[]): void;
  checkFile(path: string, settings: string | undefined): string;
  checkStr(text: string, name: string, baseDir: string, settings: string | undefined): string;
  testFiles(paths: string[]): string;
  loadTestFile(runtime: NativeRuntime, path: string, options: string): NativeTestFile | null;
  describeCase(result: string): string;
  parseText(text: string, nonce: string | undefined, threads: string): string;
  preRender(text: string, nonce: string): string;
}

export const native = require("../native/tympan.node") as Native;
