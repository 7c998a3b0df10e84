import { invalid } from "./error.cjs";

// Values cross the border as JSON text. JSON.stringify leaves functions out, makes null of NaN and cannot write BigInts, so
// the text is written here. The table of conversions is in docs/guide/typescript.md.

/** The integers that the engine has. */
const MIN_INTEGER = -(2n ** 63n);
const MAX_INTEGER = 2n ** 64n - 1n;

/** How deep a value may be: as deep as the engine reads JSON. */
const MAX_DEPTH = 126;

/** Where a value stands, from the outside in. */
type Path = readonly (string | number)[];

function place(path: Path): string {
  const [first, ...rest] = path;
  const steps = rest.map((step) =>
    typeof step === "string" && /^[A-Za-z_$][\w$]*$/.test(step) ? `.${step}` : `[${JSON.stringify(step)}]`,
  );
  return String(first) + steps.join("");
}

function text(value: string, path: Path): string {
  if (!value.isWellFormed()) {
    throw invalid(`${place(path)}: the text has half of a surrogate pair`, "text.toWellFormed() replaces such halves");
  }
  return JSON.stringify(value);
}

function integer(value: bigint, path: Path): string {
  if (value < MIN_INTEGER || value > MAX_INTEGER) {
    throw invalid(`${place(path)}: the BigInt does not fit into 64 bits`, "give it as a string");
  }
  return value.toString();
}

/** As Python writes an instant, so that all languages render the same: without a fraction where there is none. */
function instant(value: Date, path: Path): string {
  if (Number.isNaN(value.getTime())) throw invalid(`${place(path)}: the Date is not valid`);
  const [seconds, fraction] = value.toISOString().slice(0, -1).split(".");
  return JSON.stringify(`${seconds}${fraction === "000" ? "" : `.${fraction}000`}+00:00`);
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

  /** A value as JSON; undefined where JSON.stringify would leave it out. */
  write(value: unknown, path: Path): string | undefined {
    switch (typeof value) {
      case "string":
        return text(value, path);
      case "number":
        if (!Number.isFinite(value)) throw invalid(`${place(path)}: ${value} is no number that JSON has`);
        return JSON.stringify(value);
      case "boolean":
        return String(value);
      case "bigint":
        return integer(value, path);
      case "undefined":
        return undefined;
      case "object":
        return value === null ? "null" : this.entered(value, path);
      default:
        throw invalid(`${place(path)}: a ${typeof value} is no value for a prompt`);
    }
  }

  private entered(value: object, path: Path): string | undefined {
    if (this.open.has(value)) throw invalid(`${place(path)}: the value contains itself`);
    if (this.open.size > MAX_DEPTH) throw invalid(`${String(path[0])}: nested more than ${MAX_DEPTH} deep`);
    this.open.add(value);
    const written = this.object(value, path);
    this.open.delete(value);
    return written;
  }

  private object(value: object, path: Path): string | undefined {
    if (Array.isArray(value)) return this.list(value, path);
    if (value instanceof Date) return instant(value, path);
    if (value instanceof Uint8Array || value instanceof Uint8ClampedArray || value instanceof DataView) {
      return bytes(value);
    }
    if (value instanceof ArrayBuffer || value instanceof SharedArrayBuffer) return bytes(value);
    if (ArrayBuffer.isView(value)) return this.list(value as unknown as Iterable<unknown>, path);
    if (value instanceof Set) return this.list(value, path);
    if (value instanceof Map) return this.members(value, path);
    if (value instanceof String || value instanceof Number || value instanceof Boolean) {
      return this.write(value.valueOf(), path);
    }
    const toJSON = (value as { toJSON?: unknown }).toJSON;
    if (typeof toJSON === "function") return this.write(toJSON.call(value, String(path.at(-1))), path);
    return this.members(Object.entries(value), path);
  }

  private list(items: Iterable<unknown>, path: Path): string {
    const written: string[] = [];
    for (const item of items) written.push(this.write(item, [...path, written.length]) ?? "null");
    return `[${written.join(",")}]`;
  }

  private members(entries: Iterable<[unknown, unknown]>, path: Path): string {
    const written: string[] = [];
    for (const [key, item] of entries) {
      if (typeof key !== "string") throw invalid(`${place(path)}: a Map with a key that is a ${typeof key}`);
      const inside = [...path, key];
      const value = this.write(item, inside);
      if (value !== undefined) written.push(`${text(key, inside)}:${value}`);
    }
    return `{${written.join(",")}}`;
  }
}

/** A value as JSON text for the engine. */
export function encode(value: unknown, what: string): string {
  return new Writer().write(value, [what]) ?? "null";
}

/** As `encode`, for what has to be a map. */
export function encodeMap(value: unknown, what: string): string {
  const written = encode(value ?? {}, what);
  if (!written.startsWith("{")) throw invalid(`${what}: expected an object or a Map`);
  return written;
}

/** A value from the engine's text. Integers that a number cannot hold are BigInts. */
export function decode<T>(written: string): T {
  if (!written.startsWith("#")) return JSON.parse(written) as T;
  const holder = JSON.parse(written.slice(1)) as { places: (string | number)[][]; value: unknown };
  for (const path of holder.places) {
    const steps: (string | number)[] = ["value", ...path];
    const last = steps.pop()!;
    const inner = steps.reduce((at: any, step) => at[step], holder);
    inner[last] = BigInt(inner[last]);
  }
  return holder.value as T;
}
