"""Rendered text."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Optional

    from tympan._native import RenderedCore, Segment


class Rendered(str):
    """A rendered prompt: a text that knows the origin of each of its parts.

    It is a `str`. Anything derived from it, such as a slice, a concatenation or a pickled copy, is a plain `str`.
    """

    __slots__ = ("_core",)
    _core: RenderedCore

    def __new__(cls, text: str, core: RenderedCore) -> Rendered:
        rendered = super().__new__(cls, text)
        rendered._core = core
        return rendered

    @property
    def segments(self) -> list[Segment]:
        """The segments of the text, each with its origins. Joined, they are the text."""
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
    def is_default(self) -> bool:
        """Whether the default variant was rendered."""
        return self._core.is_default

    @property
    def template_hash(self) -> str:
        """The SHA-256 hash of the template's source, in hexadecimal."""
        return self._core.template_hash

    @property
    def render_hash(self) -> str:
        """The SHA-256 hash of the text, in hexadecimal."""
        return self._core.render_hash

    @property
    def advisory(self) -> Optional[str]:
        """The guard's advisory for the model, if the guard was on and the prompt has an untrusted input."""
        return self._core.advisory

    def __copy__(self) -> Rendered:
        return self

    def __deepcopy__(self, memo: Any) -> Rendered:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)
