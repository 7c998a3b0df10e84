import { native, type NativeTool } from "./native.cjs";
import { guarded, invalid } from "./error.cjs";
import { nativePrompt, type Prompt } from "./prompt.cjs";
import { isSchema, jsonSchema, parsed, type StandardSchema, type Validated } from "./schema.cjs";
import { encodeOptions } from "./options.cjs";
import type { ContentPart, Effect, Hide, ParameterFlow, ToolFlow, Tools } from "./types.cjs";
import { encode } from "./values.cjs";

/** The context of a tool call. */
export interface ToolContext {
  /** The provider's identifier of the call. */
  id: string;
  /** A key that is the same whenever this call is made, even after a crash, and differs from that of any other call. */
  idempotencyKey: string;
  /** Aborted when the turn is cancelled. */
  signal: AbortSignal | undefined;
}

/**
 * A function that runs a tool. Its result goes to the model: text unchanged, parts of a message (`{ kind: "image",
 * value: bytes }`, one or a list of them) as parts, and everything else as JSON. Wrap it in `Confidential` if it is
 * confidential.
 */
export type ToolFunction<Arguments = any> = (args: Arguments, context: ToolContext) => unknown;

/** The options of a tool. */
export interface ToolOptions {
  /** The name, if a handler creates the tool. Otherwise, the key under which the tool is passed is its name. */
  name?: string;
  /** The description for the model, if a handler creates the tool. Otherwise, it comes from the prompt. */
  description?: string;
  /** The JSON Schema of the arguments, if it cannot be derived from the schema. */
  parameters?: Readonly<Record<string, unknown>>;
  /** Whether the tool may run again with the same key if it is unknown whether it finished. */
  idempotent?: boolean;
  /** Whether the tool needs approval before it runs. */
  needsApproval?: boolean;
  /** The time limit, in seconds. */
  timeout?: number;
  /** What the tool does besides returning a result. The policy for tools needs this. */
  effect?: Effect;
  /** Whether results are trusted. Do not set this if they contain other people's text. */
  trusted?: boolean;
  /** Whether results are confidential. */
  confidential?: boolean;
  /** Whether the model sees handles instead of untrusted results. */
  hide?: Hide;
  /** The parameters whose values must come from a trusted origin. */
  trustedOnly?: readonly string[];
  /** The parameters that are addresses that data goes to. */
  destinations?: readonly string[];
  /** The server that provides the tool, if a handler creates it. */
  server?: string;
  /** What the server says about the tool. It can only tighten what the prompt declares. */
  serverFlow?: ToolFlow;
}

/** Marks the result of a tool as confidential, even if the tool is not declared so. */
export class Confidential<Value = unknown> {
  readonly value: Value;

  constructor(value: Value) {
    this.value = value;
  }
}

/** A function that runs a tool, with its options. */
export class Tool<Arguments = any> {
  readonly name: string;
  readonly description: string | undefined;
  /** The JSON Schema of the arguments. */
  readonly parameters: Readonly<Record<string, unknown>> | undefined;
  readonly idempotent: boolean;
  readonly needsApproval: boolean;
  readonly timeout: number | undefined;
  /** What the application declares about the flow of information through the tool. */
  readonly flow: ToolFlow;
  /** The server that provides the tool. */
  readonly server: string | undefined;
  /** What the server says about the tool. */
  readonly serverFlow: ToolFlow;
  readonly #run: ToolFunction;
  readonly #schema: StandardSchema | undefined;

  constructor(run: ToolFunction<Arguments>, options: ToolOptions & { schema?: StandardSchema<any, Arguments> } = {}) {
    if (typeof run !== "function") throw invalid("tool: expected a function");
    if (options.schema !== undefined && !isSchema(options.schema)) {
      throw invalid("tool schema: expected a Standard Schema");
    }
    this.#run = run;
    this.#schema = options.schema;
    this.name = options.name ?? run.name;
    this.description = options.description;
    this.parameters = options.parameters ?? (options.schema && jsonSchema(options.schema));
    this.idempotent = options.idempotent ?? false;
    this.needsApproval = options.needsApproval ?? false;
    this.timeout = options.timeout;
    this.flow = flowOf(options, this.parameters);
    this.server = options.server;
    this.serverFlow = options.serverFlow ?? {};
  }

  /** Calls the function with the arguments from a model. If there is a schema, it validates them first. */
  async call(
    args: unknown,
    context: ToolContext = { id: "", idempotencyKey: "", signal: undefined },
  ): Promise<unknown> {
    return this.#run(this.#schema === undefined ? args : await parsed(this.#schema, args), context);
  }
}

/** Returns what the options of a tool declare about the flow of information. */
function flowOf(options: ToolOptions, schema: Readonly<Record<string, unknown>> | undefined): ToolFlow {
  const { effect, trusted, confidential, hide } = options;
  const parameters: Record<string, ParameterFlow> = {};
  const mark = (option: "trustedOnly" | "destinations", key: keyof ParameterFlow) => {
    const names: unknown = options[option] ?? [];
    if (!Array.isArray(names)) throw invalid(`tool ${option}: expected a list of parameters`);
    for (const name of names) {
      if (!hasParameter(schema, name)) throw invalid(`tool ${option}: there is no parameter ${JSON.stringify(name)}`);
      parameters[name] = { ...parameters[name], [key]: true };
    }
  };
  mark("trustedOnly", "trustedOnly");
  mark("destinations", "destination");
  const declared = { effect, trusted, confidential, hide };
  const given = Object.fromEntries(Object.entries(declared).filter(([, value]) => value !== undefined));
  return Object.keys(parameters).length > 0 ? { ...given, parameters } : given;
}

function hasParameter(schema: Readonly<Record<string, unknown>> | undefined, name: string): boolean {
  const known = schema?.["properties"];
  return typeof known !== "object" || known === null || Object.hasOwn(known, name);
}

/** Creates a tool whose arguments are validated with a schema before the function receives them. */
export function tool<Schema extends StandardSchema<any, any>>(
  schema: Schema,
  run: ToolFunction<Validated<Schema>>,
  options: ToolOptions = {},
): Tool<Validated<Schema>> {
  return new Tool(run, { ...options, schema });
}

/** Converts tools by name to instances of `Tool`. */
export function asTools(tools: Tools = {}): Map<string, Tool> {
  return new Map(
    Object.entries(tools).map(([name, given]) => {
      if (given instanceof Tool) return [name, given];
      if (typeof given === "function") return [name, new Tool(given)];
      throw invalid(`tool ${JSON.stringify(name)}: expected a function`, "pass a function or the result of tool()");
    }),
  );
}

/** Converts a tool for the engine. */
export function nativeTool(name: string, tool: Tool): NativeTool {
  return {
    name,
    parameters: tool.parameters && encode(tool.parameters, name),
    idempotent: tool.idempotent,
    needsApproval: tool.needsApproval,
    timeout: tool.timeout,
    flow: encodeOptions(tool.flow),
  };
}

/** Converts tools for the engine. */
export function nativeTools(tools: ReadonlyMap<string, Tool>): NativeTool[] {
  return Array.from(tools, ([name, tool]) => nativeTool(name, tool));
}

/**
 * Checks functions against the tools that a prompt declares, for `TurnOptions.tools`. Each function needs a declaration
 * of the same name, and must accept the declared parameters.
 */
export function bindTools<Given extends Tools>(prompt: Prompt<any>, tools: Given): Given {
  guarded(() => native.checkTools(nativePrompt(prompt), nativeTools(asTools(tools))));
  return tools;
}

const KINDS = new Set(["text", "image", "audio", "file"]);
const KEYS = new Set(["kind", "value", "mediaType", "detail", "fileName"]);

/** Returns whether a value is a part of a message and nothing else. */
function isPart(value: unknown): value is ContentPart {
  if (typeof value !== "object" || value === null) return false;
  const { kind, value: inner } = value as { kind?: unknown; value?: unknown };
  const hasBytes = typeof inner === "string" || inner instanceof Uint8Array || inner instanceof ArrayBuffer;
  return KINDS.has(kind as string) && hasBytes && Object.keys(value).every((key) => KEYS.has(key));
}

/** Serializes the result of a tool for the engine. */
export function encodeOutput(output: unknown): string {
  if (output instanceof Confidential) return `{"confidential":${encodeOutput(output.value)}}`;
  const list = Array.isArray(output) ? output : [output];
  if (list.length > 0 && list.every(isPart)) return `{"parts":${encode(list, "result")}}`;
  return `{"value":${encode(output, "result")}}`;
}
