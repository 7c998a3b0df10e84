"""Model calls: results, streams and cassettes, with the built-in `echo` provider."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import json
from typing import Any, Optional, TypedDict

import pydantic
import pytest
from conftest import FIXTURES, ROOT

import tympan

ECHO = ROOT / "examples" / "echo.prompty"
EXTRACT = ROOT / "examples" / "extract.prompty"
LETTER = {"letter": 'Three copies of "Printing with Wood", please.'}
QUESTION = {"question": "What is a tympan?"}


class Order(pydantic.BaseModel):
    title: str
    copies: int
    urgent: bool


@dataclasses.dataclass
class PlainOrder:
    title: str
    copies: float
    urgent: Optional[bool] = None


class OrderDict(TypedDict):
    title: str
    copies: int
    urgent: bool


def test_invoke_takes_a_path_or_a_prompt() -> None:
    assert tympan.invoke(ECHO, QUESTION).result == "What is a tympan?"
    run = tympan.invoke(tympan.load(ECHO), QUESTION)
    assert (run.kind, run.result, run.problems) == ("text", "What is a tympan?", [])
    assert run.usage is not None and run.usage.total_tokens == run.usage.input_tokens + run.usage.output_tokens
    assert run.usage.to_dict()["total_tokens"] == run.usage.total_tokens


def test_run_takes_messages_of_ours_or_plain_data() -> None:
    prompt = tympan.load(ECHO)
    ours = tympan.prepare(prompt, QUESTION)
    plain = [message.to_dict() for message in ours]
    assert tympan.run(prompt, ours).result == tympan.run(prompt, plain).result == "What is a tympan?"


def test_results_are_cast() -> None:
    run = tympan.invoke(EXTRACT, LETTER, provider="echo")
    assert run.kind == "structured"
    assert run.cast(Order) == Order(title="Printing with Wood", copies=3, urgent=False)
    assert run.cast(PlainOrder) == PlainOrder("Printing with Wood", 3.0, False)
    assert type(run.cast(PlainOrder).copies) is float
    order = run.cast(OrderDict)
    assert order["copies"] == 3


def test_results_that_do_not_fit_are_refused() -> None:
    @dataclasses.dataclass
    class Other:
        title: int

    class Colour(enum.Enum):
        RED = "red"

    run = tympan.invoke(EXTRACT, LETTER, provider="echo")
    with pytest.raises(tympan.TympanValueError) as caught:
        run.cast(Other)
    assert caught.value.code == "invalid_result"
    assert "Wood" not in str(caught.value)
    with pytest.raises(tympan.TympanValueError):
        run.cast(Colour)
    with pytest.raises(tympan.TympanValueError, match="model_type") as caught:
        tympan.invoke(ECHO, QUESTION).cast(Order)
    assert caught.value.code == "invalid_result"
    with pytest.raises(TypeError):
        run.cast(complex)


def test_process_makes_a_result_of_an_answer() -> None:
    prompt = tympan.load_str("---\nmodel: {id: m, provider: openai}\n---\nuser:\nHi")
    body = {"choices": [{"message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}], "model": "m1"}
    for form in (body, json.dumps(body), json.dumps(body).encode()):
        run = tympan.process(prompt, form)
        assert (run.result, run.finish_reason, run.model) == ("Hello", "stop", "m1")
    with pytest.raises(tympan.TympanValueError) as caught:
        tympan.process(prompt, "<html>")
    assert caught.value.code


def test_a_stream_is_an_iterator() -> None:
    prompt = tympan.load(ECHO)
    with tympan.stream(prompt, tympan.prepare(prompt, QUESTION)) as stream:
        steps = list(stream)
        assert "".join(step.text for step in steps if step.kind == "text") == "What is a tympan?"
        usage = steps[-1].usage
        assert steps[-1].kind == "usage" and usage is not None and usage.total_tokens > 0
        assert stream.finish().result == "What is a tympan?"
    with pytest.raises(tympan.TympanValueError):
        stream.finish()
    assert list(stream) == []


def test_a_stream_is_an_async_iterator() -> None:
    async def read() -> tuple[str, Any]:
        prompt = await tympan.load_async(ECHO)
        stream = await tympan.stream_async(prompt, await tympan.prepare_async(prompt, QUESTION))
        text = ""
        async for step in stream:
            text += step.text
        return text, (await stream.finish_async()).result

    assert asyncio.run(read()) == ("What is a tympan?", "What is a tympan?")


def test_the_async_twins_come_to_the_same() -> None:
    async def work() -> None:
        prompt = await tympan.load_async(ECHO)
        rendered = await tympan.render_async(prompt, QUESTION)
        messages = await tympan.parse_async(prompt, rendered)
        assert messages == tympan.prepare(prompt, QUESTION)
        assert (await tympan.run_async(prompt, messages)).result == "What is a tympan?"
        runs = await asyncio.gather(*(tympan.invoke_async(ECHO, {"question": str(i)}) for i in range(20)))
        assert [run.result for run in runs] == [str(i) for i in range(20)]
        task = asyncio.create_task(tympan.turn_async(ECHO, QUESTION))
        assert (await task).result == "What is a tympan?"
        body = json.dumps({"choices": [{"message": {"content": "Hello"}}]})
        assert (await tympan.process_async(prompt, body, provider="openai")).result == "Hello"
        with pytest.raises(FileNotFoundError):
            await tympan.invoke_async("no/such.prompty")

    asyncio.run(work())


def test_answers_are_replayed_from_a_cassette() -> None:
    runtime = tympan.Runtime(cassette={"replay": FIXTURES / "cassette"})
    prompt = runtime.load(EXTRACT)
    sample = {property.name: property.example for property in prompt.inputs if property.example is not None}
    run = runtime.stream(prompt, runtime.prepare(prompt, sample)).finish()
    assert run.result == {"title": "Printing with Wood", "copies": 3, "urgent": True}
    with pytest.raises(tympan.TympanValueError) as caught:
        runtime.invoke(prompt, {"letter": "Hello"})
    assert caught.value.code == "unknown_exchange"


def test_what_a_caller_wants_is_checked() -> None:
    with pytest.raises(tympan.TympanValueError, match="modle"):
        tympan.invoke(ECHO, QUESTION, modle="m")  # type: ignore[call-arg]
    with pytest.raises(tympan.TympanValueError, match="expected a prompt"):
        tympan.invoke(7, QUESTION)  # type: ignore[arg-type]
    with pytest.raises(tympan.TympanValueError, match="messages: expected a list"):
        tympan.run(tympan.load(ECHO), "Hi")  # type: ignore[arg-type]
