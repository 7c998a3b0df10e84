"""The exceptions of Tympan. Each is a `TympanError` and, where there is one, the matching built-in exception."""

from __future__ import annotations

# Do not import `typing` here: it would account for most of the import time.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    from tympan._native import Finding, Message


class TympanError(Exception):
    """The base class of all errors of Tympan. The message never contains the value of an input."""

    code: str
    """A short, stable name of the error. The guide lists all of them."""
    file: Optional[str]
    """The prompt file, or the name of its text."""
    line: Optional[int]
    """The line in the file, counted from 1."""
    column: Optional[int]
    """The column, counted from 1."""
    help: Optional[str]
    """How to fix the error."""
    others: list[Finding]
    """Other findings that were reported together with this error."""
    partial_text: Optional[str]
    """The part of the model's answer that had arrived."""
    conversation: list[Message]
    """The conversation so far, if a turn fails."""

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
        # Leave out attributes that are only useful in this process.
        state = {"code": self.code, "file": self.file, "line": self.line, "column": self.column, "help": self.help}
        return type(self), (str(self),), {**state, "partial_text": self.partial_text}


class TympanFileNotFoundError(TympanError, FileNotFoundError):
    """A prompt file, or a file that it refers to, does not exist."""


class TympanValueError(TympanError, ValueError):
    """The prompt, its inputs or the model's answer is invalid."""


class TympanConnectionError(TympanError, ConnectionError):
    """A provider could not be reached."""


class TympanRuntimeError(TympanError, RuntimeError):
    """An error at run time."""


class InvokerError(TympanError):
    """Nothing is registered under a name."""


class InputWarning(UserWarning):
    """An input that the prompt does not have or, with `kinds="warn"`, a value that does not match its declaration."""
