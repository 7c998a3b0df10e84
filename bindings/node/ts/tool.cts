import { native, type NativeTool } from "./native.cjs";
import { guarded, invalid } from "./error.cjs";
import { nativePrompt, type Prompt } from "./prompt.cjs";
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

/** A function that runs a tool. What it returns goes to the model: text as it is, everything else as JSON. */
export type ToolFunction<Arguments = any> = (args: Arguments, context: ToolContext) => unknown;

/** What else is known of a tool. */
export interface ToolOptions {
  /** The JSON Schema of what it takes, where its schema cannot tell. */
  jsonSchema?: Readonly<Record<string, unknown>>;
  /** Whether it may be run again with the same key when nobody knows whether it came to its end. */
  idempotent?: boolean;
  /** Whether a person has to agree before it runs. */
  needsApproval?: boolean;
  /** How long it may take, in seconds. */
  timeout?: number;
}

/** A schema of any library that follows the Standard Schema: Zod 4 among them. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** What a schema makes of values. */
export type Validated<Schema> = Schema extends StandardSchema<any, infer Output> ? Output : never;

/** A function that runs a tool, and what is known of it. */
export interface Tool {
  readonly run: ToolFunction;
  readonly options: Readonly<ToolOptions>;
}

/** A tool whose arguments a schema validates before the function gets them. */
export function tool<Schema extends StandardSchema<any, any>>(
  schema: Schema,
  run: ToolFunction<Validated<Schema>>,
  options: ToolOptions = {},
): Tool {
  const known = options.jsonSchema ?? jsonSchema(schema);
  return {
    run: async (args, context) => run(await validated(schema, args), context),
    options: known === undefined ? options : { ...options, jsonSchema: known },
  };
}

async function validated<Output>(schema: StandardSchema<unknown, Output>, value: unknown): Promise<Output> {
  const result = await schema["~standard"].validate(value);
  if (result.issues === undefined) return result.value;
  const issues = result.issues.map(({ message, path = [] }) => {
    const steps = path.map((step) => String(typeof step === "object" ? step.key : step));
    return steps.length === 0 ? message : `${steps.join(".")}: ${message}`;
  });
  throw new Error(`invalid arguments: ${issues.join("; ")}`);
}

/** The JSON Schema of a schema, by the Standard JSON Schema or by Zod's own method, if it has either. */
function jsonSchema(schema: unknown): Record<string, unknown> | undefined {
  const known = schema as {
    "~standard": { jsonSchema?: { input(options: { target: string }): Record<string, unknown> } };
    toJSONSchema?: (options: { io: string }) => Record<string, unknown>;
  };
  return known["~standard"].jsonSchema?.input({ target: "draft-2020-12" }) ?? known.toJSONSchema?.({ io: "input" });
}

/** Tools by name, all of them with what is known of them. */
export function asTools(tools: Readonly<Record<string, Tool | ToolFunction>> = {}): Map<string, Tool> {
  return new Map(
    Object.entries(tools).map(([name, given]) => {
      const made = typeof given === "function" ? { run: given, options: {} } : given;
      if (typeof made?.run === "function") return [name, made];
      throw invalid(`the tool ${JSON.stringify(name)} is no function`, "give a function, or what tool() returns");
    }),
  );
}

/** What the engine has to know of tools. */
export function nativeTools(tools: ReadonlyMap<string, Tool>): NativeTool[] {
  return Array.from(tools, ([name, { options }]) => ({
    name,
    parameters: options.jsonSchema && encode(options.jsonSchema, name),
    idempotent: options.idempotent,
    needsApproval: options.needsApproval,
    timeout: options.timeout,
  }));
}

/**
 * Holds functions against the tools that a prompt declares, for `TurnOptions.tools`. Each has to have a declaration of
 * its name, and takes what that declares.
 */
export function bindTools<Tools extends Readonly<Record<string, Tool | ToolFunction>>>(prompt: Prompt, tools: Tools): Tools {
  guarded(() => native.checkTools(nativePrompt(prompt), nativeTools(asTools(tools))));
  return tools;
}
