import { guarded } from "./error.cjs";
import { native, type NativeComposition } from "./native.cjs";
import { NATIVE, Rendered, givenInputs, nativePrompt, type Prompt } from "./prompt.cjs";
import { defaultRuntime, nativeRuntime, type Runtime } from "./runtime.cjs";
import type { Given, Message } from "./types.cjs";
import { decode } from "./values.cjs";

/** A sequence of prompts, each with its own inputs. Either all of them become messages, or none do. */
export class Composition {
  readonly #native: NativeComposition = new native.NativeComposition();

  /** Appends a prompt. */
  push<In>(prompt: Prompt<In>, ...[inputs, options]: Given<In, { variant?: string }>): this {
    const [known, given] = [nativePrompt(prompt), givenInputs(prompt, inputs)];
    guarded(() => this.#native.push(known, given, options?.variant));
    return this;
  }

  /** Renders every prompt. If there are several errors, the first one is thrown, with the rest in `others`. */
  render(runtime: Runtime = defaultRuntime()): Rendered[] {
    return guarded(() => this.#native.render(nativeRuntime(runtime)).map(Rendered[NATIVE]));
  }

  /** Renders every prompt and joins their messages. */
  messages(runtime: Runtime = defaultRuntime()): Message[] {
    return guarded(() => decode(this.#native.messages(nativeRuntime(runtime))));
  }
}
