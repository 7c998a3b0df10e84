"""The exceptions of Tympan: each is a `TympanError`, and what Python itself has for such a case."""

from __future__ import annotations

# Nothing here imports `typing`: that would be most of what a program waits for when it starts.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    from tympan._native import Finding, Message


class TympanError(Exception):
    """Anything that goes wrong in Tympan. Its text never holds the value of an input."""

    code: str
    """A short stable name of what went wrong; the guide lists them all."""
    file: Optional[str]
    """The prompt file, or what its text was called."""
    line: Optional[int]
    """The line in it, from 1."""
    column: Optional[int]
    """The column, from 1."""
    help: Optional[str]
    """What to do about it."""
    others: list[Finding]
    """What else was found in the same file."""
    partial_text: Optional[str]
    """What had arrived of a model's answer."""
    conversation: list[Message]
    """What had been said, when a turn fails."""

    def __init__(
        self,
        message: str = "",
        *,
        code: str = "internal",
        file: Optional[str] = None,
        line: Optional[int] = None,
        column: Optional[int] = None,
        help: Optional[str] = None,
        others: Optional[list[Finding]] = None,
        partial_text: Optional[str] = None,
        conversation: Optional[list[Message]] = None,
    ) -> None:
        Exception.__init__(self, message)
        self.code = code
        self.file = file
        self.line = line
        self.column = column
        self.help = help
        self.others = others or []
        self.partial_text = partial_text
        self.conversation = conversation or []

    def __reduce__(self) -> tuple[Any, ...]:
        # What is only of use in this process stays here.
        state = {"code": self.code, "file": self.file, "line": self.line, "column": self.column, "help": self.help}
        return type(self), (str(self),), {**state, "partial_text": self.partial_text}


class TympanFileNotFoundError(TympanError, FileNotFoundError):
    """A prompt file, or one that it refers to, is not there."""


class TympanValueError(TympanError, ValueError):
    """The prompt, its inputs, or what a model answered is at fault."""


class TympanConnectionError(TympanError, ConnectionError):
    """A provider could not be reached."""


class TympanRuntimeError(TympanError, RuntimeError):
    """Something went wrong while running."""


class InvokerError(TympanError):
    """Nothing is registered for a name."""
