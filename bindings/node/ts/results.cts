import { TympanError, invalid } from "./error.cjs";
import { camel } from "./options.cjs";
import { NATIVE } from "./prompt.cjs";
import { complaint, isSchema, type StandardSchema, type Validated } from "./schema.cjs";
import type { Label, LabeledRange, Message, PartLabel, Usage } from "./types.cjs";
import { decode } from "./values.cjs";

type Kind = "text" | "structured" | "tool_calls" | "embedding" | "embeddings" | "image" | "images";

/** Returns the values to try a schema with: for text, first the JSON in it and then the text itself. */
function candidates(kind: Kind, result: unknown): unknown[] {
  if (kind !== "text") return [result];
  try {
    return [JSON.parse(result as string), result];
  } catch {
    return [result];
  }
}

/** The result of a model call. */
export class Run {
  /** The kind of result. */
  readonly kind!: Kind;
  /** The result: text, data as declared by the prompt's `outputs`, tool calls, embeddings or images. */
  readonly result: unknown;
  /** The mismatches between a structured result and the prompt's `outputs`. */
  readonly problems!: readonly string[];
  readonly usage!: Usage | null;
  /** The model that actually answered. */
  readonly model!: string | null;
  readonly id!: string | null;
  readonly finishReason!: string | null;

  private constructor(record: Record<string, unknown>) {
    const usage = record["usage"] as Record<string, unknown> | null;
    Object.assign(this, camel({ ...record, usage: usage && camel<Usage>(usage) }));
  }

  /** @internal */
  static readonly [NATIVE] = (record: Record<string, unknown>): Run => new Run(record);

  /**
   * Validates the result with a schema and returns what it produces. JSON in text is parsed. Throws `invalid_result` if
   * the result does not match.
   */
  async cast<Schema extends StandardSchema<any, any>>(schema: Schema): Promise<Validated<Schema>> {
    if (!isSchema(schema)) throw invalid("expected a Standard Schema");
    let refusal: string | undefined;
    for (const value of candidates(this.kind, this.result)) {
      const read = await schema["~standard"].validate(value);
      if (read.issues === undefined) return read.value as Validated<Schema>;
      refusal ??= complaint(read.issues);
    }
    throw new TympanError({
      code: "invalid_result",
      class: "ValueError",
      message: `Cannot decode the result: ${refusal}`,
      help: this.problems.length > 0 ? this.problems.join("; ") : "compare the schema with the `outputs` of the prompt",
    });
  }
}

/** The result of a turn. */
export class TurnRun {
  /** The last model call, with the token usage of that call alone. */
  readonly run: Run;
  /** The token usage of all model calls. */
  readonly usage: Usage;
  /** The number of model calls. */
  readonly rounds: number;
  /** The conversation, including the last answer. */
  readonly messages: Message[];
  /**
   * The labels of the messages, in the same order: a list for each message, with the label of each part. Empty if the
   * prompt has no tools. To continue the conversation in another turn, pass the messages and their labels to it.
   */
  readonly labels: PartLabel[][];
  /** The label of everything that the model had read, and so of its answer. */
  readonly label: Label;
  /** The number of records in the journal, if the turn was resumed. */
  readonly resumedRecords: number | null;

  private constructor(text: string) {
    const record = decode<Record<string, any>>(text);
    this.run = Run[NATIVE](record["run"]);
    this.usage = camel<Usage>(record["usage"]);
    this.rounds = record["rounds"];
    this.messages = record["messages"];
    this.labels = (record["labels"] as Record<string, unknown>[][]).map((message) => message.map(partLabel));
    this.label = camel<Label>(record["label"]);
    this.resumedRecords = record["resumed_records"];
  }

  /** @internal */
  static readonly [NATIVE] = (text: string): TurnRun => new TurnRun(text);

  /** The result of the last model call. */
  get result(): unknown {
    return this.run.result;
  }

  /** Validates the result with a schema and returns what it produces. See `Run.cast`. */
  cast<Schema extends StandardSchema<any, any>>(schema: Schema): Promise<Validated<Schema>> {
    return this.run.cast(schema);
  }
}

/** Converts the label of a part. */
function partLabel(record: Record<string, unknown>): PartLabel {
  const ranges = record["ranges"] as { range: LabeledRange["range"]; label: Record<string, unknown> }[];
  return camel({ ...record, ranges: ranges.map(({ range, label }) => ({ range, label: camel<Label>(label) })) });
}

/** Converts the engine's text to a run. */
export function readRun(text: string): Run {
  return Run[NATIVE](decode(text));
}
