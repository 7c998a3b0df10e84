// Turns the segments of a text into runs that can be shown.

import type { Part, Rendered, Segment } from "./types";

export interface Run {
  /** The position in the list of all runs of the part. */
  index: number;
  start: number;
  text: string;
  /** How long the run is in full; `text` may be cut. */
  length: number;
  inputs: string[];
  trusted: boolean;
  guard: boolean;
}

export interface Runs {
  runs: Run[];
  /** How many UTF-16 code units are not in `runs`. */
  hidden: number;
}

/** At most this many elements are created for a text at first. */
const MAX_RUNS = 1500;

/** Splits a part into runs, up to `limit` code units. Text without a segment counts as the author's. */
export function runsOf(part: Part, limit: number): Runs {
  const text = part.text ?? "";
  const runs: Run[] = [];
  let at = 0;
  const push = (start: number, end: number, segment?: Segment) => {
    const shown = Math.min(end, limit);
    if (start > limit || runs.length >= MAX_RUNS + limit / 64) return false;
    runs.push({
      index: runs.length,
      start,
      text: safeSlice(text, start, shown),
      length: end - start,
      inputs: segment?.inputs ?? [],
      trusted: segment?.trusted ?? true,
      guard: segment?.guard ?? false,
    });
    at = shown;
    return shown === end;
  };
  let isWhole = true;
  let last = 0;
  for (const segment of part.segments ?? []) {
    if (segment.start > last && !push(last, segment.start)) { isWhole = false; break; }
    if (!push(segment.start, segment.end, segment)) { isWhole = false; break; }
    last = segment.end;
  }
  if (isWhole && last < text.length) push(last, text.length);
  return { runs, hidden: Math.max(0, text.length - at) };
}

/** Slices without cutting a character in half at the end. */
function safeSlice(text: string, start: number, end: number): string {
  const last = text.charCodeAt(end - 1);
  const isHalf = end < text.length && last >= 0xd800 && last <= 0xdbff;
  return text.slice(start, isHalf ? end - 1 : end);
}

/** How much of a rendered prompt each group of inputs wrote, in UTF-16 code units. The author is the empty key. */
export function writers(rendered: Rendered): { inputs: string[]; trusted: boolean; units: number }[] {
  const found = new Map<string, { inputs: string[]; trusted: boolean; units: number }>();
  for (const message of rendered.messages) {
    for (const part of message.parts) {
      for (const segment of part.segments ?? []) {
        const key = JSON.stringify(segment.inputs);
        const entry = found.get(key) ?? { inputs: segment.inputs, trusted: segment.trusted, units: 0 };
        entry.units += segment.end - segment.start;
        found.set(key, entry);
      }
    }
  }
  return [...found.values()].sort((one, other) => Number(one.inputs.length > 0) - Number(other.inputs.length > 0) || other.units - one.units);
}

export interface CachePrefix {
  /** The message and the part in which the first input is. */
  message: number;
  part: number;
  /** The offset of the first input in that part. */
  offset: number;
  /** How many code units come before, in all messages. */
  units: number;
  total: number;
  /** The input that ends the prefix. None if no input is used. */
  input: string | null;
}

/** Where the beginning ends that is the same for all inputs. Inputs that write nothing end it as well. */
export function cachePrefix(rendered: Rendered): CachePrefix {
  const total = sum(rendered.messages.flatMap((message) => message.parts.map((part) => part.text?.length ?? 0)));
  let units = 0;
  for (const [index, message] of rendered.messages.entries()) {
    for (const [at, part] of message.parts.entries()) {
      const segment = (part.segments ?? []).find((segment) => segment.inputs.length > 0);
      const whole = part.inputs?.[0];
      if (segment !== undefined || (part.kind !== "text" && whole !== undefined)) {
        const offset = segment?.start ?? 0;
        return { message: index, part: at, offset, units: units + offset, total, input: segment?.inputs[0] ?? whole ?? null };
      }
      units += part.text?.length ?? 0;
    }
  }
  return { message: rendered.messages.length, part: 0, offset: 0, units, total, input: null };
}

export const sum = (numbers: number[]) => numbers.reduce((total, number) => total + number, 0);
