// Finds the message of the template that a rendered message was made from.

import type { InputReach, Message, Reach, ReachedMessage } from "./types";

/** The messages of one template, each with its position in the whole map. */
export function messagesOf(reach: Reach, variant: string | undefined): ReachedMessage[] {
  const own = reach.messages.filter((message) => message.template === (variant ?? "default"));
  return own.length > 0 ? own : reach.messages.filter((message) => message.template === "default");
}

function inputsOf(message: Message): Set<string> {
  const names = message.parts.flatMap((part) => [...(part.inputs ?? []), ...(part.segments ?? []).flatMap((it) => it.inputs)]);
  return new Set(names);
}

/**
 * Returns the messages of the template that can have written a rendered message. It is one if the engine says so, or if
 * the messages correspond one to one. With loops and conditions, there may be several.
 */
export function candidates(reach: Reach, variant: string | undefined, rendered: Message[], index: number): ReachedMessage[] {
  const message = rendered[index];
  if (message === undefined) return [];
  if (message.source != null) {
    const known = reach.messages[message.source];
    if (known !== undefined) return [known];
  }
  const written = messagesOf(reach, variant);
  const isSame = (one: ReachedMessage, other: Message) => one.thread === null && (one.role === null || one.role === other.role);
  if (written.length === rendered.length && written.every((one, at) => isSame(one, rendered[at]!))) {
    return [written[index]!];
  }
  const names = inputsOf(message);
  const threads = written.filter((one) => one.thread !== null && names.has(one.thread));
  if (threads.length > 0) return threads;
  const byRole = written.filter((one) => isSame(one, message));
  const byInput = byRole.filter((one) => [...names].every((name) => one.inputs.some((input) => input.input === name)));
  return byInput.length > 0 ? byInput : byRole;
}

/** How an input reaches these messages. */
export function reachesOf(messages: ReachedMessage[], input: string): { message: ReachedMessage; reach: InputReach }[] {
  return messages.flatMap((message) => message.inputs.filter((it) => it.input === input).map((reach) => ({ message, reach })));
}
