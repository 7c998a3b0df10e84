"""The pytest plugin and `tympan.testing`, on the cases in fixtures/eval, whose names start with their verdicts."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import FIXTURES, ROOT

import tympan
from tympan import _native, testing

EVAL = FIXTURES / "eval"
FILES = sorted([*EVAL.glob("*/*.test.yaml"), EVAL / "messages" / "embedded.prompty"])
VERDICTS = {"pass": "passed", "fail": "failed", "not": "not_run", "not_run": "not_run", "line": "failed"}
COMMAND = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"), "debug", "tympan")
# What a terminal, or a reader, could be misled by.
UNSAFE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(autouse=True)
def only_this_plugin(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    """Loads the plugin by name, whether or not the package is installed with its entry point."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p tympan.pytest_plugin -p no:cacheprovider --color=no")


def expected(name: str) -> str:
    """Returns the verdict that the name of a case states."""
    (word,) = re.findall(r"^(pass|fail|not_run|not|line|skipped)", name)
    return VERDICTS.get(word, "skipped")


def put(pytester: pytest.Pytester, text: str, name: str = "greeting.test.yaml") -> Path:
    pytester.path.joinpath("greeting.prompty").write_text(
        "---\ninputs:\n  - {name: who, kind: string, default: Ada}\n---\nuser:\nHello {{ who }}!\nBye.\n", "utf-8"
    )
    path = pytester.path / name
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_verdicts_are_those_of_the_names(path: Path) -> None:
    results = testing.run_cases(path, allow_programs=path.parent.name == "answers")
    assert results
    for result in results:
        assert result["verdict"] == expected(result["name"]), testing.describe(result)


@pytest.mark.skipif(not COMMAND.exists(), reason="the command is not built")
def test_results_are_those_of_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    paths = [path.relative_to(ROOT) for path in FILES]
    options = ["--allow-programs", "--output-format", "json-lines", "--no-config"]
    done = subprocess.run([COMMAND, "test", *options, *paths], capture_output=True, text=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    command = [untimed(line) for line in lines if line.pop("kind") == "case"]
    here = [untimed(dict(result)) for path in paths for result in testing.run_cases(path, allow_programs=True)]
    assert len(here) > 150
    assert sorted(here, key=lambda result: result["id"]) == sorted(command, key=lambda result: result["id"])


def untimed(result: dict[str, Any]) -> dict[str, Any]:
    """Removes the times, and what depends on them, from a result."""
    del result["seconds"]
    for attempt in result["attempts"]:
        attempt.pop("seconds", None)
    return result


@pytest.mark.parametrize("folder", ["messages", "answers"])
def test_each_case_is_a_test(pytester: pytest.Pytester, folder: str) -> None:
    shutil.copytree(EVAL / folder, pytester.path / folder)
    done = pytester.runpytest_inprocess("-rA", "--tympan-allow-programs", folder)
    paths = sorted(path for path in FILES if path.parent.name == folder)
    cases = [(path, case) for path in paths for case in testing.load_cases(path)]
    verdicts = [expected(case.name) for _, case in cases]
    failed = verdicts.count("failed") + verdicts.count("not_run")
    done.assert_outcomes(passed=verdicts.count("passed"), failed=failed, skipped=verdicts.count("skipped"))
    printed = done.stdout.str()
    for path, case in cases:
        if expected(case.name) == "passed":
            assert f"PASSED {folder}/{path.name}::{case.name}\n" in f"{printed}\n"
    assert not UNSAFE.search(printed)


def test_cases_that_cannot_run_are_failures_unless_they_are_allowed(pytester: pytest.Pytester) -> None:
    cases = "cases:\n  - name: asks\n    model: gpt-4o\n    expect: [{result: {contains: a}}]\n"
    put(pytester, cases)
    done = pytester.runpytest_inprocess()
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(["greeting.test.yaml:4: result: *cassette*"])
    done = pytester.runpytest_inprocess("--tympan-allow-missing", "-rs")
    done.assert_outcomes(skipped=1)
    done.stdout.fnmatch_lines(["SKIPPED*cassette*"])


def test_failures_show_the_message_the_position_and_the_difference(pytester: pytest.Pytester) -> None:
    put(pytester, 'cases:\n  - name: greets\n    expect:\n      - message: {equals: "Hello Bob!\\nBye."}\n')
    done = pytester.runpytest_inprocess()
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        ["greets (greeting.test.yaml:2)", "greeting.test.yaml:4: message: expected *", "  -Hello Bob!", "  +Hello Ada!"]
    )
    assert "Traceback" not in done.stdout.str() and "pytest_plugin.py" not in done.stdout.str()


def test_no_text_of_a_file_controls_the_terminal(pytester: pytest.Pytester) -> None:
    evil = "\\e[2J\\u202e\\u009b\\r"
    put(
        pytester,
        f'cases:\n  - name: "a {evil}"\n    inputs: {{who: "{evil}", "{evil}": b}}\n'
        f'    expect:\n      - message: {{equals: "b {evil}"}}\n'
        f'  - name: "c {evil}"\n    skip: "{evil}"\n    expect: []\n',
    )
    done = pytester.runpytest_inprocess("-rA", "-v", "-W", "default")
    done.assert_outcomes(failed=1, skipped=1, warnings=1)
    assert not UNSAFE.search(done.stdout.str())
    done.stdout.fnmatch_lines([r"*a \u{1b}[[]2J\u{202e}\u{9b}\u{d}*"])


def test_names_select_cases(pytester: pytest.Pytester) -> None:
    put(
        pytester,
        "cases:\n  - name: one\n    matrix: {inputs: {who: [Ada, Bob]}}\n    expect: [{messages: 1}]\n"
        "  - {name: two, expect: [{messages: 2}]}\n",
    )
    pytester.runpytest_inprocess("-k", "one").assert_outcomes(passed=2, deselected=1)
    pytester.runpytest_inprocess("-k", "Bob").assert_outcomes(passed=1, deselected=2)
    pytester.runpytest_inprocess("greeting.test.yaml::one[who=Ada]").assert_outcomes(passed=1)


def test_snapshots_are_written_on_request(pytester: pytest.Pytester) -> None:
    put(pytester, "cases:\n  - {name: one, expect: [{message: {snapshot: true}}]}\n")
    pytester.runpytest_inprocess().assert_outcomes(failed=1)
    pytester.runpytest_inprocess("--tympan-accept").assert_outcomes(passed=1)
    pytester.runpytest_inprocess().assert_outcomes(passed=1)
    assert "Hello Ada!" in pytester.path.joinpath("snapshots", "greeting", "one.txt").read_text("utf-8")


def test_programs_run_on_request(pytester: pytest.Pytester) -> None:
    program = json.dumps([sys.executable, "-c", "print('{\"pass\": true}')"])
    put(
        pytester,
        "cases:\n  - name: one\n    answer: {text: hi}\n    expect:\n      - program: {command: " + program + "}\n",
    )
    refused = pytester.runpytest_inprocess()
    refused.assert_outcomes(failed=1)
    pytester.runpytest_inprocess("--tympan-allow-programs").assert_outcomes(passed=1)


def test_broken_files_are_errors_with_their_position(pytester: pytest.Pytester) -> None:
    put(pytester, "cases:\n  - nmae: one\n")
    done = pytester.runpytest_inprocess()
    done.assert_outcomes(errors=1)
    done.stdout.fnmatch_lines(["*greeting.test.yaml:2:*"])


def test_other_files_are_left_alone(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_one(): pass")
    pytester.path.joinpath("broken.prompty").write_text("---\ninputs: [\n", "utf-8")
    pytester.path.joinpath("data.yaml").write_text("cases: 7\n", "utf-8")
    os.mkfifo(pytester.path / "pipe.prompty")
    pytester.runpytest_inprocess().assert_outcomes(passed=1)
    # Files of another tool can have such names.
    pytester.path.joinpath("other.test.json").write_text("{}", "utf-8")
    pytester.runpytest_inprocess().assert_outcomes(errors=1)
    pytester.runpytest_inprocess("-o", "tympan_files=*.test.yaml").assert_outcomes(passed=1)


def test_functions_of_the_default_runtime_are_there(pytester: pytest.Pytester) -> None:
    tympan.default_runtime().register_filter("shouted_for_a_test", str.upper)
    pytester.path.joinpath("loud.prompty").write_text(
        "---\nmodel: {id: m, connection: {kind: key, apiKey: '${env:TYMPAN_NOT_SET}'}}\ninputs: [{name: who}]\n"
        "tests:\n  - {name: shouts, inputs: {who: Ada}, expect: [{message: {equals: ADA}}]}\n"
        "---\nuser:\n{{ who | shouted_for_a_test }}\n",
        "utf-8",
    )
    (result,) = testing.run_cases(pytester.path / "loud.prompty")
    assert result["verdict"] == "passed", testing.describe(result)


def test_there_is_no_such_case() -> None:
    file = _native.TestFile.load(ROOT / "examples" / "hello.test.yaml")
    assert file is not None
    with pytest.raises(tympan.TympanValueError, match="case 99: the file has 3 cases"):
        file.run(99)


def test_descriptions_of_large_texts_are_short() -> None:
    check: testing.Check = {"assertion": "message", "line": 3, "status": "failed"}
    check["expected"], check["actual"] = "a\n" * 100_000, "b" * 1_000_000
    (result, *_) = testing.run_cases(ROOT / "examples" / "hello.test.yaml")
    result["attempts"] = [{"passed": False, "checks": [check] * 3}]
    assert len(testing.describe(result)) < 20_000


def test_the_example_of_the_guide_runs_as_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "guide" / "testing.md").read_text("utf-8")
    (command, printed) = re.findall(r"```text\n\$ (pytest .*)\n([^`]*)```", page)[0]
    arguments = command.split()[1:]
    done = subprocess.run([sys.executable, "-m", "pytest", *arguments], capture_output=True, text=True)
    lines = [re.sub(r" +\[ *\d+%\]$", "", line) for line in done.stdout.splitlines()]
    assert printed.splitlines() == [line for line in lines if line.endswith("PASSED")], done.stdout


def test_the_package_has_the_entry_point_and_the_plugin_imports_little() -> None:
    project = (ROOT / "bindings" / "python" / "pyproject.toml").read_text("utf-8")
    assert '[project.entry-points.pytest11]\ntympan = "tympan.pytest_plugin"\n' in project
    code = "import pytest, sys, tympan; before = set(sys.modules); import tympan.pytest_plugin; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["tympan.pytest_plugin"], done.stderr
