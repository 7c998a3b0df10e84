import { native, type NativePrompt, type NativeRendered } from "./native.cjs";
import { invalid, guarded, type Finding } from "./error.cjs";
import { decode, encodeMap } from "./values.cjs";
import type { Inputs, Property, RenderOptions, Role, Segment } from "./types.cjs";

/** What the engine has of something, and how something is made of that: for this package alone. */
export const NATIVE = Symbol("native");

interface Described {
  name?: string;
  description?: string;
  role: Role | null;
  body: string;
  inputs?: Property[];
  outputs?: Property[];
  tools?: Record<string, unknown>[];
  metadata?: Record<string, unknown>;
  variants: string[];
  validationRequired: string[];
  warnings: Finding[];
}

/** A prompt. It never changes. */
export class Prompt {
  /** @internal */
  readonly [NATIVE]: NativePrompt;
  #described: Described | undefined;

  private constructor(native: NativePrompt) {
    this[NATIVE] = native;
  }

  /** @internal */
  static readonly [NATIVE] = (native: NativePrompt): Prompt => new Prompt(native);

  /** A prompt from a definition in YAML. */
  static fromYaml(text: string): Prompt {
    return guarded(() => new Prompt(native.NativePrompt.fromDefinition(text, "yaml")));
  }

  /** A prompt from a definition in JSON. */
  static fromJson(text: string): Prompt {
    return guarded(() => new Prompt(native.NativePrompt.fromDefinition(text, "json")));
  }

  /** A prompt from a definition in TOML. */
  static fromToml(text: string): Prompt {
    return guarded(() => new Prompt(native.NativePrompt.fromDefinition(text, "toml")));
  }

  /**
   * A prompt that differs from this one by some fields of its definition. With `merge`, maps keep the entries that are
   * not named, and a null removes one.
   */
  derive(fields: Readonly<Record<string, unknown>>, options: { merge?: boolean } = {}): Prompt {
    return guarded(() => new Prompt(this[NATIVE].derive(encodeMap(fields, "fields"), options.merge ?? false)));
  }

  get #about(): Described {
    return (this.#described ??= guarded(() => decode<Described>(this[NATIVE].describe())));
  }

  get name(): string | undefined {
    return this.#about.name;
  }

  get description(): string | undefined {
    return this.#about.description;
  }

  /** The role of its one message, if the definition says it. */
  get role(): Role | undefined {
    return this.#about.role ?? undefined;
  }

  /** The template. */
  get body(): string {
    return this.#about.body;
  }

  /** What it takes. */
  get inputs(): readonly Property[] {
    return this.#about.inputs ?? [];
  }

  /** What its result looks like. */
  get outputs(): readonly Property[] {
    return this.#about.outputs ?? [];
  }

  /** The tools that it declares; what names a credential in them is hidden. */
  get tools(): readonly Readonly<Record<string, unknown>>[] {
    return this.#about.tools ?? [];
  }

  get metadata(): Readonly<Record<string, unknown>> {
    return this.#about.metadata ?? {};
  }

  /** The names of its variants, `default` first. */
  get variants(): readonly string[] {
    return this.#about.variants;
  }

  /** The inputs that callers have to validate before they render. */
  get validationRequired(): readonly string[] {
    return this.#about.validationRequired;
  }

  /** What was worth a warning when it was loaded. */
  get warnings(): readonly Finding[] {
    return this.#about.warnings;
  }

  /** The SHA-256 of the template's source. */
  get templateHash(): string {
    return this.variantHash();
  }

  /** The SHA-256 of the definition. */
  get definitionHash(): string {
    return guarded(() => this[NATIVE].definitionHash());
  }

  /** The SHA-256 of the source of a variant's template. */
  variantHash(variant?: string): string {
    return guarded(() => this[NATIVE].templateHash(variant));
  }

  /** The source of a variant's template. */
  getSource(variant?: string): string {
    return guarded(() => this[NATIVE].getSource(variant));
  }

  /** Looks for what works, but may not be what the author wants. */
  check(): Finding[] {
    return guarded(() => decode(this[NATIVE].check()));
  }

  /** Renders it, on the default runtime. */
  render(inputs: Inputs = {}, options: RenderOptions = {}): Rendered {
    return rendering(this, inputs, options);
  }
}

/** How prompts render by themselves; the runtime, which comes later, says so. */
let rendering: (prompt: Prompt, inputs: Inputs, options: RenderOptions) => Rendered;

/** Says how prompts render by themselves. */
export function renderBy(render: typeof rendering): void {
  rendering = render;
}

/** A rendered prompt: a text, and who wrote which part of it. */
export class Rendered {
  /** @internal */
  readonly [NATIVE]: NativeRendered;
  #text: string | undefined;

  private constructor(native: NativeRendered) {
    this[NATIVE] = native;
  }

  /** @internal */
  static readonly [NATIVE] = (native: NativeRendered): Rendered => new Rendered(native);

  /** The text; a picture, sound, document or conversation stands in it as a word of its own. */
  get text(): string {
    return (this.#text ??= this[NATIVE].text());
  }

  toString(): string {
    return this.text;
  }

  toJSON(): string {
    return this.text;
  }

  /** The text in parts that each know who wrote them. They join to the text. */
  get segments(): Segment[] {
    return guarded(() => decode(this[NATIVE].segments()));
  }

  /** The name of the prompt. */
  get name(): string | undefined {
    return this[NATIVE].name() ?? undefined;
  }

  /** The variant of the prompt. */
  get variant(): string {
    return this[NATIVE].variant();
  }

  /** The SHA-256 of the template's source. */
  get templateHash(): string {
    return this[NATIVE].templateHash();
  }

  /** The SHA-256 of the text. */
  get renderHash(): string {
    return this[NATIVE].renderHash();
  }

  /** What a model is to be told about `<untrusted>`, if the guard was on. */
  get advisory(): string | undefined {
    return this[NATIVE].advisory() ?? undefined;
  }
}

/** What the engine knows as this prompt. */
export function nativePrompt(prompt: Prompt): NativePrompt {
  if (prompt instanceof Prompt) return prompt[NATIVE];
  throw invalid("expected a Prompt", "load() and Prompt.fromYaml() make prompts");
}

/** What the engine knows as this rendered prompt. */
export function nativeRendered(rendered: Rendered): NativeRendered {
  if (rendered instanceof Rendered) return rendered[NATIVE];
  throw invalid("expected a Rendered", "render() makes them");
}
