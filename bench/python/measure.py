"""Time, as the median of many short batches, with the same method as `bench/src/measure.rs`.

The clock measures the CPU time of the thread, because other programs run on the machine too. The rows take turns, one
batch each, so that a slow minute affects all of them and the ratios stay the same.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Callable

# The target duration of a batch. A batch of one repetition may take longer.
BATCH_NS = 5_000_000
# Before each timed batch, this fraction of it runs untimed.
WARM_UP = 8

Operation = Callable[[], object]


@dataclass
class Timing:
    """The time of one repetition: the median over the batches, and half the interquartile range."""

    ns: float
    spread: float


def times(operations: list[Operation], rounds: int) -> list[Timing]:
    """Times operations against each other."""
    repetitions = [_repetitions(operation) for operation in operations]
    samples: list[list[float]] = [[] for _ in operations]
    for turn in range(rounds):
        # Start each round with a different row, so that no row always follows the same one.
        for i in (*range(turn % len(operations), len(operations)), *range(turn % len(operations))):
            _batch(operations[i], -(-repetitions[i] // WARM_UP))
            samples[i].append(_batch(operations[i], repetitions[i]) / repetitions[i])
    return [_summary(each) for each in samples]


def imports(modules: list[str], rounds: int) -> tuple[Timing, dict[str, Timing]]:
    """Returns how long the bare interpreter takes to start, and how much longer it takes with each module, by the CPU
    time of its process.
    """
    starts: list[float] = []
    samples: dict[str, list[float]] = {module: [] for module in modules}
    for _ in range(rounds):
        bare = _process("pass")
        starts.append(bare)
        for module in modules:
            samples[module].append(_process(f"import {module}") - bare)
    return _summary(starts), {module: _summary(each) for module, each in samples.items()}


def _batch(operation: Operation, repetitions: int) -> int:
    before = time.thread_time_ns()
    for _ in itertools.repeat(None, repetitions):
        operation()
    return time.thread_time_ns() - before


def _repetitions(operation: Operation) -> int:
    """Returns the number of repetitions that fill a batch. Finding it also warms the caches."""
    repetitions = 1
    while True:
        spent = _batch(operation, repetitions)
        if spent * 2 >= BATCH_NS:
            return max(1, repetitions * BATCH_NS // spent)
        repetitions *= 2


def _process(program: str) -> float:
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        raise RuntimeError(f"failed: {program}")
    child.returncode = 0
    return (usage.ru_utime + usage.ru_stime) * 1e9


def _summary(samples: list[float]) -> Timing:
    ordered = sorted(samples)
    first, median, third = (ordered[round((len(ordered) - 1) * part)] for part in (0.25, 0.5, 0.75))
    return Timing(median, (third - first) / 2 / median if median else 0.0)
