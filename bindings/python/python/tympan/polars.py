"""Prompts over the rows of Polars frames: `pip install tympan[polars]`.

>>> import polars as pl
>>> import tympan
>>> from tympan.polars import prepare
>>> prompt = tympan.load_str("user:\\nSummarize: {{ text }}")
>>> prepare(pl.DataFrame({"text": ["a", "b"]}), prompt)["messages"].to_list()[1]
[{'role': 'user', 'content': 'Summarize: b'}]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import polars as pl

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tympan import Prompt
    from tympan._options import TableOptions

_Frame = TypeVar("_Frame", pl.DataFrame, pl.LazyFrame)

__all__ = ["prepare"]


def prepare(frame: _Frame, prompt: Prompt, **options: Unpack[TableOptions]) -> _Frame:
    """Renders the prompt for every row of a frame, with the options of `Prompt.map_arrow`. A lazy frame stays lazy."""

    def rendered(frame: pl.DataFrame) -> pl.DataFrame:
        return pl.DataFrame(prompt.map_arrow(frame, **options))

    if isinstance(frame, pl.DataFrame):
        return rendered(frame)
    schema = rendered(pl.DataFrame(schema=frame.collect_schema())).schema
    return frame.map_batches(rendered, schema=schema, streamable=True)
