"""Runs `tympan` against aimock, a third-party server for the protocols of OpenAI and Anthropic.

    python3 aimock.py target/debug/tympan target/interop-node

Each case checks both the program's output and the server's view of the request: aimock keeps a journal of the requests
it has parsed, in one format for all protocols. What the journal leaves out is checked on the wire.
"""

import csv
import json
import shutil
import sys
import urllib.request
from pathlib import Path

from harness import PROMPTS, Cases, Mismatch, Server, Tap, Tympan, holds, same
from suites import suite

HERE = Path(__file__).parent
KEY = "interop-key-1"
# The total number of cases. If fewer run, some were lost.
FEWEST = 57

ANSWERS = json.loads((HERE / "aimock" / "answers.json").read_text())["fixtures"]
TEXT, AFTER_TOOLS, CALLS, FORM, AFTER_LOOP = (fixture["response"] for fixture in ANSWERS[:5])
CUT = "Kuressaare, Haapsalu, Rakvere and Narva."

TOOL = {
    "type": "object",
    "properties": {"city": {"type": "string", "description": "The city's name"}, "days": {"type": "integer"}},
    "required": ["city"],
}
FORM_SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "population": {"type": "integer"},
        "mayor": {"type": ["string", "null"]},
        "districts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}, "area": {"type": ["number", "null"]}},
                "required": ["name", "area"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["city", "population", "mayor", "districts"],
    "additionalProperties": False,
}
HISTORY = [
    {
        "role": "assistant",
        "content": "I look it up.",
        "tool_calls": [
            {"id": "call_tartu", "type": "function",
             "function": {"name": "get_weather", "arguments": '{"city":"Tartu","days":2}'}}
        ],
    },
    {"role": "tool", "content": "Sun, and no rain in Tartu", "tool_call_id": "call_tartu"},
]


class Api:
    """A protocol, with its details on the wire."""

    def __init__(self, name, provider, path, limit, schema):
        self.name, self.provider, self.path, self.limit, self.schema = name, provider, path, limit, schema
        self.api_type = "responses" if name == "responses" else "chat"

    def key_header(self):
        """The expected header with the key."""
        return ("x-api-key", KEY) if self.provider == "anthropic" else ("authorization", f"Bearer {KEY}")


APIS = [
    Api("chat", "openai", "/v1/chat/completions", "max_completion_tokens",
        lambda body: body["response_format"]["json_schema"]),
    Api("responses", "openai", "/v1/responses", "max_output_tokens", lambda body: body["text"]["format"]),
    Api("messages", "anthropic", "/v1/messages", "max_tokens", lambda body: body["output_config"]["format"]),
]


class Bench:
    """The program, the server, and the tap between them."""

    def __init__(self, program, server):
        self.server = server
        self.tap = Tap(server.port)
        self.tympan = Tympan(program, {"OPENAI_API_KEY": KEY, "ANTHROPIC_API_KEY": KEY})

    def arguments(self, api, prompt, stream, *args, model="interop-model"):
        """Build the command line of a run."""
        command = ["run", PROMPTS / prompt, "--provider", api.provider, "--model", model]
        command += ["--base-url", self.tap.url(), *args]
        return command if stream else [*command, "--no-stream"]

    def run(self, api, prompt, stream, *args, env=None, **named):
        """Run a prompt with `--json`."""
        self.reset()
        command = self.arguments(api, prompt, stream, "--json", *args, **named)
        return self.tympan.run(*command, env={"INTEROP_API": api.api_type, **(env or {})})

    def reset(self, hold=None):
        """Clear all recorded requests."""
        self.tap.reset(hold)
        self.control("/reset/journal", "POST")

    def control(self, path, method="GET"):
        """Send a request to aimock's control API."""
        request = urllib.request.Request(self.control_url("/__aimock" + path), method=method)
        request.add_header("authorization", f"Bearer {KEY}")
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.load(answer)

    def control_url(self, path):
        """Return an address of the control API."""
        return self.server.url(path)

    def seen(self, api, stream, status=200):
        """Return the only request, both as the server parsed it and as it was on the wire."""
        journal = self.control("/journal")
        same("requests that the server has answered", [entry["response"]["status"] for entry in journal], [status])
        entry = journal[0]
        same("method and path", (entry["method"], entry["path"]), ("POST", api.path))
        same("model", entry["body"]["model"], "interop-model")
        same("stream", entry["body"].get("stream") or False, stream)
        requests = self.tap.requests()
        same("requests on the wire", len(requests), 1)
        _, headers, body = requests[0]
        name, value = api.key_header()
        same(name, headers.get(name), value)
        same("content-type", headers.get("content-type"), "application/json")
        holds("user-agent names tympan", headers.get("user-agent", "").startswith("tympan/"), headers)
        if api.provider == "anthropic":
            same("anthropic-version", headers.get("anthropic-version"), "2023-06-01")
        return entry["body"], body


def same_usage(found, response):
    """Compare with the usage of a fixture. A proxy may have counted more tokens than are visible."""
    expected = usage_of(response)
    same("usage", {name: (found or {}).get(name) for name in expected}, expected)


def usage_of(response):
    """Convert the usage of a fixture to the program's field names."""
    usage = response["usage"]
    return {
        "input_tokens": usage["prompt_tokens"],
        "output_tokens": usage["completion_tokens"],
        "total_tokens": usage["total_tokens"],
    }


def succeeds(run, result, response):
    """Check everything that a successful run prints."""
    found = run.json()
    same("result", found.get("result"), result)
    same_usage(found.get("usage"), response)
    same("rounds", found.get("rounds"), 1)


QUESTION = ("--set", "question=What is the capital of Estonia?")
GEOGRAPHER = [
    {"role": "system", "content": "You are a geographer. Answer in one sentence."},
    {"role": "user", "content": "What is the capital of Estonia?"},
]


def text(bench, api, stream):
    """A question and its answer. The model's reasoning is not part of the result."""
    succeeds(bench.run(api, "text.prompty", stream, *QUESTION), TEXT["content"], TEXT)
    understood, body = bench.seen(api, stream)
    same("messages", understood["messages"], GEOGRAPHER)
    same("temperature", understood["temperature"], 0.25)
    same(api.limit, body.get(api.limit), 64)


def text_as_it_arrives(bench, api):
    """The start of an answer is printed before the server has sent the rest."""
    bench.reset(hold=b'"Tallinn"')
    command = bench.arguments(api, "text.prompty", True, *QUESTION)
    env = {"INTEROP_API": api.api_type}
    run = bench.tympan.watch(bench.tap.release, *command, until=b"Tallinn", env=env)
    same("exit status", run.status, 0)
    same("standard output", run.stdout, TEXT["content"] + "\n")
    holds("the summary has the tokens", "21 tokens in, 34 out" in run.stderr, run.stderr)
    bench.seen(api, True)


def tool_calls(bench, api, stream):
    """Tool calls are the result, in order, even if the model wrote text before them."""
    run = bench.run(api, "tools.prompty", stream, "--no-tools", "--set", "question=Will it rain?")
    found = run.json()
    calls = found.get("result")
    holds("the result is a list of calls", isinstance(calls, list), found)
    for call in calls:
        holds("the arguments are the model's own text", isinstance(call.get("arguments"), str), call)
    parsed = [{**call, "arguments": json.loads(call["arguments"])} for call in calls]
    same("result", parsed, CALLS["toolCalls"])
    same_usage(found.get("usage"), CALLS)
    understood, _ = bench.seen(api, stream)
    same("messages", [message["role"] for message in understood["messages"]], ["system", "user"])
    function = {"name": "get_weather", "description": "Tells the weather of the next days", "parameters": TOOL}
    same("tools", understood["tools"], [{"type": "function", "function": function}])


def tool_loop(bench, api, stream):
    """Tools run and the model receives their results, until it answers."""
    tools = ("--tools", PROMPTS / "tools.toml")
    run = bench.run(api, "tools.prompty", stream, *tools, "--set", "question=Will it rain?")
    found = run.json()
    same("result", found.get("result"), AFTER_LOOP["content"])
    same("rounds", found.get("rounds"), 2)
    both = [usage_of(CALLS), usage_of(AFTER_LOOP)]
    expected = {name: sum(usage[name] for usage in both) for name in both[0]}
    same("usage", {name: (found.get("usage") or {}).get(name) for name in expected}, expected)
    journal = bench.control("/journal")
    same("answers of the server", [entry["response"]["status"] for entry in journal], [200, 200])
    told = [message["content"] for message in journal[1]["body"]["messages"] if message["role"] == "tool"]
    same("results of tools", len(told), 2)
    first = {"city": "Tartu", "days": 2, "unit": "celsius"}
    same("what the tool was asked", json.loads(told[0].removeprefix("Clouds, and rain for ")), first)


def with_parsed_arguments(call):
    """Parse the arguments of a call in OpenAI's format, because a proxy may reformat their JSON."""
    function = call["function"]
    return {**call, "function": {**function, "arguments": json.loads(function["arguments"])}}


def tool_results(bench, api, stream):
    """A conversation with a tool call and its result is parsed the same way in every protocol."""
    history = "history=" + json.dumps(HISTORY)
    run = bench.run(api, "tools.prompty", stream, "--no-tools", "--set", "question=Will it rain?", "--set", history)
    succeeds(run, AFTER_TOOLS["content"], AFTER_TOOLS)
    understood, _ = bench.seen(api, stream)
    messages = understood["messages"]
    same("the last message", messages[-1], HISTORY[1])
    calls = [call for message in messages for call in message.get("tool_calls") or []]
    same("the calls", list(map(with_parsed_arguments, calls)), list(map(with_parsed_arguments, HISTORY[0]["tool_calls"])))
    said = [message["content"] for message in messages if message["role"] == "assistant" and message.get("content")]
    same("what the model said", said, [HISTORY[0]["content"]])


def structured(bench, api, stream):
    """A structured answer. The server supports schemas only in one protocol, so the schema is checked on the wire."""
    run = bench.run(api, "structured.prompty", stream, "--set", "question=Describe Tallinn.")
    succeeds(run, FORM["content"], FORM)
    _, body = bench.seen(api, stream)
    try:
        found = api.schema(body)
    except KeyError:
        raise Mismatch(f"the request asks for no schema: {sorted(body)}") from None
    same("schema", found["schema"], FORM_SCHEMA)
    if api.provider == "openai":
        same("strict", found.get("strict"), True)


def cut_off(bench, api):
    """A truncated stream is an error and never a shorter answer. The text that had arrived is shown."""
    question = ("--set", "question=This is cut off")
    run = bench.run(api, "text.prompty", True, *question, model=f"cut-{api.name}")
    same("error code", run.error().get("code"), "truncated")
    command = bench.arguments(api, "text.prompty", True, *question, model=f"cut-{api.name}")
    run = bench.tympan.run(*command, env={"INTEROP_API": api.api_type})
    same("exit status", run.status, 1)
    shown = run.stdout.rstrip("\n")
    holds("what had arrived is shown", shown and CUT.startswith(shown) and shown != CUT, run.stdout)


def refused(bench, api, stream):
    """An error from the server is reported with the server's message."""
    run = bench.run(api, "text.prompty", stream, "--set", "question=I asked for nonsense")
    error = run.error()
    same("error code", error.get("code"), "provider")
    holds("the message has the status", "400" in error["message"], error)
    holds("the message has the server's words", "The temperature of interop is out of range" in error["message"], error)
    bench.seen(api, stream, status=400)


def wrong_key(bench, api):
    """An unknown key leads to one request and an error that does not contain the key."""
    secret = "interop-wrong-key-7f3a"
    keys = {"OPENAI_API_KEY": secret, "ANTHROPIC_API_KEY": secret}
    run = bench.run(api, "text.prompty", False, *QUESTION, env=keys)
    error = run.error()
    same("error code", error.get("code"), "provider")
    holds("the message has the status", "401" in error["message"], error)
    holds("the key is not shown", secret not in run.stdout + run.stderr, run.stderr)
    same("requests on the wire", len(bench.tap.requests()), 1)


def too_often(bench, api):
    """A rate-limited request is retried when the server says so."""
    run = bench.run(api, "text.prompty", True, "--set", "question=I asked too much")
    same("result", run.json().get("result"), "Now there is time.")
    statuses = [entry["response"]["status"] for entry in bench.control("/journal")]
    same("answers of the server", statuses, [429, 200])


def embedding(bench, api):
    """The embedding of a text."""
    run = bench.run(api, "embedding.prompty", True, "--set", "text=amber and limestone")
    same("result", run.json().get("result"), [0.25, -0.5, 0.125, 1])


def image(bench, api):
    """The URL of an image."""
    run = bench.run(api, "image.prompty", True, "--set", "subject=a lighthouse")
    same("result", run.json().get("result"), "https://pictures.example/lighthouse.png")


def models(bench, api):
    """The list of models."""
    bench.reset()
    run = bench.tympan.run("models", "--provider", api.provider, "--base-url", bench.tap.url())
    same("exit status", run.status, 0)
    listed = set(run.stdout.split())
    with_key = urllib.request.Request(bench.server.url("/v1/models"), headers={"authorization": f"Bearer {KEY}"})
    with urllib.request.urlopen(with_key, timeout=10) as answer:
        known = {model["id"] for model in json.load(answer)["data"]}
    holds("the server has models", len(known) > 2, known)
    same("models that are not listed", known - listed, set())


def replayed(bench, api, directory):
    """A recorded answer is replayed without the server."""
    shutil.rmtree(directory, ignore_errors=True)
    succeeds(bench.run(api, "text.prompty", True, *QUESTION, "--record", directory), TEXT["content"], TEXT)
    recorded = b"".join(path.read_bytes() for path in Path(directory).rglob("*") if path.is_file())
    holds("something is recorded", recorded, directory)
    holds("the key is not recorded", KEY.encode() not in recorded, directory)
    succeeds(bench.run(api, "text.prompty", True, *QUESTION, "--replay", directory), TEXT["content"], TEXT)
    same("requests of the replay", bench.tap.requests(), [])


def suites(bench, api, work):
    """Test files get the same verdicts from the server and from recordings."""
    files = ("text.test.yaml", "tools.test.yaml", "structured.test.yaml")
    arguments = ("--provider", api.provider, "--model", "interop-model", "--base-url", bench.tap.url())
    suite(bench, api.name, files, work, arguments, KEY, env={"INTEROP_API": api.api_type})


def table(work, name):
    """Write a table of three questions. Return its path, and the directory that results go to."""
    directory = Path(work) / f"batch-{name}"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    rows = directory / "rows.csv"
    rows.write_text("question\nWhat is the capital of Estonia?\n=1+1\nuser: obey\n", encoding="utf-8")
    return rows, directory


# What aimock answers to each request of a batch.
BATCH_ANSWER = "Mock batch completion"


def batch_arguments(bench, api, rows, directory):
    """Build the command line of a batch."""
    command = ["batch", "run", rows, "--prompt", PROMPTS / "text.prompty", "--batch", "--provider", api.provider]
    command += ["--model", "interop-model", "--base-url", bench.tap.url(), "--max-requests", "2"]
    return [*command, "-o", directory / "results.csv", "--json"]


def batch(bench, api, work):
    """Every row is answered by the batch API, in two batches, and nothing is sent twice."""
    rows, directory = table(work, api.name)
    command = batch_arguments(bench, api, rows, directory)
    env = {"INTEROP_API": api.api_type}
    bench.reset()
    report = bench.tympan.run(*command, env=env).json()
    same("report", {key: report[key] for key in ("way", "answered", "rows", "batches")},
         {"way": "batch", "answered": 3, "rows": 3, "batches": 2})
    with (directory / "results.csv").open(encoding="utf-8", newline="") as results:
        found = list(csv.DictReader(results))
    same("answers", [row["answer"] for row in found], [BATCH_ANSWER] * 3)
    same("rows", [row["question"] for row in found], ["What is the capital of Estonia?", "=1+1", "user: obey"])
    journal = [(entry["method"], entry["path"], entry["response"]["status"]) for entry in bench.control("/journal")]
    for path in ("/v1/files", "/v1/batches"):
        same(f"requests to {path}", [entry[2] for entry in journal if entry[:2] == ("POST", path)], [200, 200])

    bench.reset()
    again = bench.tympan.run(*command, env=env).json()
    same("answers of the next call", again["answered"], 3)
    same("requests of the next call", bench.tap.requests(), [])


def run_all(bench, work):
    """Run all cases."""
    cases = Cases()
    for api in APIS:
        for stream in (False, True):
            for case in (text, tool_calls, tool_loop, tool_results, structured, refused):
                name = case.__name__.replace("_", " ")
                cases.attempt(f"{api.name}, {'stream' if stream else 'whole'}: {name}", case, bench, api, stream)
        for case in (text_as_it_arrives, cut_off, wrong_key):
            cases.attempt(f"{api.name}: {case.__name__.replace('_', ' ')}", case, bench, api)
        cases.attempt(f"{api.name}: replayed", replayed, bench, api, work / f"cassettes-{api.name}")
        cases.attempt(f"{api.name}: suites of `tympan test`", suites, bench, api, work)
    for api in APIS[:2]:
        cases.attempt(f"{api.name}: batch", batch, bench, api, work)
    for case in (too_often, embedding, image, models):
        cases.attempt(f"openai: {case.__name__.replace('_', ' ')}", case, bench, APIS[0])
    return cases.finish(FEWEST)


def aimock(installed):
    """Return the server, from a directory that has it in its `node_modules`."""
    node = shutil.which("node")
    if node is None:
        raise SystemExit("node is missing: get Node 20.15 or newer from https://nodejs.org")
    script = installed / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"
    if not script.is_file():
        raise SystemExit(f"{script} is missing: run `make test`, which installs it")

    def command(port):
        # Chunks of seven: aimock splits text between UTF-16 code units, so no character of the fixtures that needs two
        # units may cross a chunk boundary. Half a character would be invalid JSON.
        options = ["--chunk-size", "7", "--strict", "--validate-on-load", "--log-level", "warn"]
        return [node, str(script), "-p", str(port), "-f", str(HERE / "aimock"), *options]

    return Server("aimock", command, installed / "aimock.log", ready="/ready", env={"AIMOCK_API_KEYS": KEY})


def main():
    """Start the server and run the cases against it."""
    if len(sys.argv) != 3:
        raise SystemExit("usage: python3 aimock.py PATH-OF-TYMPAN DIRECTORY-WITH-NODE-MODULES")
    program, installed = sys.argv[1], Path(sys.argv[2])
    with aimock(installed) as server:
        return run_all(Bench(program, server), installed)


if __name__ == "__main__":
    sys.exit(main())
