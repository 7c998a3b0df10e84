import { native, type NativePrompt, type NativeRendered } from "./native.cjs";
import { invalid, guarded, type Finding } from "./error.cjs";
import type { PromptDefinition } from "./definition.cjs";
import { covering, validated, validatedAsync, type Accepted, type StandardSchema } from "./schema.cjs";
import { decode, encodeMap } from "./values.cjs";
import type { Given, Inputs, Message, Property, RenderOptions, Role, Segment } from "./types.cjs";

/** What the engine has of something, and how something is made of that: for this package alone. */
export const NATIVE = Symbol("native");

interface Described {
  spec: Record<string, unknown> & {
    name?: string;
    description?: string;
    inputs?: Property[];
    outputs?: Property[];
    tools?: Record<string, unknown>[];
    metadata?: Record<string, unknown>;
  };
  role: Role | null;
  body: string;
  variants: string[];
  validationRequired: string[];
  outputModel: string | null;
  directive: Record<string, unknown> | null;
  warnings: Finding[];
}

/** What validates the inputs of a prompt before it is rendered. */
export interface Validation<Validator extends StandardSchema<any, any> | false = StandardSchema<any, any> | false> {
  /**
   * A schema of Zod 4, or any other that follows the Standard Schema. It has to have a field for every variable that says
   * `validation_required`. With `false`, something else validates them, or nothing is rendered.
   */
  validator: Validator;
}

/** A prompt. It never changes. With a validator, the compiler knows what it takes. */
export class Prompt<In = Inputs> {
  /** @internal */
  readonly [NATIVE]: NativePrompt;
  /** What validates its inputs; false if something else does, and undefined if nothing has to. */
  readonly validator: StandardSchema<In, unknown> | false | undefined;
  #described: Described | undefined;

  private constructor(native: NativePrompt, validator: unknown) {
    this[NATIVE] = native;
    this.validator = covering(validator, native.validationRequired()) as this["validator"];
  }

  /** @internal */
  static readonly [NATIVE] = (native: NativePrompt, validator: unknown): Prompt<any> => new Prompt(native, validator);

  /** A prompt from a definition in YAML. */
  static fromYaml(text: string, options?: Partial<Validation<false>>): Prompt;
  static fromYaml<Schema extends StandardSchema<any, any>>(
    text: string,
    options: Validation<Schema>,
  ): Prompt<Accepted<Schema>>;
  static fromYaml(text: string, options: Partial<Validation> = {}): Prompt<any> {
    return read(text, "yaml", options);
  }

  /** A prompt from a definition in JSON. */
  static fromJson(text: string, options?: Partial<Validation<false>>): Prompt;
  static fromJson<Schema extends StandardSchema<any, any>>(
    text: string,
    options: Validation<Schema>,
  ): Prompt<Accepted<Schema>>;
  static fromJson(text: string, options: Partial<Validation> = {}): Prompt<any> {
    return read(text, "json", options);
  }

  /** A prompt from a definition in TOML. */
  static fromToml(text: string, options?: Partial<Validation<false>>): Prompt;
  static fromToml<Schema extends StandardSchema<any, any>>(
    text: string,
    options: Validation<Schema>,
  ): Prompt<Accepted<Schema>>;
  static fromToml(text: string, options: Partial<Validation> = {}): Prompt<any> {
    return read(text, "toml", options);
  }

  /** A prompt from a definition as data. Its types are in `tympan/definition`. */
  static fromDefinition(definition: PromptDefinition, options?: Partial<Validation<false>>): Prompt;
  static fromDefinition<Schema extends StandardSchema<any, any>>(
    definition: PromptDefinition,
    options: Validation<Schema>,
  ): Prompt<Accepted<Schema>>;
  static fromDefinition(definition: PromptDefinition, options: Partial<Validation> = {}): Prompt<any> {
    return read(encodeMap(definition, "definition"), "data", options);
  }

  /**
   * A prompt that differs from this one by some fields of its definition. Maps keep the entries that are not named, and a
   * null removes one; without `merge`, each field that is named replaces what was there. The validator stays the same.
   */
  derive(fields: Readonly<Record<string, unknown>>, options: { merge?: boolean } = {}): Prompt<In> {
    const made = guarded(() => this[NATIVE].derive(encodeMap(fields, "fields"), options.merge ?? true));
    return new Prompt(made, this.validator);
  }

  get #about(): Described {
    return (this.#described ??= guarded(() => decode<Described>(this[NATIVE].describe())));
  }

  get name(): string | undefined {
    return this.#about.spec.name;
  }

  get description(): string | undefined {
    return this.#about.spec.description;
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
    return this.#about.spec.inputs ?? [];
  }

  /** What its result looks like. */
  get outputs(): readonly Property[] {
    return this.#about.spec.outputs ?? [];
  }

  /** The tools that it declares; what names a credential in them is hidden. */
  get tools(): readonly Readonly<Record<string, unknown>>[] {
    return this.#about.spec.tools ?? [];
  }

  get metadata(): Readonly<Record<string, unknown>> {
    return this.#about.spec.metadata ?? {};
  }

  /** The names of its variants, `default` first. */
  get variants(): readonly string[] {
    return this.#about.variants;
  }

  /** The inputs that callers have to validate before they render. */
  get validationRequired(): readonly string[] {
    return this.#about.validationRequired;
  }

  /** A name of the caller's for what the model should answer with. */
  get outputModel(): string | undefined {
    return this.#about.outputModel ?? undefined;
  }

  /** What is known of the directive that it was made from, if it was one. */
  get directive(): Readonly<Record<string, unknown>> | undefined {
    return this.#about.directive ?? undefined;
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

  /** What the author keeps with a variant. */
  variantMetadata(variant: string): Record<string, unknown> {
    return guarded(() => decode(this[NATIVE].variantMetadata(variant)));
  }

  /** Renders it, on the default runtime. */
  render(...given: Given<In, RenderOptions>): Rendered;
  render(inputs?: unknown, options?: RenderOptions): Rendered {
    return rendering(this, inputs, options);
  }

  /** Makes messages of a rendered text. */
  messages(rendered: Rendered): Message[] {
    return guarded(() => decode(this[NATIVE].messages(nativeRendered(rendered))));
  }

  /** What telemetry wants to know of a render. */
  provenanceAttributes(rendered: Rendered): Record<string, string> {
    return guarded(() => decode(this[NATIVE].provenanceAttributes(nativeRendered(rendered))));
  }

  /** The prompt as data, under the names of the Prompty specification. Credentials read `[REDACTED]`. */
  toJSON(): Record<string, unknown> {
    return this.#about.spec;
  }
}

function read(text: string, syntax: string, options: Partial<Validation>): Prompt<any> {
  return Prompt[NATIVE](
    guarded(() => native.NativePrompt.fromDefinition(text, syntax)),
    options.validator,
  );
}

/** How prompts render by themselves; the runtime, which comes later, says so. */
let rendering: (prompt: Prompt<any>, inputs: unknown, options: RenderOptions | undefined) => Rendered;

/** Says how prompts render by themselves. */
export function renderBy(render: typeof rendering): void {
  rendering = render;
}

/** Inputs for a prompt: what its validator makes of them. */
export function validInputs(prompt: Prompt<any>, inputs: unknown): unknown {
  const { validator } = prompt;
  return validator ? validated(validator, inputs) : (inputs ?? {});
}

/** The same for the engine. */
export function givenInputs(prompt: Prompt<any>, inputs: unknown): string {
  return encodeMap(validInputs(prompt, inputs), "inputs");
}

/** The same where the caller can wait. */
export async function givenInputsAsync(prompt: Prompt<any>, inputs: unknown): Promise<string> {
  const { validator } = prompt;
  return encodeMap(validator ? await validatedAsync(validator, inputs) : inputs, "inputs");
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
export function nativePrompt(prompt: Prompt<any>): NativePrompt {
  if (prompt instanceof Prompt) return prompt[NATIVE];
  throw invalid("expected a Prompt", "load() and Prompt.fromYaml() make prompts");
}

/** What the engine knows as this rendered prompt. */
export function nativeRendered(rendered: Rendered): NativeRendered {
  if (rendered instanceof Rendered) return rendered[NATIVE];
  throw invalid("expected a Rendered", "render() makes them");
}
