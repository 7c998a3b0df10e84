"""Spark runs the same bytes as the command."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, Iterable, Iterator

import pyarrow as pa
import pytest
from conftest import BATCH, ROWS, Killer
from pyspark.sql import SparkSession

import tympan
from tympan.spark import prepare

# The workers run the same Python.
os.environ["PYSPARK_PYTHON"] = sys.executable


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    # A task may fail three times, as on a cluster; a local Spark would not repeat it.
    builder = SparkSession.builder.master("local[2, 4]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.execution.arrow.maxRecordsPerBatch", "100").getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


def test_requests_have_the_bytes_of_the_command(
    spark: SparkSession, rows: list[dict[str, Any]], expected: dict[int, str]
) -> None:
    df = spark.createDataFrame(rows, "number long, text string, priority string").repartition(4)
    prepared = prepare(df, tympan.load(BATCH / "ticket.prompty"), output="openai")
    assert prepared.columns == ["number", "text", "priority", "request", "error"]
    found = prepared.collect()
    assert len(found) == ROWS
    assert {row.number: row.request for row in found if row.error is None} == expected
    failed = [row for row in found if row.error is not None]
    assert sorted(row.number for row in failed) == [7, 507, 1007, 1507]
    assert "expected an integer" in failed[0].error


def test_a_worker_that_is_killed_loses_nothing(
    spark: SparkSession, rows: list[dict[str, Any]], expected: dict[int, str], tmp_path: Path
) -> None:
    marker = tmp_path / "killed"
    kill = Killer(marker)

    def dies_once(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if 1000 in batch["number"].to_pylist():
                kill()
            yield batch

    df = spark.createDataFrame(rows, "number long, text string, priority string").repartition(4)
    prepared = prepare(df, tympan.load(BATCH / "ticket.prompty"), output="openai")
    found = prepared.mapInArrow(dies_once, prepared.schema).collect()
    assert marker.exists(), "a worker was killed"
    assert {row.number: row.request for row in found if row.error is None} == expected
    assert len(found) == ROWS


def test_messages_tokens_and_origins_have_types_that_spark_knows(spark: SparkSession) -> None:
    df = spark.createDataFrame([("It crashes", 2)], "text string, priority int")
    prepared = prepare(df, tympan.load(BATCH / "ticket.prompty"), hashes=True, tokens=True, origins=True)
    [row] = prepared.collect()
    assert [message.role for message in row.messages] == ["system", "user"]
    assert row.messages[1].content == "Priority 2\n\nIt crashes"
    assert row.tokens > 5 and len(row.render_hash) == 64
    assert ["text"] in [segment.origins for segment in row.segments]


def test_errors_of_the_whole_frame_come_before_spark_runs(spark: SparkSession) -> None:
    df = spark.createDataFrame([("a",)], "body string")
    with pytest.raises(tympan.TympanError, match="no column for the required input `text`"):
        prepare(df, tympan.load(BATCH / "ticket.prompty"))
    assert prepare(df, tympan.load(BATCH / "ticket.prompty"), map={"text": "body"}).count() == 1
