// Generated from schemas/prompt-definition.schema.json by schemas/generate.sh. Do not edit.

/**
 * Who says the text in a conversation.
 */
export type PromptRole = "system" | "user" | "assistant";
/**
 * What a variable holds: one type, or a list of those that it may have.
 */
export type VariableTypes = VariableType | [ListedType, ...ListedType[]];
/**
 * A type, as JSON Schema names it.
 */
export type VariableType = "string" | "integer" | "number" | "boolean" | "array" | "object";
/**
 * A type in a list of types. With `null`, the variable may be null.
 */
export type ListedType = "string" | "integer" | "number" | "boolean" | "array" | "object" | "null";
/**
 * The tests of the prompt, for `tympan test`: a list of cases, or a map as in a test file. They do not affect the prompt or its hashes.
 */
export type PromptTests =
  | unknown[]
  | {
      [k: string]: unknown;
    };

/**
 * A prompt: its role, its template in one or more variants, and the variables that the template may use.
 */
export interface PromptDefinition {
  /**
   * The prompt's name, by which callers refer to it.
   */
  name: string;
  role: PromptRole;
  /**
   * The template of the default variant.
   */
  body: string;
  /**
   * The variables that templates may use, by name. All variants share them.
   */
  variables?: {
    [k: string]: PromptVariable;
  };
  /**
   * Other variants of the template, by name. The name `default` belongs to the body above.
   */
  variants?: {
    [k: string]: PromptVariant;
  };
  /**
   * A name of the caller's for what the model should answer with. Kept, and never resolved.
   */
  output_model?: string;
  /**
   * Whatever the author wants to keep with the prompt. Kept, and never interpreted.
   */
  metadata?: {
    [k: string]: unknown;
  };
  tests?: PromptTests;
}
/**
 * A variable that templates may use.
 */
export interface PromptVariable {
  type: VariableTypes;
  /**
   * Whether its text counts as the author's own.
   */
  trusted: boolean;
  /**
   * Whether callers must validate it before they render.
   */
  validation_required?: boolean;
  /**
   * What it is, for people.
   */
  description?: string;
}
/**
 * Another template for the same prompt.
 */
export interface PromptVariant {
  /**
   * The variant's template.
   */
  body: string;
  /**
   * Whatever the author wants to keep with the variant. Kept, and never interpreted.
   */
  metadata?: {
    [k: string]: unknown;
  };
}
