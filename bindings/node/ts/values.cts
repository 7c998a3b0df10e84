import { invalid } from "./error.cjs";

// Values cross to the engine as JSON text. JSON.stringify omits functions, converts NaN to null and cannot write
// BigInts, so it is only used for values that were checked before. All other values are written here. The table of
// conversions is in docs/guide/values.md.

/** The range of the engine's integers. */
const MIN_INTEGER = -(2n ** 63n);
const MAX_INTEGER = 2n ** 64n - 1n;

/** The maximum nesting depth, which is the depth to which the engine parses JSON. */
const MAX_DEPTH = 126;

/** The maximum nesting depth for JSON.stringify. Deeper values may contain themselves. */
const PLAIN_DEPTH = 32;

/** The path of a value, from the outside in. */
type Path = readonly (string | number)[];

function place(path: Path): string {
  const [first, ...rest] = path;
  const steps = rest.map((step) =>
    typeof step === "string" && /^[A-Za-z_$][\w$]*$/.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`,
  );
  return String(first) + steps.join("");
}

/** Returns whether JSON.stringify writes a value exactly as this module does, except for lone surrogates. */
function isPlain(value: unknown, depth: number): boolean {
  switch (typeof value) {
    case "number":
      return Number.isFinite(value);
    case "string":
    case "boolean":
    case "undefined":
      return true;
    case "object":
      return value === null || (depth < PLAIN_DEPTH && isPlainObject(value, depth + 1));
    default:
      return false;
  }
}

function isPlainObject(value: object, depth: number): boolean {
  if ((value as { toJSON?: unknown }).toJSON !== undefined) return false;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) if (!isPlain(value[index], depth)) return false;
    return true;
  }
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return false;
  for (const key in value) if (!isPlain((value as Record<string, unknown>)[key], depth)) return false;
  return true;
}

/** Formats an instant as Python does, without a fraction if it is zero, so that all languages render the same text. */
function instant(value: Date): string {
  const [seconds, fraction] = value.toISOString().slice(0, -1).split(".");
  return `${seconds}${fraction === "000" ? "" : `.${fraction}000`}+00:00`;
}

function bytes(value: ArrayBufferView | ArrayBufferLike): string {
  const buffer = ArrayBuffer.isView(value)
    ? Buffer.from(value.buffer, value.byteOffset, value.byteLength)
    : Buffer.from(value);
  return JSON.stringify(buffer.toString("base64"));
}

class Writer {
  /** The containers that are being written, to detect cycles. */
  private readonly open = new Set<object>();
  private readonly path: (string | number)[];

  constructor(what: string) {
    this.path = [what];
  }

  private refused(reason: string, help?: string): Error {
    return invalid(`${place(this.path)}: ${reason}`, help);
  }

  /** Writes a value as JSON. Returns undefined if JSON.stringify would omit the value. */
  write(value: unknown): string | undefined {
    switch (typeof value) {
      case "string":
        return this.text(value);
      case "number":
        if (!Number.isFinite(value)) throw this.refused(`${value} is not supported: expected a finite number`);
        return JSON.stringify(value);
      case "boolean":
        return String(value);
      case "bigint":
        // Integers outside the engine's range are written as text, so that no digits are lost.
        return value < MIN_INTEGER || value > MAX_INTEGER ? `"${value}"` : value.toString();
      case "undefined":
        return undefined;
      case "object":
        return value === null ? "null" : this.entered(value);
      default:
        throw this.refused(`a ${typeof value} is not supported`);
    }
  }

  private text(value: string): string {
    if (value.isWellFormed()) return JSON.stringify(value);
    throw this.refused("the string contains a lone surrogate", "use text.toWellFormed() to replace it");
  }

  private entered(value: object): string | undefined {
    if (this.open.has(value)) throw this.refused("the value contains itself");
    if (this.open.size > MAX_DEPTH) throw invalid(`${String(this.path[0])}: nested more than ${MAX_DEPTH} levels deep`);
    this.open.add(value);
    const written = this.object(value);
    this.open.delete(value);
    return written;
  }

  private object(value: object): string | undefined {
    if (Array.isArray(value)) return this.list(value);
    if (value instanceof Date) {
      if (Number.isNaN(value.getTime())) throw this.refused("invalid Date");
      return JSON.stringify(instant(value));
    }
    if (value instanceof Uint8Array || value instanceof Uint8ClampedArray || value instanceof DataView) {
      return bytes(value);
    }
    if (value instanceof ArrayBuffer || value instanceof SharedArrayBuffer) return bytes(value);
    if (ArrayBuffer.isView(value)) return this.list(value as unknown as Iterable<unknown>);
    if (value instanceof Set) return this.list(value);
    if (value instanceof Map) return this.members(value);
    if (value instanceof String || value instanceof Number || value instanceof Boolean) {
      return this.write(value.valueOf());
    }
    const toJSON = (value as { toJSON?: unknown }).toJSON;
    if (typeof toJSON === "function") return this.write(toJSON.call(value, String(this.path.at(-1))));
    return this.members(Object.entries(value));
  }

  private list(items: Iterable<unknown>): string {
    const written: string[] = [];
    for (const item of items) {
      this.path.push(written.length);
      written.push(this.write(item) ?? "null");
      this.path.pop();
    }
    return `[${written.join(",")}]`;
  }

  private members(entries: Iterable<[unknown, unknown]>): string {
    const written: string[] = [];
    for (const [key, item] of entries) {
      if (typeof key !== "string") throw this.refused(`expected string keys in a Map, found a ${typeof key}`);
      this.path.push(key);
      const value = this.write(item);
      if (value !== undefined) written.push(`${this.text(key)}:${value}`);
      this.path.pop();
    }
    return `{${written.join(",")}}`;
  }
}

/** Serializes a value for the engine. */
export function encode(value: unknown, what: string): string {
  if (isPlain(value, 0)) {
    const written = JSON.stringify(value) ?? "null";
    // JSON.stringify escapes a lone surrogate like this. The slow path then reports its position.
    if (!written.includes("\\ud")) return written;
  }
  return new Writer(what).write(value) ?? "null";
}

/** Serializes a value that must be a map for the engine. */
export function encodeMap(value: unknown, what: string): string {
  const written = encode(value ?? {}, what);
  if (written.charCodeAt(0) !== 0x7b) throw invalid(`${what}: expected an object or a Map`);
  return written;
}

/** Parses a value from the engine. Integers that a number cannot represent become BigInts. */
export function decode<T>(written: string): T {
  if (written.charCodeAt(0) !== 0x23) return JSON.parse(written) as T;
  const holder = JSON.parse(written.slice(1)) as { places: (string | number)[][]; value: unknown };
  for (const path of holder.places) {
    const steps: (string | number)[] = ["value", ...path];
    const last = steps.pop()!;
    const inner = steps.reduce((at: any, step) => at[step], holder);
    inner[last] = BigInt(inner[last]);
  }
  return holder.value as T;
}
