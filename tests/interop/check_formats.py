"""Reads the output of `tympan check` with tools that this project did not write: SARIF with sarif-tools and
sarif-pydantic, JUnit with junitparser. Needs no network.

    python check_formats.py PROGRAM FOLDER...
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path


def output_of(program: str, form: str, folders: list[str]) -> str:
    command = [program, "check", *folders, "--no-config", "--output-format", form]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def check_sarif(text: str, findings: list[dict]) -> None:
    from sarif.loader import load_sarif_file
    from sarif_pydantic import Sarif

    log = Sarif.model_validate_json(text)
    results = log.runs[0].results or []
    assert len(results) == len(findings), (len(results), len(findings))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "check.sarif"
        path.write_text(text, encoding="utf-8")
        loaded = load_sarif_file(str(path))
        assert loaded.get_distinct_tool_names() == ["tympan"]
        records = loaded.get_records()
    expected = sorted((f["file"], f["line"] or 1, f["rule"], f["severity"]) for f in findings)
    # The tool counts lines from 1, and has 1 where a finding has no position.
    read = sorted((r["Location"], int(r["Line"]), r["Code"].split(" ")[0], r["Severity"]) for r in records)
    assert read == expected, [pair for pair in zip(read, expected) if pair[0] != pair[1]][:3]
    print(f"SARIF: {len(read)} results read")


def check_junit(text: str, findings: list[dict], files: int) -> None:
    from junitparser import Failure, JUnitXml

    suites = JUnitXml.fromstring(text.encode())
    cases = [case for suite in suites for case in suite]
    failures = [result for case in cases for result in case.result if isinstance(result, Failure)]
    assert len(list(suites)) == files, (len(list(suites)), files)
    assert sorted(failure.message for failure in failures) == sorted(finding["message"] for finding in findings)
    assert suites.failures == len(findings), suites.failures
    print(f"JUnit: {len(failures)} failures in {files} suites read")


def main() -> None:
    program, *folders = sys.argv[1:]
    report = json.loads(output_of(program, "json", folders))
    findings = report["diagnostics"]
    assert findings, "the folders should have findings"
    checks = {
        "SARIF": lambda: check_sarif(output_of(program, "sarif", folders), findings),
        "JUnit": lambda: check_junit(output_of(program, "junit", folders), findings, report["files"]),
    }
    for name, check in checks.items():
        try:
            check()
        except ModuleNotFoundError as error:
            print(f"SKIPPED: {name}, because {error.name} is not installed")


if __name__ == "__main__":
    main()
