"""The time that the reads of one list may take, where thousands of rows may be looked at (C31)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from recado.domain.core.errors import Unavailable

READ_LIMIT: Final = 5.0  # seconds


@asynccontextmanager
async def in_time(remedy: str) -> AsyncIterator[None]:
    """Raises `Unavailable` when what is read in it is not found in five seconds; `remedy`: what its caller can do."""
    try:
        async with asyncio.timeout(READ_LIMIT):
            yield
    except TimeoutError:
        raise Unavailable(f"The search took too long: {remedy}.") from None
