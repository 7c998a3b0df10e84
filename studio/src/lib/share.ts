// Reuses what did not change between two results, so that the page updates only the messages that did.

import type { Message, Part, Rendered, Segment } from "./types";

export function share(before: Rendered | null, now: Rendered): Rendered {
  if (before === null) return now;
  const messages = now.messages.map((message, index) => {
    const known = before.messages[index];
    return known !== undefined && isSame(known, message) ? known : message;
  });
  return { ...now, messages };
}

function isSame(one: Message, other: Message): boolean {
  return (
    one.role === other.role &&
    one.source === other.source &&
    one.parts.length === other.parts.length &&
    one.parts.every((part, index) => isSamePart(part, other.parts[index]!)) &&
    JSON.stringify(one.attributes) === JSON.stringify(other.attributes)
  );
}

function isSamePart(one: Part, other: Part): boolean {
  if (one.kind !== other.kind || one.text !== other.text) return false;
  if (one.kind !== "text") return JSON.stringify(one) === JSON.stringify(other);
  const [these, those] = [one.segments ?? [], other.segments ?? []];
  return these.length === those.length && these.every((segment, index) => isSameSegment(segment, those[index]!));
}

function isSameSegment(one: Segment, other: Segment): boolean {
  return (
    one.start === other.start &&
    one.end === other.end &&
    one.trusted === other.trusted &&
    (one.guard ?? false) === (other.guard ?? false) &&
    one.inputs.length === other.inputs.length &&
    one.inputs.every((name, index) => name === other.inputs[index])
  );
}
