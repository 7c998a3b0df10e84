// Converts the lines and columns of findings to offsets. Columns count characters, offsets count UTF-16 code units.

import type { Span } from "./types";

export interface Located {
  line?: number | null;
  column?: number | null;
  span?: Span | null;
  end?: { line: number; column: number } | null;
}

/** The offset of the first character of a line, counted from 1. */
function lineStart(text: string, line: number): number {
  let start = 0;
  for (let current = 1; current < line; current += 1) {
    const end = text.indexOf("\n", start);
    if (end < 0) return text.length;
    start = end + 1;
  }
  return start;
}

/** Converts a line and a column, both counted from 1, to an offset. */
export function offsetOf(text: string, line: number, column: number): number {
  let offset = lineStart(text, line);
  for (let current = 1; current < column && offset < text.length && text[offset] !== "\n"; current += 1) {
    offset += (text.codePointAt(offset) ?? 0) > 0xffff ? 2 : 1;
  }
  return offset;
}

/** Converts an offset to a line, counted from 1. */
export function lineOf(text: string, offset: number): number {
  let line = 1;
  for (let at = text.indexOf("\n"); at >= 0 && at < offset; at = text.indexOf("\n", at + 1)) line += 1;
  return line;
}

/** Returns the span of something that has a position. Without an end, it covers the rest of its tag or its word. */
export function spanOf(text: string, at: Located): Span | null {
  if (at.span) return clamp(at.span, text.length);
  if (at.line == null) return null;
  const start = offsetOf(text, at.line, at.column ?? 1);
  if (at.end) return clamp([start, offsetOf(text, at.end.line, at.end.column)], text.length);
  return [start, endOfPlace(text, start)];
}

function clamp([start, end]: Span, length: number): Span {
  const from = Math.max(0, Math.min(start, length));
  return [from, Math.max(from, Math.min(end, length))];
}

function endOfPlace(text: string, start: number): number {
  const lineEnd = text.indexOf("\n", start);
  const line = text.slice(start, lineEnd < 0 ? text.length : lineEnd);
  const close = /^\{\{.*?\}\}|^\{%.*?%\}|^.*?(?=\s*-?[%}]\})/.exec(line)?.[0].length;
  return start + (close || /^[\w.$-]*/.exec(line)?.[0].length || Math.min(1, line.length));
}
