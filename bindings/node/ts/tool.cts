import { native, type NativeTool } from "./native.cjs";
import { guarded, invalid } from "./error.cjs";
import { nativePrompt, type Prompt } from "./prompt.cjs";
import { isSchema, jsonSchema, parsed, type StandardSchema, type Validated } from "./schema.cjs";
import type { ContentPart, Tools } from "./types.cjs";
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
 * value: bytes }`, one or a list of them) as parts, and everything else as JSON.
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
  }

  /** Calls the function with the arguments from a model. If there is a schema, it validates them first. */
  async call(
    args: unknown,
    context: ToolContext = { id: "", idempotencyKey: "", signal: undefined },
  ): Promise<unknown> {
    return this.#run(this.#schema === undefined ? args : await parsed(this.#schema, args), context);
  }
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
  const list = Array.isArray(output) ? output : [output];
  if (list.length > 0 && list.every(isPart)) return `{"parts":${encode(list, "result")}}`;
  return `{"value":${encode(output, "result")}}`;
}
