"""Ray runs the same bytes as the command, on two nodes."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Iterator

import pyarrow as pa
import pytest
import ray
from conftest import BATCH, ROWS, Killer
from ray.cluster_utils import Cluster

import tympan
from tympan.ray import prepare


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    nodes = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    nodes.add_node(num_cpus=1)
    ray.init(address=nodes.address, log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    assert len([node for node in ray.nodes() if node["Alive"]]) == 2
    yield nodes
    ray.shutdown()
    nodes.shutdown()


def table(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows)


def test_requests_have_the_bytes_of_the_command(
    cluster: Cluster, rows: list[dict[str, Any]], expected: dict[int, str]
) -> None:
    dataset = ray.data.from_arrow([table(rows).slice(start, 250) for start in range(0, ROWS, 250)])
    found = prepare(dataset, tympan.load(BATCH / "ticket.prompty"), output="openai").take_all()
    assert len(found) == ROWS
    assert {row["number"]: row["request"] for row in found if row["error"] is None} == expected
    assert sorted(row["number"] for row in found if row["error"] is not None) == [7, 507, 1007, 1507]


def test_a_worker_that_is_killed_loses_nothing(
    cluster: Cluster, rows: list[dict[str, Any]], expected: dict[int, str], tmp_path: Path
) -> None:
    marker = tmp_path / "killed"
    kill = Killer(marker)

    def dies_once(batch: pa.Table) -> pa.Table:
        if 1000 in batch["number"].to_pylist():
            kill()
        return batch

    dataset = ray.data.from_arrow([table(rows).slice(start, 250) for start in range(0, ROWS, 250)])
    prepared = prepare(dataset, tympan.load(BATCH / "ticket.prompty"), output="openai")
    found = prepared.map_batches(dies_once, batch_format="pyarrow").take_all()
    assert marker.exists(), "a worker was killed"
    assert {row["number"]: row["request"] for row in found if row["error"] is None} == expected
    assert len(found) == ROWS


def test_messages_are_what_ray_data_llm_takes(cluster: Cluster) -> None:
    dataset = ray.data.from_arrow(pa.table({"text": ["It crashes"]}))
    [row] = prepare(dataset, tympan.load(BATCH / "ticket.prompty")).take_all()
    assert row["messages"][1] == {"role": "user", "content": "Priority 3\n\nIt crashes"}
