"""The pytest plugin: collects test files of prompts, and runs each of their cases as a test.

pytest imports this module in every run, so it imports nothing else until there is a test file.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union

import pytest

if TYPE_CHECKING:
    from tympan.testing import CaseResult, PromptCase

_PATTERNS = ["*.test.yaml", "*.test.yml", "*.test.json", "*.test.toml", "*.prompty"]

# How much of a prompt file is searched for tests.
_MAX_BYTES = 1 << 20


class PromptTestWarning(pytest.PytestWarning):
    """Something that the author of a test should know, such as an input that the prompt does not have."""


class PromptTestError(Exception):
    """A case that did not pass."""

    def __init__(self, result: CaseResult) -> None:
        super().__init__(result["id"])
        self.result = result


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds the options of `tympan test`."""
    group = parser.getgroup("tympan", "tests of prompts")
    group.addoption("--tympan-live", action="store_true", help="call models")
    group.addoption("--tympan-record", action="store_true", help="call models, and record their answers as cassettes")
    group.addoption("--tympan-accept", action="store_true", help="write snapshots instead of comparing with them")
    group.addoption("--tympan-allow-programs", action="store_true", help="run the programs of test files")
    group.addoption(
        "--tympan-allow-missing", action="store_true", help="skip cases that cannot run instead of failing them"
    )
    parser.addini("tympan_files", "patterns of the names of files with tests of prompts", "args", _PATTERNS)


def _is_set(config: pytest.Config, name: str) -> bool:
    return bool(config.getoption(f"tympan_{name}"))


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> Optional[PromptTestFile]:
    """Collects test files, and prompt files that contain tests."""
    if not any(file_path.match(pattern) for pattern in parent.config.getini("tympan_files")):
        return None
    if file_path.suffix == ".prompty" and not _mentions_tests(file_path):
        return None
    return PromptTestFile.from_parent(parent, path=file_path)  # pyright: ignore[reportUnknownMemberType]


def _mentions_tests(path: Path) -> bool:
    """Returns whether a prompt file may contain tests. Whoever does not use them must not see errors of other files."""
    try:
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return b"tests" in file.read(_MAX_BYTES)
    except OSError:
        return False


class PromptTestFile(pytest.File):
    """A test file, or a prompt file that contains tests."""

    def collect(self) -> Iterable[PromptTestItem]:
        """Returns a test for each case."""
        from tympan import TympanError
        from tympan._failure import visible, visible_line
        from tympan.testing import load_cases

        try:
            cases = load_cases(
                self.path,
                live=_is_set(self.config, "live"),
                record=_is_set(self.config, "record"),
                accept=_is_set(self.config, "accept"),
                allow_programs=_is_set(self.config, "allow_programs"),
            )
        except TympanError as error:
            help = f"\nhelp: {error.help}" if error.help else ""
            raise self.CollectError(visible(f"{error}{help}")) from None
        for case in cases:
            name = visible_line(case.name)
            yield PromptTestItem.from_parent(self, name=name, case=case)  # pyright: ignore[reportUnknownMemberType]


class PromptTestItem(pytest.Item):
    """A case."""

    def __init__(self, *, case: PromptCase, **options: Any) -> None:
        super().__init__(**options)  # pyright: ignore[reportUnknownMemberType]
        self.case = case

    def runtest(self) -> None:
        """Runs the case."""
        from tympan._failure import visible_line

        result = self.case.run()
        verdict, reason = result["verdict"], visible_line(result.get("reason") or "it could not run")
        for warning in result.get("warnings", []):
            self.warn(PromptTestWarning(visible_line(warning)))
        if verdict == "skipped" or verdict == "not_run" and _is_set(self.config, "allow_missing"):
            pytest.skip(reason)
        if verdict != "passed":
            raise PromptTestError(result)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **options: Any) -> Any:
        """Describes the failures of a case, and other exceptions as usual."""
        from tympan.testing import describe

        if isinstance(excinfo.value, PromptTestError):
            return describe(excinfo.value.result)
        return super().repr_failure(excinfo, *args, **options)

    def reportinfo(self) -> tuple[Union[Path, str], Optional[int], str]:
        """Returns the position of the case in its file."""
        return self.path, self.case.line - 1, self.name
