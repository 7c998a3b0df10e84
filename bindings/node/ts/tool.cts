import { native, type NativeTool } from "./native.cjs";
import { guarded, invalid } from "./error.cjs";
import { nativePrompt, type Prompt } from "./prompt.cjs";
import { isSchema, jsonSchema, parsed, type StandardSchema, type Validated } from "./schema.cjs";
import type { ContentPart, Tools } from "./types.cjs";
import { encode } from "./values.cjs";

/** One call of a tool. */
export interface ToolContext {
  /** The provider's name for the call. */
  id: string;
  /** The same whenever this call is made, also after a crash, and never that of another call. */
  idempotencyKey: string;
  /** Stops with the turn. */
  signal: AbortSignal | undefined;
}

/**
 * A function that runs a tool. What it returns goes to the model: text as it is, parts of a message (`{ kind: "image",
 * value: bytes }`, one or a list of them) as such, and everything else as JSON.
 */
export type ToolFunction<Arguments = any> = (args: Arguments, context: ToolContext) => unknown;

/** What else is known of a tool. */
export interface ToolOptions {
  /** What it is called, where it is made for a handler. Elsewhere its key is its name. */
  name?: string;
  /** What a model is told about it, where it is made for a handler. Elsewhere the prompt says that. */
  description?: string;
  /** The JSON Schema of what it takes, where its schema cannot tell. */
  parameters?: Readonly<Record<string, unknown>>;
  /** Whether it may be run again with the same key when nobody knows whether it came to its end. */
  idempotent?: boolean;
  /** Whether a person has to agree before it runs. */
  needsApproval?: boolean;
  /** How long it may take, in seconds. */
  timeout?: number;
}

/** A function that runs a tool, and what is known of it. */
export class Tool<Arguments = any> {
  readonly name: string;
  readonly description: string | undefined;
  /** The JSON Schema of what it takes. */
  readonly parameters: Readonly<Record<string, unknown>> | undefined;
  readonly idempotent: boolean;
  readonly needsApproval: boolean;
  readonly timeout: number | undefined;
  readonly #run: ToolFunction;
  readonly #schema: StandardSchema | undefined;

  constructor(run: ToolFunction<Arguments>, options: ToolOptions & { schema?: StandardSchema<any, Arguments> } = {}) {
    if (typeof run !== "function") throw invalid("a tool is a function");
    if (options.schema !== undefined && !isSchema(options.schema)) {
      throw invalid("the schema of a tool does not follow the Standard Schema");
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

  /** Calls it with arguments as a model gives them. The schema, if there is one, validates them first. */
  async call(
    args: unknown,
    context: ToolContext = { id: "", idempotencyKey: "", signal: undefined },
  ): Promise<unknown> {
    return this.#run(this.#schema === undefined ? args : await parsed(this.#schema, args), context);
  }
}

/** A tool whose arguments a schema validates before the function gets them. */
export function tool<Schema extends StandardSchema<any, any>>(
  schema: Schema,
  run: ToolFunction<Validated<Schema>>,
  options: ToolOptions = {},
): Tool<Validated<Schema>> {
  return new Tool(run, { ...options, schema });
}

/** Tools by name, all of them with what is known of them. */
export function asTools(tools: Tools = {}): Map<string, Tool> {
  return new Map(
    Object.entries(tools).map(([name, given]) => {
      if (given instanceof Tool) return [name, given];
      if (typeof given === "function") return [name, new Tool(given)];
      throw invalid(`the tool ${JSON.stringify(name)} is no function`, "give a function, or what tool() returns");
    }),
  );
}

/** What the engine has to know of a tool. */
export function nativeTool(name: string, tool: Tool): NativeTool {
  return {
    name,
    parameters: tool.parameters && encode(tool.parameters, name),
    idempotent: tool.idempotent,
    needsApproval: tool.needsApproval,
    timeout: tool.timeout,
  };
}

/** The same for several. */
export function nativeTools(tools: ReadonlyMap<string, Tool>): NativeTool[] {
  return Array.from(tools, ([name, tool]) => nativeTool(name, tool));
}

/**
 * Holds functions against the tools that a prompt declares, for `TurnOptions.tools`. Each has to have a declaration of
 * its name, and takes what that declares.
 */
export function bindTools<Given extends Tools>(prompt: Prompt<any>, tools: Given): Given {
  guarded(() => native.checkTools(nativePrompt(prompt), nativeTools(asTools(tools))));
  return tools;
}

const KINDS = new Set(["text", "image", "audio", "file"]);
const KEYS = new Set(["kind", "value", "mediaType", "detail", "fileName"]);

/** Whether a value is a part of a message, and nothing else. */
function isPart(value: unknown): value is ContentPart {
  if (typeof value !== "object" || value === null) return false;
  const { kind, value: inner } = value as { kind?: unknown; value?: unknown };
  const hasBytes = typeof inner === "string" || inner instanceof Uint8Array || inner instanceof ArrayBuffer;
  return KINDS.has(kind as string) && hasBytes && Object.keys(value).every((key) => KEYS.has(key));
}

/** What a tool returned, for the engine. */
export function encodeOutput(output: unknown): string {
  const list = Array.isArray(output) ? output : [output];
  if (list.length > 0 && list.every(isPart)) return `{"parts":${encode(list, "result")}}`;
  return `{"value":${encode(output, "result")}}`;
}
