"""Rendered text."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    from tympan._native import RenderedCore, Segment


class Rendered(str):
    """A rendered prompt: a text that knows who wrote which part of it.

    It is a `str`, and whatever is made of it (a slice, a sum, a copy of another process) is only a `str`.
    """

    __slots__ = ("_core",)
    _core: RenderedCore

    def __new__(cls, text: str, core: RenderedCore) -> Rendered:
        rendered = super().__new__(cls, text)
        rendered._core = core
        return rendered

    @property
    def segments(self) -> list[Segment]:
        """The text in segments that each know who wrote them. Together they are the text."""
        return self._core.segments

    @property
    def name(self) -> Optional[str]:
        """The name of the prompt."""
        return self._core.name

    @property
    def variant(self) -> str:
        """The variant that was rendered."""
        return self._core.variant

    @property
    def template_hash(self) -> str:
        """The SHA-256 of the template's source, in hexadecimal digits."""
        return self._core.template_hash

    @property
    def render_hash(self) -> str:
        """The SHA-256 of the text, in hexadecimal digits."""
        return self._core.render_hash

    @property
    def advisory(self) -> Optional[str]:
        """What a model is to be told about the guard, if that was on."""
        return self._core.advisory

    def __copy__(self) -> Rendered:
        return self

    def __deepcopy__(self, memo: Any) -> Rendered:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)
