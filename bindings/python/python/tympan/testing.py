"""Tests of prompts for any test runner. pytest needs none of this: `tympan.pytest_plugin` collects test files itself.

>>> from tympan.testing import run_cases
>>> [(result["name"], result["verdict"]) for result in run_cases("examples/hello.test.yaml")][0]
('greets by name', 'passed')
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Optional, TypedDict, Union, cast

from tympan._native import TestFile

if TYPE_CHECKING:
    from typing_extensions import NotRequired

_Path = Union[str, os.PathLike[str]]

class Check(TypedDict):
    """The result of an assertion."""

    assertion: str
    line: int
    status: Literal["passed", "failed", "not_run"]
    message: NotRequired[str]
    expected: NotRequired[str]
    actual: NotRequired[str]
    score: NotRequired[float]


class Attempt(TypedDict):
    """One attempt at a case. A case with `repeat` has several."""

    passed: bool
    checks: list[Check]
    answer: NotRequired[str]
    usage: NotRequired[dict[str, int]]
    cost: NotRequired[float]
    seconds: NotRequired[float]


class CaseResult(TypedDict):
    """The result of a case, as `tympan test --output-format json-lines` writes it."""

    id: str
    file: str
    line: int
    name: str
    prompt: str
    variant: NotRequired[str]
    model: NotRequired[str]
    hash: str
    verdict: Literal["passed", "failed", "not_run", "skipped"]
    """A case has not run if its cassette or a permission is missing."""
    reason: NotRequired[str]
    attempts: list[Attempt]
    required: float
    warnings: NotRequired[list[str]]
    seconds: float


@dataclass(frozen=True)
class PromptCase:
    """A case that has not run yet. Rows of tables and combinations of a matrix are cases of their own."""

    id: str
    """The path of the file and the name."""
    name: str
    line: int
    """The line in the file, counted from 1."""
    skip: Optional[str]
    """The reason why the case is skipped."""
    _file: TestFile = field(repr=False)
    _index: int = field(repr=False)

    def run(self) -> CaseResult:
        """Runs the case."""
        return cast("CaseResult", self._file.run(self._index))


def load_cases(
    path: _Path, *, live: bool = False, record: bool = False, accept: bool = False, allow_programs: bool = False
) -> list[PromptCase]:
    """Returns the cases of a test file, or of a prompt file that contains tests. A prompt file without tests has none.

    Without options, no model is called, no program runs and no file is written. `live` calls models, `record` also
    records their answers as cassettes, `accept` writes snapshots, and `allow_programs` runs programs of test files.
    """
    file = TestFile.load(path, live=live, record=record, accept=accept, allow_programs=allow_programs)
    if file is None:
        return []
    return [PromptCase(**case, _file=file, _index=index) for index, case in enumerate(file.cases())]


def run_cases(
    path: _Path, *, live: bool = False, record: bool = False, accept: bool = False, allow_programs: bool = False
) -> list[CaseResult]:
    """Runs the cases of a file, one after the other, and returns their results. The options are those of `load_cases`."""
    cases = load_cases(path, live=live, record=record, accept=accept, allow_programs=allow_programs)
    return [case.run() for case in cases]


def describe(result: CaseResult) -> str:
    """Describes why a case did not pass: messages, positions in the test file, and differences. Control characters are
    escaped, so the text is safe for terminals.
    """
    from tympan import _failure

    return _failure.describe(cast("dict[str, Any]", result))


__all__ = ["Attempt", "CaseResult", "Check", "PromptCase", "describe", "load_cases", "run_cases"]
