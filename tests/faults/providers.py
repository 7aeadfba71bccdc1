"""A bridge that misbehaves in one way or another, by the sending number or for the next few sends; it records all.

Its record is the simulator's, so that the judges of the crash rounds can read it.
"""

import asyncio
import contextlib
import itertools
import socket
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from enum import Enum
from typing import Self

import aiohttp
import orjson
from tests.acceptance.provider_sides import BridgeSide

from recado.simulator.behaviour import Given
from recado.simulator.operations import Operations
from recado.simulator.record import Request, recipient_hash

HUGE = 50 * 1024 * 1024  # bytes
DRIPPED = 0.4  # seconds between two bytes: of the short answer all arrive in time, of the long one not
REPEATED_EVERY = 0.2  # seconds between two tries of a callback
CALLBACK_LIMIT = 5.0
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_JSON = {"Content-Type": "application/json"}


class Mode(Enum):
    """What becomes of a send."""

    WELL = "answers well"
    ERROR = "answers 500"
    RESET = "resets after the request"
    HANG = "never answers"
    DRIP = "drips its answer for longer than a call lasts"
    SLOW_DRIP = "drips its answer, and comes to its end"
    GARBAGE = "answers what is not JSON"
    NOT_HTTP = "answers what is not HTTP"
    WRONG_JSON = "answers JSON of another shape"
    HUGE_BODY = "answers with a huge body"
    HTML = "answers 200 with a page"
    WRONG_TYPE = "answers right, as text/plain"
    NO_ID = "answers 200 without a providerMessageId"
    SAME_ID = "gives every message the same providerMessageId"
    SLOW_NEGATIVE = "answers 429, Retry-After: -5"
    SLOW_HUGE = "answers 429, Retry-After: 999999999999"
    SLOW_DATE = "answers 429 with a date in Retry-After"
    SLOW_NOT = "answers 429, Retry-After: 0"
    SLOW_TEXT = "answers 429, Retry-After: soon"
    UNAVAILABLE = "answers 503"
    UNAUTHORIZED = "answers 401"
    REDIRECT = "redirects"
    CLOSES = "answers right, promises to keep the connection, and closes it"
    CUT_BODY = "closes the connection inside its answer"
    EARLY = "reports before it answers"
    DOUBLED = "reports everything twice"
    UNHEARD_OF = "reports messages that there are not, too"
    FORGED = "signs its reports with another secret"


PUT_OFF: Mapping[Mode, tuple[int, Mapping[str, str]]] = {
    Mode.SLOW_NEGATIVE: (429, {"Retry-After": "-5"}),
    Mode.SLOW_HUGE: (429, {"Retry-After": "999999999999"}),
    Mode.SLOW_NOT: (429, {"Retry-After": "0"}),
    Mode.SLOW_TEXT: (429, {"Retry-After": "soon"}),
    Mode.SLOW_DATE: (429, {}),
    Mode.UNAVAILABLE: (503, {}),
    Mode.UNAUTHORIZED: (401, {}),
    Mode.REDIRECT: (307, {"Location": "/send"}),
}
"""What is not processed: status and headers of the answer."""

UNANSWERED = frozenset({Mode.RESET, Mode.HANG, Mode.DRIP, Mode.NOT_HTTP})
"""What is processed, and ends without an answer."""

UNREADABLE: Mapping[Mode, tuple[int, Mapping[str, str], bytes]] = {
    Mode.ERROR: (500, {}, b""),
    Mode.GARBAGE: (200, _JSON, b"\x00\xff\xfe{{{"),
    Mode.WRONG_JSON: (200, _JSON, b'{"providerMessageId": ["prov-1"]}'),
    Mode.HTML: (200, {"Content-Type": "text/html"}, b"<html><body>Welcome</body></html>"),
    Mode.NO_ID: (200, _JSON, b"{}"),
}
"""What is processed, and answered in a way that does not say so."""


@dataclass(frozen=True, slots=True)
class _Send:
    id: str
    account: str
    to: str
    callback_url: str
    key: str


class MisbehavingBridge:
    """Listens on `port` of 127.0.0.1; an async context. `secret`: what it signs its reports with.

    `modes`: by account (`phoneNumberId`); the others are answered well, but for the sends that `trouble` asked for.
    """

    def __init__(self, port: int, *, secret: str) -> None:
        self.modes: dict[str, Mode] = {}
        self.callback_answers: dict[Mode, set[int]] = {}
        self._port = port
        self._secret = secret
        self._side = BridgeSide(port)
        self._operations = Operations(lambda delay, url, event: None)
        self._requests: list[Request] = []
        self._numbers = itertools.count(1)
        self._trouble: list[tuple[Mode, bool]] = []
        self._reading = asyncio.Event()
        self._reading.set()
        self._connections: set[asyncio.Task[None]] = set()
        self._reports: set[asyncio.Task[None]] = set()
        self._listener: asyncio.Server | None = None
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=CALLBACK_LIMIT))
        self._listener = await asyncio.start_server(self._accept, "127.0.0.1", self._port, limit=2**20)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._listener is not None
        assert self._session is not None
        self._listener.close()
        under_way = [*self._connections, *self._reports]
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)
        await self._session.close()

    # What a test says, and asks ---------------------------------------------------------------------------------------

    def trouble(self, mode: Mode, sends: int, *, reported: bool) -> None:
        """Let so many further sends end like this. `reported`: what was processed is reported all the same."""
        self._trouble += [(mode, reported)] * sends

    @property
    def troubled(self) -> int:
        """How many of those sends have not come yet."""
        return len(self._trouble)

    def heal(self) -> None:
        """Answer well from now on."""
        self.modes.clear()
        self._trouble.clear()
        self._reading.set()

    def go_deaf(self) -> None:
        """Accept connections, and read nothing, until `heal`."""
        self._reading.clear()

    def requests(self) -> list[Request]:
        """Every send that was read, in its order."""
        return list(self._requests)

    # HTTP -------------------------------------------------------------------------------------------------------------

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                while await self._answered(reader, writer):
                    pass
        finally:
            writer.transport.abort()

    async def _answered(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection goes on."""
        await self._reading.wait()
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        await self._reading.wait()
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        body = orjson.loads(await reader.readexactly(int(headers["content-length"])))
        operation = head[0].split()[1].strip("/")
        if operation == "send":
            send = _Send(body["id"], body["account"], body["to"], body["callbackUrl"], headers["idempotency-key"])
            return await self._sent(send, writer)
        status, result = self._operations.answer(operation, body)
        writer.write(_http(status, _JSON, orjson.dumps(result)))
        await writer.drain()
        return True

    async def _sent(self, send: _Send, writer: asyncio.StreamWriter) -> bool:
        mode, reported = self.modes.get(send.account, Mode.WELL), True
        if send.account in self.modes:
            reported = mode not in UNANSWERED and mode not in UNREADABLE and mode not in (Mode.CUT_BODY, Mode.HUGE_BODY)
        elif self._trouble:
            mode, reported = self._trouble.pop(0)
        request = self._recorded(send, mode, reported)
        if mode in PUT_OFF:
            status, headers = PUT_OFF[mode]
            if mode is Mode.SLOW_DATE:
                headers = {"Retry-After": format_datetime(datetime.now(UTC) + timedelta(seconds=3), usegmt=True)}
            writer.write(_http(status, headers, b"{}"))
            await writer.drain()
            return True
        if mode is Mode.EARLY:
            await self._report(send, request, mode)
        elif request.receipts:
            report = asyncio.create_task(self._report(send, request, mode))
            self._reports.add(report)
            report.add_done_callback(self._reports.discard)
        return await self._answer(mode, request, writer)

    def _recorded(self, send: _Send, mode: Mode, reported: bool) -> Request:
        if mode in PUT_OFF:
            given = Given.SLOW_DOWN
        elif mode in UNANSWERED:
            given = Given.LOST
        else:
            given = Given.FAILED if mode in UNREADABLE or mode in (Mode.CUT_BODY, Mode.HUGE_BODY) else Given.ACCEPTED
        name = "prov-same" if mode is Mode.SAME_ID else f"prov-{next(self._numbers)}"
        request = Request(
            id=send.id,
            at=datetime.now(UTC),
            number=send.account,
            outcome=given,
            idempotency_key=send.key,
            recipient=recipient_hash(send.to),
            provider_message_id=None if given is Given.SLOW_DOWN else name,
            receipts=("delivered", "read") if reported and given is not Given.SLOW_DOWN else (),
        )
        self._requests.append(request)
        return request

    async def _answer(self, mode: Mode, request: Request, writer: asyncio.StreamWriter) -> bool:
        right = orjson.dumps({"providerMessageId": request.provider_message_id})
        content_type = {"Content-Type": "text/plain"} if mode is Mode.WRONG_TYPE else _JSON
        whole = _http(200, content_type, right)
        match mode:
            case Mode.RESET:
                connection = writer.get_extra_info("socket")
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
                return False
            case Mode.HANG:
                await asyncio.Event().wait()
            case Mode.DRIP | Mode.SLOW_DRIP:
                padded = right + b" " * 100 if mode is Mode.DRIP else right
                head, _, body = _http(200, _JSON, padded).partition(b"\r\n\r\n")
                writer.write(head + b"\r\n\r\n")
                piece = 1 if mode is Mode.DRIP else len(body) // 3
                for at in range(0, len(body), piece):
                    writer.write(body[at : at + piece])
                    await writer.drain()
                    await asyncio.sleep(DRIPPED)  # what it is made for
            case Mode.NOT_HTTP:
                writer.write(b"\x16\x03\x01 certainly not HTTP\r\n\r\n")
            case Mode.HUGE_BODY:
                writer.write(_head(200, _JSON, HUGE) + b" " * 200_000)
                await writer.drain()
                await asyncio.Event().wait()
            case Mode.CUT_BODY:
                writer.write(whole[:-4])
                await writer.drain()
                return False
            case _ if mode in UNREADABLE:
                writer.write(_http(*UNREADABLE[mode]))
            case _:
                writer.write(whole)
        await writer.drain()
        return mode is not Mode.CLOSES

    # Reports ----------------------------------------------------------------------------------------------------------

    async def _report(self, send: _Send, request: Request, mode: Mode) -> None:
        name = request.provider_message_id
        assert name is not None
        for status in request.receipts:
            body = self._side.report(status, send.id, account=send.account, provider_id=name)
            bodies = [body]
            if mode is Mode.DOUBLED:
                bodies += [
                    body,
                    body.replace(b'"status":"' + status.encode(), b'"again":1,"status":"' + status.encode()),
                ]
            if mode is Mode.UNHEARD_OF:
                bodies.insert(0, self._side.report(status, f"{send.id}x", account=send.account, provider_id=f"{name}x"))
            for each in bodies:
                await self._told(send.callback_url, each, mode)

    async def _told(self, url: str, body: bytes, mode: Mode) -> None:
        """Repeat a callback until it has an answer that ends it."""
        assert self._session is not None
        secret = "another secret" if mode is Mode.FORGED else self._secret
        while True:
            with contextlib.suppress(aiohttp.ClientError, OSError, TimeoutError):
                headers = {**_JSON, **self._side.signed(body, secret=secret)}
                async with self._session.post(url, data=body, headers=headers) as answer:
                    self.callback_answers.setdefault(mode, set()).add(answer.status)
                    if answer.status in (200, 401):
                        return
            await asyncio.sleep(REPEATED_EVERY)  # as a provider would


def _http(status: int, headers: Mapping[str, str], body: bytes) -> bytes:
    return _head(status, headers, len(body)) + body


def _head(status: int, headers: Mapping[str, str], length: int) -> bytes:
    lines = [f"HTTP/1.1 {status} As It Is", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, f"Content-Length: {length}", "Connection: keep-alive", "", ""]).encode()
