"""Prints the path of the collector's program inside its Python package."""

import importlib.util
import pathlib
import sys

spec = importlib.util.find_spec("rotel")
program = pathlib.Path(spec.origin).with_name("rotel-agent") if spec and spec.origin else None
if program is None or not program.is_file():
    sys.exit("the package `rotel` has no program `rotel-agent`")
print(program)
