"""Signed callbacks on their way to the service: batched per address, in order, and repeated until they are taken."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import aiohttp

from recado.channels.chatapp import cloud_callbacks
from recado.channels.core.signing import PROVIDER_SIGNATURE, signature
from recado.simulator.record import Mark, Protocol

MOST_EVENTS = 500
GATHER_SECONDS = 0.05
FIRST_WAIT = 0.1
LONGEST_WAIT = 2.0

_WRAPS: dict[Protocol, tuple[bytes, bytes]] = {
    "bridge": (b'{"events":[', b"]}"),
    "cloud": (b'{"object":"' + cloud_callbacks.OBJECT.encode() + b'","entry":[', b"]}"),
}


@dataclass(frozen=True, slots=True)
class _Waiting:
    event: bytes
    mark: Mark | None
    taken: asyncio.Future[None] | None


class CallbackOutbox:
    """Events wait in memory until their address takes them: a service that was killed gets them after its restart."""

    def __init__(
        self,
        key: bytes,
        *,
        app_secret: bytes = b"",
        gather_seconds: float = GATHER_SECONDS,
        tell: Callable[[str], None],
        noted: Callable[[Sequence[Mark]], None] = lambda marks: None,
    ) -> None:
        """`key` signs the bridge's callbacks, `app_secret` those of the hosted API.

        `tell` gets a line for the operator when an address begins or ceases to refuse; `noted` the marks of what was
        taken.
        """
        self._signers: dict[Protocol, Callable[[bytes], dict[str, str]]] = {
            "bridge": lambda body: {PROVIDER_SIGNATURE: signature([key], body, datetime.now(UTC))},
            "cloud": lambda body: {cloud_callbacks.SIGNATURE: cloud_callbacks.signature(app_secret, body)},
        }
        self._gather_seconds = gather_seconds
        self._tell = tell
        self._noted = noted
        self._lanes: dict[tuple[str, Protocol], _Lane] = {}
        self._session: aiohttp.ClientSession | None = None

    @property
    def pending(self) -> int:
        """Events that no address has taken yet."""
        return sum(lane.pending for lane in self._lanes.values())

    async def start(self) -> None:
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=15), cookie_jar=aiohttp.DummyCookieJar()
        )

    async def stop(self) -> None:
        """What is still pending is forgotten here; the record knows it."""
        lanes, self._lanes = list(self._lanes.values()), {}
        session, self._session = self._session, None
        for lane in lanes:
            lane.task.cancel()
        await asyncio.gather(*(lane.task for lane in lanes), return_exceptions=True)
        if session is not None:
            await session.close()

    def put(
        self,
        url: str,
        event: bytes,
        taken: asyncio.Future[None] | None = None,
        *,
        protocol: Protocol = "bridge",
        mark: Mark | None = None,
    ) -> None:
        """Queue one event, as JSON, for an address; `taken` is resolved when the address has it."""
        if self._session is None:
            return
        lane = self._lanes.get((url, protocol))
        if lane is None:
            lane = _Lane(
                url,
                _WRAPS[protocol],
                self._signers[protocol],
                self._session,
                self._gather_seconds,
                self._tell,
                self._noted,
            )
            self._lanes[url, protocol] = lane
        lane.put(_Waiting(event, mark, taken))


class _Lane:
    """The events of one address; one request at a time, so that they arrive in order."""

    def __init__(
        self,
        url: str,
        wrap: tuple[bytes, bytes],
        sign: Callable[[bytes], dict[str, str]],
        session: aiohttp.ClientSession,
        gather_seconds: float,
        tell: Callable[[str], None],
        noted: Callable[[Sequence[Mark]], None],
    ) -> None:
        self._url = url
        self._wrap = wrap
        self._sign = sign
        self._session = session
        self._gather_seconds = gather_seconds
        self._tell = tell
        self._noted = noted
        self._waiting: deque[_Waiting] = deque()
        self._in_hand = 0
        self._filled = asyncio.Event()
        self.task = asyncio.create_task(self._run())

    @property
    def pending(self) -> int:
        return len(self._waiting) + self._in_hand

    def put(self, waiting: _Waiting) -> None:
        self._waiting.append(waiting)
        self._filled.set()

    async def _run(self) -> None:
        head, tail = self._wrap
        while True:
            await self._filled.wait()
            if len(self._waiting) < MOST_EVENTS:
                await asyncio.sleep(self._gather_seconds)
            batch = [self._waiting.popleft() for _ in range(min(len(self._waiting), MOST_EVENTS))]
            if not self._waiting:
                self._filled.clear()
            self._in_hand = len(batch)
            await self._deliver(head + b",".join(each.event for each in batch) + tail)
            self._in_hand = 0
            self._noted([each.mark for each in batch if each.mark is not None])
            for each in batch:
                if each.taken is not None and not each.taken.done():
                    each.taken.set_result(None)

    async def _deliver(self, body: bytes) -> None:
        wait, refused = FIRST_WAIT, False
        while (problem := await self._post(body)) is not None:
            if not refused:
                self._tell(f"callbacks to {self._url} wait: {problem}")
                refused = True
            await asyncio.sleep(wait)
            wait = min(wait * 2, LONGEST_WAIT)
        if refused:
            self._tell(f"callbacks to {self._url} flow again")

    async def _post(self, body: bytes) -> str | None:
        headers = {"Content-Type": "application/json", **self._sign(body)}
        try:
            async with self._session.post(self._url, data=body, headers=headers, allow_redirects=False) as answer:
                return None if 200 <= answer.status < 300 else f"status {answer.status}"
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            return type(error).__name__
