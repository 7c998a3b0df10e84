import type { Listener, Work } from "./native.cjs";
import { TympanError, fromText, translated } from "./error.cjs";
import type { Tool } from "./tool.cjs";
import type { AgentEvent, ApprovalRequest, TurnOptions } from "./types.cjs";
import { decode, encode } from "./values.cjs";

/** What is done for some work while it goes on. */
export interface Handlers {
  signal?: AbortSignal | undefined;
  /** Whether the work ends by itself when it is cancelled, and says what came of it. */
  endsItself?: boolean;
  tools?: ReadonlyMap<string, Tool>;
  onEvent?: TurnOptions["onEvent"];
  approve?: TurnOptions["approve"];
  onDelta?: (delta: string) => void;
}

function cancelled(signal: AbortSignal): TympanError {
  const details = { code: "cancelled", class: "RuntimeError", message: "Cancelled: by its signal" } as const;
  return new TympanError(details, { cause: signal.reason });
}

/** What an exception says, for a model. */
function words(thrown: unknown): string {
  return thrown instanceof Error ? thrown.message : String(thrown);
}

/** Begins some work and waits for what it comes to. */
export function perform(begin: (listener: Listener) => Work, handlers: Handlers): Promise<string> {
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
    private readonly resolve: (text: string) => void,
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

  private told(kind: string, question: number, text: string): void {
    // What was on its way when the work was stopped is nobody's business any more.
    if (this.isOver) return;
    switch (kind) {
      case "done":
        this.end();
        return this.resolve(text);
      case "failed": {
        const { signal } = this.handlers;
        return this.fail(fromText(text, signal?.aborted ? { cause: signal.reason } : undefined));
      }
      case "tool":
        return void this.run(question, text);
      case "approve":
        return void this.ask(question, text);
      default:
        return this.notify(kind, text);
    }
  }

  private notify(kind: string, text: string): void {
    try {
      if (kind === "event") this.handlers.onEvent?.(decode<AgentEvent>(text));
      else this.handlers.onDelta?.(text);
    } catch (thrown) {
      this.fail(thrown);
    }
  }

  /** Runs a tool. Its exception is told to the model. */
  private async run(question: number, text: string): Promise<void> {
    try {
      const { name, arguments: args, ...context } = decode<ToolRequest>(text);
      const run = this.handlers.tools!.get(name)!.run;
      const output = encode(await run(args, { ...context, signal: this.handlers.signal }), "result");
      this.work?.answer(question, true, output);
    } catch (thrown) {
      this.work?.answer(question, false, words(thrown));
    }
  }

  /** Asks a person. What goes wrong with that is the caller's to know. */
  private async ask(question: number, text: string): Promise<void> {
    try {
      const verdict = await this.handlers.approve!(decode<ApprovalRequest>(text));
      this.work?.answer(question, true, JSON.stringify(verdict ?? false));
    } catch (thrown) {
      this.fail(thrown);
    }
  }
}

interface ToolRequest {
  name: string;
  arguments: Record<string, unknown>;
  id: string;
  idempotencyKey: string;
}
