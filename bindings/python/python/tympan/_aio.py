"""What has to be written in Python for asyncio."""

from __future__ import annotations

from typing import Any, AsyncIterator, Awaitable, Iterator, Optional, TypeVar

T = TypeVar("T")

_END: Any = object()


async def awaited(value: Awaitable[T]) -> T:
    """Anything that can be awaited, as a coroutine."""
    return await value


def next_step(steps: Iterator[T]) -> Optional[tuple[T]]:
    """The next step of an answer; `None` after the last."""
    step = next(steps, _END)
    return None if step is _END else (step,)


async def next_step_async(steps: AsyncIterator[T]) -> Optional[tuple[T]]:
    """The async twin of `next_step`."""
    try:
        return (await steps.__anext__(),)
    except StopAsyncIteration:
        return None


class Loop:
    """An event loop for a callback whose caller has none. Whoever waits runs it, one after the other."""

    def __init__(self) -> None:
        import asyncio

        self._loop = asyncio.new_event_loop()

    def run(self, value: Awaitable[T]) -> T:
        """Waits for something there."""
        return self._loop.run_until_complete(awaited(value))

    def close(self) -> None:
        """Ends what is left. The thread that asks for it may have a loop of its own that runs."""
        import threading

        threading.Thread(target=self._end, name="tympan-loop", daemon=True).start()

    def _end(self) -> None:
        try:
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()
