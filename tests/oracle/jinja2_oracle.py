"""Compares the cases of fixtures/jinja with Python's Jinja2.

Jinja2 renders each case, with values printed as the engine prints them, and the text must match the
fixture. If the fixture expects an error, Jinja2 must fail too. A case with an intentional difference
is marked with the reason: "jinja2": "skip: why".

    python jinja2_oracle.py fixtures/jinja
"""

import json
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from jinja2 import Environment, StrictUndefined, Undefined

# A comparison of only a few cases would prove nothing.
FEWEST = 150


def number(value):
    """Format a float with the fewest digits and an exponent without leading zeros."""
    return re.sub(r"e([+-])0+", r"e\1", repr(value))


def nested(value):
    """Format a value inside a container, as JSON."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return number(value)
    if isinstance(value, str):
        return json.dumps(str(value), ensure_ascii=False)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key(k)}: {nested(v)}" for k, v in value.items()) + "}"
    if isinstance(value, Iterable) and not isinstance(value, Undefined):
        return "[" + ", ".join(nested(item) for item in value) + "]"
    return str(value)


def key(value):
    """Format a key. JSON keys are strings, whatever the template used."""
    return nested(value) if isinstance(value, str) else f'"{nested(value)}"'


def finalize(value):
    """Format an interpolated value: strings bare, none as nothing, everything else as JSON."""
    if value is None:
        return ""
    if isinstance(value, (str, Undefined)):
        return value
    return nested(value)


def environment(lenient):
    return Environment(
        undefined=Undefined if lenient else StrictUndefined,
        finalize=finalize,
        keep_trailing_newline=True,
        extensions=["jinja2.ext.do", "jinja2.ext.loopcontrols"],
    )


def render(case):
    """Return the text or the error of rendering a case with Jinja2."""
    try:
        template = environment(case.get("lenient", False)).from_string(case["template"])
        return template.render(case["inputs"]), None
    except Exception as error:  # any error in a template is a valid outcome
        return None, error


def complaint(case):
    """Describe how Jinja2 deviates from the fixture, or return None."""
    text, error = render(case)
    if "error" in case:
        return None if error is not None else f"expected {case['error']}, Jinja2 renders {text!r}"
    if error is not None:
        return f"expected {case['text']!r}, Jinja2 fails: {type(error).__name__}: {error}"
    return None if text == case["text"] else f"expected {case['text']!r}, Jinja2 renders {text!r}"


def main(directory):
    compared = skipped = 0
    complaints = []
    for path in sorted(Path(directory).glob("*.json")):
        for case in json.loads(path.read_text(encoding="utf-8")):
            if case.get("jinja2", "").startswith("skip: "):
                skipped += 1
                continue
            compared += 1
            wrong = complaint(case)
            if wrong:
                complaints.append(f"{path.name}: {case['name']}: {case['template']!r}: {wrong}")
    print(*complaints, sep="\n", end="\n" if complaints else "")
    print(f"jinja2: {compared} cases compared, {skipped} skipped, {len(complaints)} different")
    return 1 if complaints or compared < FEWEST else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "fixtures/jinja"))
