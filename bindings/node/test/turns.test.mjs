// The operations that call models and tools.

import assert from "node:assert/strict";
import { AsyncLocalStorage } from "node:async_hooks";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { z } from "zod";

import {
  Runtime,
  Steering,
  TympanError,
  bindTools,
  invoke,
  invokeAgent,
  load,
  loadStr,
  prepare,
  resume,
  run,
  stream,
  tool,
  turn,
} from "tympan";

import { promptOf, root, said, scripted } from "./support.mjs";

const echo = join(root, "examples/echo.prompty");
const weather = {
  name: "weather",
  kind: "function",
  parameters: [{ name: "city", kind: "string", required: true }],
};
const callsWeather = [{ tool_calls: [{ name: "weather", arguments: { city: "Paris" } }] }, { text: "Done." }];

/** Returns the tool results that the model received. */
function told(result) {
  return result.messages.filter((message) => message.role === "tool").map((message) => said(message).text);
}

function deferred() {
  let resolve;
  const promise = new Promise((done) => (resolve = done));
  return { promise, resolve };
}

/** Starts a server that replaces a provider, and returns the options to call it. */
async function provider(answer) {
  const server = createServer(answer);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const baseUrl = `http://127.0.0.1:${server.address().port}/v1`;
  return { server, options: { provider: "openai", model: "m", baseUrl, apiKey: "k" } };
}

function temporary() {
  return mkdtempSync(join(tmpdir(), "tympan-node-"));
}

test("a model is called, by steps and at once", async () => {
  const inputs = { question: "What is a tympan?" };
  const prompt = load(echo);
  const called = await run(prompt, prepare(prompt, inputs));
  assert.deepEqual([called.kind, called.result, called.problems], ["text", inputs.question, []]);
  assert.ok(called.usage.totalTokens > 0);
  assert.equal((await invoke(prompt, inputs)).result, inputs.question);
  assert.equal((await invoke(echo, new Map(Object.entries(inputs)))).result, inputs.question);
  assert.equal((await run(prompt, [{ role: "user", content: "Hi" }])).result, "Hi");
});

test("what goes wrong rejects", async () => {
  await assert.rejects(invoke("missing.prompty"), { code: "file_not_found" });
  await assert.rejects(invoke(echo), { code: "missing_input" });
  await assert.rejects(invoke(echo, { question: Symbol("?") }), { code: "invalid_input" });
  await assert.rejects(run(load(echo), [{ role: "nobody", content: "" }]), { code: "invalid_thread" });
  await assert.rejects(invoke(echo, { question: "" }, { modle: "x" }), /`modle`.*`apiType`/);
  await assert.rejects(turn(echo, { question: "" }, { maxIteration: 1 }), /`maxIterations`/);
  await assert.rejects(turn(echo, {}, { steering: {} }), { code: "invalid_input" });
  await assert.rejects(turn(echo, {}, { tools: { weather: "no function" } }), { code: "invalid_input" });
});

test("a stream is an async iterator", async () => {
  const prompt = load(echo);
  const answer = stream(prompt, prepare(prompt, { question: "One two three" }));
  let text = "";
  for await (const step of answer) {
    if (step.type === "text") text += step.text;
    if (step.type === "usage") assert.ok(step.usage.totalTokens > 0);
  }
  assert.equal(text, "One two three");
  assert.equal((await answer.finish()).result, text);
});

test("a stream that fails throws in the loop, and in finish", async () => {
  const answer = stream(scripted([{ error: "no" }]), [{ role: "user", content: "x" }]);
  await assert.rejects(async () => {
    for await (const _ of answer);
  }, TympanError);
  await assert.rejects(answer.finish(), TympanError);
});

test("leaving the loop stops the model", async () => {
  const closed = deferred();
  const { options, server } = await provider((request, response) => {
    request.socket.on("close", closed.resolve);
    response.setHeader("content-type", "text/event-stream");
    response.write(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { content: "One" } }] })}\n\n`);
  });
  const answer = stream(load(echo), [{ role: "user", content: "?" }], options);
  for await (const step of answer) {
    assert.deepEqual(step, { type: "text", text: "One" });
    break;
  }
  await closed.promise;
  server.close();
  await assert.rejects(answer.finish(), { code: "cancelled" });
});

test("tools are functions, sync or async", async () => {
  const prompt = scripted(
    [
      {
        tool_calls: [
          { name: "weather", arguments: { city: "Paris" } },
          { name: "clock", arguments: {} },
        ],
      },
      { text: "Done." },
    ],
    { tools: [weather, { name: "clock", kind: "function" }] },
  );
  const keys = new Set();
  const result = await turn(
    prompt,
    {},
    {
      tools: {
        weather: ({ city }, context) => {
          keys.add(context.idempotencyKey);
          return `${city}: clear`;
        },
        clock: async (_, context) => {
          keys.add(context.idempotencyKey);
          return { hour: 12, big: 2n ** 60n };
        },
      },
    },
  );
  assert.deepEqual(told(result), ["Paris: clear", '{"hour":12,"big":1152921504606846976}']);
  assert.deepEqual([result.result, result.rounds, result.resumedRecords, keys.size], ["Done.", 2, null, 2]);
  assert.ok(result.usage.totalTokens >= result.run.usage.totalTokens);
});

test("the words of an exception reach the model", async () => {
  const prompt = scripted(callsWeather, { tools: [weather] });
  for (const fail of [
    () => {
      throw new Error("the sensor is wet");
    },
    () => Promise.reject("the sensor is wet"),
  ]) {
    const result = await turn(prompt, {}, { tools: { weather: fail } });
    assert.ok(told(result)[0].includes("the sensor is wet"), told(result)[0]);
  }
  const result = await turn(prompt, {}, { tools: { weather: () => Symbol("no value") } });
  assert.ok(told(result)[0].includes("result: a symbol"), told(result)[0]);
});

test("a schema validates arguments, and the prompt is held against it", async () => {
  const given = [];
  const made = tool(
    z.object({
      city: z
        .string()
        .min(3)
        .transform((city) => city.toUpperCase()),
    }),
    ({ city }) => {
      given.push(city);
      return city;
    },
  );
  const prompt = scripted(callsWeather, { tools: [weather] });
  assert.deepEqual(told(await turn(prompt, {}, { tools: bindTools(prompt, { weather: made }) })), ["PARIS"]);
  const short = scripted([{ tool_calls: [{ name: "weather", arguments: { city: "X" } }] }, { text: "Done." }], {
    tools: [weather],
  });
  const refusal = told(await turn(short, {}, { tools: { weather: made } }))[0];
  assert.match(refusal, /invalid arguments: city: /);
  assert.deepEqual(given, ["PARIS"]);
  const other = tool(z.object({ town: z.string() }), () => "");
  assert.throws(() => bindTools(prompt, { weather: other }), { code: "tool_mismatch" });
  await assert.rejects(turn(prompt, {}, { tools: { weather: other } }), { code: "tool_mismatch" });
  assert.throws(() => bindTools(prompt, { wether: () => "" }), { code: "tool_mismatch" });
});

test("any standard schema will do", async () => {
  const schema = {
    "~standard": {
      version: 1,
      vendor: "test",
      validate: async (value) => (value.city === "Paris" ? { value: { city: "P" } } : { issues: [{ message: "no" }] }),
    },
  };
  const prompt = scripted(callsWeather, { tools: [weather] });
  const result = await turn(prompt, {}, { tools: { weather: tool(schema, ({ city }) => city) } });
  assert.deepEqual(told(result), ["P"]);
});

test("events tell what happens, in order", async () => {
  const events = [];
  const prompt = scripted(callsWeather, { tools: [weather] });
  await turn(prompt, {}, { tools: { weather: () => "clear" }, onEvent: (event) => events.push(event) });
  const types = events.map((event) => event.type);
  assert.deepEqual(
    types.filter((type) => type.startsWith("tool_")),
    ["tool_call_start", "tool_result"],
  );
  assert.equal(types.at(-1), "done");
  assert.equal(
    events
      .filter((event) => event.type === "token")
      .map((event) => event.text)
      .join(""),
    "Done.",
  );
  const result = events.find((event) => event.type === "tool_result");
  assert.deepEqual([result.name, result.parts, result.error], ["weather", [{ kind: "text", value: "clear" }], null]);
});

test("what a listener throws comes back as itself", async () => {
  const own = new Error("mine");
  let calls = 0;
  const onEvent = () => {
    calls++;
    throw own;
  };
  await assert.rejects(turn(scripted([{ text: "One two three" }]), {}, { onEvent }), (error) => error === own);
  await turn(scripted([{ text: "x" }]));
  assert.equal(calls, 1);
});

test("a person is asked, and may refuse", async () => {
  const prompt = scripted(callsWeather, { tools: [weather] });
  const careful = { weather: tool(z.object({ city: z.string() }), () => "ran", { needsApproval: true }) };
  const asked = [];
  const approve = async (request) => asked.push(request) > 0;
  assert.deepEqual(told(await turn(prompt, {}, { tools: careful, approve })), ["ran"]);
  assert.deepEqual([asked[0].name, asked[0].arguments], ["weather", { city: "Paris" }]);
  const refused = told(await turn(prompt, {}, { tools: careful, approve: () => "not today" }))[0];
  assert.ok(refused.includes("not today"), refused);
  assert.ok(!told(await turn(prompt, {}, { tools: careful }))[0].includes("ran"));
  const own = new Error("mine");
  const failing = turn(prompt, {}, { tools: careful, approve: () => Promise.reject(own) });
  await assert.rejects(failing, (error) => error === own);
});

test("judges have a say in what goes in, what comes out and what runs", async () => {
  const prompt = scripted(callsWeather, { tools: [weather] });
  const tools = { weather: () => "clear" };
  const seen = {};
  const watching = {
    judgeInput: (messages) => void (seen.input = messages),
    judgeOutput: async (message) => ((seen.output = message), true),
    judgeTool: (run) => void (seen.tool = run),
  };
  const result = await turn(prompt, {}, { tools, ...watching });
  assert.deepEqual(told(result), ["clear"]);
  assert.deepEqual(
    seen.input.map((message) => message.role),
    ["user", "assistant", "tool"],
  );
  assert.deepEqual([seen.output.role, said(seen.output).text], ["assistant", "Done."]);
  assert.deepEqual(
    [seen.tool.name, seen.tool.arguments, seen.tool.round, seen.tool.index],
    ["weather", { city: "Paris" }, 1, 0],
  );
  for (const judge of ["judgeInput", "judgeOutput"]) {
    await assert.rejects(turn(prompt, {}, { tools, [judge]: async () => "not here" }), (error) => {
      assert.deepEqual([error.code, error.message.includes("not here")], ["guardrail", true]);
      return true;
    });
  }
  const denied = told(await turn(prompt, {}, { tools, judgeTool: () => "not today" }))[0];
  assert.ok(denied.includes("not today"), denied);
  assert.ok(!told(await turn(prompt, {}, { tools, judgeTool: () => false }))[0].includes("clear"));
});

test("what a judge throws comes back as itself, and one that never answers can be stopped", async () => {
  const prompt = scripted(callsWeather, { tools: [weather] });
  const own = new Error("mine");
  for (const judge of ["judgeInput", "judgeOutput", "judgeTool"]) {
    let runs = 0;
    const tools = { weather: () => ++runs };
    const throwing = turn(prompt, {}, { tools, [judge]: () => Promise.reject(own) });
    await assert.rejects(throwing, (error) => error === own);
    assert.equal(runs, judge === "judgeOutput" ? runs : 0);
    await assert.rejects(turn(prompt, {}, { tools, [judge]: () => 7 }), { code: "invalid_input" });
    const stopper = new AbortController();
    const hanging = () => {
      stopper.abort();
      return new Promise(() => {});
    };
    await assert.rejects(turn(prompt, {}, { tools, [judge]: hanging, signal: stopper.signal }), { code: "cancelled" });
  }
});

test("what no longer fits is said in short by whoever is asked", async () => {
  const long = "word ".repeat(200);
  const prompt = promptOf({ model: { id: "m", provider: "mine" }, tools: [weather] }, "user:\nGo.");
  const events = async (compact) => {
    let calls = 0;
    const runtime = new Runtime();
    runtime.registerProvider("mine", () =>
      ++calls > 4 ? "Done." : { toolCalls: [{ id: `${calls}`, name: "weather", arguments: { city: "Paris" } }] },
    );
    const types = [];
    const options = { tools: { weather: () => long }, contextBudget: 1500, compact };
    await runtime.turn(prompt, {}, { ...options, onEvent: (event) => types.push(event.type) });
    return types;
  };
  const dropped = [];
  const types = await events(async (messages) => {
    dropped.push(...messages);
    return "It was asked for the weather.";
  });
  assert.ok(types.includes("compaction_complete") && dropped.length > 0, types.join());
  assert.equal(typeof dropped[0].role, "string");
  const summary = loadStr(
    "---\nmodel: {id: m, provider: echo}\ninputs: [{name: conversation}]\n---\nuser:\n{{ conversation }}",
  );
  assert.ok((await events(summary)).includes("compaction_complete"));
  // If the summarizer fails, the turn makes the summary itself.
  const failing = () => {
    throw new Error("mine");
  };
  for (const compact of [failing, () => 7]) {
    const types = await events(compact);
    assert.ok(types.includes("compaction_failed") && types.includes("done"), types.join());
  }
  await assert.rejects(events("model"), { code: "invalid_input" });
});

test("tools return pictures", async () => {
  const prompt = scripted(callsWeather, { tools: [weather] });
  const png = Buffer.from("iVBORw0KGgo=", "base64");
  const returned = async (output) =>
    (await turn(prompt, {}, { tools: { weather: () => output } })).messages.find(({ role }) => role === "tool").content;
  const picture = { kind: "image", value: "iVBORw0KGgo=", mediaType: "image/png" };
  const text = (value) => ({ kind: "text", value });
  assert.deepEqual(await returned({ kind: "image", value: png, mediaType: "image/png" }), [picture]);
  assert.deepEqual(await returned([text("Look:"), picture]), [text("Look:"), picture]);
  // An object that only resembles a part is data.
  const data = { kind: "image", value: "x", size: 3 };
  assert.deepEqual(await returned(data), [text(JSON.stringify(data))]);
  assert.deepEqual(await returned([]), [text("[]")]);
  assert.deepEqual(await returned(undefined), [text("null")]);
});

test("a signal stops a turn whose tool never comes back", async () => {
  const prompt = scripted(callsWeather, { tools: [weather] });
  const stopper = new AbortController();
  const reason = new Error("enough");
  const hanging = () => {
    stopper.abort(reason);
    return new Promise(() => {});
  };
  const stopped = turn(prompt, {}, { tools: { weather: hanging }, signal: stopper.signal });
  await assert.rejects(stopped, (error) => {
    assert.deepEqual([error.code, error.cause], ["cancelled", reason]);
    assert.ok(error.conversation.length >= 1);
    return true;
  });
  const before = { signal: AbortSignal.abort(reason) };
  await assert.rejects(turn(prompt, {}, before), { code: "cancelled", cause: reason });
});

test("a signal stops a call of a model, and its connection", async () => {
  const closed = deferred();
  const stopper = new AbortController();
  const { options, server } = await provider((request) => {
    request.socket.on("close", closed.resolve);
    stopper.abort();
  });
  const stopped = invoke(echo, { question: "?" }, { ...options, signal: stopper.signal });
  await assert.rejects(stopped, { code: "cancelled" });
  await closed.promise;
  server.close();
});

test("cassettes replay what was recorded", async () => {
  const { options, server } = await provider((_, response) => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ id: "1", model: "m", choices: [{ message: { role: "assistant", content: "Hi" } }] }));
  });
  const directory = temporary();
  const inputs = { question: "?" };
  const recorded = await new Runtime({ cassette: { record: directory } }).invoke(echo, inputs, options);
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  const replayed = await new Runtime({ cassette: { replay: directory } }).invoke(echo, inputs, options);
  assert.deepEqual([recorded.result, replayed], ["Hi", recorded]);
});

test("a turn is kept in a journal, and comes to the same again", async () => {
  const prompt = scripted(callsWeather, { tools: [weather] });
  const journal = join(temporary(), "turn.journal");
  const first = await turn(prompt, {}, { journal, tools: { weather: () => "clear" } });
  const never = () => assert.fail("it ran before");
  const again = await resume(prompt, { journal, tools: { weather: never } });
  assert.ok(again.resumedRecords > 0);
  assert.deepEqual(again.messages, first.messages);
  await assert.rejects(turn(prompt, {}, { journal, tools: { weather: never } }), { code: "invalid_journal" });
});

test("a key that a tool repeats is in no journal", async () => {
  const key = "Horse/Battery+staple";
  const disguised = Buffer.from(key).toString("hex").replace(/../g, "%$&");
  const connection = { kind: "key", apiKey: key };
  const model = { provider: "echo", connection, options: { additionalProperties: { script: callsWeather } } };
  const prompt = promptOf({ model, tools: [weather] }, "user:\nHi");
  const journal = join(temporary(), "turn.journal");
  const tools = { weather: () => `${key} ${key.toUpperCase()} ${disguised}` };
  assert.deepEqual(told(await turn(prompt, {}, { journal, tools })), [`${key} ${key.toUpperCase()} ${disguised}`]);
  const kept = readFileSync(journal, "utf8");
  assert.match(kept, /\[REDACTED\] \[REDACTED\] \[REDACTED\]/);
  assert.doesNotMatch(kept, /battery|%48/i);
  assert.deepEqual(told(await resume(prompt, { journal, tools })), ["[REDACTED] [REDACTED] [REDACTED]"]);
});

test("only regular files are read", { skip: process.platform === "win32" }, async () => {
  const pipe = join(temporary(), "pipe");
  execFileSync("mkfifo", [pipe]);
  const prompt = scripted(callsWeather, { tools: [weather] });
  for (const path of [pipe, "/dev/zero"]) {
    assert.throws(() => load(path), /not a regular file/);
    const tools = { weather: () => "clear" };
    await assert.rejects(resume(prompt, { journal: path, tools }), /not a regular file/);
  }
});

test("a turn goes on where its process died", async () => {
  const prompt = scripted(callsWeather, { tools: [weather] });
  const journal = join(temporary(), "turn.sqlite");
  const own = new Error("the process dies here");
  const dying = (event) => {
    if (event.type === "tool_result") throw own;
  };
  let runs = 0;
  const tools = { weather: () => `clear ${++runs}` };
  await assert.rejects(turn(prompt, {}, { journal, tools, onEvent: dying }), (error) => error === own);
  const resumed = await retried(() => resume(prompt, { journal, tools }));
  assert.deepEqual([resumed.result, runs], ["Done.", 1]);
});

/** Retries, because the driver releases a journal some time after its turn was stopped. */
async function retried(work) {
  for (;;) {
    try {
      return await work();
    } catch (error) {
      if (error.code !== "journal_busy") throw error;
      await new Promise(setImmediate);
    }
  }
}

test("a runtime has tools for all turns", async () => {
  const runtime = new Runtime();
  const prompt = scripted(callsWeather, { tools: [weather] });
  runtime.registerTool("weather", () => "registered");
  assert.deepEqual(told(await runtime.turn(prompt)), ["registered"]);
  assert.deepEqual(told(await runtime.turn(prompt, {}, { tools: { weather: () => "given" } })), ["given"]);
  assert.equal(await runtime.getTool("weather").call({}), "registered");
  assert.throws(() => runtime.registerTool("weather", 7), { code: "invalid_input" });
  runtime.clearTools();
  assert.equal(runtime.getTool("weather"), undefined);
  await assert.rejects(runtime.turn(prompt), { code: "tool_not_registered" });
});

test("a turn is spoken into", async () => {
  const steering = new Steering();
  const pending = [];
  const speaking = () => {
    if (pending.length === 0) steering.send("And in Rome?");
    pending.push(steering.hasPending);
    return "clear";
  };
  const result = await turn(
    scripted(callsWeather, { tools: [weather] }),
    {},
    { tools: { weather: speaking }, steering },
  );
  const asked = result.messages.filter((message) => message.role === "user").map((message) => said(message).text);
  assert.deepEqual([asked.at(-1), steering.hasPending], ["And in Rome?", false]);
  // For a new question, the script starts again.
  assert.deepEqual(pending, [true, false]);
  assert.throws(() => steering.send(7), { code: "invalid_input" });
});

test("functions see the asynchronous context of the call", async () => {
  const storage = new AsyncLocalStorage();
  const prompt = scripted(callsWeather, { tools: [weather] });
  const result = await storage.run("request 7", () =>
    turn(prompt, {}, { tools: { weather: () => storage.getStore() } }),
  );
  assert.deepEqual(told(result), ["request 7"]);
});

test("invokeAgent goes from a file to the end of a turn", async () => {
  assert.equal((await invokeAgent(echo, { question: "Yes?" })).result, "Yes?");
});

test("many turns at once", async () => {
  const prompt = scripted(callsWeather, { tools: [weather] });
  const turns = Array.from({ length: 50 }, (_, i) => turn(prompt, {}, { tools: { weather: async () => `${i}` } }));
  assert.deepEqual(
    (await Promise.all(turns)).map((one) => told(one)[0]),
    turns.map((_, i) => `${i}`),
  );
});

test("turns within a turn share its bounds", async () => {
  const directory = mkdtempSync(join(tmpdir(), "tympan-node-"));
  const { writeFileSync } = await import("node:fs");
  const calls = { tool_calls: Array(3).fill({ name: "again", arguments: {} }) };
  const model = { id: "echo", provider: "echo", options: { additionalProperties: { script: Array(20).fill(calls) } } };
  const tools = [{ name: "again", kind: "prompty", path: "self.prompty", mode: "agentic" }];
  const path = join(directory, "self.prompty");
  writeFileSync(path, `---\n${JSON.stringify({ model, tools })}\n---\nuser:\nGo.`);
  await assert.rejects(turn(load(path)), { code: "turn_limit", message: /100 model calls/ });
  await assert.rejects(turn(load(path), {}, { maxModelCalls: 7 }), { code: "turn_limit", message: /7 model calls/ });
});
