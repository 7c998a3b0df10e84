"""Requests for the rows of a table: Arrow in, one line of JSON out for each row.

Every way starts with the same table and ends with the bodies of requests for OpenAI's API, in order. Time is by the
clock, because `map_arrow` uses two threads; the others cannot, for they hold the interpreter's lock.
"""

from __future__ import annotations

import json
import pathlib
import re
import tempfile
import time
from typing import Callable, Iterable

import jinja2
import prompty
import pyarrow as pa
import tympan
from langchain_core.messages import convert_to_openai_messages
from langchain_core.prompts import ChatPromptTemplate
from measure import Timing
from peers import Workload

THREADS = 2
MARKER = re.compile(r"^(system|user|assistant):\n", re.M)

Way = Callable[[pa.Table], list[str]]


def table_of(workload: Workload, rows: int) -> pa.Table:
    """Returns rows of the workload. Every row has another question."""
    inputs = workload.inputs
    columns = {name: [value] * rows for name, value in inputs.items()}
    columns["question"] = [f"{inputs['question']} ({row})" for row in range(rows)]
    return pa.table(columns)


def ways(workload: Workload) -> dict[str, Way]:
    """Returns the ways to make requests. All of them give the same messages."""
    head = {"model": "gpt-4o", "temperature": 0.2, "max_completion_tokens": 512}
    prompt = tympan.load_str(workload.prompty)
    template = jinja2.Environment().from_string(workload.jinja)
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "bench.prompty")
        path.write_text(workload.prompty, encoding="utf-8")
        agent = prompty.load(str(path))
    parts = MARKER.split(workload.jinja)[1:]
    pairs = [(role, text.strip()) for role, text in zip(parts[::2], parts[1::2])]
    # It only accepts templates whose variables are all given.
    chain = ChatPromptTemplate.from_messages(pairs, template_format="jinja2").partial(tone="warm")

    def body(messages: Iterable[dict[str, str]]) -> str:
        return json.dumps({**head, "messages": list(messages)}, ensure_ascii=False, separators=(",", ":"))

    def with_tympan(threads: int) -> Way:
        def requests(table: pa.Table) -> list[str]:
            result = pa.table(prompt.map_arrow(table, output="openai", keep_columns=False, threads=threads))
            if result["error"].null_count != len(result):
                raise RuntimeError("a row has an error")
            return result["request"]

        return requests

    def with_jinja(table: pa.Table) -> list[str]:
        # The text is not split into messages, which would take longer.
        return [body([{"role": "user", "content": template.render(row)}]) for row in table.to_pylist()]

    def with_prompty(table: pa.Table) -> list[str]:
        prepared = (prompty.prepare(agent, row) for row in table.to_pylist())
        return [body({"role": one.role, "content": one.text} for one in messages) for messages in prepared]

    def with_langchain(table: pa.Table) -> list[str]:
        return [body(convert_to_openai_messages(chain.format_messages(**row))) for row in table.to_pylist()]

    return {
        f"tympan map_arrow, {THREADS} threads": with_tympan(THREADS),
        "tympan map_arrow, 1 thread": with_tympan(1),
        "jinja2 + json.dumps": with_jinja,
        "prompty + json.dumps": with_prompty,
        "LangChain + json.dumps": with_langchain,
    }


# How much of the table each way gets, so that the slow ones do not take minutes.
SHARES = {"prompty + json.dumps": 50, "LangChain + json.dumps": 50}


def measure_rows(workload: Workload, rows: int, rounds: int) -> dict[str, Timing]:
    """Returns the time of each way for one row. The ways take turns."""
    all_ways = ways(workload)
    table = table_of(workload, rows)
    tables = {name: table.slice(0, rows // SHARES.get(name, 1)) for name in all_ways}
    check(all_ways, table.slice(0, 10))
    samples: dict[str, list[float]] = {name: [] for name in all_ways}
    for _ in range(rounds):
        for name, way in all_ways.items():
            before = time.perf_counter_ns()
            made = way(tables[name])
            samples[name].append((time.perf_counter_ns() - before) / len(made))
    return {name: summary(sorted(each)) for name, each in samples.items()}


def summary(samples: list[float]) -> Timing:
    middle = samples[len(samples) // 2]
    spread = (samples[len(samples) * 3 // 4] - samples[len(samples) // 4]) / 2 / middle
    return Timing(middle, spread)


def check(all_ways: dict[str, Way], table: pa.Table) -> None:
    """Checks that the ways give the same contents."""

    def contents(bodies: Iterable[object]) -> list[list[str]]:
        texts = [[one["content"] for one in json.loads(str(made))["messages"]] for made in bodies]
        return [[MARKER.sub("", text) for text in each] for each in texts]

    shown = {name: contents(way(table)) for name, way in all_ways.items()}
    expected = shown[f"tympan map_arrow, {THREADS} threads"]
    for name, found in shown.items():
        if name.startswith("jinja2"):
            found = [["".join(each.split())] for [each] in found]
            same = found == [["".join("".join(texts).split())] for texts in expected]
        else:
            same = [[text.strip() for text in texts] for texts in found] == expected
        if not same:
            raise RuntimeError(f"{name} gives other messages")
