import { TympanError, fromText, invalid, translated } from "./error.cjs";
import type { Listener, Told, Work } from "./native.cjs";
import { words, type ToolRequest } from "./registry.cjs";
import { camel } from "./options.cjs";
import { encodeOutput, type Tool } from "./tool.cjs";
import type { AgentEvent, Approval, Label, Message, ToolRun, TurnOptions } from "./types.cjs";
import { decode, encode } from "./values.cjs";

/** The callbacks of some work. */
export interface Handlers extends Asked {
  signal?: AbortSignal | undefined;
  /** Whether the work ends by itself when it is cancelled, and reports its outcome. */
  endsItself?: boolean;
  tools?: ReadonlyMap<string, Tool>;
  onEvent?: TurnOptions["onEvent"];
  onDelta?: (delta: string) => void;
}

/** The questions of a turn to its caller. */
export interface Asked {
  approve?: TurnOptions["approve"];
  judgeInput?: TurnOptions["judgeInput"];
  judgeOutput?: TurnOptions["judgeOutput"];
  judgeTool?: TurnOptions["judgeTool"];
  compact?: ((messages: Message[]) => string | Promise<string>) | undefined;
}

/** The outcome of work: a value as JSON, a prompt, or a rendered prompt. */
export type Done = readonly [text: string, prompt: Told[3], rendered: Told[4]];

function cancelled(signal: AbortSignal, conversation: readonly Message[] | null = null): TympanError {
  const details = {
    code: "cancelled",
    class: "RuntimeError",
    message: "Cancelled: the signal was aborted",
    conversation,
  } as const;
  return new TympanError(details, { cause: signal.reason });
}

/** Returns the error of failed work. After a cancellation, judges deny everything, but that is not the cause. */
function failure(text: string, signal: AbortSignal | undefined): unknown {
  if (!signal?.aborted) return fromText(text);
  const error = fromText(text, { cause: signal.reason });
  const isDenied = error instanceof TympanError && error.code === "guardrail" && error.message.endsWith(ABANDONED);
  return isDenied ? cancelled(signal, error.conversation) : error;
}

/** The engine's reason for denials after a turn was cancelled. */
const ABANDONED = "the turn was cancelled";

/** Starts some work and waits for its outcome. */
export function perform(begin: (listener: Listener) => Work, handlers: Handlers = {}): Promise<Done> {
  return new Promise((resolve, reject) => {
    if (handlers.signal?.aborted) return reject(cancelled(handlers.signal));
    new Performance(begin, handlers, resolve, reject);
  });
}

class Performance {
  private readonly work: Work | undefined;
  private isOver = false;

  constructor(
    begin: (listener: Listener) => Work,
    private readonly handlers: Handlers,
    private readonly resolve: (done: Done) => void,
    private readonly reject: (reason: unknown) => void,
  ) {
    try {
      this.work = begin((...told) => this.told(...told));
      handlers.signal?.addEventListener("abort", this.abort);
    } catch (thrown) {
      reject(translated(thrown));
    }
  }

  private readonly abort = (): void => {
    if (this.handlers.endsItself) this.work?.cancel();
    else this.fail(cancelled(this.handlers.signal!));
  };

  private end(): void {
    this.isOver = true;
    this.handlers.signal?.removeEventListener("abort", this.abort);
  }

  private fail(reason: unknown): void {
    this.end();
    this.work?.stop();
    this.reject(reason);
  }

  private told(kind: string, question: number, ...done: Done): void {
    // Ignore calls that were in transit when the work was stopped.
    if (this.isOver) return;
    switch (kind) {
      case "done":
        this.end();
        return this.resolve(done);
      case "failed":
        return this.fail(failure(done[0], this.handlers.signal));
      case "tool":
        return void this.run(question, done[0]);
      case "event":
      case "delta":
        return this.notify(kind, done[0]);
      default:
        return void this.ask(kind as keyof Asked, question, done[0]);
    }
  }

  private notify(kind: string, text: string): void {
    try {
      if (kind === "event") this.handlers.onEvent?.(withLabels(decode<AgentEvent>(text)));
      else this.handlers.onDelta?.(text);
    } catch (thrown) {
      this.fail(thrown);
    }
  }

  /** Runs a tool. Its exception is reported to the model. */
  private async run(question: number, text: string): Promise<void> {
    try {
      const { name, arguments: args, id, idempotencyKey } = decode<ToolRequest>(text);
      const { signal, tools } = this.handlers;
      const output = await tools!.get(name)!.call(args, { id, idempotencyKey, signal });
      this.work?.answer(question, true, encodeOutput(output));
    } catch (thrown) {
      this.work?.answer(question, false, words(thrown));
    }
  }

  /** Asks the caller. An exception fails the work, except in a summarizer: the turn then makes the summary itself. */
  private async ask(kind: keyof Asked, question: number, text: string): Promise<void> {
    try {
      const answer = await this.answer(kind, text);
      this.work?.answer(question, true, encode(answer, kind));
    } catch (thrown) {
      if (kind === "compact") this.work?.answer(question, false, words(thrown));
      else this.fail(thrown);
    }
  }

  private async answer(kind: keyof Asked, text: string): Promise<boolean | string> {
    const { handlers } = this;
    switch (kind) {
      case "compact":
        return summary(await handlers.compact!(decode<Message[]>(text)));
      case "approve":
        // A missing answer is not an approval.
        return verdict(kind, (await handlers.approve!(withLabels(camel<Approval>(decode(text))))) ?? false);
      case "judgeInput":
        return verdict(kind, (await handlers.judgeInput!(decode<Message[]>(text))) ?? true);
      case "judgeOutput":
        return verdict(kind, (await handlers.judgeOutput!(decode<Message>(text))) ?? true);
      case "judgeTool":
        return verdict(kind, (await handlers.judgeTool!(withLabels(decode<ToolRun>(text)))) ?? true);
    }
  }
}

/** Converts the labels in a record of the engine. */
function withLabels<T extends object>(record: T): T {
  const fields = record as { label?: Label; context?: Label };
  if (fields.label) fields.label = camel<Label>({ ...fields.label });
  if (fields.context) fields.context = camel<Label>({ ...fields.context });
  return record;
}

function verdict(kind: string, answer: unknown): boolean | string {
  if (typeof answer === "boolean" || typeof answer === "string") return answer;
  throw invalid(`${kind}: expected true, false, or a string with the reason`);
}

function summary(answer: unknown): string {
  if (typeof answer === "string") return answer;
  throw invalid("compact: expected a string");
}
