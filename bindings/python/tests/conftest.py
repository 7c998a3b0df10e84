"""Helpers shared by the tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Iterator

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[3]
FIXTURES = ROOT / "fixtures"
SHARED = ROOT.parent / "shared"


def cases(stage: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields the cases of all files of a stage, with their names."""
    for path in sorted((FIXTURES / stage).glob("*.json")):
        for case in json.loads(path.read_text("utf-8")):
            yield f"{path.stem}, {case['name']}", case


def prompt_file(text: str, /, **front_matter: Any) -> str:
    """Returns the text of a prompt file. The front matter is JSON, which is also YAML."""
    return f"---\n{json.dumps(front_matter)}\n---\n{text}"
