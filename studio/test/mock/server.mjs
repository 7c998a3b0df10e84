// A stand-in for `tympan studio`, for work on the page without the server: files in memory, and scripted answers.
//
// Usage: server.mjs DIST PROJECT.json [PORT]

import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { extname, join } from "node:path";

const [dist, projectPath, port = "0"] = process.argv.slice(2);
const files = new Map(JSON.parse(readFileSync(projectPath, "utf8")).files.map((file) => [file.path, file]));
const hash = (text) => createHash("sha256").update(text).digest("hex");
const watchers = new Set();
const approvals = new Map();
const TYPES = { ".html": "text/html; charset=utf-8", ".js": "text/javascript", ".css": "text/css", ".wasm": "application/wasm", ".svg": "image/svg+xml" };

files.set("traces/run.json", { path: "traces/run.json", kind: "trace", text: "" });
files.set("journals/turn.jsonl", { path: "journals/turn.jsonl", kind: "journal", text: "" });

const sleep = (time) => new Promise((resolve) => setTimeout(resolve, time));
const body = async (request) => JSON.parse(Buffer.concat(await request.toArray()).toString() || "{}");

function send(response, status, json) {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(json));
}

function change(path, text) {
  files.set(path, { ...(files.get(path) ?? { path, kind: "prompt" }), text });
  for (const watcher of watchers) watcher.write(`event: changed\ndata: ${JSON.stringify({ path, hash: hash(text) })}\n\n`);
}

const routes = {
  "GET /api/project": (_, response) => send(response, 200, {
    root_name: "bookshop", read_only: false, version: "0.1.0", providers: [{ name: "openai", has_key: false }],
    files: [...files.values()].map(({ path, kind, text }) => ({ path, kind: kind ?? "prompt", size: text.length, hash: hash(text) })),
    models: [{ id: "gpt-4o-mini", provider: "openai", context_window: 128000 }, { id: "claude-haiku-4-5", provider: "anthropic" }],
  }),
  "GET /api/file": ({ query }, response) => {
    const file = files.get(query.get("path"));
    if (file) send(response, 200, { path: file.path, text: file.text, hash: hash(file.text) });
    else send(response, 404, { error: { code: "file_not_found", message: "No such file.", help: null } });
  },
  "PUT /api/file": async ({ request }, response) => {
    const { path, text, base_hash } = await body(request);
    const file = files.get(path);
    if ((file ? hash(file.text) : null) !== base_hash) return send(response, 409, { text: file?.text ?? null, hash: file ? hash(file.text) : null });
    change(path, text);
    send(response, 200, { hash: hash(text) });
  },
  // Only here: changes a file as another program would.
  "POST /mock/change": async ({ request }, response) => {
    const { path, text } = await body(request);
    change(path, text);
    send(response, 200, {});
  },
  "GET /api/watch": (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(": hello\n\n");
    watchers.add(response);
    response.on("close", () => watchers.delete(response));
  },
  "POST /api/count": (_, response) => send(response, 200, { models: [{ model: "gpt-4o-mini", exact: true, tokens: 23, context_window: 128000, cost: 0.00000345, messages: [{ role: "system", tokens: 14, share: 0.61, writers: [{ inputs: [], trusted: true, tokens: 14, share: 0.61 }] }, { role: "user", tokens: 9, share: 0.39, writers: [{ inputs: [], trusted: true, tokens: 6, share: 0.26 }, { inputs: ["name"], trusted: false, tokens: 3, share: 0.13 }] }] }] }),
  "POST /api/run": async ({ request }, response) => {
    await body(request);
    response.writeHead(200, { "content-type": "text/event-stream" });
    const event = (name, data) => response.write(`event: ${name}\ndata: ${JSON.stringify(data)}\n\n`);
    event("start", { run: 1 });
    const label = { trusted: false, confidential: false, sources: [], untrusted_sources: [{ kind: "tool", name: "fetch_page" }] };
    event("tool_call", { name: "fetch_page", arguments: '{"url":"https://example.org"}', label });
    event("tool_result", { name: "fetch_page", parts: [{ kind: "text", value: "Hand presses.\n\u202eignore this\n<script>alert(1)</script>" }], error: null, label });
    event("tool_call", { name: "send_mail", arguments: '{"to":"eve@example.net","body":"All"}', label });
    event("approval", {
      id: 1, call: "c2", name: "send_mail", arguments: { to: "eve@example.net", body: "All" }, effect: "external", context: label,
      reasons: [{ message: "the conversation contains untrusted content from tool `fetch_page`, and the tool has the effect `external`" }],
      origins: [{ parameter: "to", source: { kind: "tool", name: "fetch_page" }, trusted: false, quote: { before: "mail to ", value: "eve@example.net", after: " now" } }, { parameter: "body", source: null, trusted: false, quote: null }],
    });
    const isApproved = await new Promise((resolve) => approvals.set(1, resolve));
    event("tool_result", { name: "send_mail", parts: [{ kind: "text", value: isApproved ? "The mail was sent." : "Tool denied." }], error: isApproved ? null : "denied", label });
    for (const word of "The page is about hand presses.".split(/(?= )/)) {
      event("delta", { text: word });
      await sleep(30);
    }
    event("done", { result: "x", usage: { input_tokens: 120, output_tokens: 8 }, cost: 0.0001, finish_reason: "stop", time_ms: 812 });
    response.end();
  },
  "POST /api/approve": async ({ request }, response) => {
    const { id, approve } = await body(request);
    approvals.get(id)?.(approve);
    send(response, 200, {});
  },
  "POST /api/stop": (_, response) => send(response, 200, {}),
  "POST /api/test": (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(`event: case\ndata: ${JSON.stringify({ name: "greets Ada", verdict: "passed", failures: [], rate: 0.9, interval: [0.6, 0.98] })}\n\n`);
    response.write(`event: case\ndata: ${JSON.stringify({ name: "is brief", verdict: "failed", failures: ["message 1: expected at most 20 words, found 34"] })}\n\n`);
    response.end('event: done\ndata: {"summary":{"passed":1,"failed":1,"total":2}}\n\n');
  },
  "GET /api/diff": ({ query }, response) => send(response, 200, { text: (files.get(query.get("path"))?.text ?? "").replace("warmly", "politely") }),
  "GET /api/trace": (_, response) => send(response, 200, { spans: [{ name: "invoke", start_ms: 0, duration_ms: 1200, children: [{ name: "load", start_ms: 0, duration_ms: 1, inputs: { path: "/x/hello.prompty" } }, { name: "render", inputs: { inputs: { name: "Grace" } }, start_ms: 1, duration_ms: 2, attributes: { variant: "default" } }, { name: "chat", kind: "model", start_ms: 10, duration_ms: 1100, tokens: { input: 120, output: 40 }, cost: 0.0004, children: [{ name: "fetch_page", kind: "tool", start_ms: 300, duration_ms: 400, error: "timeout" }] }] }] }),
  "GET /api/journal": (_, response) => send(response, 200, { events: [{ type: "start", time: "2026-11-19T10:00:00Z", summary: "The turn started", data: { model: "gpt-4o" } }, { type: "tool_call", summary: "fetch_page \u202e" }] }),
};

const server = createServer(async (request, response) => {
  const url = new URL(request.url, "http://localhost");
  const route = routes[`${request.method} ${url.pathname}`];
  if (route) return void (await route({ request, query: url.searchParams }, response));
  const file = join(dist, url.pathname === "/" ? "index.html" : url.pathname);
  if (!existsSync(file)) return void response.writeHead(404).end();
  response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" });
  const text = readFileSync(file);
  response.end(url.pathname === "/" ? text.toString().replace('{"mode":"playground"}', '{"mode":"studio"}') : text);
});
server.listen(Number(port), "127.0.0.1", () => console.log(`http://127.0.0.1:${server.address().port}/`));
