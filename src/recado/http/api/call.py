"""One request as its handler sees it: the caller, the parsed parameters, and nothing of the transport."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from multidict import CIMultiDictProxy

from recado.domain.core.errors import FieldError, Problem
from recado.domain.core.idempotency import KeyHeld
from recado.http.callers.principal import Principal
from recado.http.callers.rate_limits import Bucket
from recado.http.wire.byte_budget import Room
from recado.http.wire.client_ip import ClientAddresses
from recado.http.wire.reply import Reply
from recado.http.wire.spool import Spool

__all__ = ["ANY_REVISION", "Call", "IdempotencyKey", "Principal"]


class _AnyRevision:
    """`If-Match: *`: any existing record will do."""

    def __repr__(self) -> str:
        return "ANY_REVISION"


ANY_REVISION: Final = _AnyRevision()


@dataclass(frozen=True, slots=True)
class IdempotencyKey:
    """A caller's key: SHA-256 over its scope, and SHA-256 over what was asked (32 bytes each, C6.2)."""

    key_hash: bytes
    fingerprint: bytes


class Call:
    """A request that passed every step before its handler.

    `path` holds the path parameters; `query` and `body` are instances of the route's models (None where it has none);
    `if_match` is None (not sent), `ANY_REVISION`, or the revisions that the caller accepts.
    """

    __slots__ = (
        "_addresses", "answer", "body", "bucket", "headers", "held", "idempotency", "if_match", "made", "method", "now",
        "path", "peer", "principal", "query", "raw_body", "request_id", "resource", "room", "route", "spool", "target",
        "unknown", "unshown",
    )  # fmt: skip

    def __init__(
        self,
        method: str,
        target: str,
        path: Mapping[str, str],
        headers: CIMultiDictProxy[str],
        peer: str,
        addresses: ClientAddresses,
        request_id: str,
        now: datetime,
        principal: Principal,
    ) -> None:
        self.method = method
        self.target = target  # the path as it was sent, without query
        self.path = path
        self.headers = headers
        self.peer = peer
        self._addresses = addresses
        self.request_id = request_id
        self.now = now
        self.principal = principal
        self.route: str | None = None  # without an operation: the path of the route that is most like it, for the log
        self.bucket: Bucket | None = None  # what the request was counted in (C6.1)
        self.query: Any = None
        self.body: Any = None
        self.raw_body = b""
        self.room: Room | None = None  # the memory that `raw_body` takes
        self.spool: Spool | None = None
        self.resource: Any = None
        self.idempotency: IdempotencyKey | None = None
        self.held: KeyHeld | None = None  # the key, while this request is the one that runs under it
        self.made: str | None = None  # by a rotation: which token or secret, noted with its commit (C6.2)
        self.unshown: str | None = None  # `made` of the first request under the key, whose answer is lost
        self.answer: Reply | None = None  # of what is about to be committed, which keeps it (C6.2)
        self.unknown: list[FieldError] = []  # fields and parameters that no operation knows
        self.if_match: _AnyRevision | tuple[int, ...] | None = None

    @property
    def client_ip(self) -> str:
        """The caller's address; through trusted proxies, the one they saw."""
        return self._addresses.resolve(self.peer, self.headers)

    @property
    def user_agent(self) -> str | None:
        """The caller's program, as it says."""
        return agent_of(self.headers)

    def can(self, scope: str) -> bool:
        """Whether the credential holds `scope`."""
        return scope in self.principal.scopes

    def check_revision(self, current: int) -> None:
        """Raise VERSION_MISMATCH (412) unless `If-Match` is absent or names the `current` revision (C6.3).

        A repeat of a lost rotation has met it: the version that it names is the one before its first request.
        """
        wanted = self.if_match
        if wanted is None or self.unshown is not None or isinstance(wanted, _AnyRevision) or current in wanted:
            return
        raise Problem(
            "VERSION_MISMATCH",
            "The record has changed: If-Match does not name its version. Read it again and repeat the change."
            if wanted
            else 'If-Match must be the ETag that the record was read with, with its quotes, such as "7".',
            meta={"currentETag": f'"{current}"'},
        )


def agent_of(headers: CIMultiDictProxy[str]) -> str | None:
    """The program that sent them, as it says; bytes that are no UTF-8, which no text can hold, are replaced."""
    agent = headers.get("User-Agent")
    if agent is None or agent.isascii():
        return agent
    return agent.encode(errors="surrogateescape").decode(errors="replace")
