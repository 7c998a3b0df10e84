import { camel } from "./options.cjs";
import { NATIVE } from "./prompt.cjs";
import type { Run } from "./results.cjs";
import type { Delta, Usage } from "./types.cjs";
import { decode } from "./values.cjs";

/** Begins to read an answer, whose steps are told as they arrive. */
type Begin = (onDelta: (text: string) => void) => Promise<Run>;

/**
 * An answer that is still arriving: an async iterator over its steps, once. `finish()` has the result. Leaving the loop
 * early stops the model.
 */
export class Stream implements AsyncIterable<Delta> {
  readonly #steps: Delta[] = [];
  readonly #run: Promise<Run>;
  readonly #stop: () => void;
  /** Goes on with whoever waits for a step. */
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
    // Who only reads the steps gets the error there; it must not end the process besides.
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

  /** The result, once all has arrived. Steps that nobody has asked for are skipped. */
  finish(): Promise<Run> {
    return this.#run;
  }

  /** Stops the model. Who waits for the result gets an error with the code `cancelled`. */
  close(): void {
    this.#stop();
  }
}
