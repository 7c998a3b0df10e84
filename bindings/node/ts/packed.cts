import type { NativePrompt, NativeRuntime } from "./native.cjs";
import type { Message, Role } from "./types.cjs";
import { decode } from "./values.cjs";

// The quick way across the border, for what most prompts are given and give: plain data in, messages of text out. All strings
// cross as one, and beside it goes what they are strings of. The other side is in `../src/packed.rs`. Whatever is not plain
// goes as JSON, and so does what is wrong: that way has the words for it.

// What a number of the tape says; one that is not negative is the length of a string.
const NULL = -1;
const TRUE = -2;
const FALSE = -3;
const NUMBER = -4;
const LIST = -5;
const MAP = -6;

/** How deep values go this way. What contains itself is deeper. */
const MAX_DEPTH = 100;
/** The longest tape that is kept for the next time. */
const MAX_KEPT = 1 << 16;
/** What a string ends with that is no JSON. */
const PACKED = 1;
const ROLES: readonly Role[] = ["system", "developer", "user", "assistant", "tool"];

const hasOwn = Object.prototype.hasOwnProperty;

let tape = new Float64Array(1024);
let length = 0;
let texts = "";
/** The numbers of the keys that have been written: lists are of objects that are alike. */
const keys = new Map<string, number>();
/** A getter of the inputs may prepare another prompt. */
let busy = false;

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
  texts += value;
}

/** Whether the value is plain. */
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
  if (typeof value !== "object" || depth === MAX_DEPTH) return false;
  return Array.isArray(value) ? list(value, depth + 1) : map(value, depth + 1);
}

function list(items: unknown[], depth: number): boolean {
  put(LIST);
  put(items.length);
  for (let at = 0; at < items.length; at++) {
    const item = items[at];
    if (!write(item === undefined ? null : item, depth)) return false;
  }
  return true;
}

function map(value: object, depth: number): boolean {
  const prototype = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return false;
  if (typeof (value as { toJSON?: unknown }).toJSON === "function") return false;
  put(MAP);
  const place = length;
  put(0);
  let count = 0;
  for (const key in value) {
    if (!hasOwn.call(value, key)) continue;
    const item = (value as Record<string, unknown>)[key];
    if (item === undefined) continue;
    const known = keys.get(key);
    if (known === undefined) {
      keys.set(key, -1 - keys.size);
      text(key);
    } else {
      put(known);
    }
    if (!write(item, depth)) return false;
    count++;
  }
  tape[place] = count;
  return true;
}

/** A number in a string: four digits of seven bits. */
function number(packed: string, at: number): number {
  let number = 0;
  for (let digit = 0; digit < 4; digit++) number = number * 128 + packed.charCodeAt(at + digit);
  return number;
}

function unpack(packed: string): Message[] {
  if (packed.charCodeAt(packed.length - 1) !== PACKED) return decode(packed);
  const count = number(packed, packed.length - 5);
  const messages: Message[] = [];
  let place = packed.length - 5 - 5 * count;
  for (let at = 0; messages.length < count; place += 5) {
    const end = at + number(packed, place + 1);
    const role = ROLES[packed.charCodeAt(place)]!;
    messages.push({ role, content: [{ kind: "text", value: packed.slice(at, end) }] });
    at = end;
  }
  return messages;
}

/** Messages of a prompt; undefined if the inputs are not plain. */
export function preparePacked(runtime: NativeRuntime, prompt: NativePrompt, inputs: unknown): Message[] | undefined {
  if (busy) return undefined;
  busy = true;
  try {
    if (typeof inputs !== "object" || inputs === null || Array.isArray(inputs) || !map(inputs, 0)) return undefined;
    const packed = runtime.preparePacked(prompt, texts, tape, length);
    return packed === null ? undefined : unpack(packed);
  } finally {
    length = 0;
    texts = "";
    keys.clear();
    if (tape.length > MAX_KEPT) tape = new Float64Array(1024);
    busy = false;
  }
}
