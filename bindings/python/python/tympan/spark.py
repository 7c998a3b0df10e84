"""Prompts over the rows of Spark frames: `pip install tympan[spark]`.

    from tympan.spark import prepare

    prompt = tympan.load("classify.prompty")
    prepared = prepare(spark.read.parquet("tickets"), prompt, output="openai", model="gpt-4o-mini")
    prepared.filter("error is null").write.parquet("requests")

The workers need the packages `tympan`, in the same version, and `pyarrow`. They get the text of the prompt with its
hash, and refuse another version of it.
"""

# pyarrow has no types, and the clusters are not installed where types are checked.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from typing import TYPE_CHECKING, Iterable, Iterator

import pyarrow as pa
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from typing_extensions import Unpack

    from tympan import Prompt
    from tympan._options import TableOptions

__all__ = ["prepare"]


def prepare(df: DataFrame, prompt: Prompt, **options: Unpack[TableOptions]) -> DataFrame:
    """Renders the prompt for every row of a frame, with the options of `Prompt.map_arrow`. Rows are rendered on the
    workers, one thread per task.
    """
    # A task has one core, unless the options say more.
    options = {"threads": 1, **options}
    empty = to_arrow_schema(df.schema).empty_table()
    schema = from_arrow_schema(pa.schema(prompt.map_arrow(empty, **options)))

    def rendered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield from pa.RecordBatchReader.from_stream(prompt.map_arrow(batch, **options))

    return df.mapInArrow(rendered, schema)
