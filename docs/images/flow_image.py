"""Draws `information-flow.svg`: what `tympan run` prints about an agent that reads a hostile page, with and without the
policy for tools. `make docs-images` builds the command and runs this script; `--check` only reports a stale picture.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import textwrap

from make_images import AUTHOR, COLUMN, LINE_HEIGHT, MARGIN, MUTED, ROLE, ROOT, WIDTH, Drawing, document, publish

PICTURE = ROOT / "docs/images/information-flow.svg"
PROMPT = "examples/hostile-page/assistant.prompty"
COMMAND = ["run", PROMPT, "--sample", "--tools", "examples/hostile-page/tools.toml"]
UNTRUSTED, STOPPED, DONE = "#ffb86b", "#7fe3d4", "#ff9aa2"


def run(program: str, *options: str) -> list[str]:
    """Runs the agent, and returns what the command says about its tools."""
    done = subprocess.run([program, *COMMAND, *options], cwd=ROOT, capture_output=True, text=True, encoding="utf-8")
    if done.returncode != 0:
        sys.exit(f"tympan run failed:\n{done.stderr}")
    return [line for line in done.stderr.splitlines() if line[:1] in "→←!"]


def colour(line: str) -> str:
    """Returns the colour of a line: what the tool returned is untrusted, and what stopped the call stands out."""
    if line.startswith("← fetch_page"):
        return UNTRUSTED
    if line.startswith("← send_mail"):
        return STOPPED if "denied" in line else DONE
    return MUTED if line.startswith("!") else AUTHOR


def draw(runs: list[tuple[str, list[str]]]) -> str:
    """Returns the picture as SVG."""
    drawing = Drawing()
    drawing.y = 38
    drawing.text(MARGIN, f"tympan run {PROMPT}", MUTED)
    width = int((WIDTH - 2 * MARGIN) / COLUMN) - 2
    for title, lines in runs:
        drawing.section()
        drawing.text(MARGIN, title, ROLE, weight=700)
        for line in lines:
            for part in textwrap.wrap(line.replace("\\n", " "), width, subsequent_indent="  "):
                drawing.y += LINE_HEIGHT
                drawing.text(MARGIN, part, colour(line))
    return document(drawing, "An agent that reads a hostile page, with and without the policy for tools")


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the picture of the page about information flow.")
    parser.add_argument("--tympan", default=str(ROOT / "target/debug/tympan"), help="the command to run")
    parser.add_argument("--check", action="store_true", help="fail if the committed picture is stale; write nothing")
    options = parser.parse_args()
    runs = [
        ("Without a policy (--tool-policy off)", run(options.tympan, "--tool-policy", "off")),
        ("With the default policy", run(options.tympan)),
    ]
    publish(PICTURE, draw(runs), options.check)


if __name__ == "__main__":
    main()
