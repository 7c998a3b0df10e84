// Access tokens for connections without a key: who issues them, and where they go.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, beforeEach, test } from "node:test";

import { Runtime } from "tympan";

let seen = [];
const answer = { choices: [{ message: { role: "assistant", content: "Fine." }, finish_reason: "stop" }] };
const server = createServer((request, response) => {
  seen.push(request.headers.authorization);
  request.resume();
  request.on("end", () =>
    response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer)),
  );
});
before(() => new Promise((done) => server.listen(0, "127.0.0.1", done)));
beforeEach(() => void (seen = []));
after(() => {
  server.closeAllConnections();
  server.close();
});

const url = () => `http://127.0.0.1:${server.address().port}`;

function runtimeOf() {
  return new Runtime({ load: { envVars: { SERVER_URL: url() } }, http: { maxRetries: 0, proxy: false } });
}

function promptOf(runtime, endpoint = "${env:SERVER_URL}") {
  const connection = { kind: "foundry", endpoint, scopes: ["a"], clientSecret: "hidden" };
  const front = { model: { id: "m", provider: "foundry", connection } };
  return runtime.loadStr(`---\n${JSON.stringify(front)}\n---\nuser:\nHi`, { name: "p.prompty" });
}

test("a function returns the token", async () => {
  const runtime = runtimeOf();
  const requests = [];
  const issue = async (request) => {
    requests.push(request);
    return { token: "the-token", expiresIn: 3600 };
  };
  runtime.registerCredentialProvider("foundry", issue);
  assert.equal(runtime.getCredentialProvider("foundry"), issue);
  for (let i = 0; i < 2; i++) assert.equal((await runtime.invoke(promptOf(runtime))).result, "Fine.");
  assert.deepEqual(seen, ["Bearer the-token", "Bearer the-token"]);
  assert.equal(requests.length, 1);
  assert.equal(requests[0].kind, "foundry");
  assert.deepEqual(requests[0].connection.scopes, ["a"]);
  assert.ok(!JSON.stringify(requests).includes("hidden"));
  runtime.clearCredentialProviders();
  assert.equal(runtime.getCredentialProvider("foundry"), undefined);
});

test("a program prints the token", async () => {
  const runtime = runtimeOf();
  runtime.registerCredentialCommand("foundry", [process.execPath, "-e", "console.log('the-token')"]);
  assert.equal((await runtime.invoke(promptOf(runtime))).result, "Fine.");
  assert.deepEqual(seen, ["Bearer the-token"]);
  for (const command of [[], ["./token"]]) {
    assert.throws(() => runtime.registerCredentialCommand("foundry", command), { code: "invalid_input" });
  }
  assert.throws(() => runtime.registerCredentialCommand("foundry", ["az"], -1), { code: "invalid_input" });
});

test("a prompt cannot choose where it goes", async () => {
  const runtime = runtimeOf();
  let calls = 0;
  runtime.registerCredentialProvider("foundry", () => (calls++, "the-token"));
  await assert.rejects(runtime.invoke(promptOf(runtime, url())), { code: "untrusted_endpoint" });
  assert.deepEqual([calls, seen], [0, []]);
});

test("anything else is an error, and exceptions are passed on", async () => {
  const runtime = runtimeOf();
  for (const wrong of [null, 5, {}, { token: 5 }, { token: "a", expiresIn: -1 }, { token: "a", x: 1 }, ""]) {
    runtime.registerCredentialProvider("foundry", () => wrong);
    await assert.rejects(runtime.invoke(promptOf(runtime)), { code: "credential_failed" });
  }
  const mine = new Error("mine");
  runtime.registerCredentialProvider("foundry", () => {
    throw mine;
  });
  await assert.rejects(runtime.invoke(promptOf(runtime)), mine);
  assert.deepEqual(seen, []);
});
