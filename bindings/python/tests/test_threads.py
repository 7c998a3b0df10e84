"""Many at once, and often: threads, interrupts and memory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import tympan

TEXT = "---\ninputs: [{name: question, kind: string}]\n---\nsystem:\nBe kind.\n\nuser:\n{{ question | upper }}\n"


def test_eight_threads_render_at_once() -> None:
    prompt = tympan.load_str(TEXT)
    barrier = threading.Barrier(8)

    def work(thread: int) -> None:
        barrier.wait()
        for i in range(500):
            messages = tympan.prepare(prompt, {"question": f"q{thread} {i}"})
            assert messages[1].text == f"Q{thread} {i}"

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work, thread) for thread in range(8)]:
            done.result()


def test_other_threads_run_while_the_engine_works() -> None:
    # A render that takes its time; a thread that only Python's lock could hold up counts meanwhile.
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
    # With so long an interval, nobody gets the lock unless whoever has it lets go of it.
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
prompt = tympan.load_str(sys.argv[1])
def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096
def work(count):
    for i in range(count):
        rendered = tympan.render(prompt, {"question": "x" * 1000, "more": [{"a": i}]})
        tympan.parse(prompt, rendered), rendered.segments, prompt.inputs
        try:
            tympan.render(prompt, {"question": {1}})
        except ValueError:
            pass
work(2000)
before = resident()
work(int(sys.argv[2]))
print(resident() - before)
"""


def test_memory_stays_flat() -> None:
    if not os.path.exists("/proc/self/statm"):
        return
    renders = os.environ.get("TYMPAN_LEAK_RENDERS", "20000")
    done = subprocess.run([sys.executable, "-c", LEAK, TEXT, renders], capture_output=True, text=True, check=True)
    # Each render makes several thousand bytes; a leak of one object in a hundred would show.
    assert int(done.stdout) < 2_000_000


INTERRUPTED = """
import sys, tympan
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
    # What would go wrong is a matter of moments, so there are some programs.
    programs = [subprocess.Popen([sys.executable, "-c", ENDING]) for _ in range(16)]
    assert [program.wait(timeout=60) for program in programs] == [0] * 16
