"""Policies, and the segments of messages, give the same results as in Rust and Node."""

from __future__ import annotations

import asyncio
import json
from typing import Any, Callable

import pytest
from conftest import FIXTURES

import tympan

POLICY = json.loads((FIXTURES / "bindings" / "policy.json").read_text("utf-8"))
SEGMENTS = json.loads((FIXTURES / "bindings" / "segments.json").read_text("utf-8"))
ECHO: Any = {"provider": "echo"}

WAYS: dict[str, Callable[[tympan.Runtime, tympan.Prompt, Any], object]] = {
    "render": lambda runtime, prompt, inputs: runtime.render(prompt, inputs),
    "messages": lambda runtime, prompt, inputs: runtime.parse(prompt, tympan.Runtime().render(prompt, inputs)),
    "prepare": lambda runtime, prompt, inputs: runtime.prepare(prompt, inputs),
    "run": lambda runtime, prompt, inputs: runtime.invoke(prompt, inputs, **ECHO),
    "turn": lambda runtime, prompt, inputs: runtime.turn(prompt, inputs, run=ECHO),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", POLICY, ids=lambda case: case["name"])
def test_every_way_enforces_the_policy(case: dict[str, Any], way: str) -> None:
    runtime = tympan.Runtime(policy=case["policy"])
    prompt = runtime.load_str(case["prompt"])
    if case["error"] is None:
        WAYS[way](runtime, prompt, case["inputs"])
        return
    with pytest.raises(tympan.TympanError) as caught:
        WAYS[way](runtime, prompt, case["inputs"])
    assert (caught.value.code, caught.value.line) == ("policy_violation", case["error"]["line"])
    assert case["error"]["input"] in str(caught.value)


@pytest.mark.parametrize("case", POLICY, ids=lambda case: case["name"])
def test_a_render_can_have_its_own_policy(case: dict[str, Any]) -> None:
    runtime = tympan.Runtime()
    prompt = runtime.load_str(case["prompt"])
    ways: list[Callable[[], object]] = [
        lambda: runtime.render(prompt, case["inputs"], policy=case["policy"]),
        lambda: prompt.render(case["inputs"], policy=case["policy"]),
        lambda: asyncio.run(runtime.render_async(prompt, case["inputs"], policy=case["policy"])),
    ]
    for way in ways:
        if case["error"] is None:
            way()
            continue
        with pytest.raises(tympan.TympanError) as caught:
            way()
        assert (caught.value.code, caught.value.line) == ("policy_violation", case["error"]["line"])


def test_a_render_cannot_allow_more_than_the_runtime() -> None:
    runtime = tympan.Runtime(policy={"untrusted": ["user"]})
    prompt = runtime.load_str("system:\n{{ q }}")
    with pytest.raises(tympan.TympanError, match="policy"):
        runtime.render(prompt, {"q": "Hi"}, policy={"untrusted": ["system", "user"]})
    unknown: Any = {"untrusted": ["nobody"]}
    with pytest.raises(tympan.TympanError, match="untrusted"):
        runtime.render(prompt, {"q": "Hi"}, policy=unknown)


@pytest.mark.parametrize("case", SEGMENTS, ids=lambda case: case["name"])
def test_messages_name_the_inputs_of_their_bytes(case: dict[str, Any]) -> None:
    runtime = tympan.Runtime()
    prompt = runtime.load_str(case["prompt"])
    rendered = runtime.render(prompt, case["inputs"])
    assert prompt.messages_with_segments(rendered) == case["messages"]
