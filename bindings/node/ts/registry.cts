import { invalid, raise } from "./error.cjs";
import type { NativeRuntime, Told } from "./native.cjs";
import { camel, snakeCase } from "./options.cjs";
import { NATIVE, Prompt, Rendered } from "./prompt.cjs";
import { Tool, encodeOutput } from "./tool.cjs";
import type { Delta, Message, MessageInput, ModelFunction, RunOptions } from "./types.cjs";
import { decode, encode } from "./values.cjs";

/** A template engine. It gets the template and the inputs, and returns text at once. */
export type Renderer = (template: string, inputs: Record<string, unknown>) => string;

/** Makes messages of a rendered prompt, at once. */
export type Parser = (prompt: Prompt, rendered: Rendered) => readonly MessageInput[];

/** What a provider is asked. */
export interface ModelCall {
  /** The prompt, with its model, its tools and its outputs. */
  prompt: Prompt;
  messages: Message[];
  /** What the caller wants to be different from what the prompt says, and the functions that a turn adds. */
  options: RunOptions & { functions?: ModelFunction[] };
  /** Whether the caller would like the answer step by step. A whole answer will do. */
  stream: boolean;
}

/** An answer of a provider. */
export interface ModelReply {
  text?: string;
  thinking?: string;
  refusal?: string;
  /** The arguments are an object, or the text that a model wrote. */
  toolCalls?: readonly { id: string; name: string; arguments?: unknown }[];
  embeddings?: readonly (readonly number[])[];
  images?: readonly string[];
  model?: string;
  id?: string;
  finishReason?: string;
  usage?: { inputTokens?: number; outputTokens?: number; totalTokens?: number; [name: string]: number | undefined };
}

/** A step of an answer, as a provider gives it: text will do for a step of text. */
export type Step = string | Delta;

/** Serves models: with a whole answer, or step by step, as an async generator for example. */
export type Provider = (
  call: ModelCall,
) => string | ModelReply | Iterable<Step> | AsyncIterable<Step> | Promise<string | ModelReply | AsyncIterable<Step>>;

/** Makes functions of a tool that a prompt declares. Each of them has a name. */
export type ToolHandler = (
  tool: Record<string, unknown>,
  inputs: Record<string, unknown>,
) => readonly Tool[] | Promise<readonly Tool[]>;

/** Gets each trace that has ended, as it would stand in a `.tracy` file. */
export type TraceFunction = (trace: Record<string, unknown>) => unknown;

/** A trace backend: one that is built in, or a function. */
export type TraceBackend =
  | TraceFunction
  | { tracy: string }
  | { console: true }
  | {
      otel: {
        endpoint: string;
        headers?: Readonly<Record<string, string>>;
        serviceName?: string;
        timeout?: number;
        content?: boolean;
      };
    };

type Steps = Iterator<Step> | AsyncIterator<Step>;

function stepsOf(value: unknown): Steps | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { [Symbol.asyncIterator]: slow, [Symbol.iterator]: quick } = value as AsyncIterable<Step> & Iterable<Step>;
  return (slow ?? quick)?.call(value);
}

/** An answer, or a step of one, under the names that the engine has. */
function encodeAnswer(value: unknown, what: string): string {
  return encode(typeof value === "object" ? snakeCase(value, 2) : value, what);
}

/** What is registered with a runtime. The engine asks for it by name. */
export class Registry {
  readonly renderer = new Map<string, Renderer>();
  readonly parser = new Map<string, Parser>();
  readonly provider = new Map<string, Provider>();
  readonly handler = new Map<string, ToolHandler>();
  readonly trace = new Map<string, TraceFunction>();
  readonly tools = new Map<string, Tool>();
  /** Tools that handlers made, and answers that are under way, by number. */
  private readonly made = new Map<number, Tool>();
  private readonly steps = new Map<number, Steps>();
  private count = 0;

  /** Has the engine ask this registry. The registry goes when its runtime goes, although the engine keeps a way to it. */
  constructor(native: NativeRuntime) {
    const self = new WeakRef(this);
    const answer = new WeakRef(native);
    native.listen(
      (...told) => void self.deref()?.asked(answer, told),
      (...told) => self.deref()?.atOnce(told) ?? "-nobody answers",
    );
  }

  private async asked(native: WeakRef<NativeRuntime>, [kind, question, ...rest]: Told): Promise<void> {
    const answer = (ok: boolean, text: string) => void native.deref()?.answer(question, ok, text);
    try {
      answer(true, await this.answered(kind, ...rest));
    } catch (thrown) {
      // The words of a tool are for a model, and those of a trace backend for its status.
      const isForSomebody = kind === "tool" || kind === "trace";
      answer(false, isForSomebody ? words(thrown) : raise(thrown));
    }
  }

  /** Answers while JavaScript waits for the engine. */
  private atOnce([kind, , ...rest]: Told): string {
    try {
      return `+${this.computed(kind, ...rest)}`;
    } catch (thrown) {
      return `-${raise(thrown)}`;
    }
  }

  private computed(kind: string, text: string, prompt: Told[3], rendered: Told[4]): string {
    const asked = decode<{ name: string; template: string; inputs: Record<string, unknown> }>(text);
    if (kind === "renderer") {
      const made = this.renderer.get(asked.name)!(asked.template, asked.inputs);
      if (typeof made !== "string") throw invalid(`the renderer ${JSON.stringify(asked.name)} returned no text`, SYNC);
      return encode(made, "text");
    }
    const made = this.parser.get(asked.name)!(Prompt[NATIVE](prompt!, false), Rendered[NATIVE](rendered!));
    if (!Array.isArray(made))
      throw invalid(`the parser ${JSON.stringify(asked.name)} returned no list of messages`, SYNC);
    return encode(made, "messages");
  }

  private async answered(kind: string, text: string, prompt: Told[3], rendered: Told[4]): Promise<string> {
    switch (kind) {
      case "renderer":
      case "parser":
        return this.computed(kind, text, prompt, rendered);
      case "provider":
        return this.provided(decode(text), Prompt[NATIVE](prompt!, false));
      case "step":
        return this.nextStep(decode<{ steps: number }>(text).steps);
      case "enough":
        return this.endSteps(decode<{ steps: number }>(text).steps);
      case "handler":
        return this.handled(decode(text));
      case "tool":
        return this.run(decode(text));
      case "forget":
        this.made.delete(decode<{ made: number }>(text).made);
        return "";
      default: {
        const { name, trace } = decode<{ name: string; trace: Record<string, unknown> }>(text);
        await this.trace.get(name)?.(trace);
        return "";
      }
    }
  }

  private async provided(
    { name, options, ...call }: Omit<ModelCall, "prompt" | "options"> & { name: string; options: Record<string, unknown> },
    prompt: Prompt,
  ): Promise<string> {
    const reply = await this.provider.get(name)!({ prompt, options: camel(options), ...call });
    const steps = stepsOf(reply);
    if (steps === undefined) return `{"whole":${encodeAnswer(reply, "reply")}}`;
    this.steps.set(++this.count, steps);
    return `{"steps":${this.count}}`;
  }

  private async nextStep(number: number): Promise<string> {
    const next = await this.steps.get(number)?.next();
    if (next === undefined || next.done) {
      this.steps.delete(number);
      return "null";
    }
    return encodeAnswer(next.value, "step");
  }

  private async endSteps(number: number): Promise<string> {
    const steps = this.steps.get(number);
    this.steps.delete(number);
    await steps?.return?.();
    return "";
  }

  private async handled(asked: {
    name: string;
    tool: Record<string, unknown>;
    inputs: Record<string, unknown>;
  }): Promise<string> {
    const made = await this.handler.get(asked.name)!(asked.tool, asked.inputs);
    if (!Array.isArray(made) || !made.every((tool) => tool instanceof Tool)) {
      throw invalid(
        `the tool handler ${JSON.stringify(asked.name)} returned no list of tools`,
        "tool() and new Tool() make them",
      );
    }
    const shown = (made as Tool[]).map((tool) => {
      this.made.set(++this.count, tool);
      const { name, description, parameters, idempotent, needsApproval, timeout } = tool;
      return { number: this.count, function: { name, description, parameters }, idempotent, needsApproval, timeout };
    });
    return encode(shown, "tools");
  }

  private async run({ name, made, arguments: args, id, idempotencyKey }: ToolRequest): Promise<string> {
    const tool = typeof made === "number" ? this.made.get(made) : this.tools.get(name);
    if (tool === undefined) throw new Error("it is no longer registered");
    return encodeOutput(await tool.call(args, { id, idempotencyKey, signal: undefined }));
  }
}

const SYNC = "it has to return that at once, and no promise of it";

/** What a tool is called with. */
export interface ToolRequest {
  name: string;
  made: number | null;
  arguments: Record<string, unknown>;
  id: string;
  idempotencyKey: string;
}

/** What an exception says, for a model. */
export function words(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
