import { encode } from "./values.cjs";
import { invalid } from "./error.cjs";

/** Options whose keys are the caller's data and must not be renamed. */
const DATA = new Set(["envVars", "envDefaults", "variables", "headers", "arguments", "map"]);

/** Options whose keys are the caller's data, and whose values are options. */
const NAMED = new Set(["toolFlows", "parameters"]);

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** Converts keys to the engine's snake case, down to a depth. */
export function snakeCase(value: unknown, depth: number): unknown {
  if (Array.isArray(value)) return depth > 0 ? value.map((item) => snakeCase(item, depth)) : value;
  if (typeof value !== "object" || value === null || depth === 0) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [snake(key), snakeValue(key, inner, depth - 1)]),
  );
}

function snakeValue(key: string, value: unknown, depth: number): unknown {
  if (DATA.has(key)) return value;
  if (!NAMED.has(key) || typeof value !== "object" || value === null) return snakeCase(value, depth);
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, snakeCase(inner, depth - 1)]));
}

/** Serializes options for the engine. */
export function encodeOptions(options: unknown): string {
  if (options !== undefined && (typeof options !== "object" || options === null || Array.isArray(options))) {
    throw invalid("options: expected an object");
  }
  return encode(snakeCase(options, Infinity) ?? {}, "options");
}

/** Converts the keys of an engine's record to camel case. Nested keys are not converted. */
export function camel<T>(record: Record<string, unknown>): T {
  const renamed = Object.entries(record).map(([key, value]) => [
    key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    value,
  ]);
  return Object.fromEntries(renamed) as T;
}
