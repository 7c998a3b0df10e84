import { encode } from "./values.cjs";
import { invalid } from "./error.cjs";

/** Options whose keys are data of the caller's, and are left alone. */
const DATA = new Set(["envVars", "envDefaults", "variables", "headers", "arguments"]);

function snake(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

/** The same data under the names that the engine has for them, so deep. */
export function snakeCase(value: unknown, depth: number): unknown {
  if (Array.isArray(value)) return depth > 0 ? value.map((item) => snakeCase(item, depth)) : value;
  if (typeof value !== "object" || value === null || depth === 0) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [snake(key), DATA.has(key) ? inner : snakeCase(inner, depth - 1)]),
  );
}

/** Options as JSON text for the engine. */
export function encodeOptions(options: unknown): string {
  if (options !== undefined && (typeof options !== "object" || options === null || Array.isArray(options))) {
    throw invalid("options: expected an object");
  }
  return encode(snakeCase(options, Infinity) ?? {}, "options");
}

/** A record of the engine's under the names that it has here. Only the keys of the record itself are renamed. */
export function camel<T>(record: Record<string, unknown>): T {
  const renamed = Object.entries(record).map(([key, value]) => [
    key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
    value,
  ]);
  return Object.fromEntries(renamed) as T;
}
