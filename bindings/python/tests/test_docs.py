"""The examples of the README and of the guide, as printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

PAGES = [ROOT / "bindings" / "python" / "README.md", ROOT / "docs" / "guide" / "python.md"]
EXAMPLE = re.compile(r"```python\n(.*?)```(?:\s+(?:It prints:\s+)?```text\n(.*?)```)?", re.S)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_run_as_printed(page: Path) -> None:
    examples = EXAMPLE.findall(page.read_text("utf-8"))
    assert len(examples) >= 2
    for code, expected in examples:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
        assert done.returncode == 0, f"{code}\n{done.stderr}"
        assert done.stdout == expected, code
