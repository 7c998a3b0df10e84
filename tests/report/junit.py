"""Reads JUnit reports about saved runs with a library that this project did not write. Needs no network.

    python junit.py PROGRAM RUN...
"""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

from junitparser import Error, Failure, JUnitXml, Skipped

KINDS = {"failed": Failure, "not_run": Error, "skipped": Skipped}


def check(program: str, run: str) -> None:
    done = subprocess.run([program, "junit", run], capture_output=True, timeout=120, check=True)
    results = [json.loads(line) for line in Path(run).read_text(encoding="utf-8").split("\n") if line]
    suites = JUnitXml.fromstring(done.stdout)
    cases = [case for suite in suites for case in suite]
    assert len(list(suites)) == len({result["file"] for result in results})
    assert len(cases) == len(results), (len(cases), len(results))
    # A case that failed with an error, and not by an assertion, is an error.
    kinds = Counter(
        Error if result.get("reason") and not any(attempt["checks"] for attempt in result["attempts"]) and result["verdict"] == "failed"
        else KINDS[result["verdict"]]
        for result in results if result["verdict"] != "passed"
    )
    found = Counter(type(entry) for case in cases for entry in case.result)
    assert found == kinds, (found, kinds)
    assert (suites.failures, suites.errors, suites.skipped) == (kinds[Failure], kinds[Error], kinds[Skipped])
    print(f"JUnit: {len(cases)} cases in {len(list(suites))} suites read from {Path(run).name}")


for path in sys.argv[2:]:
    check(sys.argv[1], path)
