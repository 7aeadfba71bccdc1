"""One connection to an SMS centre: requests in a window and their answers, what comes in, and whether it is alive.

What is written within one turn of the loop leaves together. Nobody's task waits for a PDU: whoever asks has a future,
and one timer watches all of them.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, cast

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
from recado.channels.sms.smpp.statuses import NOT_BOUND, CommandStatus
from recado.domain.core.clock import Clock, TimerHandle

ENQUIRE_EVERY: Final = 30.0  # seconds
READ_IN_A_TURN: Final = 100
"""PDUs: what comes faster waits for turns of the loop, and nothing else is read meanwhile."""
MOST_LATE: Final = 10_000  # requests that were given up, and whose answers are still waited for

_TAKEN: Final = body_octets(Taken())
_HELD_BACK: Final = 256 * 1024  # octets that the other side has not taken: it reads no more

Answer = tuple[int, bytes]
"""Status, and the octets after the header."""


@dataclass(frozen=True, slots=True)
class Crowded:
    """The window had no place in time: the part was not written."""


Answered = Answer | NotSent | Crowded | Lost
"""`NotSent`: the request was not written; `Lost`: it may have been, and no answer came (in time)."""


@dataclass(slots=True, eq=False)
class Label:
    """What a late answer is told with. `alone`: the message has no other part; `incomplete`: one was not taken."""

    message_id: str
    alone: bool = True
    incomplete: bool = False


class _Asked(NamedTuple):
    """A request without answer, which is waited for until `limit` (monotonic seconds)."""

    answer: "asyncio.Future[Answered]"
    limit: float
    label: Label | None


@dataclass(frozen=True, slots=True)
class Transmission:
    """Parts of one message, in their order, which begin together when the window has a place for each of them.

    `place_by`, `answer_by` (monotonic seconds): until then they wait for their places, and for their answers. `label`:
    what a late answer to the last of them is told with; None: it is of no use.
    """

    bodies: Sequence[bytes] = field(repr=False)
    place_by: float
    answer_by: float
    label: Label | None = None


@dataclass(slots=True, eq=False)
class _Queued:
    """A transmission that waits for places. `answers`: of its parts, of which so many are `written`."""

    transmission: Transmission
    answers: "list[asyncio.Future[Answered]]"
    written: int = 0

    @property
    def limit(self) -> float:
        """Until when what is not written yet may wait (monotonic seconds)."""
        return self.transmission.answer_by if self.written else self.transmission.place_by

    @property
    def parts_left(self) -> int:
        return len(self.answers) - self.written

    @property
    def cancelled(self) -> bool:
        """Nobody waits for it any more."""
        return any(answer.cancelled() for answer in self.answers)

    def end(self, outcome: "Answered") -> None:
        """What is not written yet never will be."""
        for answer in self.answers[self.written :]:
            if not answer.done():
                answer.set_result(outcome)


class SmppConnection(asyncio.Protocol):
    """`window`: requests that wait for their answers at once; `timeout`: seconds, of all requests but submissions.

    `delivered` gets what the SMS centre brings, which is answered by `answer`; where it says False, the SMS centre is
    told to come back with it. `late` gets the answer of a request that was given up, with its label; None: it is not
    waited for any more. When `may_read` says no, nothing is read until `read_on`. `retired` is done when no new request
    may use it.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        window: int,
        timeout: float,
        delivered: Callable[["SmppConnection", Pdu], bool],
        late: Callable[[Label, Answer | None], None],
        may_read: Callable[["SmppConnection"], bool],
        enquire_every: float = ENQUIRE_EVERY,
    ) -> None:
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._timeout = timeout
        self._delivered = delivered
        self._late = late
        self._may_read = may_read
        self._enquire_every = enquire_every
        self.usable = True  # for new requests
        self.retired: asyncio.Future[None] = self._loop.create_future()
        self.closed: asyncio.Future[None] = self._loop.create_future()
        self._window = window
        self._free = window
        self._queue: deque[_Queued] = deque()
        self._parts_waiting = 0  # of those in the queue
        self._pending: dict[int, _Asked] = {}  # by sequence number, oldest first
        self._given_up: dict[int, Label] = {}  # labels of requests whose answers are late
        self._sequence = 0
        self._framer = Framer()
        self._unread: deque[bytes] = deque()  # PDUs of what has come
        self._turn_asked = False
        self._out: list[bytes] = []
        self._reading = False  # what is written meanwhile leaves when all that came is read
        self._transport: asyncio.Transport | None = None
        self._writable = True
        self._heard = False
        self._deaf = False  # what comes is not read for now
        self._timer: TimerHandle | None = None
        self._timer_at = 0.0
        self._keepalive: TimerHandle | None = None

    # Requests ---------------------------------------------------------------------------------------------------------

    @property
    def room(self) -> int:
        """Places in the window; fewer than none where some parts wait for one."""
        return self._free - self._parts_waiting

    def submit(self, transmission: Transmission) -> "list[asyncio.Future[Answered]]":
        """Write parts when the window has places for them, in the order of the calls; the futures have what comes."""
        queued = _Queued(transmission, [self._loop.create_future() for _ in transmission.bodies])
        if not self.usable:
            queued.end(NotSent())
        elif self._queue or not self._write_parts(queued):
            self._queue.append(queued)
            self._parts_waiting += queued.parts_left
            self._watch_until(queued.limit)
        return queued.answers

    def _write_parts(self, queued: _Queued) -> bool:
        """Write what has a place, and whether that is all.

        None is written before all can be: what has left in part cannot go back to the queue of messages. Of a message
        with more parts than the window has places, the others follow as places become free.
        """
        transmission = queued.transmission
        if not queued.written and self._free < min(len(transmission.bodies), self._window):
            return False
        last = len(transmission.bodies) - 1
        while queued.parts_left and self._free > 0:
            place = queued.written
            label = transmission.label if place == last else None
            answer, body = queued.answers[place], transmission.bodies[place]
            queued.written += 1
            self._ask(answer, label, Command.SUBMIT_SM, body, transmission.answer_by)
        return not queued.parts_left

    def request(self, command: Command, body: bytes = b"") -> "asyncio.Future[Answered]":
        """Ask something that needs no place: the window is for messages."""
        answer: asyncio.Future[Answered] = self._loop.create_future()
        if self.closed.done():
            answer.set_result(NotSent())
        else:
            self._ask(answer, None, command, body, self._clock.monotonic() + self._timeout)
        return answer

    def _ask(
        self, answer: "asyncio.Future[Answered]", label: Label | None, command: Command, body: bytes, answer_by: float
    ) -> None:
        self._free -= 1
        self._sequence = sequence = 1 if self._sequence >= LAST_SEQUENCE else self._sequence + 1
        self._pending[sequence] = _Asked(answer, answer_by, label)
        self._write(HEADER.pack(HEADER_LENGTH + len(body), command, 0, sequence) + body)
        self._watch_until(answer_by)

    def answer(self, pdu: Pdu, status: int) -> None:
        """Answer what the SMS centre brought."""
        body = _TAKEN if pdu.command in (Command.DELIVER_SM, Command.DATA_SM) else b""
        self._write(HEADER.pack(HEADER_LENGTH + len(body), pdu.command | RESPONSE, status, pdu.sequence) + body)

    async def unbind(self) -> None:
        """Take leave: returns when the SMS centre has answered, or does not in time; the connection is closed."""
        self.retire()
        try:
            await self.request(Command.UNBIND)
        finally:
            self.close()

    def retire(self) -> None:
        """Take no new requests; what is under way may still be answered."""
        if self.usable:
            self.usable = False
            self.retired.set_result(None)
        queue, self._queue = self._queue, deque()
        self._parts_waiting = 0
        for queued in queue:
            queued.end(NotSent())

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
        if not self._out and not self._reading:
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
        if not self._turn_asked:
            self.read_on()

    # The other side ---------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but its class
        self._transport.set_write_buffer_limits(_HELD_BACK)

    def data_received(self, data: bytes) -> None:
        self._heard = True
        self._unread.extend(self._framer.feed(data))
        if not self._turn_asked and self._writable:
            self.read_on()

    def read_on(self) -> None:
        """Read some of what has come; what is left in a turn of its own."""
        self._turn_asked = False
        transport = self._transport
        if transport is None or transport.is_closing() or not self._writable:
            return
        self._deaf = bool(self._unread) and not self._may_read(self)
        if self._deaf:
            transport.pause_reading()
            return
        self._read_some(READ_IN_A_TURN)
        if transport.is_closing() or not self._writable:
            return
        if self._unread:
            transport.pause_reading()
            self._turn_asked = True
            self._loop.call_soon(self.read_on)
        elif self._framer.broken:
            self.close()
        else:
            transport.resume_reading()

    def _read_some(self, most: int) -> None:
        self._reading = True
        for _ in range(min(most, len(self._unread))):
            self._read(self._unread.popleft())
        self._reading = False
        self._flush()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed.done():  # what has come tells how requests ended
            self._read_some(len(self._unread))
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
                if not self._delivered(self, pdu):
                    self.answer(pdu, CommandStatus.QUEUE_FULL)
            case Command.ENQUIRE_LINK:
                self.answer(pdu, CommandStatus.OK)
            case Command.UNBIND:
                self.answer(pdu, CommandStatus.OK)
                self.retire()
                self._close_when_idle()
            case _:
                self._write(HEADER.pack(HEADER_LENGTH, Command.GENERIC_NACK, CommandStatus.INVALID_COMMAND, sequence))

    def _take_answer(self, sequence: int, status: int, octets: bytes) -> None:
        """Of a request of ours, also where it is none but a refusal to understand it."""
        asked = self._pending.pop(sequence, None)
        if asked is None:
            label = self._given_up.pop(sequence, None)
            if label is not None:
                self._late(label, (status, octets[HEADER_LENGTH:]))
            return
        if not asked.answer.done():
            asked.answer.set_result((status, octets[HEADER_LENGTH:]))
        if status in NOT_BOUND:  # it would say so for ever: another connection may be bound
            self.retire()
        self._freed()

    def _freed(self) -> None:
        """A place is free."""
        self._free += 1
        self._serve()
        if not self.usable:
            self._close_when_idle()

    def _serve(self) -> None:
        """Who has waited longest gets the places that are free."""
        while self._queue and self._free > 0:
            queued = self._queue[0]
            before = queued.parts_left
            whole = queued.cancelled or self._write_parts(queued)
            self._parts_waiting -= before if whole else before - queued.parts_left
            if not whole:
                break
            self._queue.popleft()

    def _close_when_idle(self) -> None:
        if not self._pending:
            self._loop.call_soon(self.close)

    # Time -------------------------------------------------------------------------------------------------------------

    def _watch_until(self, limit: float) -> None:
        """One timer for all who wait: at the first of their limits."""
        if self._timer is not None:
            if self._timer_at <= limit:
                return
            self._timer.cancel()
        self._timer, self._timer_at = self._clock.call_at(limit, self._give_up), limit

    def _give_up(self) -> None:
        self._timer = None
        now = self._clock.monotonic()
        if any(queued.limit <= now for queued in self._queue):
            late = [queued for queued in self._queue if queued.limit <= now]
            self._queue = deque(queued for queued in self._queue if queued.limit > now)
            self._parts_waiting -= sum(queued.parts_left for queued in late)
            for queued in late:
                queued.end(Crowded())
            self._serve()  # who waited behind one that needed more places than were free
        for sequence in [sequence for sequence, asked in self._pending.items() if asked.limit <= now]:
            asked = self._pending.pop(sequence)
            if not asked.answer.done():
                asked.answer.set_result(Lost())
            if asked.label is not None:
                self._given_up[sequence] = asked.label
                if len(self._given_up) > MOST_LATE:
                    self._late(self._given_up.pop(next(iter(self._given_up))), None)
            self._freed()
        limits = [queued.limit for queued in self._queue] + [asked.limit for asked in self._pending.values()]
        if limits:
            self._watch_until(min(limits))

    def _enquire(self) -> None:
        if self.closed.done():
            return
        if self._heard or self._deaf:
            self.keep_alive()
            return
        self.request(Command.ENQUIRE_LINK).add_done_callback(self._enquired)

    def _enquired(self, asked: "asyncio.Future[Answered]") -> None:
        if not isinstance(asked.result(), tuple) and not self._deaf:
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
        for asked in pending.values():
            if not asked.answer.done():
                asked.answer.set_result(Lost())
        self._given_up.clear()
        self._unread.clear()
