import { invalid, raise } from "./error.cjs";
import type { NativeRuntime, Told } from "./native.cjs";
import { camel, snakeCase } from "./options.cjs";
import { NATIVE, Prompt, Rendered } from "./prompt.cjs";
import { Tool, encodeOutput } from "./tool.cjs";
import type { Delta, Message, MessageInput, ModelFunction, RunOptions } from "./types.cjs";
import { decode, encode } from "./values.cjs";

/**
 * A renderer of templates. It receives the template and the inputs, and returns text. With a promise, only the async
 * functions can be used.
 */
export type Renderer = (template: string, inputs: Record<string, unknown>) => string | Promise<string>;

/**
 * A filter or a function of templates. It receives the arguments and returns plain data synchronously. The first
 * argument of a filter is the value. Named arguments are an object behind the others, if there are any.
 */
export type TemplateFunction = (...args: any[]) => unknown;

/** A test of templates. It receives the value and the arguments, and returns synchronously whether it holds. */
export type TemplateTest = (...args: any[]) => boolean;

/** A parser of rendered prompts. It returns messages synchronously. */
export type Parser = (prompt: Prompt, rendered: Rendered) => readonly MessageInput[];

/** A call to a custom provider. */
export interface ModelCall {
  /** The prompt, with its model, its tools and its outputs. */
  prompt: Prompt;
  messages: Message[];
  /** The caller's overrides of the prompt, and the functions that a turn adds. */
  options: RunOptions & { functions?: ModelFunction[] };
  /** Whether the caller prefers a streamed answer. A complete answer is also accepted. */
  stream: boolean;
}

/** A complete answer of a provider. */
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

/** A delta of an answer. A string is a text delta. */
export type Step = string | Delta;

/**
 * A provider of models. It returns a complete answer, or the deltas of an answer, for example as an async generator.
 */
export type Provider = (
  call: ModelCall,
) => string | ModelReply | Iterable<Step> | AsyncIterable<Step> | Promise<string | ModelReply | AsyncIterable<Step>>;

/** The connection that a credential provider is asked for a token for. Unless you registered it, a prompt wrote it. */
export interface TokenRequest {
  /** The kind of the connection: `foundry`, `oauth`, … */
  kind: string;
  /** The name of the model's provider, or of the tool. */
  name: string;
  /** The address that the token will be sent to. */
  endpoint: string | null;
  /** The connection. Credentials in it are redacted. */
  connection: Record<string, unknown>;
}

/** An access token, and its lifetime in seconds if that is known. */
export type AccessToken = string | { token: string; expiresIn?: number };

/** Issues access tokens for connections without a key. */
export type CredentialProvider = (request: TokenRequest) => AccessToken | Promise<AccessToken>;

/** Creates the functions of a tool that a prompt declares. Each function must have a name. */
export type ToolHandler = (
  tool: Record<string, unknown>,
  inputs: Record<string, unknown>,
) => readonly Tool[] | Promise<readonly Tool[]>;

/** Receives each finished trace, in the format of `.tracy` files. */
export type TraceFunction = (trace: Record<string, unknown>) => unknown;

/** A trace backend: a built-in one, or a function. */
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

/** Serializes an answer or a delta, with the engine's names. */
function encodeAnswer(value: unknown, what: string): string {
  return encode(typeof value === "object" ? snakeCase(value, 2) : value, what);
}

/** Everything that is registered with a runtime. The engine looks it up by name. */
export class Registry {
  readonly renderer = new Map<string, Renderer>();
  readonly parser = new Map<string, Parser>();
  readonly provider = new Map<string, Provider>();
  readonly credential = new Map<string, CredentialProvider>();
  readonly handler = new Map<string, ToolHandler>();
  readonly trace = new Map<string, TraceFunction>();
  readonly filter = new Map<string, TemplateFunction>();
  readonly test = new Map<string, TemplateTest>();
  readonly function = new Map<string, TemplateFunction>();
  readonly tools = new Map<string, Tool>();
  /** Tools that handlers created, and answers in progress, by number. */
  private readonly made = new Map<number, Tool>();
  private readonly steps = new Map<number, Steps>();
  private count = 0;

  /** Connects the registry to the engine. A weak reference lets the registry be collected together with its runtime. */
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
      // The message of a tool's exception is for the model, that of a trace backend's for its status, and that of a
      // template's function for the template error.
      const isForSomebody = kind === "tool" || kind === "trace" || isInTemplate(kind);
      answer(false, isForSomebody ? words(thrown) : raise(thrown));
    }
  }

  /** Answers synchronously, while JavaScript waits for the engine. */
  private atOnce([kind, , ...rest]: Told): string {
    try {
      return `+${this.computed(kind, ...rest)}`;
    } catch (thrown) {
      return `-${isInTemplate(kind) ? words(thrown) : raise(thrown)}`;
    }
  }

  private computed(kind: string, text: string, prompt: Told[3], rendered: Told[4]): string {
    const asked = decode<{ name: string; template: string; inputs: Record<string, unknown> }>(text);
    if (kind === "renderer") return renderedText(asked.name, this.rendered(text));
    if (isInTemplate(kind)) return this.inTemplate(kind, decode(text));
    const made = this.parser.get(asked.name)!(Prompt[NATIVE](prompt!, false), Rendered[NATIVE](rendered!));
    if (!Array.isArray(made))
      throw invalid(`parser ${JSON.stringify(asked.name)}: expected a list of messages as the return value`, SYNC);
    return encode(made, "messages");
  }

  private rendered(text: string): unknown {
    const asked = decode<{ name: string; template: string; inputs: Record<string, unknown> }>(text);
    return this.renderer.get(asked.name)!(asked.template, asked.inputs);
  }

  private inTemplate(kind: InTemplate, asked: TemplateCall): string {
    const named = Object.keys(asked.named).length > 0 ? [asked.named] : [];
    const made = this[kind].get(asked.name)!(...asked.positional, ...named);
    if (typeof (made as { then?: unknown } | null | undefined)?.then === "function") {
      throw invalid(`${kind} ${JSON.stringify(asked.name)}: expected a value, found a promise`, SYNC);
    }
    return encode(kind === "test" ? Boolean(made) : (made ?? null), "return value");
  }

  private async answered(kind: string, text: string, prompt: Told[3], rendered: Told[4]): Promise<string> {
    switch (kind) {
      case "renderer":
        return renderedText(decode<{ name: string }>(text).name, await this.rendered(text));
      case "parser":
      case "filter":
      case "test":
      case "function":
        return this.computed(kind, text, prompt, rendered);
      case "provider":
        return this.provided(decode(text), Prompt[NATIVE](prompt!, false));
      case "step":
        return this.nextStep(decode<{ steps: number }>(text).steps);
      case "enough":
        return this.endSteps(decode<{ steps: number }>(text).steps);
      case "credential": {
        const { name, request } = decode<{ name: string; request: TokenRequest }>(text);
        return encodeAnswer(await this.credential.get(name)!(request), "access token");
      }
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
        `tool handler ${JSON.stringify(asked.name)}: expected a list of tools as the return value`,
        "create tools with tool() or new Tool()",
      );
    }
    const shown = (made as Tool[]).map((tool) => {
      this.made.set(++this.count, tool);
      const { name, description, parameters, idempotent, needsApproval, timeout, server } = tool;
      const [flow, serverFlow] = [snakeCase(tool.flow, Infinity), snakeCase(tool.serverFlow, Infinity)];
      const declared = { idempotent, needsApproval, timeout, flow, server, serverFlow };
      return { number: this.count, function: { name, description, parameters }, ...declared };
    });
    return encode(shown, "tools");
  }

  private async run({ name, made, arguments: args, id, idempotencyKey }: ToolRequest): Promise<string> {
    const tool = typeof made === "number" ? this.made.get(made) : this.tools.get(name);
    if (tool === undefined) throw new Error("the tool is no longer registered");
    return encodeOutput(await tool.call(args, { id, idempotencyKey, signal: undefined }));
  }
}

const SYNC = "return the value itself, not a promise";

type InTemplate = "filter" | "test" | "function";

interface TemplateCall {
  name: string;
  positional: unknown[];
  named: Record<string, unknown>;
}

function isInTemplate(kind: string): kind is InTemplate {
  return kind === "filter" || kind === "test" || kind === "function";
}

function renderedText(name: string, made: unknown): string {
  if (typeof made === "string") return encode(made, "text");
  throw invalid(
    `renderer ${JSON.stringify(name)}: expected a string as the return value`,
    "return the value itself, not a promise, or use renderAsync and prepareAsync",
  );
}

/** The request to run a tool. */
export interface ToolRequest {
  name: string;
  made: number | null;
  arguments: Record<string, unknown>;
  id: string;
  idempotencyKey: string;
}

/** Returns the message of an exception, for a model. */
export function words(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}
