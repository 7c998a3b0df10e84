// What the types guarantee, checked by a strict compiler. Nothing here runs.

import { describe, it } from "node:test";

import { z } from "zod";

import {
  Composition,
  Confidential,
  Prompt,
  Run,
  Runtime,
  Stream,
  Tool,
  TurnRun,
  TympanError,
  bindTools,
  invoke,
  load,
  prepare,
  prepareAsync,
  render,
  stream,
  tool,
  turn,
  validateInputs,
  type AgentEvent,
  type Message,
  type Provider,
  type TurnOptions,
} from "tympan";
import type { PromptDefinition } from "tympan/definition";
import { loadCases, testPrompts, type CaseResult } from "tympan/testing";

const prompt: Prompt = load(new URL("file:///a.prompty"));
const text: string = render(prompt, { a: 1n, b: new Date(), c: new Map() }, { variant: "short" }).text;
const messages: Message[] = prepare(prompt, new Map([["a", 1]]));
const name: string | undefined = prompt.name;

// The inputs of a prompt with a validator are typed.
const person = z.object({ name: z.string(), age: z.coerce.number<string>().optional() });
const greet = Prompt.fromYaml("{name: a, role: user, body: Hi}", { validator: person });
const known: Prompt<{ name: string; age?: string | undefined }> = greet;
render(greet, { name: "Ada" });
greet.render({ name: "Ada", age: "7" }, { variant: "short" });
prepare(greet, { name: "Ada" });
await prepareAsync(greet, { name: "Ada" });
await invoke(greet, { name: "Ada" }, { model: "m" });
await turn(greet, { name: "Ada" }, { maxIterations: 2 });
new Composition().push(greet, { name: "Ada" }, { variant: "short" }).push(prompt);
validateInputs(greet, { name: "Ada" });
greet.derive({ body: "Hello" }).render({ name: "Ada" });
const anyPrompt: Prompt = greet;
// @ts-expect-error: a name is a string
render(greet, { name: 7 });
// @ts-expect-error: the name is required
render(greet, {});
// @ts-expect-error: also if there are no inputs at all
greet.render();
// @ts-expect-error: the validator's input is a string
prepare(greet, { name: "Ada", age: 7 });
// @ts-expect-error: there is no such input
await invoke(greet, { nome: "Ada" });
// @ts-expect-error: a name is a string
await turn(greet, { name: null });
// @ts-expect-error: a name is a string
new Composition().push(greet, { name: 1 });
// @ts-expect-error: also in a derived prompt
greet.derive({}).render({ name: 1 });
for (const made of [
  load("a.yaml", { validator: person }),
  new Runtime().loadStr("", { name: "a.yaml", validator: person }),
  await new Runtime().loadAsync("a.yaml", { validator: person }),
  Prompt.fromDefinition({ name: "a", role: "user", body: "Hi" }, { validator: person }),
]) {
  // @ts-expect-error: however the prompt was created
  made.render({ name: 1 });
}
render(load("a.yaml", { validator: false }), { whatever: 1 });
render(Prompt.fromToml("", { validator: z.object({ maybe: z.string().optional() }) }));
// @ts-expect-error: this is not a schema
Prompt.fromYaml("", { validator: "name" });

const definition: PromptDefinition = {
  name: "a",
  role: "user",
  body: "Hi",
  variables: { x: { type: ["string", "integer"], trusted: true } },
};
Prompt.fromDefinition(definition);
// @ts-expect-error: there is no such role
Prompt.fromDefinition({ name: "a", role: "tool", body: "Hi" });

const weather = tool(
  z.object({ city: z.string(), days: z.number().optional() }),
  ({ city, days }, { idempotencyKey }) => {
    const given: [string, number | undefined, string] = [city, days, idempotencyKey];
    // @ts-expect-error: the schema defines the fields
    city.days;
    return given;
  },
);

const result: TurnRun = await turn(
  prompt,
  {},
  {
    tools: bindTools(prompt, { weather, clock: () => "noon" }),
    maxIterations: 3,
    contextBudget: { tokens: 100 },
    run: { model: "m" },
    signal: new AbortController().signal,
    compact: async (messages) => `${messages.length}`,
    onEvent: (event: AgentEvent) => {
      if (event.type === "token") event.text.trim();
      // @ts-expect-error: not every event has a text
      event.text;
    },
    approve: async ({ name, reasons, origins, context }) => {
      for (const reason of reasons) if (reason.reason === "value") reason.parameter.trim();
      const quoted: string | undefined = origins[0]?.quote?.value;
      return (name === "weather" && context.untrustedSources.length === 0) || (quoted ?? "no");
    },
    toolPolicy: { mode: "strict", untrusted: { write: "deny" }, exceptions: [{ tool: "weather", decision: "allow" }] },
    toolFlows: { weather: { effect: "read", parameters: { city: { trustedOnly: true } } } },
    messages,
    labels: [[{ trusted: true, sources: [{ kind: "user" }] }]],
    judgeInput: (messages) => messages.length < 9 || "too long",
    judgeOutput: ({ content }) => content.length > 0,
    judgeTool: async ({ round }) => round < 3,
  },
);
const run: Run = result.run;
const carried: TurnOptions = { messages: result.messages, labels: result.labels };
const isPublic: boolean = result.label.trusted && !result.label.confidential;
tool(z.object({ to: z.string() }), ({ to }) => new Confidential(to), { effect: "external", destinations: ["to"] });
// @ts-expect-error: there is no such effect
new Tool(() => "", { effect: "extern" });
const cast: { n: number } = await result.cast(z.object({ n: z.number() }));
// @ts-expect-error: the schema defines the type
const miscast: string = await run.cast(z.object({ n: z.number() }));

const answer: Stream = stream(prompt, messages, { apiKey: "k" });
for await (const step of answer) if (step.type === "usage") step.usage.totalTokens.toFixed();

const runtime = new Runtime({ cassette: { replay: "tapes" }, load: { envVars: { A_B: "1" } }, http: { proxy: false } });
runtime.registerRenderer("x", (template, inputs) => template + Object.keys(inputs).length);
runtime.registerRenderer("x", async () => "");
// @ts-expect-error: a renderer returns text
runtime.registerRenderer("x", () => 1);
runtime.registerFilter("x", (value: string, { n = 1 } = {}) => value.repeat(n));
runtime.registerTest("x", (value: string) => value.length > 1);
runtime.registerFunction("x", () => ({ a: [1] }));
// @ts-expect-error: a test returns a boolean
runtime.registerTest("x", async () => true);
runtime.registerParser("x", (_, rendered) => [{ role: "user", content: rendered.text }]);
const provider: Provider = async function* ({ messages }) {
  yield `${messages.length}`;
  yield { type: "text", text: "." };
};
runtime.registerProvider("x", provider);
runtime.registerProvider("y", async ({ options }) => ({ text: options.model ?? "", usage: { inputTokens: 1 } }));
// @ts-expect-error: this is not an answer
runtime.registerProvider("z", () => ({ txet: "" }));
runtime.registerToolHandler("*", ({ name }) => [new Tool(() => "", { name: String(name) })]);
runtime.addTraceBackend("x", { otel: { endpoint: "http://localhost:4318", headers: { a: "b" } } });
runtime.addTraceBackend("y", (trace) => trace["runtime"]);
// @ts-expect-error: there is no such backend
runtime.addTraceBackend("z", { lathe: true });

// @ts-expect-error: the constructor is private
new Prompt();
// @ts-expect-error: there is no such option
new Runtime({ strickt: true });
// @ts-expect-error: there is no such role
stream(prompt, [{ role: "nobody", content: "" }]);

testPrompts("prompts");
testPrompts(["a.test.yaml", new URL("file:///b")], { only: /a/, record: true, allowMissing: true, runtime });
testPrompts("prompts", { describe, test: it, only: ({ name, line }) => name !== "" && line > 1 });
// @ts-expect-error: there is no such option
testPrompts("prompts", { recrod: true });
for (const one of loadCases("a.test.yaml", { live: true })) {
  const result: CaseResult = await one.run({ signal: new AbortController().signal });
  const failed: boolean = result.verdict === "failed" || result.attempts[0]?.usage?.totalTokens === 0;
  // @ts-expect-error: there is no such verdict
  failed && result.verdict === "pass";
}

function place(error: unknown): string {
  return error instanceof TympanError ? `${error.code} ${error.class} ${error.line ?? 0}:${error.column ?? 0}` : "";
}

export { anyPrompt, carried, cast, isPublic, known, miscast, name, place, run, text };
