import { camel } from "./options.cjs";
import { NATIVE } from "./prompt.cjs";
import type { Run } from "./results.cjs";
import type { Delta, Usage } from "./types.cjs";
import { decode } from "./values.cjs";

/** Starts to read an answer and reports its deltas as they arrive. */
type Begin = (onDelta: (text: string) => void) => Promise<Run>;

/**
 * A streamed answer: an async iterator over its deltas that can be used once. `finish()` returns the result. Leaving
 * the loop early stops the model.
 */
export class Stream implements AsyncIterable<Delta> {
  readonly #steps: Delta[] = [];
  readonly #run: Promise<Run>;
  readonly #stop: () => void;
  /** Resumes the consumer that waits for a delta. */
  #wake: () => void = () => {};
  #isOver = false;

  private constructor(begin: Begin, stop: () => void) {
    this.#stop = stop;
    this.#run = begin((text) => {
      const delta = decode<Delta>(text);
      this.#steps.push(delta.type === "usage" ? { type: "usage", usage: camel<Usage>({ ...delta.usage }) } : delta);
      this.#wake();
    });
    const over = () => {
      this.#isOver = true;
      this.#wake();
    };
    // A consumer that only iterates receives the error there. It must not also be an unhandled rejection.
    this.#run.then(over, over);
  }

  /** @internal */
  static readonly [NATIVE] = (begin: Begin, stop: () => void): Stream => new Stream(begin, stop);

  async *[Symbol.asyncIterator](): AsyncGenerator<Delta, void, void> {
    try {
      while (true) {
        const step = this.#steps.shift();
        if (step !== undefined) yield step;
        else if (this.#isOver) break;
        else await new Promise<void>((resolve) => (this.#wake = resolve));
      }
      await this.#run;
    } finally {
      this.#stop();
    }
  }

  /** Waits for the end of the answer and returns the result. Remaining deltas are skipped. */
  finish(): Promise<Run> {
    return this.#run;
  }

  /** Stops the model. `finish()` then fails with the code `cancelled`. */
  close(): void {
    this.#stop();
  }
}
