import { randomUUID } from "node:crypto";
import { types } from "node:util";

/** A warning or an error in a prompt. */
export interface Finding {
  /** A short, stable name. */
  code: string;
  /** The code of the rule, such as `TY101`. */
  rule: string | null;
  severity: "warning" | "error";
  message: string;
  /** The position, both counted from 1, if there is one. */
  line: number | null;
  column: number | null;
  /** How to fix it. */
  help: string | null;
  /** The replacement text, if there is an obvious one. */
  fix: string | null;
}

/** A position in a file. Both are counted from 1, and columns count characters. */
export interface FilePosition {
  line: number;
  column: number;
}

/** A finding of `tympan check` in a file. */
export interface FileFinding {
  /** The name of the rule, such as `undeclared_variable`. */
  code: string;
  /** The code of the rule, such as `TY101`. */
  rule: string;
  severity: "warning" | "error";
  message: string;
  file: string;
  line: number | null;
  column: number | null;
  end: FilePosition | null;
  /** How to fix it. */
  help: string | null;
  /** The edits that fix it. A fix that is not safe needs a review. */
  fix: { safe: boolean; edits: (FilePosition & { end: FilePosition; text: string })[] } | null;
  /** Other places that explain the finding, such as the path of a value. */
  related: (FilePosition & { end: FilePosition; message: string })[];
}

/** The class of an error, with the names of the Prompty specification. */
export type ErrorClass = "FileNotFoundError" | "ValueError" | "ConnectionError" | "RuntimeError" | "InvokerError";

/** The data of an error. */
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

/** The class of all errors of Tympan. The message never contains the value of an input. */
export class TympanError extends Error {
  /** A short, stable name such as `missing_input`. The guide lists all of them. */
  readonly code: string;
  readonly class: ErrorClass;
  /** The file, line and column (both counted from 1), if there is a position. */
  readonly file: string | undefined;
  readonly line: number | undefined;
  readonly column: number | undefined;
  /** How to fix the error. */
  readonly help: string | undefined;
  /** Other findings that were reported together with this error. */
  readonly others: readonly Finding[];
  /** The part of the model's answer that had arrived. */
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

/** Creates the error for an invalid argument. */
export function invalid(message: string, help?: string): TympanError {
  return new TympanError({ code: "invalid_input", class: "ValueError", message: `Invalid input: ${message}`, help });
}

/** Converts the names of options in the engine's errors to the names used here. */
function renamed(details: ErrorDetails): ErrorDetails {
  if (!details.message.startsWith("Invalid input: options:")) return details;
  const message = details.message.replace(/`[a-z_]+`/g, (name) => name.replace(/_([a-z])/g, (_, c) => c.toUpperCase()));
  return { ...details, message };
}

/** Exceptions thrown by callbacks, by the placeholder that the engine's errors contain for each. */
const raised = new Map<string, unknown>();

/** The maximum number of saved exceptions. A turn may continue after a failure, so some are never retrieved. */
const MAX_RAISED = 100;

/** Saves an exception and returns its placeholder. */
export function raise(thrown: unknown): string {
  const name = `exception ${randomUUID()}`;
  raised.set(name, thrown);
  for (const oldest of raised.keys()) {
    if (raised.size <= MAX_RAISED) break;
    raised.delete(oldest);
  }
  return name;
}

/** Finds the exception whose name is in an engine's message. */
function original(message: string): { thrown: unknown } | undefined {
  if (raised.size === 0) return undefined;
  const name = /exception [0-9a-f-]{36}/.exec(message)?.[0] ?? "";
  if (!raised.has(name)) return undefined;
  const thrown = raised.get(name);
  raised.delete(name);
  return { thrown };
}

/** Converts the text of an engine's error to an error. If the text is a placeholder, returns the saved exception. */
export function fromText(text: string, options?: ErrorOptions): unknown {
  const details = JSON.parse(text) as ErrorDetails;
  const found = original(details.message);
  return found === undefined ? new TympanError(renamed(details), options) : found.thrown;
}

/** Converts an error of the engine to an error of this package. Anything else is returned unchanged. */
export function translated(thrown: unknown): unknown {
  // In Jest, the errors of addons are not instances of the `Error` that this module sees.
  if (!types.isNativeError(thrown)) return thrown;
  const code = String((thrown as { code?: unknown }).code);
  if (code === "GenericFailure" && thrown.message.startsWith("{")) return fromText(thrown.message);
  // The addon rejects a value of the wrong type before it reaches the engine.
  return /^(InvalidArg|\w+Expected)$/.test(code) ? invalid(thrown.message) : thrown;
}

/** Calls the engine and converts its errors. */
export function guarded<T>(call: () => T): T {
  try {
    return call();
  } catch (thrown) {
    throw translated(thrown);
  }
}
