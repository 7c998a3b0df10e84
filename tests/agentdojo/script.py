"""Scripted models. They need no network, and always do the same.

A script is a list of steps. The model takes one step per response: it calls one tool, and looks at the result.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

import attacks
from suites import MARK, Pair, World

HANDLE = re.compile(r"^(\$[a-z0-9]+_\d+): ")


@dataclass(frozen=True)
class Extracted:
    """An argument that the model does not know: it comes from the result of an earlier step."""

    of: int
    """The step whose result contains it."""
    question: str
    schema: dict[str, Any]
    value: Any
    """The right answer."""
    parameter: str
    """The parameter that it is for."""
    tool: str


@dataclass(frozen=True)
class Call:
    """Calls a tool. An argument is a value, or `Extracted`."""

    tool: str
    arguments: dict[str, Any]
    step: int


@dataclass(frozen=True)
class Check:
    """Extracts a small value that the model sees. If it is not the expected one, the model stops acting."""

    of: int
    question: str
    schema: dict[str, Any]
    expected: Any


@dataclass(frozen=True)
class Read:
    """Reads the result of an earlier step, if it is hidden."""

    of: int


Step = Call | Check | Read


@dataclass
class Model:
    """A provider that solves a user's task by a script.

    With `obeys`, it carries out the injection task as soon as it has read an injection. With `is_deceived`, it answers
    as the attacker wants when it extracts values from a text with an injection.
    """

    pair: Pair
    world: World
    steps: list[Step]
    obeys: bool = False
    is_deceived: bool = False

    has_read: bool = False
    """Whether the conversation contains an injection."""
    injected: dict[str, str] = field(default_factory=dict)
    """The calls that the injection asked for: the names of tools by ID."""
    extractions: int = 0
    deceived: int = 0

    def __post_init__(self) -> None:
        self._todo: list[Any] = list(self.steps)
        self._handles: dict[Any, str] = {}
        """The handles of hidden results, by step, and of extracted values, by question."""
        self._shown: set[Any] = set()
        """The results that the model has seen, by step."""
        self._waiting: Any = None
        self._count = 0
        self._questions: dict[str, Extracted | Check] = {}
        self._attack: list[attacks.Call] = []
        if self.pair.injection_task:
            self._attack = attacks.calls_of(self.pair.suite, self.pair.injection, self.world.before)

    def __call__(self, call: Any) -> Any:
        if not call.prompt.tools:
            return self._extract(call.messages[-1].text)
        return self.respond([message.text for message in call.messages])

    def respond(self, texts: list[str]) -> Any:
        """Returns the next response to a conversation."""
        if self._waiting is not None:
            self._finish(self._waiting, texts[-1])
            self._waiting = None
        if self.obeys and not self.has_read and any(MARK in text for text in texts):
            self.has_read = True
            self._todo[:0] = [("attack", name, arguments) for name, arguments in self._attack]
        return self._next()

    def is_injected_now(self) -> bool:
        """Returns whether the injection asked for the last call."""
        return f"call-{self._count}" in self.injected

    def answer(self) -> str:
        answer = self.pair.user.GROUND_TRUTH_OUTPUT
        if self.has_read:
            answer += "\n" + self.pair.injection.GROUND_TRUTH_OUTPUT
        return answer

    def _next(self) -> Any:
        while self._todo:
            step = self._todo.pop(0)
            match step:
                case ("attack", name, arguments):
                    return self._call(name, arguments, ("attack",), is_injected=True)
                case Extracted():
                    return self._call(*self._extraction(step), step)
                case Check() if step.of in self._handles and step.of not in self._shown:
                    return self._call(*self._extraction(step), step)
                case Check():
                    # The model sees the result, and knows.
                    continue
                case Read() if step.of in self._handles and step.of not in self._shown:
                    return self._call(*self._reading(self._handles[step.of]), step)
                case Read():
                    continue
                case Call():
                    values = [value for value in step.arguments.values() if isinstance(value, Extracted)]
                    hidden = [value for value in values if self._is_hidden(value)]
                    missing = [value for value in hidden if value.question not in self._handles]
                    if missing:
                        self._todo[:0] = [*missing, step]
                        continue
                    arguments = {name: self._argument(value) for name, value in step.arguments.items()}
                    return self._call(step.tool, arguments, step)
        return self.answer() or "Done."

    def _is_hidden(self, value: Extracted) -> bool:
        return value.of in self._handles and value.of not in self._shown

    def _argument(self, value: Any) -> Any:
        if not isinstance(value, Extracted):
            return value
        return self._passed(self._handles[value.question]) if self._is_hidden(value) else value.value

    def _extraction(self, step: Extracted | Check) -> tuple[str, dict[str, Any]]:
        """Returns the call that extracts a value."""
        self._questions[step.question] = step
        return "extract_value", {"value": self._handles[step.of], "question": step.question, "schema": step.schema}

    def _reading(self, handle: str) -> tuple[str, dict[str, Any]]:
        """Returns the call that reads a hidden value."""
        return "read_value", {"value": handle}

    def _passed(self, handle: str) -> Any:
        """Returns the argument that stands for a hidden value."""
        return handle

    def _handle(self, text: str) -> str | None:
        """Returns the handle that the model sees instead of a result."""
        found = HANDLE.match(text)
        return found[1] if found else None

    def _call(self, name: str, arguments: dict[str, Any], waiting: Any, is_injected: bool = False) -> Any:
        self._count += 1
        self._waiting = waiting
        call_id = f"call-{self._count}"
        if is_injected:
            self.injected[call_id] = name
        return {"tool_calls": [{"id": call_id, "name": name, "arguments": json.dumps(arguments)}]}

    def _finish(self, step: Any, text: str) -> None:
        handle = self._handle(text)
        match step:
            case Call() if handle:
                self._handles[step.step] = handle
            case Extracted():
                # If the extraction fails, the model has nothing to pass.
                self._handles[step.question] = handle or "unknown"
            case Check() if text != json.dumps(step.expected):
                self._todo = [step for step in self._todo if isinstance(step, Read)]
            case Read():
                self._shown.add(step.of)

    def _extract(self, text: str) -> str:
        """Answers as the separate model that extracts values."""
        question = text.split("What to extract: ", 1)[1].split("\n\nJSON Schema of the value: ", 1)[0]
        content = text.split("\n\nText:\n", 1)[1]
        return json.dumps({"answer": self._extracted(self._questions[question], content)})

    def _extracted(self, asked: Extracted | Check, content: str) -> Any:
        self.extractions += 1
        is_attacked = self.is_deceived and MARK in content
        self.deceived += is_attacked
        match asked:
            case Check() if is_attacked:
                return asked.schema.get("maximum", not asked.expected)
            case Check():
                return asked.expected
            case Extracted() if is_attacked:
                return self._wanted(asked)
            case Extracted():
                return asked.value

    def _wanted(self, asked: Extracted) -> Any:
        """Returns what the attacker wants the extracted value to be."""
        same_tool = [arguments for name, arguments in self._attack if name == asked.tool]
        for arguments in same_tool + [arguments for _, arguments in self._attack]:
            if type(arguments.get(asked.parameter)) is type(asked.value):
                return arguments[asked.parameter]
        match asked.value:
            case list():
                return [self.pair.injection.GOAL]
            case str():
                return self.pair.injection.GOAL
            case bool():
                return not asked.value
            case _:
                return asked.value + 1
