"""The tables of `docs/AGENTDOJO.md`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from suites import declarations

PAGE = Path(__file__).parents[2] / "docs" / "AGENTDOJO.md"


def table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    first, *others = ("| " + " | ".join(map(str, line)) + " |" for line in (head, *rows))
    return "\n".join([first, "|---" * len(head) + "|", *others])


def at_most(runs: Sequence[tuple[bool, int]]) -> list[int]:
    """Returns how many tasks are solved with at most 0, 1, 2 and 3 questions."""
    return [sum(solved and questions <= limit for solved, questions in runs) for limit in range(4)]


TASKS = ["configuration", "user tasks", "solved", "without asking", "at most 1 approval", "at most 2", "at most 3"]


def declared() -> str:
    """Returns the table of declarations. Tools of a suite that are declared in the same way share a row."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for suite, tools in declarations().items():
        for name, tool in tools.items():
            parameters = tool.get("parameters", {})
            marks = {parameter: " and ".join(f"`{mark}`" for mark in flow) for parameter, flow in parameters.items()}
            shown = ", ".join(f"`{parameter}`: {mark}" for parameter, mark in marks.items())
            result = [word for word in ("trusted", "confidential") if tool.get(word)]
            key = (suite, tool["effect"], shown, ", ".join(result), tool["why"])
            rows.setdefault(key, []).append(f"`{name}`")
    return table(
        ["suite", "tools", "effect", "parameters", "result", "why"],
        ([suite, ", ".join(names), *others] for (suite, *others), names in rows.items()),
    )


def is_current() -> bool:
    """Returns whether the page has the current table of declarations."""
    return declared() in PAGE.read_text(encoding="utf-8")


if __name__ == "__main__":
    print(declared())
