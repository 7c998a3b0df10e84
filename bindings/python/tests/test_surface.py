"""The public names, which are the same in all languages."""

from __future__ import annotations

import ast
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Optional

from conftest import FIXTURES

import tympan
from tympan import _native

SURFACE = FIXTURES / "bindings" / "surface.json"

PATH = [str(Path(tympan.__file__).parents[1])]

# Classes that are plain data in other languages.
RECORDS = {"Delta", "Event", "Finding", "Message", "ModelCall", "ModelInfo", "Part", "Property", "Segment", "Usage"}


def members(found: Any) -> list[str]:
    names = {name for name in dir(found) if not name.startswith("_")}
    inherited = {name for base in (str, OSError, Exception) if issubclass(found, base) for name in dir(base)}
    return sorted(names - inherited | set(getattr(found, "__annotations__", {})) - {"_core"})


def surface(only: dict[str, str]) -> dict[str, Any]:
    """Returns the public names, without those that exist only in Python."""
    public = {name: getattr(tympan, name) for name in tympan.__all__ if name not in only}
    classes = {
        name: [member for member in members(found) if f"{name}.{member}" not in only]
        for name, found in public.items()
        if inspect.isclass(found)
    }
    return {
        "functions": sorted(set(public) - set(classes)),
        "classes": {name: found for name, found in classes.items() if name not in RECORDS},
        "records": {name: found for name, found in classes.items() if name in RECORDS},
    }


def test_the_public_names_are_those_of_all_languages() -> None:
    expected = json.loads(SURFACE.read_text("utf-8"))
    found = {**surface(expected["only"]["python"]), "only": expected["only"]}
    if os.environ.get("TYMPAN_WRITE_SURFACE"):
        SURFACE.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n", "utf-8")
    assert found == expected


def test_what_only_python_has_is_there_and_has_a_reason() -> None:
    for name, reason in json.loads(SURFACE.read_text("utf-8"))["only"]["python"].items():
        owner, _, member = name.partition(".")
        assert owner in tympan.__all__, name
        assert not member or member in members(getattr(tympan, owner)), name
        assert len(reason) > 10, name


def test_the_runtime_has_all_that_the_free_functions_do() -> None:
    default = tympan.default_runtime()
    assert isinstance(default, tympan.Runtime)
    names = [name for name in members(tympan.Runtime) if hasattr(tympan, name)]
    assert "render" in names and "turn_async" in names
    for name in names:
        assert getattr(tympan, name) == getattr(default, name)


def test_nothing_is_imported_that_a_program_would_have_to_wait_for() -> None:
    code = "import sys; before = set(sys.modules); import tympan; print(*sorted(set(sys.modules) - before))"
    code = f"import sys; sys.path[:0] = {PATH!r}; {code}"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    own = {name for name in done.stdout.split() if name.split(".")[0] == "tympan"}
    assert own == {"tympan", "tympan._errors", "tympan._native", "tympan._rendered", "tympan._runtime"}
    assert set(done.stdout.split()) - own <= {"__future__", "atexit"}


def said(text: Optional[str]) -> str:
    return " ".join((text or "").split())


def test_the_stub_says_what_the_module_says() -> None:
    path = Path(tympan.__file__).parent / "_native.pyi"
    wrong: list[str] = []

    def compare(node: Any, found: Any) -> None:
        if said(ast.get_docstring(node)) != said(found.__doc__):
            wrong.append(f"{node.name}, line {node.lineno}")

    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and not node.name.startswith("_"):
            found = getattr(_native, node.name)
            compare(node, found)
            members = node.body if isinstance(node, ast.ClassDef) else []
            for member in members:
                if isinstance(member, ast.FunctionDef) and not member.name.startswith("_"):
                    compare(member, getattr(found, member.name))
    assert not wrong, wrong


def test_everything_public_is_documented() -> None:
    bare = [name for name in tympan.__all__ if name != "__version__" and not getattr(tympan, name).__doc__]
    for name in tympan.__all__:
        found = getattr(tympan, name)
        if inspect.isclass(found):
            names = members(found)
            values = [(member, inspect.getattr_static(found, member, None)) for member in names]
            bare += [f"{name}.{member}" for member, value in values if value is not None and not value.__doc__]
    assert bare == []
