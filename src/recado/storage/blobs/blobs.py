"""What a storage of binaries does, whichever it is (C30.4): streams in and out, and addresses that open for a while."""

from collections.abc import AsyncGenerator, AsyncIterable, Callable
from datetime import UTC, datetime
from typing import IO, Final, NamedTuple, Protocol

from recado.domain.core.errors import Problem

PIECE: Final = 64 * 1024
"""Bytes of a piece that is read."""
BLOCK: Final = 1024 * 1024
"""Bytes that are written to a file at once."""
SIGNED_SECONDS: Final = 5_400
_RANDOM_BYTES: Final = 16


class BlobMissing(Exception):
    """The storage has no such binary. Raised by what reads or looks, never by what writes or deletes."""


class HashedFile(NamedTuple):
    """A file that has all of a binary, and changes no more. `sha256`: of its bytes, in hexadecimal digits."""

    file: IO[bytes]
    sha256: str


class Blobs(Protocol):
    """A service (`start`, `stop`). Whatever fails in the storage is STORAGE_FAILED (502)."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def write(self, key: str, content: AsyncIterable[bytes | memoryview], file: HashedFile | None = None) -> None:
        """Store a binary as it comes. Of one that breaks off, or whose caller goes away, nothing is kept.

        `file`: without a name, has all of it already. Where it lies on the storage's own disk it gets its name there,
        and nothing is copied; for a bucket it is read, in the place of `content`.
        """

    def read(self, key: str, first: int, length: int) -> AsyncGenerator[bytes]:
        """So many bytes from the first on; raises `BlobMissing`."""

    async def delete(self, key: str, *, written: bool = False) -> None:
        """Also one that is not there, and what a writer left of it who had no time to.

        `written`: its `write` came to its end, so that there is nothing else of it to look for.
        """

    async def signed_url(self, key: str, content_type: str, disposition: str, now: datetime) -> str:
        """Where anybody may fetch the binary within 5,400 s, with these headers."""

    async def check(self) -> None:
        """Whether it is there and lets us in; nothing is written. Raises `Problem`, or `BlobMissing` without it."""


def storage_failed() -> Problem:
    """502."""
    return Problem("STORAGE_FAILED", "The media storage did not do what was asked: try again later.")


def new_key(organization_id: str, env: str, kind: str, now: datetime, random_bytes: Callable[[int], bytes]) -> str:
    """`<organization>/<environment>/<kind>/<year>/<month>/<32 random digits>`: nothing of a file's name (C30.4)."""
    return f"{organization_id}/{env}/{kind}/{now:%Y/%m}/{random_bytes(_RANDOM_BYTES).hex()}"


def end_of_month(key: str) -> datetime:
    """Of that in which the key was made."""
    *_, year, month, _ = key.split("/")
    return datetime(int(year) + int(month) // 12, int(month) % 12 + 1, 1, tzinfo=UTC)


def owner_of(key: str) -> str:
    """The organization, which a key begins with."""
    return key.partition("/")[0]


async def blocks(content: AsyncIterable[bytes | memoryview], size: int) -> AsyncGenerator[bytes]:
    """The same bytes in blocks of `size`; the last one may be shorter."""
    held, length = list[bytes | memoryview](), 0
    async for chunk in content:
        held.append(chunk)
        length += len(chunk)
        if length >= size:
            # Joined once; neither a chunk of a block's size nor its slice is a copy.
            whole = b"".join(held)
            length %= size
            end = len(whole) - length
            held = [whole[end:]] if length else []
            for at in range(0, end, size):
                yield whole[at : at + size]
    if length:
        yield b"".join(held)
