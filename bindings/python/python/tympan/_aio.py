"""The parts of the asyncio support that must be written in Python."""

from __future__ import annotations

from typing import Any, AsyncIterator, Awaitable, Iterator, Optional, TypeVar

T = TypeVar("T")

_END: Any = object()


async def awaited(value: Awaitable[T]) -> T:
    """Wraps an awaitable in a coroutine."""
    return await value


def next_step(steps: Iterator[T]) -> Optional[tuple[T]]:
    """Returns the next delta of an answer in a tuple, or `None` after the last one."""
    step = next(steps, _END)
    return None if step is _END else (step,)


async def next_step_async(steps: AsyncIterator[T]) -> Optional[tuple[T]]:
    """The async variant of `next_step`."""
    try:
        return (await steps.__anext__(),)
    except StopAsyncIteration:
        return None


class Loop:
    """An event loop for callbacks whose caller has none. Waiting threads run it, one at a time."""

    def __init__(self) -> None:
        import asyncio

        self._loop = asyncio.new_event_loop()

    def run(self, value: Awaitable[T]) -> T:
        """Runs an awaitable on this loop and returns its result."""
        return self._loop.run_until_complete(awaited(value))

    def close(self) -> None:
        """Closes the loop. Uses a new thread, because the calling thread may have its own running loop."""
        import threading

        threading.Thread(target=self._end, name="tympan-loop", daemon=True).start()

    def _end(self) -> None:
        try:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()
