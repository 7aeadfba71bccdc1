"""Media at a provider: what an adapter reads of it, and what it does where its provider keeps media (C29.2)."""

from collections.abc import AsyncIterable, AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

from recado.channels.core.provider import Account


@dataclass(frozen=True, slots=True)
class OpenMedia:
    """Media being read. `size` in bytes and `sha256` (hex) as the provider says, where it does.

    The chunks raise `ProviderError` when the connection breaks off.
    """

    mime_type: str
    size: int | None
    sha256: str | None
    chunks: AsyncIterator[bytes] = field(repr=False)


class MediaStore(Protocol):
    """Takes media that messages then send, and gives what people sent. Raises `ProviderError`."""

    async def upload_media(
        self, account: Account, content: AsyncIterable[bytes | memoryview], *, size: int, mime_type: str, filename: str
    ) -> str:
        """Hand over `size` bytes; the id under which messages of this account send them."""

    def open_media(self, account: Account, media_ref: str) -> AbstractAsyncContextManager[OpenMedia]:
        """Read media; the code of the error is `not_found` where the provider has it no more."""
