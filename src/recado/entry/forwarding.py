"""Passes a request on to a cell, and its answer back: piece by piece, as fast as the slower side takes it."""

import asyncio
import math
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import quote

import aiohttp
from aiohttp import web
from aiohttp.http import HttpVersion11
from aiohttp.web_request import BaseRequest
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.entry.figures import ANSWER, EntryBound, EntryFigures
from recado.entry.passed_body import PassedBody, has_body
from recado.http.wire.deadlines import READ_SECONDS, SLOW_SECONDS
from recado.http.wire.rendering import LARGE, WireResponse
from recado.storage.core.shares.fair_places import FairPlaces

PLACES: Final = 8_000
"""Requests that are under way to one cell: half of the connections that it takes."""
LARGE_PLACES: Final = 1_000  # large answers of one cell that are being read, beside them
PLACES_OF_CALLER: Final = 250  # an organization's are no party here: who calls is an address
WAITING_OF_CALLER: Final = 500
WAITS: Final = 5.0  # seconds, for a place
CONNECT_SECONDS: Final = 3.0
SILENT_SECONDS: Final = SLOW_SECONDS + 30.0  # a cell that has everything, and says nothing any more, is gone
READ_PATIENCE: Final = READ_SECONDS + 5.0
"""Seconds for the head of an answer to who only reads: each cell has one sooner, be it a refusal."""
KEPT_OPEN: Final = 30.0  # seconds: less than a cell keeps a connection that rests
AWAY_FOR: Final = 1.0  # seconds in which a cell that took no connection is the last that is tried
SILENT_FOR: Final = 30.0  # likewise one that did not answer
RETRY_AFTER: Final = 5  # seconds
if TYPE_CHECKING:
    from aiohttp.client_reqrep import ConnectionKey
    from aiohttp.connector import Connection
    from aiohttp.tracing import Trace

_HOP: Final = frozenset(
    {
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "trailer",
        "transfer-encoding", "upgrade",
    }
)  # fmt: skip
# What says where a request came from is said anew. The body's length is that of what is sent.
_SAID_ANEW: Final = frozenset({"expect", "forwarded", "x-real-ip", "via", "content-length"})
_PRINTABLE: Final = "".join(map(chr, range(0x21, 0x7F)))
_One = TypeVar("_One")


class NotReached(Exception):
    """The cell took no connection, or says nothing to what may be asked of another one, too."""


class _QuietConnector(aiohttp.TCPConnector):
    """Uses no connection again on which something came while it rested, as the 408 of a proxy before a cell: it would
    be taken for the answer to what is asked next, which is another caller's.
    """

    async def _get(self, key: "ConnectionKey", traces: "list[Trace]") -> "Connection | None":
        while (found := await super()._get(key, traces)) is not None:
            if found.protocol is not None and not found.protocol.should_close:
                return found
            found.close()
        return None


class AnswerBrokeOff(ConnectionResetError):
    """The cell ended its answer before its end: its caller's connection ends, too."""


class Forwarder:
    """A service (`start`, `stop`): keeps connections to cells."""

    def __init__(self, clock: Clock, figures: EntryFigures) -> None:
        self._clock = clock
        self._figures = figures
        self._session: aiohttp.ClientSession | None = None
        self._places: dict[str, FairPlaces] = {}
        self._large: dict[str, FairPlaces] = {}
        self._away_until: dict[str, float] = {}
        self._without_head: dict[str, set[asyncio.Timeout]] = {}
        self._being_read: dict[str, set[aiohttp.ClientResponse]] = {}

    async def start(self) -> None:
        self._session = aiohttp.ClientSession(
            connector=_QuietConnector(limit=0, keepalive_timeout=KEPT_OPEN, socket_factory=_socket),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=("User-Agent", "Accept", "Accept-Encoding", "Content-Type"),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=SILENT_SECONDS),
            max_line_size=LARGE,
            max_field_size=LARGE,
        )

    async def stop(self) -> None:
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def under_way(self, url: str | None) -> int:
        """Requests to a cell whose answers are not given yet; None: it has no place."""
        if url is None:
            return 0
        return sum(places.taken for kind in (self._places, self._large) if (places := kind.get(url)) is not None)

    def is_away(self, url: str | None) -> bool:
        """Whether a cell has no place, or took no connection a moment ago."""
        return url is None or self._clock.monotonic() < self._away_until.get(url, -math.inf)

    def leave(self, url: str) -> None:
        """Break off what is under way to an address where no service is any more: nobody may say anything there."""
        for limit in self._without_head.get(url, ()):
            if not limit.expired():
                limit.reschedule(0.0)  # now
        for answer in self._being_read.get(url, ()):
            if answer.connection is not None and answer.connection.transport is not None:
                answer.connection.transport.abort()
        for kept in (self._places, self._large, self._away_until):
            kept.pop(url, None)  # those who have a place of it hold it themselves

    async def is_there(self, url: str | None) -> bool:
        """Whether a cell takes work now; one that says nothing is away for a moment."""
        if self._session is None or url is None or self.is_away(url):
            return False
        try:
            async with (
                asyncio.timeout(CONNECT_SECONDS),
                self._session.get(url.rstrip("/") + "/readyz", allow_redirects=False) as answer,
            ):
                return answer.status == 200
        except (aiohttp.ClientError, OSError):
            self._away_until[url] = self._clock.monotonic() + AWAY_FOR
            return False

    @asynccontextmanager
    async def answer(
        self, url: str, request: BaseRequest, body: PassedBody, *, ip: str, caller: str, patience: float | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The head of the cell's answer, whose body is read meanwhile. `ip`: of the caller.

        `patience`: seconds for the head, of what may be asked of another cell afterwards; None: by the method.

        Raises `NotReached`; `Unavailable` where no answer came; the refusal of a body that does not come.
        """
        session = self._session
        if session is None:
            raise Unavailable
        async with AsyncExitStack() as held:
            await held.enter_async_context(self._place(self._places, PLACES, url, caller))
            with_body = has_body(request)
            if patience is None and request.method in ("GET", "HEAD") and not with_body:
                patience = READ_PATIENCE
            try:
                async with asyncio.timeout(patience) as limit, _among(self._without_head, url, limit):
                    found = await session.request(
                        request.method,
                        _address(url, request),
                        headers=_headers(request, body, ip),
                        data=body.to_send() if with_body else None,
                        allow_redirects=False,
                    )
            except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
                self._away_until[url] = self._clock.monotonic() + AWAY_FOR
                raise NotReached from None
            except (aiohttp.ClientError, OSError) as error:
                if body.error is not None:
                    raise body.error from None
                if isinstance(error, TimeoutError):
                    self._away_until[url] = self._clock.monotonic() + SILENT_FOR
                    if patience is not None:
                        raise NotReached from None
                raise _no_answer() from None
            try:
                if not 200 <= found.status < 600:  # nothing of HTTP, or an upgrade, which was not asked for
                    raise _no_answer()
                if request.method != "HEAD" and (found.content_length is None or found.content_length > LARGE):
                    # Its reader may take an hour: who asks for little does not wait for that.
                    await held.pop_all().aclose()
                    await held.enter_async_context(self._place(self._large, LARGE_PLACES, url, caller))
                async with _among(self._being_read, url, found):
                    yield found
            finally:
                found.close()  # where it was read to its end, its connection rests for the next one already

    @asynccontextmanager
    async def _place(self, kind: dict[str, FairPlaces], most: int, url: str, caller: str) -> AsyncIterator[None]:
        places = kind.get(url)
        if places is None:
            places = kind[url] = FairPlaces(most, each=PLACES_OF_CALLER, most_waiting=WAITING_OF_CALLER)
        if not places.take(caller):
            try:
                async with asyncio.timeout(WAITS):
                    await places.turn(caller)
            except (TimeoutError, Unavailable) as error:
                self._figures.refused[EntryBound.PLACES] += 1
                raise error if isinstance(error, Unavailable) else Unavailable(retry_after=RETRY_AFTER) from None
        try:
            if kind.get(url) is not places:
                raise Unavailable(retry_after=RETRY_AFTER)  # the service left while this waited
            yield
        finally:
            places.leave(caller)


@asynccontextmanager
async def _among(all_of: dict[str, set[_One]], url: str, one: _One) -> AsyncIterator[None]:
    """It is in the set of the address meanwhile."""
    those = all_of.setdefault(url, set())
    those.add(one)
    try:
        yield
    finally:
        those.discard(one)
        if not those:
            all_of.pop(url, None)


async def given(
    answer: aiohttp.ClientResponse, request: BaseRequest, *, closing: bool, figures: EntryFigures
) -> web.StreamResponse:
    """Give an answer to who asked. `closing`: the connection takes no further request.

    Raises `AnswerBrokeOff` where it did, so that nobody takes a part of it for the whole.
    """
    length = answer.content_length
    bodiless = request.method == "HEAD" or answer.status in (204, 304)
    dropped = _HOP | _named_by(answer.headers.getall("Connection", ()))
    try:
        if bodiless or (length is not None and length <= LARGE):
            content = await answer.content.read()
            if not bodiless and len(content) != length:
                raise AnswerBrokeOff
            figures.passed(ANSWER, len(content))
            keep_alive = request.keep_alive and request.version == HttpVersion11 and not closing
            lines = [f"HTTP/1.1 {answer.status} {answer.reason or ''}".encode("latin-1", "replace")]
            lines += [
                name + b": " + value
                for name, value in answer.raw_headers
                if name.decode("latin-1").lower() not in dropped
            ]
            if not keep_alive:
                lines.append(b"Connection: close")
            wire = b"\r\n".join((*lines, b"", content))
            return WireResponse(wire, answer.status, keep_alive=keep_alive)
        headers = CIMultiDict((name, value) for name, value in answer.headers.items() if name.lower() not in dropped)
        response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=headers)
        if closing:
            response.force_close()
        await response.prepare(request)
        async for piece in answer.content.iter_any():
            figures.passed(ANSWER, len(piece))
            await response.write(piece)
        await response.write_eof()
        return response
    except aiohttp.ClientError:
        raise AnswerBrokeOff from None


def _no_answer() -> Unavailable:
    return Unavailable(
        "There was no answer; whether the request was carried out is not known.", retry_after=RETRY_AFTER
    )


def _socket(info: aiohttp.AddrInfoType) -> socket.socket:
    """One that ends when the cell takes nothing of what was sent: while a body is on its way no other time counts."""
    family, kind, protocol, *_ = info
    made = socket.socket(family, kind, protocol)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(SILENT_SECONDS * 1_000))
    return made


def target_of(request: BaseRequest) -> str:
    """Path and query as a cell gets them: never a part of its host (`OPTIONS *`), and nothing that a client drops."""
    target = request.raw_path
    if not target.startswith("/"):  # of the absolute form, or `*`
        target = "/" + str(request.rel_url).removeprefix("/")
    target = target.partition("#")[0]
    if target.isascii() and target.isprintable():
        return target
    return quote(target, safe=_PRINTABLE, errors="surrogateescape")


def _address(url: str, request: BaseRequest) -> URL:
    return URL(url.rstrip("/") + target_of(request), encoded=True)


def _headers(request: BaseRequest, body: PassedBody, ip: str) -> CIMultiDict[str]:
    """Those of the request, and where it came from: one address, the one that counts (docs/deployment.md)."""
    given_headers: CIMultiDictProxy[str] = request.headers
    dropped = _HOP | _SAID_ANEW | _named_by(given_headers.getall("Connection", ()))
    headers = CIMultiDict(
        (name, _text(value))
        for name, value in given_headers.items()
        if name.lower() not in dropped and not name.lower().startswith("x-forwarded-")
    )
    headers["X-Forwarded-For"] = ip
    if body.length is not None:
        headers["Content-Length"] = body.length
    return headers


def _named_by(lines: "list[str] | tuple[str, ...]") -> frozenset[str]:
    """The headers of this connection alone, by what its `Connection` says; none that the request needs."""
    return frozenset(name.strip().lower() for line in lines for name in line.split(",")) - {"authorization", "host"}


def _text(value: str) -> str:
    """As it can be sent on: a byte that is no text is none there either."""
    return value if value.isascii() else value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
