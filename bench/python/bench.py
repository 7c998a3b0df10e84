"""`make bench`: measures Tympan for Python and its peers in one run, and reports which bars are met.

The results are added to `target/bench.json` under `python`.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import platform
from dataclasses import dataclass
from typing import Optional, Sequence

import tympan
from measure import Timing, imports, times
from peers import ROWS, Workload, checks, prompting_press
from rows import THREADS, measure_rows

ROOT = pathlib.Path(__file__).resolve().parents[2]
WORKLOADS = ["w1", "w2", "w3"]
MODULES = ["tympan", "jinja2", "prompty", *(["prompting_press"] if prompting_press else [])]

# The minimum speedup of Tympan's `prepare`, on the small and the retrieval workload.
FASTER = {"prompty prepare": 200.0, "prompting-press render": 4.0, "jinja2 render": 1.0}
IMPORT_MS = 30.0
# The minimum speedup of `map_arrow` with two threads, and the rows of its table.
ROWS_FASTER = {"jinja2 + json.dumps": 20.0}
TABLE_ROWS = 20_000
# The number of renders and the maximum growth of the process. A leak of one byte per render is detected.
RENDERS = 1_000_000
GROWTH_BYTES = 1_000_000

Measured = dict[str, dict[str, Timing]]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--quick", action="store_true", help="a rough answer soon")
    quick: bool = arguments.parse_args().quick

    folder = ROOT / os.environ.get("TYMPAN_WORKLOADS", ROOT / "bench" / "data")
    workloads = [Workload.read(folder, name) for name in WORKLOADS]
    measured: Measured = {}
    for workload in workloads:
        timings = times([row.operation(workload) for row in ROWS], 10 if quick else 80)
        measured[workload.name] = {row.name: timing for row, timing in zip(ROWS, timings)}
    operations = checks(workloads[0], folder)
    checked = dict(zip(operations, times(list(operations.values()), 10 if quick else 80)))
    by_row = measure_rows(workloads[0], TABLE_ROWS // 10 if quick else TABLE_ROWS, 3 if quick else 9)
    bare, starts = imports(MODULES, 5 if quick else 40)
    growth = grown(workloads[0], RENDERS // 10 if quick else RENDERS)

    print(f"Python {platform.python_version()}, workloads: {folder}\n")
    for name, rows in measured.items():
        print(workload_table(name, rows))
    print(check_table(workloads[0].name, checked))
    print(row_table(workloads[0].name, by_row))
    print(import_table(bare, starts))
    print(size_table())
    print(bars_table([*bars(measured, starts, growth), *row_bars(by_row)]))
    if not prompting_press:
        print("note: no rows of prompting-press, which needs Python 3.12: make bench BENCH_PYTHON=python3.12\n")
    write(measured, checked, starts, by_row)


def grown(workload: Workload, renders: int) -> Optional[int]:
    """Returns the growth of the process in bytes while it prepares messages this many times."""
    statm = pathlib.Path("/proc/self/statm")
    if not statm.exists():
        return None
    prompt, inputs = tympan.load_str(workload.prompty), workload.inputs

    def resident() -> int:
        return int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    for _ in range(10_000):
        tympan.prepare(prompt, inputs)
    before = resident()
    for _ in range(renders):
        tympan.prepare(prompt, inputs)
    return resident() - before


@dataclass
class Bar:
    """A bar and its measurement."""

    what: str
    required: str
    measured: Optional[str]
    holds: bool


def bars(measured: Measured, starts: dict[str, Timing], growth: Optional[int]) -> list[Bar]:
    """Returns every bar, measured or not."""
    all_bars = []
    for workload in ("w1", "w2"):
        rows = measured[workload]
        for theirs, least in FASTER.items():
            ratio = rows[theirs].ns / rows["tympan prepare"].ns if theirs in rows else None
            what = f"{workload}: tympan prepare, against {theirs}"
            required = f"at least {least:.0f} ×" if least > 1 else "more than 1 ×"
            shown = None if ratio is None else f"{ratio:.2f} ×"
            all_bars.append(Bar(what, required, shown, ratio is not None and (ratio >= least if least > 1 else ratio > 1)))
    start = starts["tympan"].ns / 1e6
    all_bars.append(Bar("import tympan, over bare Python", f"under {IMPORT_MS:.0f} ms", f"{start:.1f} ms", start < IMPORT_MS))
    shown = None if growth is None else f"{growth / 1000:,.0f} kB"
    required = f"under {GROWTH_BYTES / 1000:,.0f} kB"
    all_bars.append(Bar("w1: growth over a million renders", required, shown, growth is not None and growth < GROWTH_BYTES))
    return all_bars


def row_bars(by_row: dict[str, Timing]) -> list[Bar]:
    ours = by_row[f"tympan map_arrow, {THREADS} threads"].ns
    ratios = {theirs: by_row[theirs].ns / ours for theirs in ROWS_FASTER}
    return [
        Bar(f"w1: map_arrow, {THREADS} threads, against {name}", f"at least {ROWS_FASTER[name]:.0f} ×", f"{ratio:.1f} ×", ratio >= ROWS_FASTER[name])
        for name, ratio in ratios.items()
    ]


def row_table(name: str, by_row: dict[str, Timing]) -> str:
    ours = by_row[f"tympan map_arrow, {THREADS} threads"].ns
    cells = [
        [row, f"{1e9 / timing.ns:,.0f}", f"{timing.spread:.0%}", f"{timing.ns / ours:.1f}"] for row, timing in by_row.items()
    ]
    return table([f"Python, rows of {name}", "rows per second", "±", "× tympan"], cells)


def workload_table(name: str, rows: dict[str, Timing]) -> str:
    ours = rows["tympan prepare"].ns
    cells = [[row, f"{timing.ns:,.0f}", f"{timing.spread:.0%}", f"{timing.ns / ours:.2f}"] for row, timing in rows.items()]
    return table([f"Python, {name}", "ns", "±", "× tympan prepare"], cells)


def check_table(name: str, checked: dict[str, Timing]) -> str:
    cells = [
        [f"{row} of {name}", f"{timing.ns / 1000:.1f}", f"{timing.spread:.0%}", f"{1e9 / timing.ns:,.0f}"]
        for row, timing in checked.items()
    ]
    return table(["Python, checks", "µs", "±", "per second"], cells)


def import_table(bare: Timing, starts: dict[str, Timing]) -> str:
    cells = [["bare Python", f"{bare.ns / 1e6:.1f}", "-", f"{bare.spread:.0%}", "1.00"]]
    for module, timing in starts.items():
        total = bare.ns + timing.ns
        ratio = f"{total / bare.ns:.2f}"
        cells.append([module, f"{total / 1e6:.1f}", f"{timing.ns / 1e6:.1f}", f"{timing.spread:.0%}", ratio])
    return table(["Python, import", "ms", "ms over bare Python", "±", "× bare Python"], cells)


def size_table() -> str:
    """Returns the size of the wheel, and of the package that is installed from it."""
    package = pathlib.Path(tympan.__file__).parent
    installed = sum(path.stat().st_size for path in package.rglob("*") if path.is_file() and path.suffix != ".pyc")
    wheels = [(path.name, path.stat().st_size) for path in sorted((ROOT / "target" / "wheels").glob("tympan-*.whl"))]
    cells = [[name, f"{size / 1e6:.1f}"] for name, size in [*wheels, ("installed", installed)]]
    return table(["Python, size", "MB"], cells)


def bars_table(all_bars: list[Bar]) -> str:
    def mark(bar: Bar) -> str:
        return "? not measured" if bar.measured is None else "✓ pass" if bar.holds else "✗ FAIL"

    cells = [[bar.what, bar.measured or "-", bar.required, mark(bar)] for bar in all_bars]
    return table(["Python, bars", "measured", "required", ""], cells)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Formats a table with aligned columns: the first to the left, the others to the right."""
    widths = [max(len(cell) for cell in column) for column in zip(head, *rows)]

    def line(cells: Sequence[str]) -> str:
        first, *others = (cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(cells, widths)))
        return "  ".join([first, *others])

    return "\n".join([line(head), "─" * len(line(head)), *map(line, rows), ""])


def write(
    measured: Measured, checked: dict[str, Timing], starts: dict[str, Timing], by_row: dict[str, Timing]
) -> None:
    """Adds the results to those of the other benchmarks: `{"python": {"<workload>": {"<row>": {"ns": …}}}}`."""
    path = ROOT / "target" / "bench.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    shown = {name: {row: {"ns": round(timing.ns, 1)} for row, timing in rows.items()} for name, rows in measured.items()}
    shown["check"] = {row: {"ns": round(timing.ns, 1)} for row, timing in checked.items()}
    shown["rows"] = {row: {"ns": round(timing.ns, 1)} for row, timing in by_row.items()}
    shown["import"] = {module: {"ns": round(timing.ns)} for module, timing in starts.items()}
    known["python"] = shown
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(known, indent=2) + "\n", encoding="utf-8")
    print(f"written: {path}")


if __name__ == "__main__":
    main()
