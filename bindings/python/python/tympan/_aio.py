"""What has to be written in Python for asyncio."""

from __future__ import annotations

from typing import Awaitable, TypeVar

T = TypeVar("T")


async def awaited(value: Awaitable[T]) -> T:
    """Anything that can be awaited, as a coroutine."""
    return await value
