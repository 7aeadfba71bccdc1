"""One connection to an SMS centre: requests in a window and their answers, what comes in, and whether it is alive.

What is written within one turn of the loop leaves together. Nobody's task waits for a PDU: whoever asks has a future,
and one timer watches all of them.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final, cast

from recado.channels.http.answer import Lost, NotSent
from recado.channels.sms.smpp.framing import Framer
from recado.channels.sms.smpp.pdu import (
    HEADER,
    HEADER_LENGTH,
    LAST_SEQUENCE,
    RESPONSE,
    Command,
    MalformedPdu,
    Pdu,
    Taken,
    body_octets,
    decode,
)
from recado.channels.sms.smpp.statuses import Status
from recado.domain.core.clock import Clock, TimerHandle

ENQUIRE_EVERY: Final = 30.0  # seconds
MOST_UNANSWERED: Final = 1_000
"""Deliveries of the SMS centre that wait for their answer: it is told to come back with others."""
MOST_LATE: Final = 10_000

_TAKEN: Final = body_octets(Taken())
_HELD_BACK: Final = 256 * 1024  # octets that the other side has not taken: it reads no more

Answer = tuple[int, bytes]
"""Status, and the octets after the header."""
Answered = Answer | NotSent | Lost
"""`NotSent`: the request was not written; `Lost`: it may have been, and no answer came (in time)."""


class Retired(Exception):
    """The connection takes no new requests."""


class SmppConnection(asyncio.Protocol):
    """`window`: requests that wait for their answers at once; `timeout`: seconds, also for a place in the window.

    `delivered` gets what the SMS centre brings, which is answered by `answer`; `late` the answer of a request that was
    given up, with its label. `retired` is done when no new request may use it.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        window: int,
        timeout: float,
        delivered: Callable[["SmppConnection", Pdu], None],
        late: Callable[[str, Answer], None],
        enquire_every: float = ENQUIRE_EVERY,
    ) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._timeout = timeout
        self._delivered = delivered
        self._late = late
        self._enquire_every = enquire_every
        self.usable = True  # for new requests
        self.retired: asyncio.Future[None] = self._loop.create_future()
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self._free = window
        self._queue: deque[tuple[asyncio.Future[None], float]] = deque()
        self._pending: dict[int, tuple[asyncio.Future[Answered], float, str]] = {}  # by sequence number, oldest first
        self._given_up: dict[int, str] = {}  # labels of requests whose answers are late
        self._sequence = 0
        self._framer = Framer()
        self._out: list[bytes] = []
        self._transport: asyncio.Transport | None = None
        self._writable = True
        self._unanswered = 0
        self._heard = False
        self._timer: TimerHandle | None = None
        self._keepalive: TimerHandle | None = None

    # Requests ---------------------------------------------------------------------------------------------------------

    @property
    def room(self) -> int:
        """Places in the window; fewer than none where some wait for one."""
        return self._free - len(self._queue)

    def take_place(self) -> bool:
        """Whether there was a free place in the window, which the next `request` takes."""
        if self._free <= 0 or not self.usable:
            return False
        self._free -= 1
        return True

    async def place(self) -> None:
        """Wait for a place in the window, which the next `request` takes.

        Raises `Retired`, or TimeoutError when none became free.
        """
        if not self.usable:
            raise Retired
        if self.take_place():
            return
        turn: asyncio.Future[None] = self._loop.create_future()
        self._queue.append((turn, self._clock.monotonic() + self._timeout))
        self._watch()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._freed()  # the place was given at the same moment
            raise

    def request(self, command: Command, body: bytes, label: str = "") -> "asyncio.Future[Answered]":
        """Write a request in a place of the window. `label`: what a late answer is told with; empty: it is no use."""
        answer: asyncio.Future[Answered] = self._loop.create_future()
        if not self.usable and (command != Command.UNBIND or self.closed.done()):
            answer.set_result(NotSent())
            self._freed()
            return answer
        self._sequence = sequence = 1 if self._sequence >= LAST_SEQUENCE else self._sequence + 1
        self._pending[sequence] = (answer, self._clock.monotonic() + self._timeout, label)
        if self._timer is None:
            self._watch()
        self._write(HEADER.pack(HEADER_LENGTH + len(body), command, 0, sequence) + body)
        return answer

    def answer(self, pdu: Pdu, status: int) -> None:
        """Answer what the SMS centre brought."""
        self._unanswered -= 1
        self._answer(pdu, status)

    def _answer(self, pdu: Pdu, status: int) -> None:
        body = _TAKEN if pdu.command in (Command.DELIVER_SM, Command.DATA_SM) else b""
        self._write(HEADER.pack(HEADER_LENGTH + len(body), pdu.command | RESPONSE, status, pdu.sequence) + body)

    async def unbind(self) -> None:
        """Take leave: returns when the SMS centre has answered, or does not in time; the connection is closed."""
        self.retire()
        self._free -= 1
        try:
            await self.request(Command.UNBIND, b"")
        finally:
            self.close()

    def retire(self) -> None:
        """Take no new requests; what is under way may still be answered."""
        if self.usable:
            self.usable = False
            self.retired.set_result(None)
        queue, self._queue = self._queue, deque()
        for turn, _ in queue:
            if not turn.done():
                turn.set_exception(Retired())

    def keep_alive(self) -> None:
        """From now on ask whether the other side is there, whenever nothing is heard of it for so long."""
        self._heard = False
        self._keepalive = self._clock.call_at(self._clock.monotonic() + self._enquire_every, self._enquire)

    def close(self) -> None:
        """End the connection at once."""
        if self._transport is not None:
            self._flush()
            if self._writable:
                self._transport.close()
            else:  # what is still to be written to it would wait for ever
                self._transport.abort()
        self._end()

    # Writing ----------------------------------------------------------------------------------------------------------

    def _write(self, octets: bytes) -> None:
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(octets)

    def _flush(self) -> None:
        if self._out and self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(self._out))
        self._out.clear()

    def pause_writing(self) -> None:
        """The other side does not read: whatever else it asks would add to what it has to read."""
        self._writable = False
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._writable = True
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    # The other side ---------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but its class
        self._transport.set_write_buffer_limits(_HELD_BACK)

    def data_received(self, data: bytes) -> None:
        self._heard = True
        for octets in self._framer.feed(data):
            self._read(octets)
        if self._framer.broken:
            self.close()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()

    def _read(self, octets: bytes) -> None:
        _, command, status, sequence = HEADER.unpack_from(octets)
        if command & RESPONSE:
            self._take_answer(sequence, status, octets)
            return
        try:
            pdu = decode(octets)
        except MalformedPdu as error:
            self._write(HEADER.pack(HEADER_LENGTH, Command.GENERIC_NACK, error.status, sequence))
            return
        match pdu.command:
            case Command.DELIVER_SM | Command.DATA_SM:
                if self._unanswered >= MOST_UNANSWERED:
                    self._answer(pdu, Status.QUEUE_FULL)
                    return
                self._unanswered += 1
                self._delivered(self, pdu)
            case Command.ENQUIRE_LINK:
                self._answer(pdu, Status.OK)
            case Command.UNBIND:
                self._answer(pdu, Status.OK)
                self.retire()
                self._close_when_idle()
            case _:
                self._write(HEADER.pack(HEADER_LENGTH, Command.GENERIC_NACK, Status.INVALID_COMMAND, sequence))

    def _take_answer(self, sequence: int, status: int, octets: bytes) -> None:
        """Of a request of ours, also where it is none but a refusal to understand it."""
        asked = self._pending.pop(sequence, None)
        if asked is None:
            label = self._given_up.pop(sequence, None)
            if label:
                self._late(label, (status, octets[HEADER_LENGTH:]))
            return
        waiting = asked[0]
        if not waiting.done():
            waiting.set_result((status, octets[HEADER_LENGTH:]))
        self._freed()

    def _freed(self) -> None:
        """A place is free: the one who has waited longest gets it."""
        while self._queue:
            turn, _ = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
        if not self.usable:
            self._close_when_idle()

    def _close_when_idle(self) -> None:
        if not self._pending:
            self._loop.call_soon(self.close)

    # Time -------------------------------------------------------------------------------------------------------------

    def _watch(self) -> None:
        """One timer for all who wait: at the limit of the one that has waited longest."""
        if self._timer is not None:
            return
        limits = [self._queue[0][1]] if self._queue else []
        if self._pending:
            limits.append(next(iter(self._pending.values()))[1])
        if limits:
            self._timer = self._clock.call_at(min(limits), self._give_up)

    def _give_up(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        while self._queue and self._queue[0][1] <= now:
            turn, _ = self._queue.popleft()
            if not turn.done():
                turn.set_exception(TimeoutError())
        while self._pending:
            sequence, (answer, limit, label) = next(iter(self._pending.items()))
            if limit > now:
                break
            del self._pending[sequence]
            if not answer.done():
                answer.set_result(Lost())
            if label:
                self._given_up[sequence] = label
                if len(self._given_up) > MOST_LATE:
                    del self._given_up[next(iter(self._given_up))]
            self._freed()
        self._watch()

    def _enquire(self) -> None:
        if self.closed.done():
            return
        if self._heard:
            self.keep_alive()
            return
        self._free -= 1  # its place is one more than the window has
        asked = self.request(Command.ENQUIRE_LINK, b"")
        asked.add_done_callback(self._enquired)

    def _enquired(self, asked: "asyncio.Future[Answered]") -> None:
        if not isinstance(asked.result(), tuple):
            self.close()
        elif not self.closed.done():
            self.keep_alive()

    # The end ----------------------------------------------------------------------------------------------------------

    def _end(self) -> None:
        if self.closed.done():
            return
        self.closed.set_result(None)
        self.retire()
        for timer in (self._timer, self._keepalive):
            if timer is not None:
                timer.cancel()
        pending, self._pending = self._pending, {}
        for answer, _, _ in pending.values():
            if not answer.done():
                answer.set_result(Lost())
        self._given_up.clear()
