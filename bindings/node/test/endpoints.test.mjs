// Where keys and other values from the environment are sent: the cases of `fixtures/endpoints`, against a real server.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";

import { Runtime } from "tympan";

import { root } from "./support.mjs";

const data = JSON.parse(readFileSync(join(root, "fixtures/endpoints/endpoints.json"), "utf8"));
let connections = 0;
let requests = 0;
const server = createServer((request, response) => {
  requests++;
  request.resume();
  request.on("end", () => response.writeHead(400).end());
});
server.on("connection", () => connections++);
before(() => new Promise((done) => server.listen(0, "127.0.0.1", done)));
after(() => {
  server.closeAllConnections();
  server.close();
});

/** Returns the cases. A case that applies to all providers is repeated for each of them. */
function cases(address) {
  const port = address.slice(address.lastIndexOf(":") + 1);
  return data.cases.flatMap((one) => {
    const text = JSON.stringify(one).replaceAll("{server}", address).replaceAll("{port}", port);
    const rows = data.providers.filter((row) => row.address !== null || !text.includes("{address}"));
    return (text.includes("{provider}") ? rows : rows.slice(0, 1)).map((row) =>
      JSON.parse(["provider", "key", "address"].reduce((text, key) => text.replaceAll(`{${key}}`, row[key] ?? ""), text)),
    );
  });
}

function runtimeOf({ host = {}, files = [], allow = [] }) {
  return new Runtime({
    load: { envVars: host, envFiles: files.map((variables, at) => ({ name: `${at}/.env`, variables })) },
    http: { maxRetries: 0, proxy: false },
    toolAddresses: { allowPrivate: true },
    allowEndpoints: allow,
  });
}

/** Returns all operations that send a request for a case. */
function attempts(one) {
  const runtime = runtimeOf(one);
  const prompt = runtime.loadStr(`---\n${JSON.stringify(one.front)}\n---\n${one.template ?? "user:\nHello.\n"}`);
  const options = one.base_url === undefined ? {} : { baseUrl: one.base_url };
  if (one.tools) return [() => runtime.turn(prompt, {})];
  const streamed = async () => {
    for await (const _ of await runtime.stream(prompt, runtime.prepare(prompt, {}), options));
  };
  return [() => runtime.invoke(prompt, {}, options), streamed];
}

test("values go where their source or the host says", async () => {
  const address = `http://127.0.0.1:${server.address().port}`;
  const all = cases(address);
  assert.ok(all.length > 100);
  for (const one of all) {
    for (const attempt of attempts(one)) {
      const before = { connections, requests };
      const error = await attempt().then(
        () => undefined,
        (error) => error,
      );
      const name = `${one.name}: ${JSON.stringify(one.front)}: ${error}`;
      if (one.expect === "sent") {
        assert.notEqual(error?.code, "untrusted_endpoint", name);
        assert.ok(requests > before.requests, name);
        continue;
      }
      assert.equal(error?.code, "untrusted_endpoint", name);
      assert.equal(connections, before.connections, name);
      const shown = `${error.message} ${error.help}`;
      assert.ok(!shown.toLowerCase().includes("canary"), name);
      for (const part of [...one.names, `--allow-endpoint ${address}`]) assert.ok(shown.includes(part), `${part}: ${shown}`);
    }
  }
});

test("defaults of the environment are no word of the host", async () => {
  const address = `http://127.0.0.1:${server.address().port}`;
  const load = { envVars: { OPENAI_API_KEY: "canary-key" }, envDefaults: { OPENAI_BASE_URL: address } };
  const runtime = new Runtime({ load });
  const before = connections;
  const prompt = runtime.loadStr("---\nmodel: m\n---\nuser:\nHello.\n");
  await assert.rejects(runtime.invoke(prompt, {}), { code: "untrusted_endpoint" });
  assert.equal(connections, before);
});

test("what is allowed has to be an address", () => {
  assert.throws(() => new Runtime({ allowEndpoints: ["proxy.example"] }), /allow_endpoints/);
});
