"""The operations: each library is used as a program would use it, in the cheapest way.

Everything that a program does once, such as loading, is done before. An operation converts inputs, which are plain
data, to messages or text. Each must produce the expected text before it is measured.
"""

from __future__ import annotations

import json
import pathlib
import tempfile
from dataclasses import dataclass
from typing import Any, Callable, Iterable

import jinja2
import prompty
import tympan

try:
    import prompting_press
    import pydantic
except ImportError:
    prompting_press = None  # type: ignore[assignment]


@dataclass
class Workload:
    """A workload: the same work in each library's dialect."""

    name: str
    prompty: str
    jinja: str
    press: str
    inputs: dict[str, Any]
    expected: str

    @staticmethod
    def read(folder: pathlib.Path, name: str) -> Workload:
        def read(extension: str) -> str:
            return (folder / f"{name}.{extension}").read_text(encoding="utf-8")

        inputs = json.loads(read("json"))
        return Workload(name, read("prompty"), read("jinja"), read("press.yaml"), inputs, read("expected.txt"))


@dataclass
class Row:
    """One operation of one library."""

    name: str
    # Prepares the operation. Also returns a function that converts its result to text.
    ready: Callable[[Workload], tuple[Callable[[], Any], Callable[[Any], str]]]

    def operation(self, workload: Workload) -> Callable[[], Any]:
        """Prepares the operation and checks that it produces the workload's expected text."""
        operation, shown = self.ready(workload)
        if shown(operation()) != workload.expected:
            raise RuntimeError(f"{self.name} on {workload.name} gives another text than is expected")
        return operation


def chat(messages: Iterable[Any]) -> str:
    """Formats messages like the expected text."""
    return "\n\n".join(f"{message.role}:\n{message.text}" for message in messages)


def tympan_prepare(workload: Workload):
    prompt, inputs = tympan.load_str(workload.prompty), workload.inputs
    return lambda: tympan.prepare(prompt, inputs), chat


def tympan_data(workload: Workload):
    """Prepares messages as plain data, as a program needs them to pass them to another library."""
    prompt, inputs = tympan.load_str(workload.prompty), workload.inputs

    def shown(messages: list[Any]) -> str:
        texts = ("".join(part["value"] for part in message["content"]) for message in messages)
        return "\n\n".join(f"{message['role']}:\n{text}" for message, text in zip(messages, texts))

    return lambda: [message.to_dict() for message in tympan.prepare(prompt, inputs)], shown


def tympan_render(workload: Workload):
    """Renders a definition, like prompting-press, with the hash of the text."""
    prompt, inputs = tympan.Prompt.from_yaml(workload.press), workload.inputs

    def render() -> str:
        rendered = tympan.render(prompt, inputs)
        rendered.render_hash
        return rendered

    return render, str


def prompty_prepare(workload: Workload):
    # Prompty only loads prompts from files.
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "bench.prompty")
        path.write_text(workload.prompty, encoding="utf-8")
        agent = prompty.load(str(path))
    inputs = workload.inputs
    return lambda: prompty.prepare(agent, inputs), chat


def press_render(workload: Workload):
    """Renders with validation by a model that accepts anything. Both hashes are always computed."""

    class Anything(pydantic.BaseModel):
        model_config = pydantic.ConfigDict(extra="allow")

    prompt, inputs = prompting_press.Prompt.from_yaml(workload.press), workload.inputs
    return lambda: prompt.render(Anything, data=inputs), lambda rendered: rendered.text


def jinja_render(workload: Workload):
    """Renders a precompiled template. The result is text and not messages."""
    template, inputs = jinja2.Environment().from_string(workload.jinja), workload.inputs
    return lambda: template.render(inputs), str


def checks(workload: Workload, folder: pathlib.Path) -> dict[str, Callable[[], object]]:
    """Returns checks of a workload's prompt, as a text and as a file, with all rules."""
    path = folder / f"{workload.name}.prompty"
    operations: dict[str, Callable[[], object]] = {
        "check_str": lambda: tympan.check_str(workload.prompty, path.name),
        "check_file": lambda: tympan.check_file(path),
    }
    for name, operation in operations.items():
        if not isinstance(operation(), list):
            raise RuntimeError(f"{name} on {workload.name} returns no findings")
    return operations


ROWS = [
    Row("tympan prepare", tympan_prepare),
    Row("tympan prepare, as data", tympan_data),
    Row("tympan definition render", tympan_render),
    Row("prompty prepare", prompty_prepare),
    *([Row("prompting-press render", press_render)] if prompting_press else []),
    Row("jinja2 render", jinja_render),
]
