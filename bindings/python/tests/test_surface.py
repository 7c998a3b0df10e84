"""The public names, which are the same in all languages."""

from __future__ import annotations

import inspect
import json
import os
from typing import Any

from conftest import FIXTURES

import tympan

SURFACE = FIXTURES / "bindings" / "surface.json"

# What Python has for itself: families of exceptions, and values as other languages would see them.
OWN = {
    "InvokerError",
    "TympanConnectionError",
    "TympanFileNotFoundError",
    "TympanRuntimeError",
    "TympanValueError",
    "__version__",
}


def members(found: Any) -> list[str]:
    names = {name for name in dir(found) if not name.startswith("_")}
    inherited = {name for base in (str, OSError, Exception) if issubclass(found, base) for name in dir(base)}
    return sorted(names - inherited | set(getattr(found, "__annotations__", {})) - {"_core"})


def surface() -> dict[str, Any]:
    public = {name: getattr(tympan, name) for name in tympan.__all__ if name not in OWN}
    classes = {name: members(found) for name, found in public.items() if inspect.isclass(found)}
    return {"functions": sorted(set(public) - set(classes)), "classes": classes}


def test_the_public_names_are_those_of_all_languages() -> None:
    found = surface()
    if os.environ.get("TYMPAN_WRITE_SURFACE"):
        SURFACE.write_text(json.dumps(found, indent=2) + "\n", "utf-8")
    assert found == json.loads(SURFACE.read_text("utf-8"))


def test_everything_public_is_documented() -> None:
    bare = [name for name in tympan.__all__ if name != "__version__" and not getattr(tympan, name).__doc__]
    for name in tympan.__all__:
        found = getattr(tympan, name)
        if inspect.isclass(found):
            names = members(found)
            values = [(member, inspect.getattr_static(found, member, None)) for member in names]
            bare += [f"{name}.{member}" for member, value in values if value is not None and not value.__doc__]
    assert bare == []
