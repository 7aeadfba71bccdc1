"""Large bodies: kept in a file without a name while they are read, so that memory holds a piece of them only.

The file is gone with its last use, also when the process is killed. A few threads write it: neither a disk that is slow
nor the hashing holds the event loop.
"""

import tempfile
from collections import Counter
from collections.abc import Collection
from contextlib import aclosing
from hashlib import sha256
from pathlib import Path
from typing import IO, Final

import structlog
from aiohttp.web_request import BaseRequest

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem, Unavailable
from recado.http.wire.body import body_chunks
from recado.http.wire.body_pace import BodyPace
from recado.storage.core.gathered import GatheredBytes
from recado.storage.core.shares.fair_threads import FairThreads

MOST_AT_ONCE: Final = 32
MOST_OF_ONE: Final = 4  # of one organization
RETRY_AFTER: Final = 2  # seconds
IN_MEMORY: Final = 1024 * 1024  # bytes; a smaller body needs no file
STEP: Final = 512 * 1024  # bytes that a thread writes at once
SMALL: Final = 64 * 1024  # bytes; a body of no more needs no thread
AS_IT_IS: Final = "application/octet-stream"
_MOST_PIECES: Final = 256  # of a step: each is an object, however small
QUIET_SECONDS: Final = 60.0  # between two entries in the log that say that there is no room

_log = structlog.get_logger(__name__)


class Spool:
    """A body that has arrived. `file` stands at its beginning. `digest`: its SHA-256."""

    __slots__ = ("_owner", "_spooler", "digest", "file", "media_type", "size")

    def __init__(self, spooler: "Spooler", owner: str, body: "_Body", media_type: str) -> None:
        self._spooler = spooler
        self._owner = owner
        self.file = body.bytes.file
        self.media_type = media_type
        self.size = body.size
        self.digest = body.hash.digest()

    async def close(self) -> None:
        """Forget the body."""
        await self._spooler.forget(self._owner, self.file)


class _Body:
    """What has come of a body."""

    __slots__ = ("bytes", "hash", "size")

    def __init__(self, folder: str | None, *, stays: bool) -> None:
        self.bytes = GatheredBytes(folder, IN_MEMORY, stays=stays)
        self.hash = sha256()
        self.size = 0

    def add(self, pieces: list[bytes | memoryview]) -> None:
        """Joined first: hashing and writing let other threads run, and each has to wait to go on after it."""
        step = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self.hash.update(step)
        self.bytes.write(step)
        self.size += len(step)


class Spooler:
    """Keeps the bodies of an HTTP server: 32 at a time, and 4 of one organization (C31)."""

    def __init__(
        self,
        folder: Path | None,
        clock: Clock,
        pace: BodyPace,
        threads: FairThreads,
        *,
        stored: bool = False,
    ) -> None:
        """Of a body that is a file as it is (`application/octet-stream`), `stored`: it gets a name on the folder's
        disk.
        """
        self._folder = None if folder is None else str(folder)
        self._threads = threads
        self._clock = clock
        self._pace = pace
        self._stored = stored
        self._by_owner: Counter[str] = Counter()
        self._tell_again_at = 0.0

    @property
    def open(self) -> int:
        """How many bodies are being read or used."""
        return self._by_owner.total()

    async def read(self, request: BaseRequest, limit: int, media_type: str, owner: str) -> Spool:
        """Return the body of `request`; the refusals of `body_chunks`.

        429 while `owner`, an organization, has its share of bodies here; 503 while there is no room for one more.
        """
        self._enter(owner)
        body = _Body(self._folder, stays=self._stored and media_type == AS_IT_IS)
        try:
            pieces, held = list[bytes | memoryview](), 0
            async with aclosing(body_chunks(request, limit, self._clock, self._pace, owner)) as chunks:
                async for chunk in chunks:
                    pieces.append(chunk)
                    held += len(chunk)
                    if held >= STEP or len(pieces) >= _MOST_PIECES or not isinstance(chunk, bytes):
                        await self._threads.run(owner, body.add, pieces)
                        pieces, held = [], 0
            if body.size or held > SMALL:
                await self._threads.run(owner, body.add, pieces)
            else:
                body.add(pieces)
            body.bytes.file.seek(0)
        except BaseException as error:
            pieces.clear()  # whoever still holds this frame by the error's traceback does not hold the bytes
            await self.forget(owner, body.bytes.file)
            if isinstance(error, OSError) and not isinstance(error, ConnectionError):
                self._tell(error)
                raise Unavailable("There is no room for the body now: try again shortly.") from None
            raise
        return Spool(self, owner, body, media_type)

    async def forget(self, owner: str, file: IO[bytes]) -> None:
        """A body of `owner` is no longer here."""
        try:
            await self._threads.close(owner, file)
        finally:
            self._by_owner[owner] -= 1
            if not self._by_owner[owner]:
                del self._by_owner[owner]

    def _tell(self, error: OSError) -> None:
        """Log why no body finds room, and where."""
        now = self._clock.monotonic()
        if now >= self._tell_again_at:
            self._tell_again_at = now + QUIET_SECONDS
            _log.warning("body_not_kept", folder=self._folder or tempfile.gettempdir(), cause=error.strerror)

    def _enter(self, owner: str) -> None:
        if self._by_owner[owner] >= MOST_OF_ONE:
            raise Problem(
                "RATE_LIMITED",
                f"{MOST_OF_ONE} uploads of the organization are open: wait for their answers, then repeat this one.",
                meta={"limit": MOST_OF_ONE},
                headers={"Retry-After": str(RETRY_AFTER)},
            )
        if self.open >= MOST_AT_ONCE:
            raise Unavailable(
                "The service holds too many uploads now: repeat this one after Retry-After.", retry_after=RETRY_AFTER
            )
        self._by_owner[owner] += 1


def media_type_of(header: str | None, allowed: Collection[str]) -> str:
    """Return the media type that a `Content-Type` names; UNSUPPORTED_MEDIA_TYPE (415) unless allowed, and in UTF-8."""
    media_type, _, parameters = (header or "").partition(";")
    name = media_type.strip().lower()
    charset = parameters.replace(" ", "").replace('"', "").lower()
    named = charset.rpartition("charset=")[2] if "charset=" in charset else ""
    if name not in allowed or named.partition(";")[0] not in {"", "utf-8", "utf8"}:
        raise Problem("UNSUPPORTED_MEDIA_TYPE", f"The body must be sent as {', '.join(sorted(allowed))}, in UTF-8.")
    return name
