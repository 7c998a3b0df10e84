// Reads events from the answer of a request. EventSource cannot send a body, so this reads the stream itself.

export interface ServerEvent {
  event: string;
  data: string;
}

/** Splits a stream of text into events. Feed it pieces that end anywhere. */
export class EventParser {
  #rest = "";

  push(text: string): ServerEvent[] {
    this.#rest += text;
    const events: ServerEvent[] = [];
    for (;;) {
      const match = /\r\n\r\n|\n\n|\r\r/.exec(this.#rest);
      if (match === null) return events;
      const event = parseEvent(this.#rest.slice(0, match.index));
      this.#rest = this.#rest.slice(match.index + match[0].length);
      if (event !== null) events.push(event);
    }
  }
}

function parseEvent(block: string): ServerEvent | null {
  let event = "message";
  const data: string[] = [];
  for (const line of block.split(/\r\n|\n|\r/)) {
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "event") event = value;
    else if (field === "data") data.push(value);
  }
  return data.length > 0 ? { event, data: data.join("\n") } : null;
}

/** Calls `receive` for each event of an answer, until it ends or is aborted. */
export async function readEvents(response: Response, receive: (event: string, data: unknown) => void): Promise<void> {
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  if (reader === undefined) return;
  const parser = new EventParser();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    for (const { event, data } of parser.push(value)) receive(event, JSON.parse(data));
  }
}
