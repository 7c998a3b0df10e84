import { TympanError, invalid } from "./error.cjs";

/** A schema of any library that implements Standard Schema, such as Zod 4. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

type StandardResult<Output> =
  { readonly value: Output; readonly issues?: undefined } | { readonly issues: readonly StandardIssue[] };

interface StandardIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** The output type of a schema. */
export type Validated<Schema> = Schema extends StandardSchema<any, infer Output> ? Output : never;

/** The input type of a schema. */
export type Accepted<Schema> = Schema extends { readonly "~standard": { readonly types?: infer Types } }
  ? NonNullable<Types> extends { readonly input: infer Input }
    ? Input
    : never
  : never;

/** Returns whether a value implements Standard Schema. */
export function isSchema(value: unknown): value is StandardSchema {
  const standard = (value as StandardSchema | null | undefined)?.["~standard"];
  return typeof standard?.validate === "function";
}

/** The properties of an issue that may be reported. They come from the author of the schema and not from the value. */
const RULE = ["expected", "format", "minimum", "maximum", "divisor", "requirement"] as const;

/** Describes an issue by the schema's rule. The issue's own message may quote the value, so it is not used. */
function described(issue: StandardIssue): string {
  const known = issue as unknown as Record<string, unknown>;
  const steps = (issue.path ?? []).map((step) => String(typeof step === "object" ? step.key : step));
  const name = [known["code"], known["type"], known["rule"]].find((name) => typeof name === "string");
  const details = RULE.filter((key) => ["string", "number"].includes(typeof known[key])).map(
    (key) => `${key} ${known[key]}`,
  );
  const rule = `${name ?? "it does not fit"}${details.length > 0 ? ` (${details.join(", ")})` : ""}`;
  return steps.length === 0 ? rule : `${steps.join(".")}: ${rule}`;
}

/** Formats the issues of a result for an error. */
export function complaint(issues: readonly StandardIssue[]): string {
  return issues.map(described).join("; ");
}

/**
 * Validates the arguments of a tool call. The error may quote the value, because it goes to the model that wrote it.
 */
export async function parsed<Output>(schema: StandardSchema<unknown, Output>, value: unknown): Promise<Output> {
  const result = await schema["~standard"].validate(value);
  if (result.issues === undefined) return result.value;
  const issues = result.issues.map(({ message, path = [] }) => {
    const steps = path.map((step) => String(typeof step === "object" ? step.key : step));
    return steps.length === 0 ? message : `${steps.join(".")}: ${message}`;
  });
  throw new Error(`invalid arguments: ${issues.join("; ")}`);
}

/** Converts inputs to the object that a schema expects. */
function asObject(inputs: unknown): unknown {
  return inputs instanceof Map ? Object.fromEntries(inputs) : (inputs ?? {});
}

function accepted<Output>(result: StandardResult<Output>): Output {
  if (result.issues === undefined) return result.value;
  throw invalid(`inputs: ${complaint(result.issues)}`, "call the validator directly to see its full messages");
}

/** Validates inputs synchronously. */
export function validated(schema: StandardSchema, inputs: unknown): unknown {
  const result = schema["~standard"].validate(asObject(inputs));
  if (!("then" in result)) return accepted(result);
  // Nobody waits for this promise, so ignore its rejection.
  result.then(undefined, () => {});
  throw invalid(
    "inputs: expected a synchronous validator, found an asynchronous one",
    "use renderAsync, prepareAsync, invoke or turn instead",
  );
}

/** Validates inputs, also with an async validator. */
export async function validatedAsync(schema: StandardSchema, inputs: unknown): Promise<unknown> {
  return accepted(await schema["~standard"].validate(asObject(inputs)));
}

type JsonSchema = Record<string, unknown>;

/** Returns the JSON Schema of a schema, from Standard JSON Schema or from Zod's own method, if it has either. */
export function jsonSchema(schema: unknown): JsonSchema | undefined {
  const known = schema as {
    "~standard": { jsonSchema?: { input(options: { target: string }): JsonSchema } };
    toJSONSchema?: (options: { io: string; unrepresentable: string }) => JsonSchema;
  };
  return (
    known.toJSONSchema?.({ io: "input", unrepresentable: "any" }) ??
    known["~standard"].jsonSchema?.input({ target: "draft-2020-12" })
  );
}

/** Returns the fields that a schema validates, as far as they can be determined. */
function fields(schema: StandardSchema): Set<string> {
  const { shape } = schema as { shape?: unknown };
  if (typeof shape === "object" && shape !== null) return new Set(Object.keys(shape));
  const known = jsonSchema(schema);
  return known === undefined ? new Set() : properties(known, known, 0);
}

/**
 * Returns the properties that a JSON Schema describes. For alternatives, these are the properties that all of them
 * have.
 */
function properties(schema: JsonSchema, root: JsonSchema, depth: number): Set<string> {
  if (depth > 32) return new Set();
  const inside = (one: unknown) => properties((one ?? {}) as JsonSchema, root, depth + 1);
  const list = (key: string) => (Array.isArray(schema[key]) ? (schema[key] as unknown[]).map(inside) : []);
  const found = new Set(Object.keys((schema["properties"] ?? {}) as object));
  const all = list("allOf");
  for (const some of [list("anyOf"), list("oneOf")]) {
    const [first = new Set<string>(), ...rest] = some;
    all.push(new Set([...first].filter((name) => rest.every((other) => other.has(name)))));
  }
  const reference = /^#\/(\$defs|definitions)\/([^/]+)$/.exec(String(schema["$ref"] ?? ""));
  if (reference) all.push(inside((root[reference[1]!] as JsonSchema | undefined)?.[reference[2]!]));
  all.forEach((names) => names.forEach((name) => found.add(name)));
  return found;
}

/** Returns the validator if it has a field for every input that requires validation, and throws otherwise. */
export function covering(validator: unknown, required: readonly string[]): StandardSchema | false | undefined {
  if (validator === false) return false;
  if (validator !== undefined && !isSchema(validator)) {
    throw invalid("options: validator: expected a Standard Schema or false");
  }
  const found = validator === undefined ? new Set<string>() : fields(validator);
  const missing = required.filter((name) => !found.has(name));
  if (missing.length === 0) return validator;
  const names = missing.map((name) => `\`${name}\``).join(", ");
  const reason =
    validator === undefined
      ? "no validator for"
      : found.size === 0
        ? "the validator does not list its fields, which must include"
        : "the validator has no field for";
  throw new TympanError({
    code: "validation_uncovered",
    class: "ValueError",
    message: `Missing validation: ${reason} ${names}`,
    help: "pass { validator: schema } with these fields; or { validator: false } if they are validated elsewhere",
  });
}
