import { native, type NativePrompt, type NativeRendered } from "./native.cjs";
import { invalid, guarded, type Finding } from "./error.cjs";
import type { PromptDefinition } from "./definition.cjs";
import { covering, validated, validatedAsync, type Accepted, type StandardSchema } from "./schema.cjs";
import { decode, encodeMap } from "./values.cjs";
import type { Given, Inputs, Message, Property, RenderOptions, Role, Segment, SegmentedMessage, TableOptions } from "./types.cjs";

/** The key of native objects and of functions that wrap them. Internal to this package. */
export const NATIVE = Symbol("native");

interface Described {
  spec: Record<string, unknown> & {
    name?: string;
    description?: string;
    tools?: Record<string, unknown>[];
    metadata?: Record<string, unknown>;
  };
  inputs: Property[];
  outputs: Property[];
  role: Role | null;
  body: string;
  variants: string[];
  validationRequired: string[];
  outputModel: string | null;
  directive: Record<string, unknown> | null;
  unresolvedEnv: string[];
  warnings: Finding[];
}

/** How the inputs of a prompt are validated before rendering. */
export interface Validation<Validator extends StandardSchema<any, any> | false = StandardSchema<any, any> | false> {
  /**
   * A schema of Zod 4 or any other library that implements Standard Schema. It must have a field for every variable
   * with `validation_required`. Pass `false` if inputs are validated elsewhere or nothing is rendered.
   */
  validator: Validator;
}

/** A prompt. It is immutable. If it has a validator, the type of its inputs is known. */
export class Prompt<In = Inputs> {
  /** @internal */
  readonly [NATIVE]: NativePrompt;
  /** The validator of the inputs. False if they are validated elsewhere, and undefined if none is required. */
  readonly validator: StandardSchema<In, unknown> | false | undefined;
  #described: Described | undefined;

  private constructor(native: NativePrompt, validator: unknown) {
    this[NATIVE] = native;
    this.validator = covering(validator, native.validationRequired()) as this["validator"];
  }

  /** @internal */
  static readonly [NATIVE] = (native: NativePrompt, validator: unknown): Prompt<any> => new Prompt(native, validator);

  /** Creates a prompt from a definition in YAML. */
  static fromYaml(text: string, options?: Partial<Validation<false>>): Prompt;
  static fromYaml<Schema extends StandardSchema<any, any>>(
    text: string,
    options: Validation<Schema>,
  ): Prompt<Accepted<Schema>>;
  static fromYaml(text: string, options: Partial<Validation> = {}): Prompt<any> {
    return read(text, "yaml", options);
  }

  /** Creates a prompt from a definition in JSON. */
  static fromJson(text: string, options?: Partial<Validation<false>>): Prompt;
  static fromJson<Schema extends StandardSchema<any, any>>(
    text: string,
    options: Validation<Schema>,
  ): Prompt<Accepted<Schema>>;
  static fromJson(text: string, options: Partial<Validation> = {}): Prompt<any> {
    return read(text, "json", options);
  }

  /** Creates a prompt from a definition in TOML. */
  static fromToml(text: string, options?: Partial<Validation<false>>): Prompt;
  static fromToml<Schema extends StandardSchema<any, any>>(
    text: string,
    options: Validation<Schema>,
  ): Prompt<Accepted<Schema>>;
  static fromToml(text: string, options: Partial<Validation> = {}): Prompt<any> {
    return read(text, "toml", options);
  }

  /** Creates a prompt from a definition as data. Its types are in `tympan/definition`. */
  static fromDefinition(definition: PromptDefinition, options?: Partial<Validation<false>>): Prompt;
  static fromDefinition<Schema extends StandardSchema<any, any>>(
    definition: PromptDefinition,
    options: Validation<Schema>,
  ): Prompt<Accepted<Schema>>;
  static fromDefinition(definition: PromptDefinition, options: Partial<Validation> = {}): Prompt<any> {
    return read(encodeMap(definition, "definition"), "data", options);
  }

  /**
   * Creates a prompt that differs from this one in some fields of its definition. Maps keep the entries that are not
   * named, and null removes an entry. Without `merge`, each named field is replaced. The validator stays the same.
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

  /** The role of the prompt's text, if the definition declares one. */
  get role(): Role | undefined {
    return this.#about.role ?? undefined;
  }

  /** The default template. */
  get body(): string {
    return this.#about.body;
  }

  /** The declared inputs, in order. */
  get inputs(): readonly Property[] {
    return this.#about.inputs;
  }

  /** The declared outputs, in order. */
  get outputs(): readonly Property[] {
    return this.#about.outputs;
  }

  /** The declared tools, as data. Credentials are replaced by `[REDACTED]`. */
  get tools(): readonly Readonly<Record<string, unknown>>[] {
    return this.#about.spec.tools ?? [];
  }

  get metadata(): Readonly<Record<string, unknown>> {
    return this.#about.spec.metadata ?? {};
  }

  /** The names of the templates: `default`, followed by the variants. */
  get variants(): readonly string[] {
    return this.#about.variants;
  }

  /** The names of the inputs that callers must validate before rendering. */
  get validationRequired(): readonly string[] {
    return this.#about.validationRequired;
  }

  /** The caller's name for the type of the model's answer. */
  get outputModel(): string | undefined {
    return this.#about.outputModel ?? undefined;
  }

  /** The metadata of the directive that the prompt was loaded from, if it is one. */
  get directive(): Readonly<Record<string, unknown>> | undefined {
    return this.#about.directive ?? undefined;
  }

  /** The warnings from loading the prompt. */
  get warnings(): readonly Finding[] {
    return this.#about.warnings;
  }

  /** The environment variables that were not set when the prompt was loaded with `deferEnv`. */
  get unresolvedEnv(): readonly string[] {
    return this.#about.unresolvedEnv;
  }

  /** The SHA-256 hash of the default template's source. */
  get templateHash(): string {
    return this.variantHash();
  }

  /** The SHA-256 hash of everything that determines what a model sees. */
  get definitionHash(): string {
    return guarded(() => this[NATIVE].definitionHash());
  }

  /** Returns the SHA-256 hash of a variant's template source. */
  variantHash(variant?: string): string {
    return guarded(() => this[NATIVE].templateHash(variant));
  }

  /** Returns the template of a variant. */
  getSource(variant?: string): string {
    return guarded(() => this[NATIVE].getSource(variant));
  }

  /** Renders the prompt for every row of a table. See `Runtime.mapArrow`. */
  mapArrow(table: Uint8Array, options?: TableOptions): Promise<Uint8Array> {
    return mapping(this, table, options);
  }

  /** Checks the prompt and returns warnings about what works but is probably not intended. */
  check(): Finding[] {
    return guarded(() => decode(this[NATIVE].check()));
  }

  /**
   * Checks the JSON Schemas of tools and outputs. Returns a warning for each schema with keywords that are not checked,
   * and for each that the provider cannot enforce although the prompt asks for it.
   */
  checkSchemas(): Finding[] {
    return guarded(() => decode(this[NATIVE].checkSchemas()));
  }

  /** Returns the custom metadata of a variant. */
  variantMetadata(variant: string): Record<string, unknown> {
    return guarded(() => decode(this[NATIVE].variantMetadata(variant)));
  }

  /** Renders the prompt with the default runtime. */
  render(...given: Given<In, RenderOptions>): Rendered;
  render(inputs?: unknown, options?: RenderOptions): Rendered {
    return rendering(this, inputs, options);
  }

  /** Splits a rendered text into messages. */
  messages(rendered: Rendered): Message[] {
    return guarded(() => decode(this[NATIVE].messages(nativeRendered(rendered))));
  }

  /** Splits a rendered prompt into messages, and says which inputs wrote which bytes of each text. */
  messagesWithSegments(rendered: Rendered): SegmentedMessage[] {
    return guarded(() => decode(this[NATIVE].messagesWithSegments(nativeRendered(rendered))));
  }

  /** Returns attributes for telemetry that identify the prompt and the rendered text. */
  provenanceAttributes(rendered: Rendered): Record<string, string> {
    return guarded(() => decode(this[NATIVE].provenanceAttributes(nativeRendered(rendered))));
  }

  /**
   * Returns the prompt as data, with the names of the Prompty specification. Credentials are replaced by `[REDACTED]`.
   */
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

/** Renders a prompt with the default runtime. Set by the runtime's module, which is loaded later. */
let rendering: (prompt: Prompt<any>, inputs: unknown, options: RenderOptions | undefined) => Rendered;

/** Sets the function that renders prompts with the default runtime. */
export function renderBy(render: typeof rendering): void {
  rendering = render;
}

/** Renders tables with the default runtime. Set like `rendering`. */
let mapping: (prompt: Prompt<any>, table: Uint8Array, options: TableOptions | undefined) => Promise<Uint8Array>;

/** Sets the function that renders tables with the default runtime. */
export function mapBy(map: typeof mapping): void {
  mapping = map;
}

/** Validates the inputs of a prompt and returns what the validator produces. */
export function validInputs(prompt: Prompt<any>, inputs: unknown): unknown {
  const { validator } = prompt;
  return validator ? validated(validator, inputs) : (inputs ?? {});
}

/** The names of inputs that were checked, by prompt. Each is reported at most once. */
const checkedNames = new WeakMap<Prompt<any>, Set<string>>();
/** The maximum number of names to remember for each prompt. Further names are not checked. */
const MAX_NAMES = 1000;

/** Emits warnings about inputs. */
export function warn(code: string, messages: readonly string[]): void {
  for (const message of messages) process.emitWarning(message, { type: "InputWarning", code });
}

/** Warns about inputs that the prompt does not have. */
export function warnAboutUnknown(prompt: Prompt<any>, inputs: unknown): void {
  if (typeof inputs !== "object" || inputs === null || "toJSON" in inputs) return;
  let checked = checkedNames.get(prompt);
  if (checked === undefined) checkedNames.set(prompt, (checked = new Set()));
  let fresh: string[] | undefined;
  for (const name in inputs) {
    if (checked.has(name)) continue;
    if (checked.size >= MAX_NAMES) break;
    checked.add(name);
    (fresh ??= []).push(name);
  }
  if (fresh !== undefined) warn("unknown_input", prompt[NATIVE].unknownInputs(fresh));
}

/** Validates the inputs of a prompt and serializes them for the engine. */
export function givenInputs(prompt: Prompt<any>, inputs: unknown): string {
  const valid = validInputs(prompt, inputs);
  const encoded = encodeMap(valid, "inputs");
  warnAboutUnknown(prompt, valid);
  return encoded;
}

/** Validates the inputs of a prompt, also with an async validator, and serializes them for the engine. */
export async function givenInputsAsync(prompt: Prompt<any>, inputs: unknown): Promise<string> {
  const { validator } = prompt;
  const valid = validator ? await validatedAsync(validator, inputs) : inputs;
  const encoded = encodeMap(valid, "inputs");
  warnAboutUnknown(prompt, valid);
  return encoded;
}

/** A rendered prompt: a text that knows the origin of each of its parts. */
export class Rendered {
  /** @internal */
  readonly [NATIVE]: NativeRendered;
  #text: string | undefined;

  private constructor(native: NativeRendered) {
    this[NATIVE] = native;
  }

  /** @internal */
  static readonly [NATIVE] = (native: NativeRendered): Rendered => new Rendered(native);

  /** The text. Images, audio, files and conversations are represented by placeholders. */
  get text(): string {
    return (this.#text ??= this[NATIVE].text());
  }

  toString(): string {
    return this.text;
  }

  toJSON(): string {
    return this.text;
  }

  /** The segments of the text, each with its origins. Joined, they are the text. */
  get segments(): Segment[] {
    return guarded(() => decode(this[NATIVE].segments()));
  }

  /** The name of the prompt. */
  get name(): string | undefined {
    return this[NATIVE].name() ?? undefined;
  }

  /** The variant that was rendered. */
  get variant(): string {
    return this[NATIVE].variant();
  }

  /** Whether the default variant was rendered. */
  get isDefault(): boolean {
    return this[NATIVE].isDefault();
  }

  /** The SHA-256 hash of the template's source. */
  get templateHash(): string {
    return this[NATIVE].templateHash();
  }

  /** The SHA-256 hash of the text. */
  get renderHash(): string {
    return this[NATIVE].renderHash();
  }

  /** The guard's advisory for the model, if the guard was on and the prompt has an untrusted input. */
  get advisory(): string | undefined {
    return this[NATIVE].advisory() ?? undefined;
  }
}

/** Returns the native object of a prompt. */
export function nativePrompt(prompt: Prompt<any>): NativePrompt {
  if (prompt instanceof Prompt) return prompt[NATIVE];
  throw invalid("expected a Prompt", "create one with load() or Prompt.fromYaml()");
}

/** Returns the native object of a rendered prompt. */
export function nativeRendered(rendered: Rendered): NativeRendered {
  if (rendered instanceof Rendered) return rendered[NATIVE];
  throw invalid("expected a Rendered", "pass the result of render()");
}
