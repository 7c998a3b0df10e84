/** Names and values of inputs. How values cross is in the guide; what cannot cross is an error that says where. */
export type Inputs = Readonly<Record<string, unknown>> | ReadonlyMap<string, unknown>;

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

/** A declared input, output or parameter. */
export interface Property {
  name: string;
  kind: string;
  description?: string;
  required?: boolean;
  default?: unknown;
  [key: string]: unknown;
}

/** A part of a rendered text that one interpolation, or the author, wrote. */
export interface Segment {
  text: string;
  /** The inputs that had a part in it; none means the author alone. */
  inputs: string[];
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

/** What a call of a model came to. */
export interface Run {
  /** What kind of result it is. */
  kind: "text" | "structured" | "tool_calls" | "embedding" | "embeddings" | "image" | "images";
  /** The result: text, what the prompt's `outputs` declare, calls of tools, vectors or pictures. */
  result: unknown;
  /** What is wrong with a structured result, by the prompt's `outputs`. */
  problems: string[];
  usage: Usage | null;
  /** The model that really answered. */
  model: string | null;
  id: string | null;
  finishReason: string | null;
}

/** What a turn came to. */
export interface TurnRun extends Run {
  /** The tokens of all answers; `usage` is that of the last. */
  turnUsage: Usage;
  /** How many answers the model gave. */
  rounds: number;
  /** The conversation, with the last answer. */
  messages: Message[];
  /** What was in its journal, if it was resumed. */
  resumed: { records: number; tornBytes: number } | null;
}

/** A step of a streamed answer. */
export type Delta =
  | { type: "text" | "thinking"; text: string }
  | { type: "tool_call"; index: number; id: string; name: string }
  | { type: "tool_arguments"; index: number; fragment: string }
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
    /** Variables for names that are not set. */
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
}

/** What a caller wants of a model, over what the prompt says. */
export interface RunOptions {
  provider?: string;
  model?: string;
  apiType?: string;
  baseUrl?: string;
  apiKey?: string;
}

/** How a render goes. */
export interface RenderOptions {
  /** The variant of the prompt. */
  variant?: string;
}

/** Something that can be stopped. */
export interface Stoppable {
  /** Stops it. The error has the code `cancelled`, and the signal's reason as its cause. */
  signal?: AbortSignal;
}

/** What a person is asked to agree to. */
export interface ApprovalRequest {
  name: string;
  arguments: Record<string, unknown>;
  id: string;
}

/** How a turn goes. Times are in seconds. */
export interface TurnOptions extends Stoppable {
  /** How the model is called. */
  run?: RunOptions;
  maxIterations?: number;
  maxLlmRetries?: number;
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
  /** Whether the model says in short what no longer fits. */
  compact?: boolean;
  /** The file in which the turn is kept, so that it can be resumed if the process dies. */
  journal?: string;
  /** What runs the tools that the prompt declares, by name. */
  tools?: Readonly<Record<string, import("./tool.cjs").Tool | import("./tool.cjs").ToolFunction>>;
  /** Speaks into the turn while it is under way. */
  steering?: import("./steering.cjs").Steering;
  /** Is told what happens. If it throws, the turn stops and fails with what it threw. */
  onEvent?: (event: AgentEvent) => void;
  /** Asks a person whether a tool may run: true, false, or why not. */
  approve?: (request: ApprovalRequest) => boolean | string | Promise<boolean | string>;
}
