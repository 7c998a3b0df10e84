// A run of a prompt: what the server reports while the model answers.

import * as api from "../lib/api";

interface Source { kind: string; name?: string }
interface Label { trusted: boolean; confidential: boolean; sources?: Source[]; untrusted_sources?: Source[] }

export interface Origin { source: string; isTrusted: boolean; quote: string | null }
export interface Argument { name: string; value: unknown; origins: Origin[] }
export type Item =
  | { kind: "text"; text: string }
  | { kind: "thinking"; text: string }
  | { kind: "note"; text: string }
  | { kind: "call"; name: string; arguments: unknown; result: string | null; isError: boolean; isTrusted: boolean }
  | { kind: "approval"; id: number | string; name: string; effect: string | null; arguments: Argument[]; read: string[]; reasons: string[]; state: "open" | "approved" | "denied" };

type Status = "idle" | "running" | "done" | "stopped" | "failed";
interface Usage { input_tokens?: number; output_tokens?: number }

const textOf = (value: unknown): string => (typeof value === "string" ? value : value == null ? "" : JSON.stringify(value, null, 2));

export class Run {
  status = $state<Status>("idle");
  items = $state.raw<Item[]>([]);
  usage = $state.raw<Usage | null>(null);
  cost = $state<number | null>(null);
  timeMs = $state<number | null>(null);
  finishReason = $state<string | null>(null);
  result = $state.raw<unknown>(null);
  failure = $state.raw<{ message: string; help: string | null } | null>(null);
  /** The paths of cassettes that were written. */
  recorded = $state.raw<string[]>([]);
  #id: number | string | null = null;
  #abort: AbortController | null = null;
  #pending = "";
  #pendingKind: "text" | "thinking" = "text";
  #frame = 0;

  async start(request: api.RunRequest) {
    this.#abort?.abort();
    const abort = (this.#abort = new AbortController());
    this.#id = null;
    this.#pending = "";
    this.items = [];
    this.recorded = [];
    [this.usage, this.cost, this.timeMs, this.finishReason, this.result, this.failure] = [null, null, null, null, null, null];
    this.status = "running";
    try {
      await api.run(request, abort.signal, (event, data) => {
        if (!abort.signal.aborted && this.status === "running") this.#receive(event, data as Record<string, unknown>);
      });
      this.#flush();
      if (this.status === "running") this.#fail("The answer ended early.", "The server may have been stopped. Run the prompt again.");
    } catch (error) {
      if (abort.signal.aborted || this.status !== "running") return;
      this.#fail((error as Error).message, error instanceof api.ApiError ? error.help : null);
    }
  }

  async stop() {
    this.#flush();
    this.status = "stopped";
    // The server ends the run when the connection ends, too: asking first lets it end in order.
    const abort = this.#abort;
    if (this.#id !== null) await api.stop(this.#id).catch(() => null);
    abort?.abort();
  }

  async answer(id: number | string, isApproved: boolean) {
    if (this.#id === null) return;
    this.items = this.items.map((item) => (item.kind === "approval" && item.id === id ? { ...item, state: isApproved ? "approved" : "denied" } : item));
    try {
      await api.approve(this.#id, id, isApproved);
    } catch (error) {
      this.#fail((error as Error).message, error instanceof api.ApiError ? error.help : null);
    }
  }

  #fail(message: string, help: string | null) {
    this.status = "failed";
    this.failure = { message, help };
  }

  /** Adds the text that arrived since the last frame. */
  #flush() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    if (this.#pending === "") return;
    const last = this.items.at(-1);
    const [text, kind] = [this.#pending, this.#pendingKind];
    this.#pending = "";
    this.items = last?.kind === kind ? [...this.items.slice(0, -1), { kind, text: last.text + text }] : [...this.items, { kind, text }];
  }

  #add(kind: "text" | "thinking", text: string) {
    if (this.#pendingKind !== kind) this.#flush();
    this.#pendingKind = kind;
    this.#pending += text;
    if (this.#frame === 0) this.#frame = requestAnimationFrame(() => this.#flush());
  }

  #receive(event: string, data: Record<string, unknown>) {
    if (event === "delta" || event === "thinking") return this.#add(event === "delta" ? "text" : "thinking", textOf(data["text"]));
    this.#flush();
    switch (event) {
      case "start":
        this.#id = data["run"] as number | string;
        break;
      case "tool_call":
        this.items = [...this.items, { kind: "call", name: textOf(data["name"]), arguments: parsed(data["arguments"]), result: null, isError: false, isTrusted: false }];
        break;
      case "tool_result":
        this.#addResult(data);
        break;
      case "policy":
        if (data["decision"] === "deny") this.items = [...this.items, { kind: "note", text: `The policy denied ${textOf(data["name"])}: ${reasonsOf(data["reasons"]).join("; ")}` }];
        break;
      case "approval":
        this.items = [...this.items, approvalOf(data)];
        break;
      case "done":
        this.#finish(data);
        break;
      case "error": {
        const finding = (data["finding"] ?? data["error"] ?? data) as { message?: string; help?: string | null };
        this.#fail(finding.message ?? "The run failed.", finding.help ?? null);
        break;
      }
    }
  }

  #addResult(data: Record<string, unknown>) {
    const name = textOf(data["name"]);
    const parts = Array.isArray(data["parts"]) ? (data["parts"] as { value?: unknown; text?: unknown; kind?: string }[]) : null;
    const result = parts === null ? textOf(data["result"] ?? data["text"]) : parts.map((part) => textOf(part.value ?? part.text ?? part.kind)).join("\n");
    const isTrusted = (data["label"] as Label | null)?.trusted === true;
    const isError = data["error"] != null;
    const index = this.items.findIndex((item) => item.kind === "call" && item.result === null && item.name === name);
    if (index < 0) this.items = [...this.items, { kind: "call", name, arguments: null, result, isError, isTrusted }];
    else this.items = this.items.map((item, at) => (at === index && item.kind === "call" ? { ...item, result, isError, isTrusted } : item));
  }

  #finish(data: Record<string, unknown>) {
    this.status = "done";
    this.usage = (data["usage"] as Usage | null) ?? null;
    this.cost = typeof data["cost"] === "number" ? data["cost"] : null;
    this.timeMs = typeof data["time_ms"] === "number" ? data["time_ms"] : null;
    this.finishReason = data["finish_reason"] == null ? null : textOf(data["finish_reason"]);
    this.result = data["result"] ?? null;
    this.recorded = Array.isArray(data["recorded"]) ? data["recorded"].map(textOf) : [];
    if (typeof data["record_error"] === "string") this.items = [...this.items, { kind: "note", text: `The cassette was not saved: ${data["record_error"]}` }];
    const isShown = this.items.some((item) => item.kind === "text");
    if (!isShown && typeof data["text"] === "string" && data["text"] !== "") this.items = [...this.items, { kind: "text", text: data["text"] }];
  }
}

/** Reads arguments as the model wrote them. */
function parsed(value: unknown): unknown {
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}

function sourceOf(source: Source | null | undefined): string {
  switch (source?.kind) {
    case "author": return "from the prompt";
    case "user": return "from the user";
    case "input": return `from input ${source.name}`;
    case "tool": return `from tool ${source.name}`;
    case undefined: return "written by the model";
    default: return "of unknown origin";
  }
}

const reasonsOf = (reasons: unknown): string[] => (Array.isArray(reasons) ? reasons.map((reason) => textOf((reason as { message?: string }).message ?? reason)) : []);

function approvalOf(data: Record<string, unknown>): Item {
  const origins = Array.isArray(data["origins"]) ? (data["origins"] as { parameter: string; source?: Source | null; trusted: boolean; quote?: { before: string; value: string; after: string } | null }[]) : [];
  const values = (data["arguments"] ?? {}) as Record<string, unknown>;
  const context = data["context"] as Label | null | undefined;
  return {
    kind: "approval",
    id: data["id"] as number | string,
    name: textOf(data["name"]),
    effect: data["effect"] == null ? null : textOf(data["effect"]),
    arguments: Object.entries(values).map(([name, value]) => ({
      name,
      value,
      origins: origins.filter((it) => it.parameter === name).map((it) => ({ source: sourceOf(it.source), isTrusted: it.trusted, quote: it.quote ? `${it.quote.before}${it.quote.value}${it.quote.after}` : null })),
    })),
    read: [...new Set((context?.untrusted_sources ?? []).map(sourceOf))],
    reasons: reasonsOf(data["reasons"]),
    state: "open",
  };
}
