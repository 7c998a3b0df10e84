"""Prompts over the rows of Ray datasets: `pip install tympan[ray]`.

    from tympan.ray import prepare

    prompt = tympan.load("classify.prompty")
    prepared = prepare(ray.data.read_parquet("tickets"), prompt)

The column `messages` is what `ray.data.llm` takes. The workers need the packages `tympan`, in the same version, and
`pyarrow`. They get the text of the prompt with its hash, and refuse another version of it.
"""

# pyarrow has no types, and the clusters are not installed where types are checked.
# pyright: basic, reportMissingImports=false

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

if TYPE_CHECKING:
    from ray.data import Dataset
    from typing_extensions import Unpack

    from tympan import Prompt
    from tympan._options import TableOptions

__all__ = ["prepare"]


def prepare(dataset: Dataset, prompt: Prompt, **options: Unpack[TableOptions]) -> Dataset:
    """Renders the prompt for every row of a dataset, with the options of `Prompt.map_arrow`. Rows are rendered on the
    workers, one thread per task.
    """
    # A task has one core, unless the options say more.
    options = {"threads": 1, **options}

    def rendered(table: pa.Table) -> pa.Table:
        return pa.table(prompt.map_arrow(table, **options))

    return dataset.map_batches(rendered, batch_format="pyarrow", zero_copy_batch=True)
