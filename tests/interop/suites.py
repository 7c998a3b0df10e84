"""Runs suites of `tympan test` against a server: live, recorded, and replayed without the server."""

import json
import shutil
from pathlib import Path

from harness import Mismatch, holds, same

HERE = Path(__file__).parent


class Suite:
    """A copy of the test files and their prompts, because cassettes are written beside them."""

    def __init__(self, name, work):
        self.name, self.folder = name, Path(work) / f"suite-{name}"
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(HERE / "prompts", self.folder / "prompts")
        (self.folder / "suites").mkdir()

    def add(self, *files):
        """Add test files. Return the suite."""
        for file in files:
            shutil.copy(HERE / "suites" / file, self.folder / "suites")
        return self

    def run(self, tympan, *args, env=None):
        """Run the suite. Return the exit status and the result of each case by its name."""
        run = tympan.run("test", self.folder / "suites", "--json", *args, env=env)
        lines = [json.loads(line) for line in run.stdout.splitlines()]
        results = {line["name"]: line for line in lines if "verdict" in line}
        if not results:
            raise Mismatch(f"no case was run: {run.stderr or run.stdout}")
        return run.status, results

    def recordings(self):
        """Return the content of all recordings."""
        return b"".join(path.read_bytes() for path in self.folder.rglob("cassettes/**/*") if path.is_file())


def verdicts(results):
    """Return the verdict of each case."""
    return {name: result["verdict"] for name, result in results.items()}


def answers(results):
    """Return the answers of each case, one for each repetition."""
    return {name: [attempt.get("answer") for attempt in result["attempts"]] for name, result in results.items()}


# The names of cases say what must become of them. An error of the server is not recorded.
FAILS, FAILS_FOR_AN_ERROR = "fails", "fails for an error"


def is_as_expected(status, results, error="failed"):
    """Check the verdicts and the exit status."""
    expected = {
        name: error if name == FAILS_FOR_AN_ERROR else "failed" if name.startswith(FAILS) else "passed"
        for name in results
    }
    same("verdicts", verdicts(results), expected)
    same("exit status", status, 1 if "failed" in verdicts(results).values() else 0)


def suite(bench, name, files, work, arguments, key, env=None):
    """Run a suite in all three ways. Only the first two may call the server."""
    tests = Suite(name, work).add(*files)
    bench.tap.reset()
    status, results = tests.run(bench.tympan, env=env)
    same("verdicts without recordings", set(verdicts(results).values()), {"not_run"})
    same("exit status without recordings", status, 1)
    same("requests without --live", bench.tap.requests(), [])

    status, live = tests.run(bench.tympan, "--live", *arguments, env=env)
    is_as_expected(status, live)
    holds("--live calls the server", bench.tap.requests(), live)
    same("recordings of --live", tests.recordings(), b"")

    status, recorded = tests.run(bench.tympan, "--record", *arguments, env=env)
    is_as_expected(status, recorded)
    holds("something is recorded", tests.recordings(), recorded)
    holds("the key is not recorded", key.encode() not in tests.recordings(), name)

    bench.tap.reset()
    status, replayed = tests.run(bench.tympan, *arguments, env=env)
    is_as_expected(status, replayed, error="not_run")
    same("requests of the replay", bench.tap.requests(), [])
    same("answers of the replay", answers(replayed), answers(recorded))
