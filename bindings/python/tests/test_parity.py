"""Prompts and answers give the same results as in Rust and Node."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conftest import FIXTURES, ROOT, prompt_file

import tympan

PARITY = json.loads((FIXTURES / "bindings" / "parity.json").read_text("utf-8"))
RESPONSES = sorted((FIXTURES / "response").glob("*/*.json"))
MODELS = {
    "anthropic_messages": {"provider": "anthropic"},
    "openai_chat": {"provider": "openai"},
    "openai_embeddings": {"provider": "openai", "apiType": "embedding"},
    "openai_images": {"provider": "openai", "apiType": "image"},
    "openai_responses": {"provider": "openai", "apiType": "responses"},
}


def outcome(case: dict[str, Any]) -> dict[str, Any]:
    runtime = tympan.Runtime(guard=case.get("guard", False))
    prompt = runtime.load(ROOT / case["file"], validator=False)
    rendered = runtime.render(prompt, case["inputs"], variant=case.get("variant"))
    segments = [{"text": s.text, "origins": s.origins, "trusted": s.trusted} for s in rendered.segments]
    return {
        "name": prompt.name,
        "definition_hash": prompt.definition_hash,
        "template_hash": rendered.template_hash,
        "render_hash": rendered.render_hash,
        "variant": rendered.variant,
        "text": str(rendered),
        "segments": segments,
        "messages": [message.to_dict() for message in runtime.parse(prompt, rendered)],
    }


def refusal(error: tympan.TympanError) -> dict[str, Any]:
    family = next(base.__name__ for base in type(error).__mro__ if not base.__name__.startswith("Tympan"))
    return {"class": family, "code": error.code, "help": error.help, "line": error.line, "column": error.column}


@pytest.mark.parametrize("case", PARITY, ids=lambda case: str(case["file"]))
def test_prompts(case: dict[str, Any]) -> None:
    try:
        became = outcome(case)
    except tympan.TympanError as error:
        became = refusal(error)
    assert became == case["expected"]


@pytest.mark.parametrize("path", RESPONSES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_answers(path: Any) -> None:
    case = json.loads(path.read_text("utf-8"))
    front_matter = {"model": {"id": "m", **MODELS[path.parent.name]}, "outputs": case.get("outputs") or []}
    prompt = tympan.load_str(prompt_file("user:\nHi", **front_matter))
    expected = case["expected"]
    if "error" in expected:
        with pytest.raises(tympan.TympanError) as caught:
            tympan.process(prompt, case["response"])
        assert caught.value.code == expected["error"] and expected.get("message", "") in str(caught.value)
        return
    run = tympan.process(prompt, case["response"])
    assert run.result == expected["result"]
    said = {"id": run.id, "model": run.model, "finish_reason": run.finish_reason, "problems": run.problems}
    for key, value in {**said, "usage": run.usage and run.usage.to_dict()}.items():
        assert expected.get(key) in (None, value), key


def test_there_are_answers() -> None:
    assert len(RESPONSES) >= 45
