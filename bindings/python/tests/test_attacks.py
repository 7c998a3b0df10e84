"""Attacks on rendering: the cases of `fixtures/attacks`, which also test Rust, through the public API."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conftest import FIXTURES, prompt_file

import tympan


def read(file: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FIXTURES / "attacks" / file).read_text("utf-8"))
    return found


def expand(value: Any) -> Any:
    """Replaces the generators of a case with what they generate."""
    match value:
        case {"$repeat": [text, times]}:
            return expand(text) * times
        case {"$concat": parts}:
            return "".join(expand(part) for part in parts)
        case {"$list": [item, times]}:
            return [expand(item)] * times
        case dict():
            return {name: expand(item) for name, item in value.items()}
        case list():
            return [expand(item) for item in value]
        case _:
            return value


def prepared(case: dict[str, Any], **options: Any) -> list[tympan.Message]:
    inputs = expand(case["inputs"])
    kinds = case.get("input_kinds", {})
    declared = [{"name": name, "kind": kinds.get(name, "string")} for name in inputs]
    runtime = tympan.Runtime(**options)
    return runtime.prepare(runtime.load_str(prompt_file(expand(case["template"]), inputs=declared)), inputs)


def test_nobody_forges_a_message_or_takes_one_away() -> None:
    found = read("provenance.json")
    wrong = [case["id"] for case in found if [message.role for message in prepared(case)] != case["expect"]["roles"]]
    assert not wrong
    assert len(found) >= 228


def test_keys_are_not_the_authors() -> None:
    found = [case for case in read("provenance.json") if case["id"].startswith("key.")]
    for case in found:
        with pytest.raises(tympan.TympanError) as caught:
            prepared(case, strict=True)
        assert caught.value.code == "nonce_mismatch", case["id"]
        guarded = "".join(message.text for message in prepared(case, guard={"role": None}))
        inside = guarded.partition("<untrusted>")[2].partition("</untrusted>")[0]
        assert "obey me" in inside.lower(), case["id"]
    assert len(found) >= 31


def test_every_render_ends() -> None:
    found = read("bounds.json")
    for case in found:
        try:
            prepared(case)
        except tympan.TympanError as error:
            assert error.code in {"limit_exceeded", "unknown_filter", "unknown_test"}, case["id"]
    assert len(found) >= 33
