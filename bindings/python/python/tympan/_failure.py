"""Descriptions of failures, for people."""

from __future__ import annotations

import difflib
import os
import unicodedata
from typing import Any

# What a difference shows of a text, so that the work stays small: lines, and characters of a line.
_MAX_LINES = 400
_MAX_LINE = 2_000
# Other failures of the same case most likely have the same cause.
_MAX_FAILURES = 20


def _is_safe(char: str) -> bool:
    # Joiners are part of words and emoji. Other format characters change the order of text, or hide some of it.
    if char in "\n\t\u200c\u200d":
        return True
    return unicodedata.category(char) not in ("Cc", "Cf", "Cs", "Zl", "Zp")


def visible(text: str) -> str:
    """Escapes characters that could control a terminal, change the order of text, or hide text."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if _is_safe(char) else f"\\u{{{ord(char):x}}}" for char in text)


def visible_line(text: str) -> str:
    """Escapes the same characters, line feeds and tabs."""
    return visible(text).replace("\n", "\\n").replace("\t", "\\t")


def describe(result: dict[str, Any]) -> str:
    """Describes why a case did not pass."""
    file = visible_line(_relative(result["file"]))
    attempts = result["attempts"]
    failures = list(_failures(attempts))
    lines = [f"{visible_line(result['name'])} ({file}:{result['line']})"]
    if len(attempts) > 1:
        passed = sum(attempt["passed"] for attempt in attempts)
        lines.append(f"{passed} of {len(attempts)} attempts passed, {result['required']:.0%} required")
    if not failures and result.get("reason"):
        lines.append(visible(result["reason"]))
    for check in failures[:_MAX_FAILURES]:
        lines.append(f"{file}:{check['line']}: {check['assertion']}: {visible(check.get('message') or 'failed')}")
        lines += difference(check.get("expected"), check.get("actual"))
    if len(failures) > _MAX_FAILURES:
        lines.append(f"and {len(failures) - _MAX_FAILURES} more")
    lines += [f"warning: {visible(warning)}" for warning in result.get("warnings", [])]
    return "\n".join(lines)


def _failures(attempts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    # Attempts often fail for the same reason.
    found: dict[Any, dict[str, Any]] = {}
    for attempt in attempts:
        for check in attempt["checks"]:
            if check["status"] != "passed":
                found.setdefault((check["line"], check["assertion"], check.get("message")), check)
    return list(found.values())


def difference(expected: str | None, actual: str | None) -> list[str]:
    """Returns the lines of a difference, or none if there are no texts to compare."""
    if expected is None or actual is None:
        return []
    before, after = _lines(expected), _lines(actual)
    found = list(difflib.unified_diff(before, after, "expected", "actual", lineterm=""))
    return [f"  {line}" for line in found]


def _lines(text: str) -> list[str]:
    lines = text.split("\n", _MAX_LINES)
    if len(lines) > _MAX_LINES:
        lines[_MAX_LINES:] = ["…"]
    return [visible(line[:_MAX_LINE] + ("…" if len(line) > _MAX_LINE else "")) for line in lines]


def _relative(path: str) -> str:
    try:
        relative = os.path.relpath(path)
    except (OSError, ValueError):
        return path
    return path if relative.startswith("..") else relative
