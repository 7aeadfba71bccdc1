"""Work that is not broken off: what is half done when its caller is cancelled would be left behind."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


async def to_its_end(work: Awaitable[T], hurry: Callable[[], None] = lambda: None) -> T:
    """The work, which is not broken off: whoever is cancelled calls `hurry`, and leaves when it has ended."""
    working = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        hurry()
        while not working.done():
            with suppress(asyncio.CancelledError):  # told once more: it ends all the same
                await asyncio.wait([working])
        if not working.cancelled():
            working.exception()  # the hurry may have made it fail: nobody is left who wants to know
        raise
