"""Prompts over tables of other libraries."""

from __future__ import annotations

import json
import pickle
import subprocess
from dataclasses import make_dataclass
from pathlib import Path
from typing import Any, Iterator

import daft
import duckdb
import polars as pl
import pyarrow as pa
from pyarrow import csv
import pytest
from conftest import FIXTURES, ROOT, prompt_file

import tympan
from tympan import daft as tympan_daft
from tympan import polars as tympan_polars

BATCH = FIXTURES / "batch"
COMMAND = ROOT / "target" / "debug" / "tympan"
CASES = json.loads((BATCH / "tables.json").read_text("utf-8"))
GREET = tympan.load_str("system:\nBe kind.\n\nuser:\nHi {{ name }}")


@pytest.fixture(autouse=True)
def in_the_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(BATCH)


def table_of(case: dict[str, Any]) -> pa.Table:
    if not case["rows"]:
        return pa.table({name: pa.array([], pa.string()) for name in case["schema"]})
    return pa.Table.from_pylist(case["rows"])


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_tables_are_those_of_all_languages(case: dict[str, Any]) -> None:
    prompt = tympan.load(case["prompt"])
    if "fails" in case:
        with pytest.raises(tympan.TympanError) as caught:
            prompt.map_arrow(table_of(case), **case["options"])
        assert str(caught.value) == case["fails"]
        return
    result = pa.table(prompt.map_arrow(table_of(case), **case["options"]))
    assert result.column_names == case["columns"]
    rows = result.to_pylist()
    assert [{name: row[name] for name in expected} for row, expected in zip(rows, case["expected"])] == case["expected"]
    assert len(rows) == len(case["expected"])


def test_hashes_tokens_and_origins_are_those_of_a_single_call() -> None:
    prompt = tympan.load("ticket.prompty")
    table = pa.table({"text": ["ab"]})
    [row] = pa.table(prompt.map_arrow(table, hashes=True, tokens=True, origins=True)).to_pylist()
    rendered = prompt.render({"text": "ab"})
    assert row["render_hash"] == rendered.render_hash
    assert row["tokens"] > 5
    [segment] = [segment for segment in row["segments"] if segment["origins"] == ["text"]]
    content = row["messages"][segment["message"]]["content"].encode()
    assert content[segment["start"] : segment["end"]] == b"ab"
    assert segment["trusted"] is False


def test_the_guard_wraps_the_cells_and_its_advisory_is_there() -> None:
    [row] = pa.table(GREET.map_arrow(pa.table({"name": ["Ada"]}), guard=True)).to_pylist()
    guarded = tympan.Runtime(guard=True).prepare(GREET, {"name": "Ada"})
    assert [message["content"] for message in row["messages"]] == [message.text for message in guarded]
    assert "<untrusted>Ada</untrusted>" in row["messages"][-1]["content"]


@pytest.mark.skipif(not COMMAND.exists(), reason="the command is not built: run `cargo build`")
def test_requests_have_the_bytes_of_the_command(tmp_path: Path) -> None:
    arguments = ["batch", "prepare", "tickets.csv", "-p", "ticket.prompty", "--quiet", "-o", str(tmp_path)]
    done = subprocess.run([COMMAND, *arguments], capture_output=True, text=True)
    assert done.returncode == 1, done.stderr
    lines = (tmp_path / "requests-00001.jsonl").read_text("utf-8").splitlines()
    written = [line[line.index('"body":') + len('"body":') : -1] for line in lines]
    options = csv.ParseOptions(newlines_in_values=True, invalid_row_handler=lambda row: "skip")
    text = csv.ConvertOptions(column_types={name: pa.string() for name in ["priority", "urgent", "tags", "customer"]})
    table = csv.read_csv("tickets.csv", parse_options=options, convert_options=text)
    result = pa.table(tympan.load("ticket.prompty").map_arrow(nulls(table), output="openai")).to_pylist()
    assert [row["request"] for row in result if row["error"] is None] == written


def nulls(table: pa.Table) -> pa.Table:
    """Empty cells have no value, unless the input is text."""
    for index, name in enumerate(table.column_names):
        if name not in ("text", "ignored"):
            cells = [cell or None for cell in table[name].to_pylist()]
            table = table.set_column(index, name, pa.array(cells, pa.string()))
    return table


def texts(stream: tympan.ArrowStream) -> list[str]:
    return [row["messages"][-1]["content"] for row in pa.table(stream).to_pylist()]


def test_tables_of_all_libraries_go_in() -> None:
    names = ["Ada", "a name that is longer than twelve bytes", "Ünï"]
    expected = [f"Hi {name}" for name in names]
    table = arrow_table = pa.table({"name": names})
    tables: list[Any] = [
        table,
        pa.chunked_array([table.to_struct_array().combine_chunks()]),
        table.to_batches()[0],
        table.to_reader(),
        pl.DataFrame({"name": names}),
        duckdb.sql("SELECT * FROM arrow_table"),
        daft.from_arrow(table),
        GREET.map_arrow(table, output="text"),
    ]
    for given in tables:
        assert texts(GREET.map_arrow(given, keep_columns=False)) == expected, type(given)


def test_tables_of_all_libraries_come_out() -> None:
    table = pa.table({"name": ["Ada"]})
    hi = [{"role": "system", "content": "Be kind."}, {"role": "user", "content": "Hi Ada"}]
    assert pl.DataFrame(GREET.map_arrow(table))["messages"].to_list() == [hi]
    stream = GREET.map_arrow(table)
    selected = duckdb.sql("SELECT messages FROM stream")
    assert selected is not None and selected.fetchall() == [(hi,)]
    stream = GREET.map_arrow(table)
    assert pa.schema(stream).names == stream.column_names == ["name", "messages", "error"]
    assert repr(stream) == "ArrowStream(name, messages, error)"


def test_a_stream_is_read_once() -> None:
    stream = GREET.map_arrow(pa.table({"name": ["Ada"]}))
    assert pa.table(stream).num_rows == 1
    with pytest.raises(tympan.TympanValueError, match="the stream was read already"):
        pa.table(stream)


def test_rows_keep_their_order_on_all_threads_and_rows_are_read_as_needed() -> None:
    read: list[int] = []

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, 200_000, 1000):
            read.append(start)
            yield pa.record_batch({"name": [str(number) for number in range(start, start + 1000)]})

    schema = pa.schema({"name": pa.string()})
    reader = pa.RecordBatchReader.from_batches(schema, batches())
    result = pa.RecordBatchReader.from_stream(GREET.map_arrow(reader, output="text", threads=3))
    assert read == [], "nothing is read before the result is asked for"
    first = result.read_next_batch()
    assert first["name"][0].as_py() == "0"
    assert len(read) < 50, "memory does not depend on the number of rows"
    rest = result.read_all()
    assert rest["name"].to_pylist() == [str(number) for number in range(first.num_rows, 200_000)]
    assert rest["text"][-1].as_py() == "system:\nBe kind.\n\nuser:\nHi 199999"


def test_slices_chunks_and_empty_batches_have_the_right_rows() -> None:
    table = pa.table({"name": [str(number) for number in range(10)]})
    parts = [table.slice(3, 2), table.slice(0, 0), table.slice(9)]
    assert texts(GREET.map_arrow(pa.concat_tables(parts), keep_columns=False)) == ["Hi 3", "Hi 4", "Hi 9"]


def test_callbacks_in_python_run_while_a_reader_waits() -> None:
    runtime = tympan.Runtime()
    runtime.register_filter("loud", lambda text: text.upper())
    prompt = runtime.load_str("user:\n{{ name | loud }}")
    names = [f"n{number}" for number in range(5000)]
    expected = [name.upper() for name in names]
    assert texts(runtime.map_arrow(prompt, pa.table({"name": names}), threads=4)) == expected
    frame = pl.DataFrame(runtime.map_arrow(prompt, pl.DataFrame({"name": names}), threads=4))
    assert [row[-1]["content"] for row in frame["messages"].to_list()] == expected


def test_an_error_of_the_source_reaches_the_reader() -> None:
    def batches() -> Iterator[pa.RecordBatch]:
        yield pa.record_batch({"name": ["Ada"]})
        raise RuntimeError("the disk is gone")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"name": pa.string()}), batches())
    with pytest.raises(Exception, match="the disk is gone"):
        pa.table(GREET.map_arrow(reader))


def test_what_is_no_table_is_refused() -> None:
    for given in ([{"name": "Ada"}], {"name": ["Ada"]}, None):
        with pytest.raises(tympan.TympanValueError, match="expected a table, found") as caught:
            GREET.map_arrow(given)  # type: ignore[arg-type]
        assert "pyarrow, Polars, DuckDB" in str(caught.value.help)
    with pytest.raises(tympan.TympanValueError, match="unknown field `outputs`"):
        GREET.map_arrow(pa.table({"name": ["Ada"]}), outputs="text")  # type: ignore[call-arg]


def test_a_validator_of_single_calls_is_not_passed_over() -> None:
    definition = {"name": "greet", "role": "user", "body": "Hi {{ name }}", "variables": {"name": {"type": "string", "trusted": False, "validation_required": True}}}
    table = pa.table({"name": ["Ada"]})
    prompt = tympan.Prompt.from_definition(definition, validator=make_dataclass("Checked", [("name", str)]))
    with pytest.raises(tympan.TympanValueError, match="not validated one by one"):
        prompt.map_arrow(table)
    assert texts(tympan.Prompt.from_definition(definition, validator=False).map_arrow(table)) == ["Hi Ada"]


def test_polars_frames_stay_what_they_are() -> None:
    frame = pl.DataFrame({"name": ["Ada", "Bob"]})
    eager = tympan_polars.prepare(frame, GREET)
    lazy = tympan_polars.prepare(frame.lazy(), GREET)
    assert isinstance(lazy, pl.LazyFrame)
    assert lazy.collect_schema() == eager.schema
    assert lazy.collect().equals(eager)
    assert lazy.filter(pl.col("name") == "Bob").collect()["messages"].to_list()[0][1]["content"] == "Hi Bob"


def test_daft_frames_stay_lazy() -> None:
    frame = daft.from_pydict({"name": ["Ada", "Bob"], "number": [1, 2]})
    rows = tympan_daft.prepare(frame, GREET).sort("number").to_pylist()
    assert [row["messages"][1]["content"] for row in rows] == ["Hi Ada", "Hi Bob"]
    assert list(rows[0]) == ["name", "number", "messages", "error"]
    alone = tympan_daft.prepare(frame, GREET, output="text", keep_columns=False)
    assert alone.column_names == ["text", "error"]
    with pytest.raises(tympan.TympanError, match="already have a column `messages`"):
        tympan_daft.prepare(daft.from_pydict({"name": ["Ada"], "messages": ["x"]}), GREET)


YAML = """\
name: greet
role: user
body: Hi {{ name }}
variables: {name: {type: string, trusted: false}}
"""
DEFINITION: dict[str, Any] = {
    "name": "greet",
    "role": "user",
    "body": "Hi {{ name }}",
    "variables": {"name": {"type": "string", "trusted": False}},
}

PICKLED = {
    "text": lambda: GREET,
    "file": lambda: tympan.load("ticket.prompty"),
    "yaml": lambda: tympan.Prompt.from_yaml(YAML),
    "data": lambda: tympan.Prompt.from_definition(DEFINITION),
}


@pytest.mark.parametrize("kind", PICKLED)
def test_prompts_go_to_other_processes(kind: str) -> None:
    prompt = PICKLED[kind]()
    again = pickle.loads(pickle.dumps(prompt))
    assert again.definition_hash == prompt.definition_hash
    assert again.get_source() == prompt.get_source()


def test_another_version_of_a_prompt_is_refused() -> None:
    sent = pickle.dumps(GREET)
    with pytest.raises(tympan.TympanValueError, match="another version of the prompt"):
        pickle.loads(sent.replace(b"Be kind.", b"Be rude."))
    with pytest.raises(tympan.TympanValueError, match="comes from Tympan 9.9.9"):
        pickle.loads(sent.replace(tympan.__version__.encode(), b"9.9.9"))
    with pytest.raises(tympan.TympanValueError, match="derived prompt") as caught:
        pickle.dumps(tympan.Prompt.from_yaml(YAML).derive({"body": "Ho"}))
    assert "derive it there" in str(caught.value.help)


def test_a_worker_does_not_need_the_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    text = prompt_file(
        "user:\nHi {{ name }}", model={"id": "gpt-4o", "connection": {"kind": "key", "apiKey": "${env:TYMPAN_TEST_KEY}"}}
    )
    monkeypatch.setenv("TYMPAN_TEST_KEY", "sk-secret")
    sent = pickle.dumps(tympan.load_str(text))
    assert b"sk-secret" not in sent
    monkeypatch.delenv("TYMPAN_TEST_KEY")
    assert texts(pickle.loads(sent).map_arrow(pa.table({"name": ["Ada"]}))) == ["Hi Ada"]
