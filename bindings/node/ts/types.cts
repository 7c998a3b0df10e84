/** Names and values of inputs. How values cross is in the guide; what cannot cross is an error that says where. */
export type Inputs = Readonly<Record<string, unknown>> | ReadonlyMap<string, unknown>;

/** What a prompt is given: inputs, which may be left out if it needs none, and options. */
export type Given<In, Options> = {} extends In ? [inputs?: In, options?: Options] : [inputs: In, options?: Options];

export type Role = "system" | "developer" | "user" | "assistant" | "tool";

/** A piece of a message's content. */
export type ContentPart =
  | { kind: "text"; value: string }
  | { kind: "image" | "audio" | "file"; value: string; mediaType?: string; detail?: string; fileName?: string };

/** One message of a conversation. */
export interface Message {
  role: Role;
  content: ContentPart[];
  /** Attributes of the role marker, or what a thread's message carried besides its content. */
  metadata?: Record<string, unknown>;
}

/** A message as callers may write it: a string will do for one part of text. */
export interface MessageInput {
  role: Role;
  content: string | readonly (string | ContentPart)[] | null;
  metadata?: Readonly<Record<string, unknown>>;
}

/** A declared input, output or parameter. What is not said is not there. */
export interface Property {
  name: string;
  kind: string;
  /** All of its kinds, where it has several. */
  kinds?: string[];
  description?: string;
  /** Whether it has to be given. */
  required?: boolean;
  /** What it is if it is not given. */
  default?: unknown;
  example?: unknown;
  /** The values that it can have, if they are listed. */
  enumValues?: unknown[];
  /** What the items of a list are. */
  items?: Property;
  /** What is in a map. */
  properties?: Property[];
  /** Whether its text counts as the author's own. */
  trusted?: boolean;
  /** Whether text in it that looks like a role marker is an error. */
  strict?: boolean;
  /** Whether callers have to validate it before they render. */
  validationRequired?: boolean;
}

/** A part of a rendered text that one interpolation, or the author, wrote. */
export interface Segment {
  text: string;
  /** The inputs that had a part in it; none means the author alone. */
  origins: string[];
  /** Whether it counts as the author's own text. */
  trusted: boolean;
}

/** Tokens that went in and came out. */
export interface Usage {
  inputTokens: number;
  outputTokens: number;
  totalTokens: number;
  cachedInputTokens?: number;
  cacheWriteTokens?: number;
  reasoningTokens?: number;
}

/** A tool that a model wants to have called. */
export interface ToolCall {
  id: string;
  name: string;
  /** The arguments as JSON, exactly as the model wrote them. */
  arguments: string;
}

/** A function that a model may call, as the model gets to know it. */
export interface ModelFunction {
  name: string;
  description: string | null;
  /** The JSON Schema of its arguments. */
  parameters: Record<string, unknown>;
  /** Whether the provider should hold the model to the schema. */
  strict: boolean;
}

/** How a trace backend is doing. */
export interface TraceStatus {
  name: string;
  /** How many events it never got, because it was too slow. */
  dropped: number;
  /** How often it failed, and what it said the last time. */
  failed: number;
  lastError: string | null;
}

/** Where a provider is reached, and how: as prompt files write it. */
export interface Connection {
  kind?: string;
  name?: string;
  endpoint?: string;
  apiKey?: string;
  [key: string]: unknown;
}

/** A step of a streamed answer. */
export type Delta =
  | { type: "text" | "thinking"; text: string }
  | { type: "tool_call"; index: number; id: string; name: string }
  | { type: "tool_arguments"; index: number; text: string }
  | { type: "usage"; usage: Usage };

/** What happens while a turn goes on. */
export type AgentEvent =
  | { type: "token" | "thinking"; text: string }
  | { type: "status" | "error" | "compaction_failed"; message: string }
  | { type: "tool_call_start"; name: string; arguments: string }
  /** `error` is a short name of what went wrong. */
  | { type: "tool_result"; name: string; parts: ContentPart[]; error: string | null }
  | { type: "messages_updated"; count: number }
  | { type: "done"; response: string; count: number }
  | { type: "cancelled" | "compaction_start" }
  | { type: "compaction_complete"; removed: number; remaining: number };

/** What a host decides for all prompts. Times are in seconds. */
export interface RuntimeOptions {
  /** Whether role markers in untrusted inputs are errors; by default the prompt says so. */
  strict?: boolean;
  /** Whether undefined variables render as nothing; by default the prompt says so. */
  lenient?: boolean;
  /** Puts `<untrusted>` around what untrusted inputs wrote; a string is what a model is told about it. */
  guard?: boolean | string;
  /** What a render may cost. */
  limits?: { steps?: number; outputBytes?: number; operationBytes?: number; totalBytes?: number; callDepth?: number };
  /** Which roles the messages of thread inputs may have. */
  threadRoles?: "any" | "no_instructions";
  /** What prompt files may reach while they are loaded. */
  load?: {
    /** Which variables of the environment: all, none, or those with these names. */
    env?: boolean | readonly string[];
    /** Variables in place of those of the environment. */
    envVars?: Readonly<Record<string, string>>;
    /** Files of variables for names that are not set, such as `.env` files. An address from one gets no key from elsewhere. */
    envFiles?: readonly { name: string; variables: Readonly<Record<string, string>> }[];
    /** Variables for names that are not set. They count as one more file. */
    envDefaults?: Readonly<Record<string, string>>;
    fileRoots?: readonly string[];
    maxFileBytes?: number;
    directiveInstruction?: string;
  };
  /** How providers are reached. */
  http?: {
    connectTimeout?: number;
    firstByteTimeout?: number;
    idleTimeout?: number;
    totalTimeout?: number;
    maxRetries?: number;
    maxRetryWait?: number;
    maxResponseBytes?: number;
    /** True for that of the environment, false for none, or an address. */
    proxy?: boolean | string;
    userAgent?: string;
    /** Certificates, in PEM, of authorities that are trusted besides the usual ones. */
    extraRoots?: string;
  };
  /** A directory where exchanges with providers are recorded, or from which they are replayed. */
  cassette?: { record: string } | { replay: string };
  /** What traces say, and what they leave out. */
  trace?: { maskUntrusted?: boolean; redactValues?: boolean; maxValueBytes?: number };
  /** Which addresses tools may call. */
  toolAddresses?: { allowPrivate?: boolean; allowHosts?: readonly string[] };
  /** Addresses that keys and other values of the environment may go to, also where only a file names them. */
  allowEndpoints?: readonly string[];
}

/** What a caller wants of a model, over what the prompt says. */
export interface RunOptions {
  provider?: string;
  model?: string;
  apiType?: string;
  baseUrl?: string;
  apiKey?: string;
}

/** How a render goes. What is not here is as the runtime has it. */
export interface RenderOptions {
  /** The variant of the prompt. */
  variant?: string;
  /** Puts `<untrusted>` around what untrusted inputs wrote; a string is what a model is told about it. */
  guard?: boolean | string;
  /** Whether role markers in untrusted inputs are errors. */
  strict?: boolean;
  /** Whether undefined variables render as nothing. */
  lenient?: boolean;
}

/** How text is split whose writers are not known. */
export interface ParseTextOptions {
  /** The nonce that `preRender` wrote into the author's markers. Every marker must then have it. */
  nonce?: string;
  /**
   * Conversations by their placeholder in the text, or by the name of their input. By name, the 16 digits in the
   * placeholder have to be the `nonce`, if there is one.
   */
  threads?: Readonly<Record<string, readonly MessageInput[]>>;
}

/** Something that can be stopped. */
export interface Stoppable {
  /** Stops it. The error has the code `cancelled`, and the signal's reason as its cause. */
  signal?: AbortSignal;
}

/** A call of a tool that is about to run. */
export interface ToolRun {
  /** The provider's name for the call. */
  id: string;
  name: string;
  arguments: Record<string, unknown>;
  /** The round of the turn, from 1, and which call of that round it is, from 0. */
  round: number;
  index: number;
}

/** Whether something is allowed: true or nothing, or else false or why not. */
export type Verdict = boolean | string | null | undefined | void;

/** How a turn goes. Times are in seconds. */
export interface TurnOptions extends Stoppable {
  /** How the model is called. */
  run?: RunOptions;
  maxIterations?: number;
  maxLlmRetries?: number;
  /** The most calls of models, with those of turns that tools start. Ten for each iteration, if nobody says so. */
  maxModelCalls?: number;
  maxTokens?: number;
  maxCost?: number;
  /** What a million tokens cost. */
  prices?: { input: number; output: number };
  maxTime?: number;
  maxToolCalls?: number;
  maxResultBytes?: number;
  parallelToolCalls?: boolean;
  /** How long the conversation may be: in characters, or in tokens of a model. */
  contextBudget?: number | { tokens: number; model?: string };
  guard?: boolean | string;
  toolTimeout?: number;
  /** Whether a person is asked about every tool. */
  approveAll?: boolean;
  /**
   * Who says in short what no longer fits: the model of the turn, a function, or a prompt, whose input `conversation`
   * gets it. If that fails, the turn does it itself.
   */
  compact?: boolean | ((messages: Message[]) => string | Promise<string>) | import("./prompt.cjs").Prompt<any>;
  /** The file in which the turn is kept, so that it can be resumed if the process dies. */
  journal?: string;
  /** What runs the tools that the prompt declares, by name. */
  tools?: Tools;
  /** Speaks into the turn while it is under way. */
  steering?: import("./steering.cjs").Steering;
  // If one of these throws, the turn stops and fails with what it threw.
  /** Is told what happens. */
  onEvent?: (event: AgentEvent) => void;
  /** Asks a person whether a tool may run: true, false, or why not. */
  approve?: (run: ToolRun) => boolean | string | Promise<boolean | string>;
  /** Judges the messages before each call of the model. */
  judgeInput?: (messages: Message[]) => Verdict | Promise<Verdict>;
  /** Judges each answer before it is used. */
  judgeOutput?: (message: Message) => Verdict | Promise<Verdict>;
  /** Judges each call of a tool before it runs. */
  judgeTool?: (run: ToolRun) => Verdict | Promise<Verdict>;
}

/** What runs tools, by name. */
export type Tools = Readonly<Record<string, import("./tool.cjs").Tool | import("./tool.cjs").ToolFunction>>;
