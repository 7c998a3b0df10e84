"""Concurrency and repetition: threads, interrupts and memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import tympan

TEXT = "---\ninputs: [{name: question, kind: string}]\n---\nsystem:\nBe kind.\n\nuser:\n{{ question | upper }}\n"


def rendered(prompt: tympan.Prompt, thread: int) -> list[tuple[Any, ...]]:
    """Returns everything visible about many renders: bytes, hashes, origins and messages."""
    seen: list[tuple[Any, ...]] = []
    for i in range(300):
        inputs = {"question": f"q{thread} {i} ü🥁", "items": [{"n": i}, {"n": thread}]}
        text = tympan.render(prompt, inputs)
        segments = [(segment.text, segment.origins, segment.trusted) for segment in text.segments]
        messages = [message.to_dict() for message in tympan.prepare(prompt, inputs)]
        seen.append((text.encode(), text.template_hash, text.render_hash, segments, messages))
    return seen


def test_eight_threads_render_the_same_as_one() -> None:
    text = TEXT + "{% for item in items %}{{ loop.index }}={{ item.n }} {% endfor %}{{ items | tojson }}"
    alone = [rendered(tympan.load_str(text), thread) for thread in range(8)]
    # Compiled by whichever thread comes first.
    prompt, barrier = tympan.load_str(text), threading.Barrier(8)

    def work(thread: int) -> list[tuple[Any, ...]]:
        barrier.wait()
        return rendered(prompt, thread)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(8))) == alone
    assert alone[0][0][0].startswith("system:\nBe kind.\n\nuser:\nQ0 0 Ü🥁".encode())


def test_inputs_may_change_while_they_are_rendered() -> None:
    # Texts are borrowed from Python without its lock. Nothing else references these, so without a reference they would
    # be freed immediately.
    prompt = tympan.load_str("{% for a in items %}{{ a.text }}{{ a.text | upper }}{% endfor %}")
    items: list[dict[str, str]] = []
    is_done = threading.Event()

    def change() -> None:
        number = 0
        while not is_done.is_set():
            number += 1
            items[:] = [{"text": f"{'x' * 50}{number % 10}"} for _ in range(50)]
            time.sleep(0)
            items[0]["text"] = f"{'x' * 50}{number % 10}"

    changer = threading.Thread(target=change)
    changer.start()
    try:
        for _ in range(2000):
            text = tympan.render(prompt, {"items": items})
            assert set(text) <= set("xX0123456789")
            assert len(text) % 102 == 0
    finally:
        is_done.set()
        changer.join()


def test_other_threads_run_while_the_engine_works() -> None:
    # A slow render, while another thread counts. Only the interpreter's lock could block that thread.
    prompt = tympan.load_str("{% for a in r %}{% for b in r %}{{ a * b }}{% endfor %}{% endfor %}")
    inputs = {"r": list(range(500))}
    counted, is_done = 0, threading.Event()

    def count() -> None:
        nonlocal counted
        while not is_done.is_set():
            counted += 1
            time.sleep(0)

    counter = threading.Thread(target=count)
    interval = sys.getswitchinterval()
    # With such a long interval, no thread gets the lock unless the thread that holds it releases it.
    sys.setswitchinterval(100)
    try:
        counter.start()
        before = counted
        tympan.render(prompt, inputs)
        after = counted
    finally:
        sys.setswitchinterval(interval)
        is_done.set()
        counter.join()
    assert after - before > 10


LEAK = """
import sys, tympan
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
prompt = tympan.load_str(sys.argv[1])
definition = {"name": "a", "role": "user", "body": "{{ a }}", "variables": {
    "a": {"type": "string", "trusted": False, "validation_required": True}}}
def only_render(i):
    tympan.render(prompt, {"question": f"{i} What is a tympan?"})
def all_the_rest(i):
    import dataclasses
    @dataclasses.dataclass
    class Model:
        a: str
    inputs = {"question": "x" * 1000, "more": [{"a": i}]}
    rendered = tympan.render(prompt, inputs)
    messages = tympan.parse(prompt, rendered)
    rendered.segments, rendered.render_hash, prompt.inputs, prompt.to_dict(), [message.to_dict() for message in messages]
    made = tympan.Prompt.from_definition(definition, validator=Model)
    made.render({"a": "b"})
    for wrong in ({"question": {1}}, {}):
        try:
            tympan.render(prompt, wrong)
        except ValueError:
            pass
    runtime = tympan.Runtime()
    runtime.register_renderer("jinja2", lambda template, inputs: template)
    runtime.register_provider("mine", lambda call: "yes")
    runtime.prepare(prompt, inputs)
    if i % 8 == 0:
        runtime.invoke(prompt, inputs, provider="mine")
work = {"render": only_render, "rest": all_the_rest}[sys.argv[2]]
count = int(sys.argv[3])
for i in range(max(500, count // 10)):
    work(i)
before = resident()
for i in range(count):
    work(i)
print(resident() - before)
"""

RENDERS = int(os.environ.get("TYMPAN_LEAK_RENDERS", "1000000"))


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="nothing says here how much memory there is")
@pytest.mark.parametrize(("what", "count", "bytes"), [("render", RENDERS, 6_000_000), ("rest", RENDERS // 400, 2_000_000)])
def test_memory_stays_flat(what: str, count: int, bytes: int) -> None:
    # A busy machine can make the allocator keep a few pages once. A leak shows in every process.
    grown: list[int] = []
    while len(grown) < 3 and (not grown or min(grown) >= bytes):
        done = subprocess.run([sys.executable, "-c", LEAK, TEXT, what, str(count)], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        grown.append(int(done.stdout))
    # A million renders that each leak one object of the smallest size, 16 bytes, would leak 16 million bytes. The rest
    # creates prompts and runtimes, which have thousands of bytes each.
    assert min(grown) < bytes, grown


# A shell that starts the tests in the background makes its children ignore the signal.
INTERRUPTED = """
import signal, sys, tympan
signal.signal(signal.SIGINT, signal.default_int_handler)
def wait(city):
    print("begun", flush=True)
    import time
    time.sleep(600)
prompt = tympan.load_str(sys.argv[1])
try:
    tympan.turn(prompt, tools={"wait": wait})
except KeyboardInterrupt:
    print("interrupted", flush=True)
    import os
    os._exit(0)
"""


def test_a_turn_is_interrupted_from_the_keyboard() -> None:
    script = "[{tool_calls: [{name: wait, arguments: {city: x}}]}, {text: done}]"
    text = (
        "---\nmodel: {provider: echo, options: {additionalProperties: {script: %s}}}\n"
        "tools: [{name: wait, kind: function, parameters: {properties: [{name: city, kind: string}]}}]\n---\nuser:\nHi" % script
    )
    process = subprocess.Popen([sys.executable, "-c", INTERRUPTED, text], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "begun\n"
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=30)[0] == "interrupted\n"
    finally:
        process.kill()


ENDING = """
import asyncio, tympan
prompt = tympan.load_str(
    "---\\nmodel: {provider: echo}\\n---\\nuser:\\n{{ q }}"
)
async def main():
    await asyncio.gather(*(tympan.turn_async(prompt, {"q": "a b c"}, on_event=lambda event: None) for _ in range(20)))
asyncio.run(main())
"""


def test_a_program_ends_well_while_threads_are_still_about() -> None:
    # The failure would be a race, so several programs run.
    programs = [subprocess.Popen([sys.executable, "-c", ENDING]) for _ in range(16)]
    assert [program.wait(timeout=60) for program in programs] == [0] * 16
