import { TympanError, invalid } from "./error.cjs";
import { camel } from "./options.cjs";
import { NATIVE } from "./prompt.cjs";
import { complaint, isSchema, type StandardSchema, type Validated } from "./schema.cjs";
import type { Message, Usage } from "./types.cjs";
import { decode } from "./values.cjs";

type Kind = "text" | "structured" | "tool_calls" | "embedding" | "embeddings" | "image" | "images";

/** What the values are that a schema may be given: what is JSON in a text, and then the text itself. */
function candidates(kind: Kind, result: unknown): unknown[] {
  if (kind !== "text") return [result];
  try {
    return [JSON.parse(result as string), result];
  } catch {
    return [result];
  }
}

/** What a call of a model came to. */
export class Run {
  /** What kind of result it is. */
  readonly kind!: Kind;
  /** The result: text, what the prompt's `outputs` declare, calls of tools, vectors or pictures. */
  readonly result: unknown;
  /** What is wrong with a structured result, by the prompt's `outputs`. */
  readonly problems!: readonly string[];
  readonly usage!: Usage | null;
  /** The model that really answered. */
  readonly model!: string | null;
  readonly id!: string | null;
  readonly finishReason!: string | null;

  private constructor(record: Record<string, unknown>) {
    const usage = record["usage"] as Record<string, unknown> | null;
    Object.assign(this, camel({ ...record, usage: usage && camel<Usage>(usage) }));
  }

  /** @internal */
  static readonly [NATIVE] = (record: Record<string, unknown>): Run => new Run(record);

  /** The result as what a schema makes of it. Text that is JSON is read. If it does not fit: `invalid_result`. */
  async cast<Schema extends StandardSchema<any, any>>(schema: Schema): Promise<Validated<Schema>> {
    if (!isSchema(schema)) throw invalid("expected a schema that follows the Standard Schema");
    let refusal: string | undefined;
    for (const value of candidates(this.kind, this.result)) {
      const read = await schema["~standard"].validate(value);
      if (read.issues === undefined) return read.value as Validated<Schema>;
      refusal ??= complaint(read.issues);
    }
    throw new TympanError({
      code: "invalid_result",
      class: "ValueError",
      message: `The result does not fit: ${refusal}`,
      help: this.problems.length > 0 ? this.problems.join("; ") : "compare the schema with the prompt's `outputs`",
    });
  }
}

/** What a turn came to. */
export class TurnRun {
  /** The last answer, with the tokens of that answer alone. */
  readonly run: Run;
  /** The tokens of all answers. */
  readonly usage: Usage;
  /** How many answers the model gave. */
  readonly rounds: number;
  /** The conversation, with the last answer. */
  readonly messages: Message[];
  /** How many records were in its journal, if it was resumed. */
  readonly resumedRecords: number | null;

  private constructor(text: string) {
    const record = decode<Record<string, any>>(text);
    this.run = Run[NATIVE](record["run"]);
    this.usage = camel<Usage>(record["usage"]);
    this.rounds = record["rounds"];
    this.messages = record["messages"];
    this.resumedRecords = record["resumed_records"];
  }

  /** @internal */
  static readonly [NATIVE] = (text: string): TurnRun => new TurnRun(text);

  /** The result of the last answer. */
  get result(): unknown {
    return this.run.result;
  }

  /** As `Run.cast`. */
  cast<Schema extends StandardSchema<any, any>>(schema: Schema): Promise<Validated<Schema>> {
    return this.run.cast(schema);
  }
}

/** What a run came to, from the engine's text. */
export function readRun(text: string): Run {
  return Run[NATIVE](decode(text));
}
