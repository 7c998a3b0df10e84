"""The examples of the READMEs and the guide, exactly as printed."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from conftest import ROOT

PAGES = ["README.md", "bindings/python/README.md", "docs/guide/python.md", "docs/guide/tables.md", "docs/guide/testing.md"]
EXAMPLE = re.compile(r"```python\n(.*?)```(?:\s+(?:It prints:\s+)?```text\n(.*?)```)?", re.S)


@pytest.mark.parametrize("page", PAGES)
def test_examples_run_as_printed(page: str) -> None:
    examples = EXAMPLE.findall((ROOT / page).read_text("utf-8"))
    assert examples
    for code, expected in examples:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
        assert done.returncode == 0, f"{code}\n{done.stderr}"
        assert done.stdout == expected, code
