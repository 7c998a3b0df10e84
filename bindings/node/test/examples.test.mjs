// The examples for Node, in a directory with the package in its `node_modules`, as in a user's project.

import assert from "node:assert/strict";
import { once } from "node:events";
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { after, test } from "node:test";
import { fileURLToPath, pathToFileURL } from "node:url";

import { root } from "./support.mjs";

const project = mkdtempSync(join(tmpdir(), "tympan-examples-"));
after(() => rmSync(project, { recursive: true }));
cpSync(join(root, "examples"), join(project, "examples"), { recursive: true });
mkdirSync(join(project, "node_modules"));
symlinkSync(fileURLToPath(new URL("..", import.meta.url)), join(project, "node_modules", "tympan"), "junction");
const { POST } = await import(pathToFileURL(join(project, "examples", "node", "route.mjs")));

function asking(body, url = "http://localhost/weather") {
  return new Request(url, { method: "POST", body: JSON.stringify(body) });
}

/** Parses the events of a response into pairs of a kind and data. */
function eventsOf(text) {
  const events = text.trimEnd().split("\n\n");
  return events.map((event) => {
    const [, kind, data] = /^event: (.*)\ndata: (.*)$/.exec(event);
    return [kind, JSON.parse(data)];
  });
}

function check(events) {
  const said = events.filter(([kind]) => kind === "token").map(([, { text }]) => text);
  assert.equal(said.join(""), "It is clear in Paris, at 21 degrees.");
  const [, called] = events.find(([kind]) => kind === "tool_call_start");
  assert.equal(called.name, "get_weather");
  assert.equal(JSON.parse(called.arguments).city, "Paris");
  assert.equal(events.at(-1)[0], "done");
}

test("a route handler streams a turn", async () => {
  const response = await POST(asking({ city: "Paris" }));
  assert.match(response.headers.get("content-type"), /^text\/event-stream/);
  check(eventsOf(await response.text()));
});

test("a route handler says what it expects", async () => {
  const response = await POST(asking({}));
  assert.equal(response.status, 400);
  assert.deepEqual(await response.json(), { error: "expected a city" });
});

test("a client that goes away disturbs nobody", async () => {
  const response = await POST(asking({ city: "Paris" }));
  await response.body.cancel();
  check(eventsOf(await (await POST(asking({ city: "Paris" }))).text()));
});

test("the route handler is served over a socket", async () => {
  const server = createServer(async (incoming, outgoing) => {
    const request = new Request("http://localhost/", { method: "POST", body: Readable.toWeb(incoming), duplex: "half" });
    const response = await POST(request);
    outgoing.writeHead(response.status, Object.fromEntries(response.headers));
    Readable.fromWeb(response.body).pipe(outgoing);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  try {
    const response = await fetch(asking({ city: "Paris" }, `http://127.0.0.1:${server.address().port}/weather`));
    assert.equal(response.status, 200);
    check(eventsOf(await response.text()));
  } finally {
    server.closeAllConnections();
    server.close();
    await once(server, "close");
  }
});
