import { invalid } from "./error.cjs";

// Values cross the border as JSON text. JSON.stringify leaves functions out, makes null of NaN and cannot write BigInts, so
// it writes only what was looked at before; everything else is written here. The table of conversions is in
// docs/guide/values.md.

/** The integers that the engine has. */
const MIN_INTEGER = -(2n ** 63n);
const MAX_INTEGER = 2n ** 64n - 1n;

/** How deep a value may be: as deep as the engine reads JSON. */
const MAX_DEPTH = 126;

/** Up to here JSON.stringify does the work. What is deeper may be endless. */
const PLAIN_DEPTH = 32;

/** Where a value stands, from the outside in. */
type Path = readonly (string | number)[];

function place(path: Path): string {
  const [first, ...rest] = path;
  const steps = rest.map((step) =>
    typeof step === "string" && /^[A-Za-z_$][\w$]*$/.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`,
  );
  return String(first) + steps.join("");
}

/** Whether JSON.stringify writes a value exactly as it is written here, but for texts with half of a surrogate pair. */
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

/** As Python writes an instant, so that all languages render the same: without a fraction where there is none. */
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
  /** What is being written, for cycles. */
  private readonly open = new Set<object>();
  private readonly path: (string | number)[];

  constructor(what: string) {
    this.path = [what];
  }

  private refused(reason: string, help?: string): Error {
    return invalid(`${place(this.path)}: ${reason}`, help);
  }

  /** A value as JSON; undefined where JSON.stringify would leave it out. */
  write(value: unknown): string | undefined {
    switch (typeof value) {
      case "string":
        return this.text(value);
      case "number":
        if (!Number.isFinite(value)) throw this.refused(`${value} is no number that JSON has`);
        return JSON.stringify(value);
      case "boolean":
        return String(value);
      case "bigint":
        // What the engine has no integer for is text, digit by digit.
        return value < MIN_INTEGER || value > MAX_INTEGER ? `"${value}"` : value.toString();
      case "undefined":
        return undefined;
      case "object":
        return value === null ? "null" : this.entered(value);
      default:
        throw this.refused(`a ${typeof value} is no value for a prompt`);
    }
  }

  private text(value: string): string {
    if (value.isWellFormed()) return JSON.stringify(value);
    throw this.refused("the text has half of a surrogate pair", "text.toWellFormed() replaces such halves");
  }

  private entered(value: object): string | undefined {
    if (this.open.has(value)) throw this.refused("the value contains itself");
    if (this.open.size > MAX_DEPTH) throw invalid(`${String(this.path[0])}: nested more than ${MAX_DEPTH} deep`);
    this.open.add(value);
    const written = this.object(value);
    this.open.delete(value);
    return written;
  }

  private object(value: object): string | undefined {
    if (Array.isArray(value)) return this.list(value);
    if (value instanceof Date) {
      if (Number.isNaN(value.getTime())) throw this.refused("the Date is not valid");
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
      if (typeof key !== "string") throw this.refused(`a Map with a key that is a ${typeof key}`);
      this.path.push(key);
      const value = this.write(item);
      if (value !== undefined) written.push(`${this.text(key)}:${value}`);
      this.path.pop();
    }
    return `{${written.join(",")}}`;
  }
}

/** A value as JSON text for the engine. */
export function encode(value: unknown, what: string): string {
  if (isPlain(value, 0)) {
    const written = JSON.stringify(value) ?? "null";
    // It writes half of a surrogate pair like this, and then there is somebody to be told where.
    if (!written.includes("\\ud")) return written;
  }
  return new Writer(what).write(value) ?? "null";
}

/** As `encode`, for what has to be a map. */
export function encodeMap(value: unknown, what: string): string {
  const written = encode(value ?? {}, what);
  if (written.charCodeAt(0) !== 0x7b) throw invalid(`${what}: expected an object or a Map`);
  return written;
}

/** A value from the engine's text. Integers that a number cannot hold are BigInts. */
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
