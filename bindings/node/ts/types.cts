/**
 * The names and values of inputs. The guide describes how values are converted. Values that cannot be converted are
 * errors.
 */
export type Inputs = Readonly<Record<string, unknown>> | ReadonlyMap<string, unknown>;

/** The arguments after a prompt: its inputs, which are optional if all of them are, and options. */
export type Given<In, Options> = {} extends In ? [inputs?: In, options?: Options] : [inputs: In, options?: Options];

export type Role = "system" | "developer" | "user" | "assistant" | "tool";

/** A part of a message's content. */
export type ContentPart =
  | { kind: "text"; value: string }
  | { kind: "image" | "audio" | "file"; value: string; mediaType?: string; detail?: string; fileName?: string };

/** A message of a conversation. */
export interface Message {
  role: Role;
  content: ContentPart[];
  /** The attributes of the role marker, tool calls, and other metadata of the message. */
  metadata?: Record<string, unknown>;
}

/** A message written by a caller. A string is shorthand for a single text part. */
export interface MessageInput {
  role: Role;
  content: string | readonly (string | ContentPart)[] | null;
  metadata?: Readonly<Record<string, unknown>>;
}

/** The declaration of an input, output or parameter. Fields that are not declared are absent. */
export interface Property {
  name: string;
  kind: string;
  /** All kinds, if there are several. */
  kinds?: string[];
  /** Whether null is a valid value. */
  nullable?: boolean;
  description?: string;
  /** Whether a value is required. */
  required?: boolean;
  /** The default value. */
  default?: unknown;
  example?: unknown;
  /** The allowed values, if they are listed. */
  enumValues?: unknown[];
  /** The declaration of a list's items. */
  items?: Property;
  /** The declarations of a map's entries. */
  properties?: Property[];
  /** Whether text from this input is trusted like the author's. */
  trusted?: boolean;
  /** Whether the value is confidential, for the policy for tools. */
  confidential?: boolean;
  /** Who speaks through this input. The policy for tools trusts the user. */
  speaker?: "user";
  /** Whether text that looks like a role marker is an error. */
  strict?: boolean;
  /** Whether callers must validate the input before rendering. */
  validationRequired?: boolean;
  /**
   * The JSON Schema of the object that this property and its siblings belong to, if the declaration says more than the
   * other fields can express.
   */
  schema?: Record<string, unknown>;
}

/** A part of a rendered text that was written by one interpolation or by the author. */
export interface Segment {
  text: string;
  /** The names of the inputs that wrote it. Empty if the author did. */
  origins: string[];
  /** Whether it is trusted like the author's text. */
  trusted: boolean;
}

/** A part of a message's text that was written by one interpolation or by the author. */
export interface TextSegment {
  /** The offset of its first byte in the text, in UTF-8. */
  start: number;
  /** The offset after its last byte. */
  end: number;
  /** The names of the inputs that wrote it. Empty if the author did. */
  origins: string[];
  /** Whether it is trusted like the author's text. */
  trusted: boolean;
}

/** A message whose text parts have segments. */
export interface SegmentedMessage extends Omit<Message, "content"> {
  content: (ContentPart & { segments?: TextSegment[] })[];
}

/** The token usage of a model call or a turn. */
export interface Usage {
  inputTokens: number;
  outputTokens: number;
  totalTokens: number;
  cachedInputTokens?: number;
  cacheWriteTokens?: number;
  reasoningTokens?: number;
}

/** A tool call of a model. */
export interface ToolCall {
  id: string;
  name: string;
  /** The arguments as JSON, exactly as the model wrote them. */
  arguments: string;
}

/** A function that a model may call, as described to the model. */
export interface ModelFunction {
  name: string;
  description: string | null;
  /** The JSON Schema of its arguments. */
  parameters: Record<string, unknown>;
  /** Whether the provider should force the model to follow the schema. */
  strict: boolean;
}

/** A model, as its provider lists it. What the provider does not report is `null`. */
export interface ModelInfo {
  /** The provider's ID for the model. */
  id: string;
  /** The human-readable name. */
  displayName: string | null;
  /** The creation time, in seconds since the Unix epoch. */
  created: number | null;
  /** The model's owner. */
  ownedBy: string | null;
  /** The number of tokens that the model can process at once. */
  contextWindow: number | null;
  /** The kinds of content that the model accepts, such as `text` and `image`. */
  inputModalities: string[] | null;
  /** The kinds of content that the model produces. */
  outputModalities: string[] | null;
}

/** The status of a trace backend. */
export interface TraceStatus {
  name: string;
  /** The number of events that were dropped because the backend was too slow. */
  dropped: number;
  /** The number of failures, and the message of the last one. */
  failed: number;
  lastError: string | null;
}

/** How to reach a provider, with the same fields as in prompt files. */
export interface Connection {
  kind?: string;
  name?: string;
  endpoint?: string;
  apiKey?: string;
  [key: string]: unknown;
}

/** A delta of a streamed answer. */
export type Delta =
  | { type: "text" | "thinking"; text: string }
  | { type: "tool_call"; index: number; id: string; name: string }
  | { type: "tool_arguments"; index: number; text: string }
  | { type: "usage"; usage: Usage };

/** An event of a turn. */
export type AgentEvent =
  | { type: "token" | "thinking"; text: string }
  | { type: "status" | "error" | "compaction_failed"; message: string }
  | { type: "tool_call_start"; name: string; arguments: string; label: Label }
  /** The policy for tools has decided about a call that it does not simply allow. */
  | { type: "policy"; name: string; decision: Decision; reasons: Reason[] }
  /** `error` is a short name of the error. */
  | { type: "tool_result"; name: string; parts: ContentPart[]; error: string | null; label: Label }
  | { type: "messages_updated"; count: number }
  | { type: "done"; response: string; count: number }
  | { type: "cancelled" | "compaction_start" }
  | { type: "compaction_complete"; removed: number; remaining: number };

/** What a tool does besides returning a result: nothing, changing data, or acting on the world outside. */
export type Effect = "read" | "write" | "external";

/** What happens to a call: it runs, it runs if the approver allows it, or it does not run. */
export type Decision = "allow" | "ask" | "deny";

/** Whether the model sees a handle instead of an untrusted result. */
export type Hide = "auto" | "always" | "never";

/** What is declared about a parameter of a tool. */
export interface ParameterFlow {
  /** Whether the value must come from a trusted origin. */
  trustedOnly?: boolean;
  /** Whether the value is an address that data goes to. */
  destination?: boolean;
}

/** What is declared about the flow of information through a tool. */
export interface ToolFlow {
  /** What the tool does besides returning a result. */
  effect?: Effect;
  /** Whether results are trusted. Do not set this if they contain other people's text. */
  trusted?: boolean;
  /** Whether results are confidential. */
  confidential?: boolean;
  /** Whether the model sees handles instead of untrusted results. */
  hide?: Hide;
  /** The parameters about which something is declared, by name. */
  parameters?: Readonly<Record<string, ParameterFlow>>;
}

/** The policy for tool calls: which calls run, which need approval, and which are denied. */
export interface ToolPolicy {
  /** `strict` treats tools without an effect that the application declared as `external`. `off` allows everything. */
  mode?: "off" | "default" | "strict";
  /** The decisions after untrusted content was read, by the effect of the tool. */
  untrusted?: Partial<Record<Effect, Decision>>;
  /** The decisions after confidential content was read, by the effect of the tool. */
  confidential?: Partial<Record<Effect, Decision>>;
  /** The decision if a value that must come from a trusted origin does not. */
  values?: Decision;
  /** The addresses that confidential data may go to: a whole value, `*@example.com`, or a URL that ends with `/*`. */
  destinations?: readonly string[];
  /** Values that count as coming from a trusted origin, for any parameter. */
  trustedValues?: readonly string[];
  /**
   * The decisions for single tools, or for single parameters, which replace those of the policy. Without a parameter,
   * an exception is about what the model has read.
   */
  exceptions?: readonly { tool: string; parameter?: string; decision: Decision }[];
  /** Decisions for single tools and parameters that apply if they are stricter than the rest of the policy. */
  restrictions?: readonly { tool: string; parameter?: string; decision: Decision }[];
  /** The number of bits that a turn may extract from untrusted content. Defaults to 16. */
  extractionBits?: number;
}

/** Where a part of a conversation came from. */
export type Source =
  | { kind: "author" | "user" | "unknown" }
  | { kind: "input"; name: string }
  /** `call` is the ID of the call, unless the label combines several parts. */
  | { kind: "tool"; name: string; server?: string; call?: string };

/** The label of a part of a conversation, of a tool call, or of everything that a model has read. */
export interface Label {
  /** Whether all of it comes from sources that the policy trusts. */
  trusted: boolean;
  /** Whether any of it is confidential. */
  confidential: boolean;
  /** Whether it contains values that were extracted from untrusted content. */
  extracted: boolean;
  /** The sources, without duplicates. */
  sources: Source[];
  /** The sources that are not trusted. */
  untrustedSources: Source[];
}

/** A range of a text, in bytes of UTF-8, with its label. */
export interface LabeledRange {
  range: { start: number; end: number };
  label: Label;
}

/** The label of a part of a message. */
export interface PartLabel extends Label {
  /** Whether a model or the turn itself wrote the part. What it contains never counts as a value from a trusted origin. */
  generated: boolean;
  /** The labels of its ranges, if they differ. */
  ranges: LabeledRange[];
}

/** The label of a part of a message that an application adds to a conversation. */
export interface NewLabel {
  trusted: boolean;
  confidential?: boolean;
  sources: readonly Source[];
}

/** What speaks against a call. `message` contains the names of tools, inputs and parameters, and no other text. */
export type Reason =
  /** The model had read untrusted content. `assumed` is whether nobody declared the effect. */
  | { reason: "untrusted"; message: string; effect: Effect; assumed: boolean; sources: Source[] }
  /** The model had read confidential content, or an argument is confidential. */
  | { reason: "confidential"; message: string; effect: Effect; assumed: boolean }
  /** The value of a parameter does not come from a trusted origin. */
  | { reason: "value"; message: string; parameter: string };

/** Where the value of an argument came from. */
export interface ArgumentOrigin {
  parameter: string;
  /** The handle that the model passed, if it did. */
  handle: string | null;
  /**
   * Where the value occurs in the conversation, or where the content of the handle came from. Null if the model wrote
   * it and it occurs nowhere.
   */
  source: Source | null;
  /** Whether this origin is trusted. */
  trusted: boolean;
  /** The text around the value, or the content of the handle. It can be from anybody: escape it before you show it. */
  quote: { before: string; value: string; after: string } | null;
}

/** The options of the guard. */
export interface GuardOptions {
  advisory?: string;
  /** The role of the message that carries the advisory. `null` does not send it. */
  role?: "system" | "developer" | "user" | null;
}

/** The options of a runtime, which apply to all prompts. Times are in seconds. */
export interface RuntimeOptions {
  /** Whether role markers in untrusted inputs are errors. Defaults to the prompt's setting. */
  strict?: boolean;
  /** Whether undefined variables render as empty text. Defaults to the prompt's setting. */
  lenient?: boolean;
  /** Whether an optional input without a value is an error if the template uses it. */
  strictInputs?: boolean;
  /** The seed of the template filter `random`. Without one, a template that uses it is an error. */
  seed?: number;
  /** Wraps text from untrusted inputs in `<untrusted>`. A string is the advisory for the model. */
  guard?: boolean | string | GuardOptions;
  /** The roles whose messages may contain text of untrusted inputs. Such text in other messages is an error. */
  policy?: { untrusted: Role[] };
  /** Which tool calls run, which need approval, and which are denied. */
  toolPolicy?: ToolPolicy;
  /** Whether the values of inputs must match their declared kinds and enums. Defaults to `off`. */
  kinds?: "off" | "warn" | "error";
  /** The limits of rendering. */
  limits?: { steps?: number; outputBytes?: number; operationBytes?: number; totalBytes?: number; callDepth?: number };
  /** The roles that messages of thread inputs may have. */
  threadRoles?: "any" | "no_instructions";
  /** What prompt files may access while they are loaded. */
  load?: {
    /** The environment variables that prompt files may read: all, none, or those with these names. */
    env?: boolean | readonly string[];
    /** Whether references to variables that are not set remain unresolved, until something needs their values. */
    deferEnv?: boolean;
    /** Variables that replace the environment. */
    envVars?: Readonly<Record<string, string>>;
    /**
     * Files, such as `.env` files, with values for variables that are not set. An address from such a file receives no
     * key from elsewhere.
     */
    envFiles?: readonly { name: string; variables: Readonly<Record<string, string>> }[];
    /** Values for variables that are not set. They count as one more file. */
    envDefaults?: Readonly<Record<string, string>>;
    fileRoots?: readonly string[];
    maxFileBytes?: number;
    directiveInstruction?: string;
  };
  /** How providers are called. */
  http?: {
    connectTimeout?: number;
    firstByteTimeout?: number;
    idleTimeout?: number;
    totalTimeout?: number;
    maxRetries?: number;
    maxRetryWait?: number;
    maxResponseBytes?: number;
    /** True for the proxy of the environment, false for none, or the address of a proxy. */
    proxy?: boolean | string;
    userAgent?: string;
    /** Certificates, in PEM, of authorities to trust in addition to the default ones. */
    extraRoots?: string;
  };
  /** The directory to record exchanges with providers to, or to replay them from. */
  cassette?: { record: string } | { replay: string };
  /** What traces contain and leave out. */
  trace?: { maskUntrusted?: boolean; redactValues?: boolean; maxValueBytes?: number };
  /** The addresses that tools may call. */
  toolAddresses?: { allowPrivate?: boolean; allowHosts?: readonly string[] };
  /** Addresses that may receive keys and other values from the environment, even if only a file names them. */
  allowEndpoints?: readonly string[];
}

/** Overrides of the prompt's model settings. */
export interface RunOptions {
  provider?: string;
  model?: string;
  apiType?: string;
  baseUrl?: string;
  apiKey?: string;
}

/** The options of a render. They override those of the runtime. */
export interface RenderOptions {
  /** The variant of the prompt. */
  variant?: string;
  /** Wraps text from untrusted inputs in `<untrusted>`. A string is the advisory for the model. */
  guard?: boolean | string | GuardOptions;
  /** Whether role markers in untrusted inputs are errors. */
  strict?: boolean;
  /** Whether undefined variables render as empty text. */
  lenient?: boolean;
  /**
   * The roles whose messages may contain text of untrusted inputs. It applies in addition to the policy of the runtime.
   */
  policy?: { untrusted: Role[] };
  /** Whether the values of inputs must match their declared kinds and enums. */
  kinds?: "off" | "warn" | "error";
  /** Whether an optional input without a value is an error if the template uses it. */
  strictInputs?: boolean;
  /** The seed of the template filter `random`. */
  seed?: number;
}

/** How a table of rows becomes a table of messages. */
export interface TableOptions {
  /**
   * The column of the result: a list of `messages` (the default), the `text` before it is split into messages, or the
   * body of a `request`. The name of a provider, such as `openai`, means a request for this provider.
   */
  output?: "messages" | "text" | "request" | (string & {});
  /** The columns of inputs, where the names differ. */
  map?: Readonly<Record<string, string>>;
  /** The variant of the prompt. */
  variant?: string;
  /** Whether the result has the columns of the table, too. The default is true. */
  keepColumns?: boolean;
  /** Whether the result has the column `render_hash`, the SHA-256 of the text. */
  hashes?: boolean;
  /** Whether the result has the column `tokens`, the number of input tokens. */
  tokens?: boolean;
  /** Whether the result has the column `segments`: which inputs wrote which bytes of the messages. */
  origins?: boolean;
  /** Wraps text from untrusted inputs in `<untrusted>`. A string is the advisory for the model. */
  guard?: boolean | string | GuardOptions;
  /** Whether the values of inputs must match their declared kinds and enums. The default is `error`. */
  kinds?: "off" | "warn" | "error";
  /** The provider, the model and the API of requests, where they are not those of the prompt. */
  provider?: string;
  model?: string;
  apiType?: string;
  /** The number of threads. By default all cores are used. */
  threads?: number;
}

/** The options for splitting text of unknown origin. */
export interface ParseTextOptions {
  /** The nonce that `preRender` wrote into the author's markers. Every marker must carry it. */
  nonce?: string;
  /**
   * Conversations by their placeholder in the text, or by the name of their input. With names, the 16 digits in the
   * placeholder must match the `nonce`, if there is one.
   */
  threads?: Readonly<Record<string, readonly MessageInput[]>>;
}

/** An operation that can be cancelled. */
export interface Stoppable {
  /** Cancels the operation. The error has the code `cancelled`, and the signal's reason as its cause. */
  signal?: AbortSignal;
}

/** A tool call that is about to run. */
export interface ToolRun {
  /** The provider's identifier of the call. */
  id: string;
  name: string;
  arguments: Record<string, unknown>;
  /** The round of the turn, counted from 1, and the index of the call in that round, counted from 0. */
  round: number;
  index: number;
  /** The label of the call: the union of what the model had read and of the arguments. */
  label: Label;
}

/** A tool call that needs approval, with everything that a person needs to decide about it. */
export interface Approval extends ToolRun {
  /** The effect of the tool, if it is declared. */
  effect: Effect | null;
  /** Why the policy asks. Empty if it does not: the tool itself requires approval, or `approveAll` is set. */
  reasons: Reason[];
  /** Whether the tool itself requires approval. */
  requiredByTool: boolean;
  /** The label of everything that the model had read. */
  context: Label;
  /** Where the arguments came from. */
  origins: ArgumentOrigin[];
}

/** Whether something is allowed: true or nothing allows it; false, or a text with the reason, denies it. */
export type Verdict = boolean | string | null | undefined | void;

/** The options of a turn. Times are in seconds. */
export interface TurnOptions extends Stoppable {
  /** How to call the model. */
  run?: RunOptions;
  maxIterations?: number;
  maxLlmRetries?: number;
  /** The maximum number of model calls, including those of turns that tools start. Defaults to ten per iteration. */
  maxModelCalls?: number;
  maxTokens?: number;
  maxCost?: number;
  /** The prices of a million tokens. */
  prices?: { input: number; output: number };
  maxTime?: number;
  maxToolCalls?: number;
  maxResultBytes?: number;
  parallelToolCalls?: boolean;
  /** The maximum length of the conversation, in characters or in tokens of a model. */
  contextBudget?: number | { tokens: number; model?: string };
  guard?: boolean | string | GuardOptions;
  toolTimeout?: number;
  /** Whether every tool call needs approval. */
  approveAll?: boolean;
  /**
   * The summarizer of messages that no longer fit: the turn's model, a function, or a prompt that receives them in its
   * input `conversation`. If it fails, the turn makes the summary itself.
   */
  compact?: boolean | ((messages: Message[]) => string | Promise<string>) | import("./prompt.cjs").Prompt<any>;
  /** The journal file, from which the turn can be resumed after a crash. */
  journal?: string;
  /** The number of the turn within its conversation, for traces. */
  turnNumber?: number;
  /** The policy for tool calls, instead of the runtime's. */
  toolPolicy?: ToolPolicy;
  /** What the application declares about tools, by name. It takes precedence over what prompts and servers declare. */
  toolFlows?: Readonly<Record<string, ToolFlow>>;
  /** The messages to start with, instead of those that the prompt is rendered to. */
  messages?: readonly MessageInput[];
  /** The labels of `messages`: a list for each message, with the label of each part. */
  labels?: readonly (readonly (PartLabel | NewLabel)[])[];
  /** The tools that the prompt declares, by name. */
  tools?: Tools;
  /** A queue of user messages for the running turn. */
  steering?: import("./steering.cjs").Steering;
  // If one of these functions throws, the turn stops and fails with that exception.
  /** Receives the events of the turn. */
  onEvent?: (event: AgentEvent) => void;
  /** Decides whether a tool call that needs approval may run: true, false, or the reason for a denial. */
  approve?: (approval: Approval) => boolean | string | Promise<boolean | string>;
  /** Judges the messages before each model call. */
  judgeInput?: (messages: Message[]) => Verdict | Promise<Verdict>;
  /** Judges each answer before it is used. */
  judgeOutput?: (message: Message) => Verdict | Promise<Verdict>;
  /** Judges each tool call before it runs. */
  judgeTool?: (run: ToolRun) => Verdict | Promise<Verdict>;
}

/** Tools by name. */
export type Tools = Readonly<Record<string, import("./tool.cjs").Tool | import("./tool.cjs").ToolFunction>>;
