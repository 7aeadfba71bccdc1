"""What a handler returns: a status and a body made of plain values; rendering is not its concern."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

from recado.http.wire.byte_budget import STREAM_BYTES
from recado.http.wire.outlet import Outlet

NO_HEADERS: Mapping[str, str] = {}
REPLAYED: Mapping[str, str] = {"Idempotency-Replayed": "true"}
"""The answer is one that the same `Idempotency-Key` got before (C6.2)."""


class Reply:
    """One answer.

    `body`: plain values (rendered as JSON, `datetime` in the form of C2.3.5), `bytes` as they are, or None for no body.
    `revision`: of the versioned resource that the body shows; becomes its `ETag` (C6.3).
    `stored`: what an idempotency key keeps in place of `body` – without secrets, before masking (C6.2).
    `subject_id`: of the contact that the body shows; what is kept of the answer goes with it (C12.6).
    `headers` may name another `Content-Type` or `Cache-Control`.
    """

    __slots__ = ("body", "headers", "revision", "status", "stored", "subject_id")

    def __init__(
        self,
        status: int,
        body: Any = None,
        *,
        headers: Mapping[str, str] = NO_HEADERS,
        revision: int | None = None,
        stored: Any = None,
        subject_id: str | None = None,
    ) -> None:
        self.status = status
        self.body = body
        self.headers = headers
        self.revision = revision
        self.stored = stored
        self.subject_id = subject_id


class StreamReply(Reply):
    """An answer that is written piece by piece: a large page.

    `length` in bytes where it is known; without it the answer is chunked. `memory`: bytes that it may hold at once. The
    generator is closed when the client leaves, or when it has not ended in the time that a stop of the server leaves.
    `outlet` opens when the answer begins: for pieces that go past the generator while that waits.
    """

    __slots__ = ("chunks", "length", "memory", "outlet")

    def __init__(
        self,
        status: int,
        chunks: AsyncGenerator[bytes],
        *,
        content_type: str,
        headers: Mapping[str, str] = NO_HEADERS,
        length: int | None = None,
        memory: int = STREAM_BYTES,
        outlet: Outlet | None = None,
    ) -> None:
        super().__init__(status, headers={"Content-Type": content_type, **headers})
        self.memory = memory
        self.chunks = chunks
        self.length = length
        self.outlet = outlet
