"""Compares the messages that `tympan` and PyPI's `prompty` build from the same `.prompty` files. Needs no network.

    python prompty_files.py PROGRAM FOLDER...

Every `.prompty` file below the folders is prepared by both, with the same inputs: each declared input has its example or
default, or else a value of its kind. Variables of the environment that a file names have the same value for both.

Two differences are intended and not compared. `tympan` runs with `--lenient`, because `prompty` renders undeclared
variables as nothing. Empty messages are left out, because `prompty` drops them; `tympan` drops them from requests only,
so that no input decides how many messages there are.

The result of a file is one of these:

- same: both build the same messages.
- explained: they differ, and `prompty_files.json` says why.
- stricter: `tympan` rejects the file, `prompty` does not.
- different: the messages differ.
- wider: `tympan` reads the file, `prompty` does not.
- rejected: neither reads the file.

`different` and `stricter` are failures.
"""

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import prompty

HERE = Path(__file__).parent
SECONDS = 60
PEER_SECONDS = 5
VALUES = {
    "integer": 3,
    "float": 0.5,
    "number": 0.5,
    "boolean": True,
    "array": ["one", "two"],
    "object": {"key": "value"},
    "thread": [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hi"}],
    "image": "https://example.com/a.png",
    "file": "https://example.com/a.pdf",
    "audio": "https://example.com/a.mp3",
}
FAILURES = ("different", "stricter")


def environment(text):
    """Return a value for each variable that the text refers to."""
    names = re.findall(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)", text)
    return {name: "https://api.openai.com/v1" if "ENDPOINT" in name else f"value-of-{name}" for name in names}


def inputs_of(agent):
    """Return a value for each declared input."""
    found = {}
    for declared in agent.inputs or []:
        value = declared.example if declared.example is not None else declared.default
        if value is None:
            value = VALUES.get(declared.kind, f"some {declared.name}")
        found[declared.name] = value
    return found


def part(content):
    """Return a part of a message as a comparable value."""
    kind = content["kind"] if isinstance(content, dict) else content.kind
    value = content if isinstance(content, dict) else vars(content)
    return [kind, value.get("value", value.get("source"))]


def give_up(*_):
    """Interrupt what takes too long: some files here are bombs."""
    raise TimeoutError("took too long")


def by_prompty(path):
    """Return prompty's messages and the inputs, or the error. The inputs are `None` if the file does not load."""
    inputs = None
    signal.alarm(PEER_SECONDS)
    try:
        # The package reports spans on standard output if somebody listens; nobody should.
        with contextlib.redirect_stdout(io.StringIO()):
            agent = prompty.load(path)
            inputs = inputs_of(agent)
            messages = prompty.prepare(agent, inputs)
        return [[message.role, [part(one) for one in message.parts]] for message in messages], inputs
    except Exception as error:
        return f"{type(error).__name__}: {error}", inputs
    finally:
        signal.alarm(0)


def by_tympan(program, path, inputs):
    """Return Tympan's messages, or the error. If `inputs` is `None`, the samples of the file are used."""
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as given:
        json.dump(inputs, given)
        given.flush()
        selection = ["--inputs", given.name] if inputs is not None else ["--sample"]
        command = [program, "messages", str(path), *selection, "--json", "--quiet", "--lenient"]
        done = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=SECONDS)
    if done.returncode != 0:
        return done.stderr.strip()
    found = json.loads(done.stdout)
    messages = found["messages"] if isinstance(found, dict) else found
    return [[message["role"], [part(one) for one in message["content"]]] for message in messages]


def without_empty(messages):
    """Return the messages that have content."""
    return [[role, parts] for role, parts in messages if any(value for _, value in parts)]


def without_nonces(messages):
    """Replace the random numbers in placeholders. `prompty` does not always turn these into parts."""
    return json.loads(re.sub(r"__PROMPTY_THREAD_[0-9a-f]+_", "__PROMPTY_THREAD_0_", json.dumps(messages)))


def compare(program, path):
    """Return the result of one file, and what to show of it."""
    os.environ.update(environment(path.read_text(encoding="utf-8", errors="replace")))
    theirs, inputs = by_prompty(path)
    ours = by_tympan(program, path, inputs)
    if isinstance(theirs, str):
        return ("rejected" if isinstance(ours, str) else "wider"), f"prompty: {theirs}"
    if isinstance(ours, str):
        return "stricter", f"tympan: {ours}"
    ours, theirs = without_nonces(without_empty(ours)), without_nonces(without_empty(theirs))
    if ours == theirs:
        return "same", ""
    if any(kind != "text" for _, parts in theirs for kind, _ in parts):
        return "explained", "images, audio and documents stay placeholders until a request is built"
    return "different", f"prompty: {json.dumps(theirs)}\n      tympan:  {json.dumps(ours)}"


def main(program, folders):
    """Compare every file, and return the exit status."""
    signal.signal(signal.SIGALRM, give_up)
    explained = json.loads((HERE / "prompty_files.json").read_text(encoding="utf-8"))
    counts = Counter()
    for folder in folders:
        for path in sorted(Path(folder).rglob("*.prompty")):
            name = path.relative_to(folder).as_posix()
            result, detail = compare(program, path)
            if result in FAILURES and name in explained:
                result, detail = "explained", explained[name]
            counts[result] += 1
            if result != "same":
                print(f"{result:<10}{name}\n      {detail}", flush=True)
    print(", ".join(f"{count} {result}" for result, count in sorted(counts.items())) or "no .prompty files")
    return 1 if not counts["same"] or any(counts[failure] for failure in FAILURES) else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1], sys.argv[2:]))
