"""The findings of files are those of the command: the cases in fixtures/lint."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Iterator

import pytest
from conftest import FIXTURES

import tympan

FOLDERS = sorted(path for path in (FIXTURES / "lint").iterdir() if path.is_dir())


def cases(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        yield from sorted(path for path in folder.iterdir() if path.is_file() and path.suffix != ".expected")


def findings(path: Path) -> list[dict[str, Any]]:
    settings = path.parent.parent / "tympan.toml"
    return tympan.check_file(path, settings=settings if settings.exists() else None)


def shown(finding: dict[str, Any], lines: list[str]) -> str:
    """Shows a finding as the expectations of the Rust tests do, without texts of the source."""
    place = f"{finding['line']}:{finding['column']}" if finding["line"] else "-"
    return f"{place} {finding['severity']}: {finding['message']}"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_rules_fire_where_they_should(folder: Path) -> None:
    for path in cases(folder / "fires"):
        lines = path.read_text("utf-8").splitlines()
        found = [shown(finding, lines) for finding in findings(path) if finding["rule"] == folder.name]
        expected = path.with_suffix(".expected").read_text("utf-8").splitlines()
        assert found == [line for line in expected if not line.startswith("  ")], path
        assert found, path
    for path in cases(folder / "clean"):
        assert [finding for finding in findings(path) if finding["rule"] == folder.name] == [], path


def test_texts_are_checked_like_files(tmp_path: Path) -> None:
    for path in cases(FIXTURES / "lint" / "TY101" / "fires"):
        text = path.read_text("utf-8")
        assert tympan.check_str(text, str(path), path.parent) == tympan.check_file(path)


def test_a_prompt_has_the_rules_of_its_findings() -> None:
    prompt = tympan.load_str("---\ninputs: [{name: a}]\n---\nuser:\n{{ b }}\n")
    assert {(finding.code, finding.rule) for finding in prompt.check()} >= {("undeclared_variable", "TY101")}


def test_invalid_settings_are_an_error(tmp_path: Path) -> None:
    settings = tmp_path / "tympan.toml"
    settings.write_text("[check]\nselct = []\n", "utf-8")
    with pytest.raises(tympan.TympanValueError, match="unknown key `selct`") as caught:
        tympan.check_str("user:\nHi", settings=settings)
    assert caught.value.line == 2


def test_findings_are_plain_data() -> None:
    (finding,) = tympan.check_str("user:\nHi {{ name", "hello.prompty")
    assert json.loads(json.dumps(finding)) == finding
    assert (finding["rule"], finding["line"], finding["file"]) == ("TY008", 2, "hello.prompty")
