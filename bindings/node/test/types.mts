// What the types promise, for a compiler that is strict. Nothing here runs.

import { z } from "zod";

import {
  Prompt,
  ResponseStream,
  Runtime,
  TympanError,
  bindTools,
  load,
  prepare,
  render,
  stream,
  tool,
  turn,
  type AgentEvent,
  type Message,
  type Run,
  type TurnRun,
} from "tympan";

const prompt: Prompt = load(new URL("file:///a.prompty"));
const text: string = render(prompt, { a: 1n, b: new Date(), c: new Map() }, { variant: "short" }).text;
const messages: Message[] = prepare(prompt, new Map([["a", 1]]));
const name: string | undefined = prompt.name;

const weather = tool(z.object({ city: z.string(), days: z.number().optional() }), ({ city, days }, { idempotencyKey }) => {
  const given: [string, number | undefined, string] = [city, days, idempotencyKey];
  // @ts-expect-error: the schema says what there is
  city.days;
  return given;
});

const result: TurnRun = await turn(prompt, {}, {
  tools: bindTools(prompt, { weather, clock: () => "noon" }),
  maxIterations: 3,
  contextBudget: { tokens: 100 },
  run: { model: "m" },
  signal: new AbortController().signal,
  onEvent: (event: AgentEvent) => {
    if (event.type === "token") event.text.trim();
    // @ts-expect-error: not every event has a text
    event.text;
  },
  approve: async ({ name }) => name === "weather" || "no",
});
const run: Run = result;

const answer: ResponseStream = stream(prompt, messages, { apiKey: "k" });
for await (const step of answer) if (step.type === "usage") step.usage.totalTokens.toFixed();

new Runtime({ cassette: { replay: "tapes" }, load: { envVars: { A_B: "1" } }, http: { proxy: false } });
// @ts-expect-error: prompts are loaded
new Prompt();
// @ts-expect-error: there is no such option
new Runtime({ strickt: true });
// @ts-expect-error: roles are known
stream(prompt, [{ role: "nobody", content: "" }]);

function place(error: unknown): string {
  return error instanceof TympanError ? `${error.code} ${error.class} ${error.line ?? 0}:${error.column ?? 0}` : "";
}

export { name, place, run, text };
