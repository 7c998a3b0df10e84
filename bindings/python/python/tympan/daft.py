"""Prompts over the rows of Daft frames: `pip install tympan[daft]`.

    from tympan.daft import prepare

    prompt = tympan.load("classify.prompty")
    prepared = prepare(daft.read_parquet("tickets"), prompt)
"""

# pyarrow has no types.
# pyright: basic

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import daft
import pyarrow as pa

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tympan import Prompt
    from tympan._options import TableOptions

__all__ = ["prepare"]


def prepare(df: daft.DataFrame, prompt: Prompt, **options: Unpack[TableOptions]) -> daft.DataFrame:
    """Renders the prompt for every row of a frame, with the options of `Prompt.map_arrow`. The frame stays lazy, and
    runs where Daft runs it: on this machine or on a Ray cluster.
    """
    names = df.column_names
    # The options as a whole fail for names that the frame already has; Daft itself keeps the columns.
    empty = df.schema().to_pyarrow_schema().empty_table()
    kept = options.get("keep_columns", True)
    prompt.map_arrow(empty, **options)
    added_options: TableOptions = {**options, "keep_columns": False}
    added = pa.schema(prompt.map_arrow(empty, **added_options))
    kinds = {field.name: daft.DataType.from_arrow_type(field.type) for field in added}

    def rendered(*columns: daft.Series) -> Any:
        table = pa.table([column.to_arrow() for column in columns], names=names)
        result = pa.table(prompt.map_arrow(table, **added_options)).combine_chunks()
        return pa.StructArray.from_arrays(
            [column.combine_chunks() for column in result.columns], fields=list(result.schema)
        )

    render = daft.func.batch(return_dtype=daft.DataType.struct(kinds), unnest=True)(rendered)
    columns = [daft.col(name) for name in names]
    return df.select(*(columns if kept else ()), render(*columns))
