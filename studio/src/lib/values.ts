// The values of the form: what the user typed, and the JSON that it stands for.

import type { InputInfo, Json, JsonMap } from "./types";

export type FieldKind = "text" | "integer" | "number" | "boolean" | "enum" | "json" | "thread" | "media";

export interface Field {
  /** Whether the input has a value. Without one, its default counts. */
  isSet: boolean;
  value: Json;
  /** What was typed, if it cannot be read as the kind yet. */
  draft: string | null;
  mistake: string | null;
  /** Whether the user changed it, so that a new example in the file does not replace it. */
  isTouched: boolean;
}

export type Fields = Record<string, Field>;

export function fieldKind(input: InputInfo): FieldKind {
  if (input.enum && input.enum.length > 0) return "enum";
  switch (input.kind) {
    case "string": return "text";
    case "integer": return "integer";
    case "float": case "number": return "number";
    case "boolean": return "boolean";
    case "thread": return "thread";
    case "image": case "audio": case "file": return "media";
    case "array": case "object": case "union": case "list": case "map": return "json";
    default: return "text";
  }
}

export const unset = (): Field => ({ isSet: false, value: null, draft: null, mistake: null, isTouched: false });

/** Creates the fields of a form, and keeps those that the user changed. Returns the previous ones if nothing changed. */
export function fieldsFor(inputs: InputInfo[], sample: JsonMap, previous: Fields): Fields {
  const fields: Fields = {};
  for (const input of inputs) fields[input.name] = fieldFor(sample[input.name], previous[input.name]);
  const names = Object.keys(fields);
  const isSame = names.length === Object.keys(previous).length && names.every((name) => fields[name] === previous[name]);
  return isSame ? previous : fields;
}

function fieldFor(example: Json | undefined, before: Field | undefined): Field {
  if (before?.isTouched) return before;
  const isSet = example !== undefined;
  if (before !== undefined && before.isSet === isSet && (!isSet || JSON.stringify(before.value) === JSON.stringify(example))) return before;
  return isSet ? { ...unset(), isSet, value: example } : unset();
}

/** A value that stands for an input, so that the shape of the messages can be seen. None for images and files. */
export function placeholderOf(input: InputInfo): Json | undefined {
  switch (fieldKind(input)) {
    case "enum": return input.enum?.[0] ?? null;
    case "integer": return 3;
    case "number": return 0.5;
    case "boolean": return true;
    case "thread": return [{ role: "user", content: "Hello" }];
    case "json": return input.kind === "object" || input.kind === "map" ? {} : [`[${input.name}]`];
    case "media": return undefined;
    default: return `[${input.name}]`;
  }
}

/** Replaces all values, for example by those of a case of a test. */
export function fieldsFrom(inputs: InputInfo[], values: JsonMap): Fields {
  const fields = fieldsFor(inputs, values, {});
  return Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, { ...field, isTouched: true }]));
}

/** The inputs as the engine takes them. */
export function inputsOf(fields: Fields): JsonMap {
  const inputs: JsonMap = {};
  for (const [name, field] of Object.entries(fields)) if (field.isSet) inputs[name] = field.value;
  return inputs;
}

/** Reads what was typed into a field. If it cannot be read yet, the field keeps its last value. */
export function typed(field: Field, kind: FieldKind, text: string): Field {
  const accept = (value: Json): Field => ({ isSet: true, value, draft: text, mistake: null, isTouched: true });
  const refuse = (mistake: string): Field => ({ ...field, draft: text, mistake, isTouched: true });
  switch (kind) {
    case "integer": case "number": {
      const isNumber = kind === "integer" ? /^\s*[+-]?\d+\s*$/ : /^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$/;
      const number = Number(text);
      if (!isNumber.test(text) || !Number.isFinite(number)) {
        return refuse(`Expected ${kind === "integer" ? "an integer such as 3" : "a number such as 0.5"}.`);
      }
      if (kind === "integer" && !Number.isSafeInteger(number)) return refuse("Expected an integer below 2^53.");
      return accept(number);
    }
    case "json": case "thread": case "media":
      try {
        return accept(JSON.parse(text) as Json);
      } catch (error) {
        return refuse(`Expected JSON: ${(error as Error).message}.`);
      }
    default:
      return { ...accept(text), draft: null };
  }
}

/** The text of a field. */
export function textOf(field: Field, kind: FieldKind): string {
  if (field.draft !== null) return field.draft;
  if (!field.isSet || field.value === null) return "";
  if (kind === "json") {
    const short = JSON.stringify(field.value);
    return short.length <= 64 ? short : JSON.stringify(field.value, null, 2);
  }
  return typeof field.value === "string" ? field.value : JSON.stringify(field.value);
}

export interface ThreadMessage {
  role: string;
  content: string;
  /** What the form does not show, such as tool calls. */
  rest: JsonMap;
  /** Whether the content is plain text that the form can edit. */
  isText: boolean;
}

export const THREAD_ROLES = ["user", "assistant", "system", "developer", "tool"];

/** Reads a thread. Returns null if it has a form that only the JSON editor can show. */
export function threadOf(value: Json): ThreadMessage[] | null {
  const list = Array.isArray(value) ? value : isMap(value) && Array.isArray(value["messages"]) ? value["messages"] : value === null ? [] : null;
  if (list === null) return null;
  const messages: ThreadMessage[] = [];
  for (const item of list) {
    if (!isMap(item) || typeof item["role"] !== "string") return null;
    const { role, content, ...rest } = item;
    const isText = typeof content === "string" || content === undefined;
    messages.push({ role: item["role"], content: typeof content === "string" ? content : "", rest: isText ? rest : { ...rest, content: content as Json }, isText });
    void role;
  }
  return messages;
}

export function threadToJson(messages: ThreadMessage[]): Json {
  return messages.map(({ role, content, rest, isText }) => (isText ? { role, content, ...rest } : { role, ...rest }));
}

export const isMap = (value: Json | undefined): value is JsonMap => typeof value === "object" && value !== null && !Array.isArray(value);

/** Returns a value in which a text replaces all texts. In a thread, only contents are texts: the roles are the host's. */
export function withText(value: Json, text: string, isThread: boolean): Json {
  if (Array.isArray(value) && value.length > 0) return value.map((item) => withText(item, text, isThread));
  if (isMap(value) && Object.keys(value).length > 0) {
    const entries = Object.entries(value).map(([key, item]): [string, Json] => {
      const isContent = ["content", "parts", "text", "value"].includes(key);
      return [key, !isThread || isContent ? withText(item, text, isThread) : item];
    });
    return Object.fromEntries(entries);
  }
  if (Array.isArray(value) || isMap(value)) return isThread ? [{ role: "user", content: text }] : value;
  return text;
}

/** A text of the same form as a forgery that cannot be a role marker. */
export function harmless(text: string): string {
  return text.replace(/[\p{Alphabetic}\p{N}]/gu, "x").replace(/[:：#[\]]/g, ".");
}
