"""Turns: tools, events, cancellation and journals."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import json
import os
import threading
from pathlib import Path
from typing import Any, Literal, Optional

import pydantic
import pytest
from conftest import prompt_file

import tympan

CITY = {"city": "Paris"}


def weather_prompt(*calls: dict[str, Any], name: str = "weather", parameters: Any = None) -> tympan.Prompt:
    """Returns a prompt whose fake model calls a tool with each of these arguments and then answers."""
    script: list[Any] = [{"tool_calls": [{"name": name, "arguments": call}]} for call in calls]
    script.append({"text": "That was all."})
    if parameters is None:
        parameters = {"properties": [{"name": "city", "kind": "string", "required": True}]}
    tools = [{"name": name, "kind": "function", "parameters": parameters}]
    model = {"provider": "echo", "options": {"additionalProperties": {"script": script}}}
    return tympan.load_str(prompt_file("user:\nHow is the weather?", model=model, tools=tools))


def results(run: tympan.TurnRun) -> list[str]:
    return [message.text for message in run.messages if message.role == "tool"]


def test_a_tool_is_a_function() -> None:
    def weather(city: str) -> str:
        return f"sunny in {city}"

    run = tympan.turn(weather_prompt(CITY), tools={"weather": weather})
    assert (run.result, run.rounds, results(run)) == ("That was all.", 2, ["sunny in Paris"])
    assert run.usage.total_tokens > 0 and run.run.kind == "text" and run.resumed_records is None
    assert results(tympan.turn(weather_prompt(CITY), tools=[weather])) == ["sunny in Paris"]
    assert tympan.invoke_agent(weather_prompt(CITY), tools=[weather]).result == "That was all."


def test_a_tool_may_be_async_also_where_nothing_else_is() -> None:
    async def weather(city: str) -> dict[str, str]:
        await asyncio.sleep(0)
        return {"city": city}

    assert results(tympan.turn(weather_prompt(CITY), tools=[weather])) == ['{"city":"Paris"}']
    run = asyncio.run(tympan.turn_async(weather_prompt(CITY), tools=[weather]))
    assert results(run) == ['{"city":"Paris"}']


def test_an_async_tool_runs_on_the_loop_of_its_caller() -> None:
    async def work() -> None:
        here = asyncio.get_running_loop()

        async def weather(city: str) -> str:
            assert asyncio.get_running_loop() is here
            return city

        assert results(await tympan.turn_async(weather_prompt(CITY), tools=[weather])) == ["Paris"]

    asyncio.run(work())


def test_the_words_of_a_tools_exception_reach_the_model() -> None:
    def weather(city: str) -> str:
        raise LookupError("nobody knows")

    async def weather_async(city: str) -> str:
        raise LookupError("nobody knows")

    for tool in (weather, weather_async):
        (result,) = results(tympan.turn(weather_prompt(CITY), tools={"weather": tool}))
        assert "LookupError: nobody knows" in result


def test_a_tool_may_return_parts() -> None:
    def weather(city: str) -> list[tympan.Part]:
        return [tympan.Part("text", "See:"), tympan.Part("image", b"\x89PNG", "image/png")]

    run = tympan.turn(weather_prompt(CITY), tools=[weather])
    (message,) = [message for message in run.messages if message.role == "tool"]
    assert [part.kind for part in message.content] == ["text", "image"]


def test_what_is_meant_for_the_program_is_no_matter_for_the_model() -> None:
    def weather(city: str) -> str:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        tympan.turn(weather_prompt(CITY), tools=[weather])


def test_a_tool_that_nobody_runs_is_known_before_the_model_is_called() -> None:
    with pytest.raises(tympan.TympanValueError) as caught:
        tympan.turn(weather_prompt(CITY))
    assert caught.value.code == "tool_not_registered"
    with pytest.raises(tympan.TympanValueError, match="tool: expected a function"):
        tympan.turn(weather_prompt(CITY), tools={"weather": 7})  # type: ignore[dict-item]


def test_tools_are_registered_with_a_runtime() -> None:
    runtime = tympan.Runtime()
    runtime.register_tool("weather", lambda city: city)
    assert results(runtime.turn(weather_prompt(CITY))) == ["Paris"]
    runtime.clear_tools()
    with pytest.raises(tympan.TympanValueError):
        runtime.turn(weather_prompt(CITY))


class Unit(enum.Enum):
    CELSIUS = "celsius"
    KELVIN = "kelvin"


@dataclasses.dataclass
class Place:
    city: str
    country: Optional[str] = None


class Day(pydantic.BaseModel):
    number: int


@tympan.tool
def forecast(place: Place, day: Day, unit: Unit = Unit.CELSIUS, detail: Literal["low", "high"] = "low") -> str:
    """Says what the weather
    is going to be.

    Args:
        place: Where it is asked for,
            as people call it.
        unit: The unit of the answer.

    Returns:
        A sentence.
    """
    return f"{place.city} {day.number} {unit.name} {detail}"


def test_the_schema_of_a_tool_comes_from_its_annotations_and_docstring() -> None:
    assert (forecast.name, forecast.description) == ("forecast", "Says what the weather is going to be.")
    properties = forecast.parameters["properties"]
    assert forecast.parameters["required"] == ["place", "day"]
    assert properties["place"]["properties"]["city"] == {"type": "string"}
    assert properties["place"]["description"] == "Where it is asked for, as people call it."
    assert properties["unit"] == {"enum": ["celsius", "kelvin"], "description": "The unit of the answer."}
    assert properties["detail"] == {"enum": ["low", "high"]}
    assert properties["day"]["properties"]["number"]["type"] == "integer"
    assert forecast(Place("Rome"), Day(number=1)) == "Rome 1 CELSIUS low"
    assert repr(forecast) == "Tool(name='forecast')"


def test_the_arguments_of_a_decorated_tool_are_what_its_annotations_say() -> None:
    call = {"place": {"city": "Rome"}, "day": {"number": 2}, "unit": "kelvin"}
    units = {"name": "unit", "kind": "string", "enumValues": ["celsius", "kelvin"]}
    place = {"name": "place", "kind": "object", "required": True}
    parameters = {"properties": [place, {**place, "name": "day"}, units]}
    prompt = weather_prompt(call, name="forecast", parameters=parameters)
    assert results(tympan.turn(prompt, tools={"forecast": forecast})) == ["Rome 2 KELVIN low"]
    wrong = weather_prompt({**call, "place": {"town": "Rome"}}, name="forecast", parameters=parameters)
    (result,) = results(tympan.turn(wrong, tools={"forecast": forecast}))
    assert "`place.city`: expected a value, found none" in result


def test_a_tool_has_a_name_a_timeout_and_a_schema_of_the_hosts_choice() -> None:
    @tympan.tool(name="weather", timeout=0.05, parameters={"type": "object", "properties": {"city": {"type": "string"}}})
    async def slow(city: str) -> str:
        await asyncio.Event().wait()
        return city

    (result,) = results(tympan.turn(weather_prompt(CITY), tools=[slow]))
    assert "timed out" in result


def test_functions_that_make_no_tools_are_refused() -> None:
    def bare(city) -> str:  # type: ignore[no-untyped-def]
        return ""

    def rest(*cities: str) -> str:
        return ""

    def odd(city: complex) -> str:
        return ""

    functions: list[Any] = [bare, rest, odd]
    for function in functions:
        with pytest.raises(TypeError):
            tympan.tool(function)


def test_tools_are_bound_to_what_a_prompt_declares() -> None:
    @tympan.tool
    def weather(city: str) -> str:
        return city

    @tympan.tool(name="weather")
    def other(town: int) -> str:
        return str(town)

    prompt = weather_prompt(CITY)
    bound = tympan.bind_tools(prompt, [weather])
    assert results(tympan.turn(prompt, tools=bound)) == ["Paris"]
    for wrong in ({"wether": weather}, [other]):
        with pytest.raises(tympan.TympanValueError) as caught:
            tympan.bind_tools(prompt, wrong)
        assert caught.value.code == "tool_mismatch"


def test_events_come_in_order_and_in_the_callers_thread() -> None:
    events: list[tympan.Event] = []
    threads: set[int] = set()

    def on_event(event: tympan.Event) -> None:
        events.append(event)
        threads.add(threading.get_ident())

    tympan.turn(weather_prompt(CITY), tools={"weather": lambda city: city}, on_event=on_event)
    kinds = [event.kind for event in events]
    assert kinds.index("tool_call_start") < kinds.index("tool_result") < kinds.index("token") < kinds.index("done")
    assert kinds[-1] == "done" and events[-1].data["response"] == "That was all."
    (called,) = [event.data for event in events if event.kind == "tool_call_start"]
    assert (called["name"], json.loads(called["arguments"])) == ("weather", CITY)
    (result,) = [event.data for event in events if event.kind == "tool_result"]
    assert (result["parts"][0]["value"], result["error"]) == ("Paris", None)
    assert "".join(event.data["text"] for event in events if event.kind == "token") == "That was all."
    assert threads == {threading.get_ident()}

    async def watch() -> None:
        queue: asyncio.Queue[tympan.Event] = asyncio.Queue()
        await tympan.turn_async(
            weather_prompt(CITY), tools={"weather": lambda city: city}, on_event=queue.put_nowait
        )
        assert [queue.get_nowait().kind for _ in range(queue.qsize())] == kinds

    asyncio.run(watch())


class Mine(Exception):
    pass


@pytest.mark.parametrize("hook", ["on_event", "approve", "judge_input", "judge_output", "judge_tool"])
def test_the_exception_of_a_callback_comes_back_as_itself(hook: str) -> None:
    def fail(_: Any) -> Any:
        raise Mine(hook)

    def go(**hooks: Any) -> Any:
        return {"tools": {"weather": lambda city: city}, "approve_all": hook == "approve", **hooks}

    with pytest.raises(Mine, match=hook):
        tympan.turn(weather_prompt(CITY), **go(**{hook: fail}))
    with pytest.raises(Mine, match=hook):
        asyncio.run(tympan.turn_async(weather_prompt(CITY), **go(**{hook: fail})))


def test_tools_are_approved_of_or_not() -> None:
    asked: list[Any] = []

    def approve(run: Any) -> bool:
        asked.append(run)
        return True

    async def refuse(run: Any) -> str:
        return "not on a Sunday"

    tools = {"weather": lambda city: city}
    assert results(tympan.turn(weather_prompt(CITY), tools=tools, approve=approve, approve_all=True)) == ["Paris"]
    assert (asked[0]["name"], asked[0]["arguments"]) == ("weather", CITY)
    (result,) = results(tympan.turn(weather_prompt(CITY), tools=tools, approve=refuse, approve_all=True))
    assert "not on a Sunday" in result
    # A missing answer is not an approval.
    (result,) = results(tympan.turn(weather_prompt(CITY), tools=tools, approve=lambda run: None, approve_all=True))
    assert "the approver did not approve it" in result

    @tympan.tool(needs_approval=True)
    def weather(city: str) -> str:
        return city

    (result,) = results(tympan.turn(weather_prompt(CITY), tools=[weather]))
    assert result != "Paris"


def test_what_is_said_is_judged() -> None:
    tools = {"weather": lambda city: city}
    (result,) = results(tympan.turn(weather_prompt(CITY), tools=tools, judge_tool=lambda run: "no " + run["name"]))
    assert "no weather" in result
    seen: list[str] = []
    with pytest.raises(tympan.TympanRuntimeError, match="not that") as caught:
        tympan.turn(
            weather_prompt(CITY),
            tools=tools,
            judge_input=lambda messages: seen.append(messages[0].text),
            judge_output=lambda message: None if message.text != "That was all." else "not that",
        )
    assert caught.value.code == "guardrail"
    assert seen[0] == "How is the weather?"


def test_a_turn_is_cancelled_by_its_token() -> None:
    cancel = tympan.CancelToken()

    def weather(city: str) -> str:
        cancel.cancel()
        return city

    with pytest.raises(tympan.TympanRuntimeError) as caught:
        tympan.turn(weather_prompt(CITY), tools=[weather], cancel=cancel)
    assert caught.value.code == "cancelled" and cancel.is_cancelled


def test_a_turn_is_cancelled_with_its_task() -> None:
    async def work() -> None:
        begun, ended = asyncio.Event(), asyncio.Event()

        async def weather(city: str) -> str:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            return city

        task = asyncio.create_task(tympan.turn_async(weather_prompt(CITY), tools=[weather]))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # The tool is cancelled as well.
        await asyncio.wait_for(ended.wait(), 10)

    asyncio.run(work())


def test_a_turn_is_spoken_into() -> None:
    steering = tympan.Steering()
    said: list[bool] = []

    def weather(city: str) -> str:
        if not said:
            steering.send("And in Rome?")
            said.append(steering.has_pending)
        return city

    run = tympan.turn(weather_prompt(CITY), tools=[weather], steering=steering)
    assert any(message.role == "user" and message.text == "And in Rome?" for message in run.messages)
    assert said == [True] and not steering.has_pending


def test_a_turn_that_died_is_resumed(tmp_path: Path) -> None:
    journal = tmp_path / "turn.journal"
    prompt = weather_prompt(CITY, {"city": "Rome"})
    called: list[str] = []

    def weather(city: str) -> str:
        called.append(city)
        if len(called) == 2:
            raise KeyboardInterrupt
        return city

    with pytest.raises(KeyboardInterrupt):
        tympan.turn(prompt, tools=[weather], journal=journal)
    run = tympan.resume(prompt, tools=[weather], journal=journal)
    assert run.resumed_records is not None and run.resumed_records > 0
    assert results(run)[0] == "Paris" and called.count("Paris") == 1
    again = asyncio.run(tympan.resume_async(prompt, tools=[weather], journal=journal))
    assert again.messages == run.messages and len(called) == 2
    other = tympan.load_str("user:\nSomething else")
    with pytest.raises(tympan.TympanValueError) as caught:
        tympan.resume(other, journal=journal)
    assert caught.value.code == "journal_mismatch"


def test_a_key_that_a_tool_repeats_is_in_no_journal(tmp_path: Path) -> None:
    key = "Horse/Battery+staple"
    script = [{"tool_calls": [{"name": "weather", "arguments": CITY}]}, {"text": "Done."}]
    connection = {"kind": "key", "apiKey": key}
    model = {"provider": "echo", "connection": connection, "options": {"additionalProperties": {"script": script}}}
    tools = [{"name": "weather", "kind": "function", "parameters": [{"name": "city", "kind": "string"}]}]
    prompt = tympan.load_str(prompt_file("user:\nHi", model=model, tools=tools))
    journal = tmp_path / "turn.journal"
    disguised = "".join(f"%{byte:02x}" for byte in key.encode())

    def weather(city: str) -> str:
        return f"{key} {key.upper()} {disguised}"

    run = tympan.turn(prompt, tools=[weather], journal=journal)
    assert results(run) == [f"{key} {key.upper()} {disguised}"]
    kept = journal.read_text()
    assert "[REDACTED] [REDACTED] [REDACTED]" in kept
    assert "attery" not in kept and "BATTERY" not in kept and "%48" not in kept
    assert results(tympan.resume(prompt, tools=[weather], journal=journal)) == ["[REDACTED] [REDACTED] [REDACTED]"]


@pytest.mark.skipif(os.name == "nt", reason="pipes are no files there")
def test_only_regular_files_are_read(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in [pipe, Path("/dev/zero")]:
        with pytest.raises(Exception, match="not a regular file"):
            tympan.load(path)
        with pytest.raises(Exception, match="not a regular file"):
            tympan.resume(weather_prompt(), journal=path)


def test_bounds_hold_and_are_checked() -> None:
    with pytest.raises(tympan.TympanValueError, match="max_iteration"):
        tympan.turn(weather_prompt(CITY), max_iteration=3)  # type: ignore[call-arg]
    with pytest.raises(tympan.TympanRuntimeError) as caught:
        tympan.turn(weather_prompt(CITY, CITY), tools={"weather": lambda city: city}, max_iterations=1)
    assert caught.value.code == "max_iterations"


def test_turns_within_a_turn_share_its_bounds(tmp_path: Path) -> None:
    calls = {"tool_calls": [{"name": "again", "arguments": {}}] * 3}
    model = {"provider": "echo", "options": {"additionalProperties": {"script": [calls] * 20}}}
    tools = [{"name": "again", "kind": "prompty", "path": "self.prompty", "mode": "agentic"}]
    (tmp_path / "self.prompty").write_text(prompt_file("user:\nGo.", model=model, tools=tools))
    prompt = tympan.load(tmp_path / "self.prompty")
    with pytest.raises(tympan.TympanError) as failed:
        tympan.turn(prompt)
    assert failed.value.code == "turn_limit" and "100 model calls" in str(failed.value)
    with pytest.raises(tympan.TympanError, match="7 model calls"):
        tympan.turn(prompt, max_model_calls=7)
