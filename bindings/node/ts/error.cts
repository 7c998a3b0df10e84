import { randomUUID } from "node:crypto";

/** Something that a check found. */
export interface Finding {
  /** A short stable name. */
  code: string;
  severity: "warning" | "error";
  message: string;
  /** Where it is, both from 1, if it has a place. */
  line: number | null;
  column: number | null;
  /** What to do about it. */
  help: string | null;
  /** Text that would put it right if it stood there. */
  fix: string | null;
}

/** The family of an error, by the names of the Prompty specification. */
export type ErrorClass = "FileNotFoundError" | "ValueError" | "ConnectionError" | "RuntimeError" | "InvokerError";

/** What an error is made of. */
export interface ErrorDetails {
  code: string;
  class: ErrorClass;
  message: string;
  line?: number | null;
  column?: number | null;
  file?: string | null;
  help?: string | null | undefined;
  others?: Finding[];
  partialText?: string | null;
  conversation?: readonly import("./types.cjs").Message[] | null;
}

/** Whatever goes wrong in Tympan. No value of an input is ever in its text. */
export class TympanError extends Error {
  /** A short stable name, such as `missing_input`; the guide lists all of them. */
  readonly code: string;
  readonly class: ErrorClass;
  /** The file, line and column (both from 1), if it has a place. */
  readonly file: string | undefined;
  readonly line: number | undefined;
  readonly column: number | undefined;
  /** What to do about it. */
  readonly help: string | undefined;
  /** What was found together with it. */
  readonly others: readonly Finding[];
  /** What had arrived of an answer before this happened. */
  readonly partialText: string | undefined;
  /** The conversation of the turn that failed. */
  readonly conversation: readonly import("./types.cjs").Message[] | undefined;

  constructor(details: ErrorDetails, options?: ErrorOptions) {
    super(details.message, options);
    this.name = "TympanError";
    this.code = details.code;
    this.class = details.class;
    this.file = details.file ?? undefined;
    this.line = details.line ?? undefined;
    this.column = details.column ?? undefined;
    this.help = details.help ?? undefined;
    this.others = details.others ?? [];
    this.partialText = details.partialText ?? undefined;
    this.conversation = details.conversation ?? undefined;
  }
}

/** The error of a value that a caller gave. */
export function invalid(message: string, help?: string): TympanError {
  return new TympanError({ code: "invalid_input", class: "ValueError", message: `Invalid input: ${message}`, help });
}

/** The engine names options as they are called there; here they have other names. */
function renamed(details: ErrorDetails): ErrorDetails {
  if (!details.message.startsWith("Invalid input: options:")) return details;
  const message = details.message.replace(/`[a-z_]+`/g, (name) => name.replace(/_([a-z])/g, (_, c) => c.toUpperCase()));
  return { ...details, message };
}

/** Exceptions of functions that the engine has called, by the name that stands for each in the engine's errors. */
const raised = new Map<string, unknown>();

/** Nobody may ever ask for an exception again: a turn may have gone on without what failed. */
const MAX_RAISED = 100;

/** The name under which an exception goes through the engine. */
export function raise(thrown: unknown): string {
  const name = `exception ${randomUUID()}`;
  raised.set(name, thrown);
  for (const oldest of raised.keys()) {
    if (raised.size <= MAX_RAISED) break;
    raised.delete(oldest);
  }
  return name;
}

/** The exception whose name is in the words of the engine. */
function original(message: string): { thrown: unknown } | undefined {
  if (raised.size === 0) return undefined;
  const name = /exception [0-9a-f-]{36}/.exec(message)?.[0] ?? "";
  if (!raised.has(name)) return undefined;
  const thrown = raised.get(name);
  raised.delete(name);
  return { thrown };
}

/** An error from the text that the engine made of it; an exception that it stands for comes back as itself. */
export function fromText(text: string, options?: ErrorOptions): unknown {
  const details = JSON.parse(text) as ErrorDetails;
  const found = original(details.message);
  return found === undefined ? new TympanError(renamed(details), options) : found.thrown;
}

/** What the engine threw, as an error of this package. Anything else stays what it is. */
export function translated(thrown: unknown): unknown {
  if (!(thrown instanceof Error)) return thrown;
  const code = String((thrown as { code?: unknown }).code);
  if (code === "GenericFailure" && thrown.message.startsWith("{")) return fromText(thrown.message);
  // A value of the wrong type does not even get to the engine.
  return /^(InvalidArg|\w+Expected)$/.test(code) ? invalid(thrown.message) : thrown;
}

/** Calls the engine. */
export function guarded<T>(call: () => T): T {
  try {
    return call();
  } catch (thrown) {
    throw translated(thrown);
  }
}
