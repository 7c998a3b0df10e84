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

/** An error from the text that the engine made of it. */
export function fromText(text: string, options?: ErrorOptions): TympanError {
  return new TympanError(renamed(JSON.parse(text) as ErrorDetails), options);
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

/** Calls the engine and waits for what it comes to. */
export async function guardedAsync<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (thrown) {
    throw translated(thrown);
  }
}
