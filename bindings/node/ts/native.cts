// What the addon exports: the names and types of `../src`.

/** Calls into this package from the engine: of which kind it is, the number of a question or 0, and the rest as JSON. */
export type Listener = (kind: string, question: number, text: string) => void;

export interface NativePrompt {
  derive(fields: string, merge: boolean): NativePrompt;
  describe(): string;
  templateHash(variant: string | undefined): string;
  definitionHash(): string;
  getSource(variant: string | undefined): string;
  check(): string;
}

export interface NativeRendered {
  text(): string;
  segments(): string;
  name(): string | null;
  variant(): string;
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
}

export interface NativeTurn {
  settings: string;
  tools: NativeTool[];
  events: boolean;
  approves: boolean;
}

export interface NativeRuntime {
  load(path: string): NativePrompt;
  loadAsync(path: string): Promise<NativePrompt>;
  loadStr(text: string, name: string, baseDir: string): NativePrompt;
  validateInputs(prompt: NativePrompt, inputs: string): string;
  render(prompt: NativePrompt, inputs: string, variant: string | undefined): NativeRendered;
  renderAsync(prompt: NativePrompt, inputs: string, variant: string | undefined): Promise<NativeRendered>;
  parse(prompt: NativePrompt, rendered: NativeRendered): string;
  parseAsync(prompt: NativePrompt, rendered: NativeRendered): Promise<string>;
  prepare(prompt: NativePrompt, inputs: string): string;
  preparePacked(prompt: NativePrompt, texts: string, tape: Float64Array, length: number): string | null;
  prepareAsync(prompt: NativePrompt, inputs: string): Promise<string>;
  process(prompt: NativePrompt, body: string, options: string): string;
  processAsync(prompt: NativePrompt, body: string, options: string): Promise<string>;
  run(prompt: NativePrompt, messages: string, options: string, listener: Listener): Work;
  stream(prompt: NativePrompt, messages: string, options: string, listener: Listener): Work;
  invoke(prompt: NativePrompt | string, inputs: string, options: string, listener: Listener): Work;
  turn(prompt: NativePrompt | string, inputs: string | undefined, turn: NativeTurn, steering: NativeSteering | undefined, listener: Listener): Work;
}

export interface NativeComposition {
  push(prompt: NativePrompt, inputs: string, variant: string | undefined): void;
  render(runtime: NativeRuntime): NativeRendered[];
  messages(runtime: NativeRuntime): string;
}

export interface NativeSteering {
  send(message: string): void;
  hasPending(): boolean;
}

/** Work that is under way. */
export interface Work {
  stop(): void;
  cancel(): void;
  answer(question: number, ok: boolean, text: string): void;
}

interface Native {
  NativePrompt: { fromDefinition(text: string, syntax: string): NativePrompt };
  NativeRuntime: new (options: string) => NativeRuntime;
  NativeComposition: new () => NativeComposition;
  NativeSteering: new () => NativeSteering;
  checkTools(prompt: NativePrompt, tools: NativeTool[]): void;
}

export const native = require("../native/tympan.node") as Native;
