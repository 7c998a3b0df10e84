import { guarded } from "./error.cjs";
import { native, type NativeLoader } from "./native.cjs";
import { NATIVE, Prompt, nativePrompt, type Rendered, type Validation } from "./prompt.cjs";
import type { Accepted, StandardSchema } from "./schema.cjs";
import type { RenderOptions } from "./types.cjs";

/**
 * Prompts by name: those in memory, and those in the files of a folder. A folder may contain prompts in every format, in
 * subfolders too. A prompt's name is the one that it declares, or else the name of its file without the extension. Each
 * call looks for files that are new, changed or gone, and loads only those.
 */
export class PromptLoader {
  readonly #native: NativeLoader;
  /** The prompts in memory, with their validators. */
  readonly #own = new Map<string, Prompt<any>>();

  private constructor(folder: string | undefined) {
    this.#native = guarded(() => new native.NativeLoader(folder));
  }

  /** Creates a loader for prompts in memory. */
  static memory(prompts: Readonly<Record<string, Prompt<any>>> = {}): PromptLoader {
    const loader = new PromptLoader(undefined);
    for (const [name, prompt] of Object.entries(prompts)) loader.insert(name, prompt);
    return loader;
  }

  /** Creates a loader for the prompts in a folder. */
  static folder(path: string): PromptLoader {
    return new PromptLoader(path);
  }

  /** Adds a prompt, replacing any existing one of the same name. It takes precedence over the files of a folder. */
  insert(name: string, prompt: Prompt<any>): void {
    const known = nativePrompt(prompt);
    guarded(() => this.#native.insert(name, known));
    this.#own.set(name, prompt);
  }

  /** Returns the prompt with this name. The validator is for prompts from files; those in memory have their own. */
  load(name: string, options?: Partial<Validation<false>>): Prompt;
  load<Schema extends StandardSchema<any, any>>(name: string, options: Validation<Schema>): Prompt<Accepted<Schema>>;
  load(name: string, options: Partial<Validation> = {}): Prompt<any> {
    return this.#own.get(name) ?? Prompt[NATIVE](guarded(() => this.#native.load(name)), options.validator);
  }

  /** Returns the names of all prompts, sorted. Files that cannot be loaded are left out. */
  names(): string[] {
    return guarded(() => this.#native.names());
  }

  /** Returns the names of a prompt's variants: `default`, then the others in order. */
  variants(name: string): readonly string[] {
    return (this.#own.get(name) ?? Prompt[NATIVE](guarded(() => this.#native.load(name)), false)).variants;
  }

  /** Renders a variant of the prompt with this name. */
  render(name: string, inputs?: Readonly<Record<string, unknown>>, options?: RenderOptions): Rendered {
    return this.load(name).render(inputs ?? {}, options);
  }
}
