"""The fixtures shared by all languages, through the public API."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import FIXTURES, cases, prompt_file

import tympan

LENIENT = tympan.Runtime(lenient=True)
RUNTIME = tympan.Runtime()


def said(messages: list[tympan.Message]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for message in messages:
        metadata = {} if message.metadata is None else {"metadata": message.metadata}
        found.append({"role": message.role, "text": message.text, **metadata})
    return found


def outcome(runtime: tympan.Runtime, text: str, inputs: dict[str, Any]) -> tuple[Any, Any]:
    """Returns the text, or the code of the error."""
    try:
        return str(runtime.render(runtime.load_str(text), inputs)), None
    except tympan.TympanError as error:
        return None, error.code


def template_complaints(stage: str, format: str, expected: str) -> tuple[int, list[str]]:
    complaints: list[str] = []
    count = 0
    for name, case in cases(stage):
        if case["template"] != case["template"].lstrip():
            # Leading white space of a prompt file's body is dropped.
            continue
        count += 1
        runtime = LENIENT if case.get("lenient") else RUNTIME
        text, code = outcome(runtime, prompt_file(case["template"], template={"format": format}), case["inputs"])
        error = case.get("error")
        wanted = error["code"] if isinstance(error, dict) else error
        if (text, code) != (case.get(expected), wanted):
            complaints.append(f"{name}: {text!r} {code!r}")
    return count, complaints


@pytest.mark.filterwarnings("ignore::tympan.InputWarning")
@pytest.mark.parametrize(
    ("stage", "format", "expected", "at_least"), [("jinja", "jinja2", "text", 450), ("mustache", "mustache", "expected", 100)]
)
def test_templates(stage: str, format: str, expected: str, at_least: int) -> None:
    count, complaints = template_complaints(stage, format, expected)
    assert not complaints, "\n".join(complaints)
    assert count >= at_least


def declared(case: dict[str, Any]) -> list[dict[str, Any]]:
    names = [name for name in case["inputs"] if name not in case.get("undeclared", [])]
    return [
        {
            "name": name,
            "kind": "thread" if name in case.get("threads", []) else "string",
            "trusted": name in case.get("trusted", []),
        }
        for name in names
    ]


def test_origins() -> None:
    count = 0
    for name, case in cases("origins"):
        count += 1
        format = {"format": case.get("format", "jinja2")}
        prompt = RUNTIME.load_str(prompt_file(case["template"], template=format, inputs=declared(case)))
        rendered = RUNTIME.render(prompt, case["inputs"])
        segments = [{"text": s.text, "inputs": s.origins, "trusted": s.trusted} for s in rendered.segments]
        assert segments == case["segments"], name
        assert "".join(segment.text for segment in rendered.segments) == rendered, name
        assert said(RUNTIME.parse(prompt, rendered)) == case["messages"], name
    assert count >= 75


def test_guard() -> None:
    count = 0
    for name, case in cases("guard"):
        count += 1
        format = {"format": case.get("format", "jinja2")}
        prompt = RUNTIME.load_str(prompt_file(case["template"], template=format, inputs=declared(case)))
        try:
            rendered = prompt.render(case["inputs"], guard=True, lenient=case.get("lenient", False))
        except tympan.TympanError as error:
            assert error.code == case.get("error"), name
            continue
        if not case.get("threads"):
            assert rendered == case["text"], name
        if "messages" in case:
            assert said(prompt.messages(rendered)) == case["messages"], name
    assert count >= 50


def test_definitions() -> None:
    read = {".yaml": tympan.Prompt.from_yaml, ".json": tympan.Prompt.from_json, ".toml": tympan.Prompt.from_toml}
    hashes: dict[str, set[str]] = {}
    for path in sorted((FIXTURES / "definition" / "accepted").iterdir()):
        # Nothing is rendered here.
        prompt = read[path.suffix](path.read_text("utf-8"), validator=False)
        assert prompt.definition_hash == tympan.load(path, validator=False).definition_hash
        hashes.setdefault(path.stem, set()).add(prompt.definition_hash)
    assert len(hashes) >= 4 and all(len(same) == 1 for same in hashes.values())
    rejected = sorted((FIXTURES / "definition" / "rejected").iterdir())
    assert len(rejected) >= 40
    for path in rejected:
        with pytest.raises(tympan.TympanValueError) as caught:
            read[path.suffix](path.read_text("utf-8"))
        assert caught.value.line is not None and caught.value.column is not None, path.name


def test_prompt_files() -> None:
    variables = {
        "TEST_REGION": "north",
        "TEST_EMPTY": "",
        "TEST_SECRET": "s3cr3t",
        "TEST_USER": "user-7",
        "TEST_ENDPOINT": "https://azure.example.com",
        "TEST_TEMPERATURE": "0.7",
        "TEST_REFERENCE": "${env:TEST_SECRET} ${file:data/notes.txt}",
        "HOME": "/home/someone",
    }
    runtime = tympan.Runtime(load={"env": ["TEST_*"], "env_vars": variables})
    loaded, refused = 0, 0
    for path in sorted((FIXTURES / "load").glob("*.prompty")):
        snapshot = (FIXTURES / "load" / "snapshots" / f"{path.stem}.snap").read_text("utf-8")
        snapshot = snapshot.split("---\n", 2)[2]
        try:
            data = runtime.load(path).to_dict()
        except tympan.TympanError as error:
            refused += 1
            place = "" if error.line is None else f" {error.line}:{error.column}"
            family = next(base.__name__ for base in type(error).__mro__ if not base.__name__.startswith("Tympan"))
            assert snapshot.startswith(f"{family} {error.code}{place}\n"), path.name
        else:
            loaded += 1
            assert data["kind"] == "prompt" and snapshot.startswith("{"), path.name
            assert "s3cr3t" not in str(data.get("model", {}).get("connection")), path.name
    assert loaded >= 30 and refused >= 10
