"""Drives the connections: at a fixed rate, or each as fast as it gets answers."""

import asyncio
import ssl
import time
from array import array
from collections import Counter, deque
from collections.abc import Callable
from urllib.parse import urlsplit

import orjson

from recado.loadtest.connection import LoadConnection

_TICK = 0.002  # seconds between two looks at what is due
_LAST_ANSWERS = 30.0  # seconds to wait for them after the end
_RECONNECT = 0.2
_ID = b'"id":"msg_'
_ID_LENGTH = 25


class Outcomes:
    """What became of the requests. Latencies in seconds, counted from the moment at which a request was due.

    `answered_at`, of each latency, and `refused_at`: seconds since the sending began.
    """

    def __init__(self) -> None:
        self.requested = 0
        self.accepted: dict[str, None] = {}
        self.repeated_ids = 0
        self.latencies = array("d")
        self.answered_at = array("d")
        self.refused_at = array("d")
        self.refusals: Counter[str] = Counter()
        self.unanswered = 0

    def record(self, status: int, body: bytes, latency: float, at: float) -> None:
        """Count one answer, that came `at` seconds after the sending began."""
        if status == 201:
            message_id = _message_id(body)
            self.repeated_ids += message_id in self.accepted
            self.accepted[message_id] = None
            self.latencies.append(latency)
            self.answered_at.append(at)
        else:
            self.refused_at.append(at)
            self.refusals[_code(status, body)] += 1


class Generator:
    """Sends `request(0)`, `request(1)`, … over `connections` connections, `rate` a second or flat out (None)."""

    def __init__(self, base_url: str, request: Callable[[int], bytes], *, connections: int, rate: float | None) -> None:
        parts = urlsplit(base_url)
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._tls else 80)
        self._request = request
        self._size = connections
        self._rate = rate
        self._connections: set[LoadConnection] = set()
        self._idle: list[LoadConnection] = []
        self._due: deque[float] = deque()
        self._sending = False
        self._began = 0.0
        self._reconnecting: set[asyncio.Task[None]] = set()
        self.outcomes = Outcomes()

    @property
    def in_flight(self) -> int:
        """Requests without an answer yet, those that wait for a connection included."""
        return sum(connection.waiting for connection in self._connections) + len(self._due)

    async def run(self, seconds: float) -> None:
        """Send for `seconds`, then wait for the last answers. Raises OSError when the first connection fails."""
        for _ in range(self._size):
            await self._connect()
        self._sending, self._began = True, time.perf_counter()
        try:
            if self._rate is None:
                for connection in self._idle[:]:
                    self._send(connection, self._began)
                self._idle.clear()
                await asyncio.sleep(seconds)
            else:
                await self._paced(self._began, round(seconds * self._rate), self._rate)
        finally:
            self._sending = False
            await self._drain()
            for task in self._reconnecting:
                task.cancel()
            for connection in list(self._connections):
                connection.close()

    async def _paced(self, start: float, total: int, rate: float) -> None:
        issued = 0
        while issued < total:
            elapsed = time.perf_counter() - start
            while issued < min(total, elapsed * rate):
                self._due.append(start + issued / rate)
                issued += 1
            while self._due and self._idle:
                self._send(self._idle.pop(), self._due.popleft())
            await asyncio.sleep(_TICK)

    async def _drain(self) -> None:
        give_up = time.perf_counter() + _LAST_ANSWERS
        while self.in_flight and time.perf_counter() < give_up:
            while self._due and self._idle:
                self._send(self._idle.pop(), self._due.popleft())
            await asyncio.sleep(_TICK)
        self._due.clear()

    def _send(self, connection: LoadConnection, due: float) -> None:
        outcomes = self.outcomes
        request = self._request(outcomes.requested)
        outcomes.requested += 1

        def answered(status: int, body: bytes) -> None:
            now = time.perf_counter()
            outcomes.record(status, body, now - due, now - self._began)
            if connection not in self._connections:
                return
            if self._due:
                self._send(connection, self._due.popleft())
            elif self._sending and self._rate is None:
                self._send(connection, now)
            else:
                self._idle.append(connection)

        connection.send(request, answered)

    async def _connect(self) -> None:
        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            lambda: LoadConnection(self._lost), self._host, self._port, ssl=self._tls
        )
        self._connections.add(connection)
        self._idle.append(connection)

    def _lost(self, connection: LoadConnection) -> None:
        self._connections.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        if connection.waiting:
            self.outcomes.unanswered += 1
        if self._sending:
            task = asyncio.create_task(self._replace())
            self._reconnecting.add(task)
            task.add_done_callback(self._reconnecting.discard)

    async def _replace(self) -> None:
        while self._sending:
            await asyncio.sleep(_RECONNECT)
            try:
                await self._connect()
            except OSError:
                continue
            if self._rate is None and self._sending:
                self._send(self._idle.pop(), time.perf_counter())
            return


def _message_id(body: bytes) -> str:
    at = body.find(_ID)
    if at >= 0:
        return body[at + 6 : at + 6 + _ID_LENGTH].decode("ascii")
    return str(orjson.loads(body)["id"])


def _code(status: int, body: bytes) -> str:
    try:
        return f"{status} {orjson.loads(body)['code']}"
    except (ValueError, KeyError, TypeError):
        return str(status)
