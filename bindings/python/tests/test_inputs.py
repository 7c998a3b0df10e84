"""Inputs without a value, the check of kinds, and warnings about inputs."""

from __future__ import annotations

import asyncio
import json
import warnings
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT

import tympan


def cases(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((ROOT / "fixtures/inputs" / name).read_text("utf-8"))
    return found


@pytest.mark.parametrize("case", cases("optional.json"), ids=lambda case: case["name"])
def test_optional_inputs(case: dict[str, Any]) -> None:
    source = f"---\ntemplate: {case.get('template', 'jinja2')}\ninputs:\n  {case['declared']}\n---\n{case['body']}"
    prompt = tympan.load_str(source)
    if "error" in case:
        with pytest.raises(tympan.TympanError) as caught:
            prompt.render(case.get("inputs"))
        assert caught.value.code == case["error"]
        return
    rendered = prompt.render(case.get("inputs"))
    assert rendered == case.get("text", rendered)
    roles = [message.role for message in prompt.messages(rendered)]
    assert roles == case.get("roles", roles)


@pytest.mark.parametrize("case", cases("kinds.json"), ids=lambda case: case["name"])
def test_kinds(case: dict[str, Any]) -> None:
    prompt = tympan.load_str(f"---\ninputs:\n  x: {case['declared']}\n---\nuser:\nHi")
    strict, warning = tympan.Runtime(kinds="error"), tympan.Runtime(kinds="warn")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in case["accepted"]:
            for kinds in ("off", "warn", "error"):
                prompt.render({"x": value}, kinds=kinds)
            strict.validate_inputs(prompt, {"x": value})
        # A thread becomes messages, so it is read in any case.
        for value, _ in [] if case.get("always_read") else case["refused"]:
            prompt.render({"x": value})
    for value, found in case["refused"]:
        path = case.get("path", "x")
        message = f"input `{path}`: expected {case['expected']}, found {found}"
        for attempt in (
            lambda value=value: prompt.render({"x": value}, kinds="error"),
            lambda value=value: strict.render(prompt, {"x": value}),
            lambda value=value: strict.prepare(prompt, {"x": value}),
            lambda value=value: strict.validate_inputs(prompt, {"x": value}),
        ):
            with pytest.raises(tympan.TympanValueError) as caught:
                attempt()
            assert caught.value.code == "invalid_input"
            assert message in str(caught.value)
        if case.get("always_read"):
            continue
        for attempt in (
            lambda value=value: prompt.render({"x": value}, kinds="warn"),
            lambda value=value: warning.prepare(prompt, {"x": value}),
        ):
            with pytest.warns(tympan.InputWarning) as caught_warnings:
                attempt()
            assert str(caught_warnings[0].message).startswith(message)


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(tympan.TympanValueError):
        tympan.load_str("Hi").render({}, kinds="maybe")  # type: ignore[arg-type]


def test_unknown_inputs_are_warnings() -> None:
    prompt = tympan.load_str("---\ninputs:\n  question: {kind: string}\n---\nuser:\n{{ question }}{{ extra }}")
    inputs = {"question": "a", "extra": "b"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prompt.render(inputs)
        tympan.prepare(prompt, inputs)
    for attempt in (
        lambda: prompt.render({**inputs, "questoin": "c"}),
        lambda: tympan.render(prompt, {**inputs, "questoin": "c"}),
        lambda: tympan.prepare(prompt, {**inputs, "questoin": "c"}),
        lambda: tympan.validate_inputs(prompt, {**inputs, "questoin": "c"}),
        lambda: tympan.Composition().push(prompt, {**inputs, "questoin": "c"}),
    ):
        with pytest.warns(tympan.InputWarning) as caught:
            attempt()
        assert [str(one.message) for one in caught] == [
            "the prompt has no input `questoin`; did you mean `question`?"
        ]
        assert caught[0].filename == __file__


def test_a_filter_can_turn_warnings_into_errors() -> None:
    prompt = tympan.load_str("Hi")
    with warnings.catch_warnings():
        warnings.simplefilter("error", tympan.InputWarning)
        with pytest.raises(tympan.InputWarning):
            prompt.render({"no\0pe": 1})


def test_prompts_given_as_a_path_warn_as_well(tmp_path: Path) -> None:
    path = tmp_path / "a.prompty"
    path.write_text("---\nmodel: {id: echo, provider: echo}\n---\nuser:\n{{ question }}\n", "utf-8")
    inputs = {"question": "a", "questoin": "b"}
    for attempt in (
        lambda: tympan.invoke(path, inputs),
        lambda: tympan.turn(path, inputs),
        lambda: asyncio.run(tympan.invoke_async(path, inputs)),
        lambda: asyncio.run(tympan.turn_async(path, inputs)),
    ):
        with pytest.warns(tympan.InputWarning) as caught:
            attempt()
        assert [str(one.message) for one in caught] == [
            "the prompt has no input `questoin`; did you mean `question`?"
        ]
        with warnings.catch_warnings():
            warnings.simplefilter("error", tympan.InputWarning)
            with pytest.raises(tympan.InputWarning):
                attempt()
