import type { NativePrompt, NativeRuntime } from "./native.cjs";
import type { Message, Role } from "./types.cjs";
import { decode } from "./values.cjs";

// The fast path between JavaScript and the engine for the common case: plain data in, text messages out. All strings
// cross as a single string, together with a description of its structure. The other side is in `../src/packed`. Inputs
// that are not plain data are sent as JSON. So are invalid inputs, because that path reports the errors.

// The codes of the tape. A number that is not negative is the length of a string.
const NULL = -1;
const TRUE = -2;
const FALSE = -3;
const NUMBER = -4;
const LIST = -5;
const MAP = -6;
/** A map with the same keys as the previous one at the same depth. */
const ALIKE = -7;
/** The value of a key that is undefined. */
const ABSENT = -8;

/** The maximum nesting depth on this path. It also catches values that contain themselves. */
const MAX_DEPTH = 100;
/** The minimum length of a long text. Long texts are stored separately, which avoids a copy. */
const LONG = 128;
/** The start of the tape. The numbers before it are the end of the tape, and the start and end of the short texts. */
const START = 3;
/** The size of the buffers that are kept. Larger ones are used only once. */
const KEPT = 1 << 15;
/** The last character of a packed string. JSON never ends with it. */
const PACKED = 1;
const ROLES: readonly Role[] = ["system", "developer", "user", "assistant", "tool"];

let tape = new Float64Array(KEPT);
let length = START;
/** All short texts, joined. */
let short = "";
/** All long texts. If a message contains one, it is not sent back. */
let longs: string[] = [];
/** The position for the next long text. */
let end = 0;
/** The highest position up to which texts were written and taken back. */
let used = 0;
/** The keys of the last map at each depth, because lists often contain objects with the same keys. */
const shapes: string[][] = [];
/** All long texts, followed by all short texts. The buffer is reused, because writing to new memory is slower. */
let units = new Uint16Array(KEPT);
let bytes = Buffer.from(units.buffer);
/** Whether the machine is little-endian, because texts are written in its native byte order. */
const isLittleEndian = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1;
/** Whether the buffers are in use: a getter of the inputs may prepare another prompt. */
let busy = !isLittleEndian;

function put(number: number): void {
  if (length === tape.length) {
    const longer = new Float64Array(2 * length);
    longer.set(tape);
    tape = longer;
  }
  tape[length++] = number;
}

function text(value: string): void {
  put(value.length);
  if (value.length < LONG) {
    short += value;
    return;
  }
  longs.push(value);
  place(value);
}

function place(value: string): void {
  if (end + value.length > units.length) makeRoom(2 * (end + value.length));
  bytes.write(value, 2 * end, "utf16le");
  end += value.length;
}

function makeRoom(length: number): void {
  const written = units.subarray(0, end);
  units = new Uint16Array(length);
  units.set(written);
  bytes = Buffer.from(units.buffer);
}

/** Packs a value. Returns whether it is plain data. */
function write(value: unknown, depth: number): boolean {
  if (typeof value === "string") {
    text(value);
    return true;
  }
  if (typeof value === "number") {
    if (!Number.isSafeInteger(value) && (Number.isInteger(value) || !Number.isFinite(value))) return false;
    put(NUMBER);
    put(value);
    return true;
  }
  if (value === true || value === false) {
    put(value ? TRUE : FALSE);
    return true;
  }
  if (value === null) {
    put(NULL);
    return true;
  }
  if (typeof value !== "object" || depth > MAX_DEPTH) return false;
  return Array.isArray(value) ? list(value, depth) : map(value, depth);
}

function list(items: unknown[], depth: number): boolean {
  put(LIST);
  put(items.length);
  for (let at = 0; at < items.length; at++) {
    const item = items[at];
    if (!write(item === undefined ? null : item, depth + 1)) return false;
  }
  return true;
}

function map(value: object, depth: number): boolean {
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return false;
  if (typeof (value as { toJSON?: unknown }).toJSON === "function") return false;
  const last = shapes[depth];
  if (last !== undefined) {
    const [tapeLength, shortTexts, longCount, longEnd] = [length, short, longs.length, end];
    put(ALIKE);
    const result = entries(value, last, depth);
    if (result !== OTHER_KEYS) return result === WRITTEN;
    // Take back what was written, including the keys of maps inside.
    used = Math.max(used, end);
    length = tapeLength;
    short = shortTexts;
    longs.length = longCount;
    end = longEnd;
    shapes.length = depth;
  }
  const names = Object.keys(value);
  shapes[depth] = names;
  put(MAP);
  put(names.length);
  for (let at = 0; at < names.length; at++) text(names[at]!);
  // The keys are other ones now if a getter has modified the object, or if its prototype has enumerable properties.
  return entries(value, names, depth) === WRITTEN;
}

const WRITTEN = 0;
const NOT_PLAIN = 1;
const OTHER_KEYS = 2;

/** Packs the values of a map that should have these keys. */
function entries(value: object, names: string[], depth: number): typeof WRITTEN | typeof NOT_PLAIN | typeof OTHER_KEYS {
  let at = 0;
  for (const name in value) {
    if (name !== names[at++]) return OTHER_KEYS;
    const item = (value as Record<string, unknown>)[name];
    if (item === undefined) put(ABSENT);
    else if (!write(item, depth + 1)) return NOT_PLAIN;
  }
  return at === names.length ? WRITTEN : OTHER_KEYS;
}

/** Reads a number from a string: four digits of seven bits. */
function number(packed: string, at: number): number {
  let number = 0;
  for (let digit = 0; digit < 4; digit++) number = number * 128 + packed.charCodeAt(at + digit);
  return number;
}

function unpack(packed: string): Message[] {
  if (packed.charCodeAt(packed.length - 1) !== PACKED) return decode(packed);
  const count = number(packed, packed.length - 5);
  const messages: Message[] = [];
  let at = 0;
  let place = packed.length - 9 - number(packed, packed.length - 9);
  while (messages.length < count) {
    const role = ROLES[packed.charCodeAt(place)]!;
    let value = "";
    let pieces = number(packed, place + 1);
    for (place += 5; pieces > 0; pieces--, place += 4) {
      const piece = number(packed, place);
      value += piece % 2 === 1 ? longs[(piece - 1) / 2]! : packed.slice(at, (at += piece / 2));
    }
    messages.push({ role, content: [{ kind: "text", value }] });
  }
  return messages;
}

/** Prepares a prompt with packed inputs. Returns undefined if the inputs are not plain data. */
export function preparePacked(runtime: NativeRuntime, prompt: NativePrompt, inputs: unknown): Message[] | undefined {
  if (busy) return undefined;
  busy = true;
  try {
    if (typeof inputs !== "object" || inputs === null || Array.isArray(inputs) || !map(inputs, 0)) return undefined;
    tape[0] = length;
    tape[1] = end;
    place(short);
    tape[2] = end;
    const packed = runtime.preparePacked(prompt, units, tape);
    return packed === null ? undefined : unpack(packed);
  } finally {
    // Do not keep users' texts in memory longer than necessary.
    units.fill(0, 0, Math.max(used, end));
    used = 0;
    length = START;
    short = "";
    if (longs.length > 0) longs = [];
    end = 0;
    shapes.length = 0;
    if (tape.length > KEPT) tape = new Float64Array(KEPT);
    if (units.length > KEPT) makeRoom(KEPT);
    busy = false;
  }
}
