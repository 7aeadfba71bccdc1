"""The place of one front: begins it, and the next when it ends; tells it of changes, and hears what it accepted."""

import asyncio
import os
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from random import Random
from typing import Any, Final, Protocol

import structlog

from recado.domain.core.clock import Clock, TimerHandle
from recado.domain.messages.changes import Change, WithdrawalsLeft
from recado.domain.senders.sender import SenderKey
from recado.domain.webhooks.webhook import SubscriptionKey
from recado.engine.backoff import Backoff
from recado.engine.link import Link
from recado.engine.steady_time import SET
from recado.fronts import frames
from recado.fronts.frames import FrontBeginning
from recado.fronts.processes import FrontProcess, kill
from recado.fronts.program import OTHER_PROGRAM
from recado.services.dispatch.crossing import unpacked_rows
from recado.services.dispatch.hints import Arrived, Queued

READY_LIMIT: Final = 60.0  # seconds, until a front listens
SILENT_BEATS: Final = 10
"""After so many, in a row, of which it follows none, a front is ended: 5 s, in which this process did not sleep."""
LEAVE_LIMIT: Final = 72.0  # seconds, of a front that another has replaced; it takes 71 at most
CALLS_END_WITHIN: Final = 16.0
"""Seconds more of one that sends, for calls that are under way: longer than any takes. At the stop of the whole service
it has as long as the owner."""
AGAIN: Final = Backoff(first=0.1, ceiling=10.0)
LIVED: Final = 10.0
"""Seconds for which a front took requests: the next is begun again at once, as after no failure."""
_MARGIN: Final = 0.05  # seconds from a front's look at its clock until it acts on that

log = structlog.get_logger(__name__)


class Hearing(Protocol):
    """What the owner does with what fronts say."""

    def tell(self, sender: SenderKey, message: object) -> None:
        """For the lane of a sender."""

    def queued(self, deliveries: Sequence[SubscriptionKey]) -> None:
        """These subscriptions have deliveries."""

    def changed(self, change: Change) -> None:
        """A front changed a record."""

    def emptied(self, totals: Sequence[Sequence[str]]) -> None:
        """Nothing of these batches and campaigns is queued or sending any more."""

    def expected(self, due_at: datetime) -> None:
        """A report of the sandbox is due then."""

    def counted(
        self,
        accepted: Mapping[str, int],
        refused: int,
        requests: Sequence[Sequence[Any]],
        sent: Mapping[str, int],
        failed: Sequence[tuple[str, str, int]],
        batches: Sequence[Sequence[Any]],
        restarts: Mapping[str, int],
    ) -> None:
        """What was accepted by channel, what wallets refused, the figures of requests, what was sent and failed, those
        of batches, and what was restarted by kind.
        """


class Sharing(Protocol):
    """Who gives numbers to fronts that send (`Shares`); a front by its number, and its process by its id."""

    @property
    def sends_until(self) -> float:
        """The machine's seconds, until which calls may begin."""

    def ready(
        self, number: int, pid: int, say: Callable[[str, Any], bool], room: Callable[[], Awaitable[None]]
    ) -> None:
        """It takes requests. `say`, `room`: of its link."""

    def sends(self, number: int, pid: int) -> None:
        """It is prepared to send."""

    def waited(self, number: int, pid: int, said: list[Any]) -> None:
        """It ends, and says what messages of its numbers waited for."""

    def answered(self, number: int, pid: int, said: list[Any]) -> None:
        """It answers what it was asked."""

    def ended(self, number: int, pid: int) -> None:
        """Its process is no more."""


class FrontDoor(Protocol):
    """Where connections come in that fronts hand over, and what fronts listen on (`HttpServer`)."""

    @property
    def bound(self) -> Sequence[socket.socket]:
        """The sockets that have the address."""

    def add_front(self, channel: socket.socket) -> None:
        """Take what comes there."""

    def remove_front(self, channel: socket.socket) -> None:
        """Take nothing more."""


Begin = Callable[[int, int, int, Sequence[int]], FrontBeginning]
"""The beginning of a front: its number, and the descriptors of its link, of what it gives and of what it listens on."""


class Processes(Protocol):
    """Makes the processes of fronts (`FrontProcesses`)."""

    def begin(self, beginning: FrontBeginning, descriptors: Sequence[int]) -> FrontProcess:
        """A process that has this beginning and these descriptors. Raises OSError: there is none."""


@dataclass(slots=True)
class Around:
    """What all places have in common. `inherited`: descriptors that each front gets beside its own."""

    door: FrontDoor
    hearing: Hearing
    begin: Begin
    processes: Processes
    inherited: Sequence[int]
    clock: Clock
    elapsed: Callable[[], float]
    random: Random
    shares: Sharing | None = None
    restarts: int = 0  # of those that were to stay
    dropped: int = 0


class FrontPlace:
    """The place of one front, which another takes when it ends.

    `stays`: else none does, until it is told to `stay`.
    """

    def __init__(self, number: int, around: Around, *, stays: bool = True) -> None:
        self._stays = stays
        self._program = ""  # of the owner, which a front has to be
        self._begun_at = 0.0  # by the machine's seconds, as the two that follow
        self._ready_at: float | None = None
        self._ended_at: float | None = None  # of the front before
        self.listens = asyncio.Event()
        self._number = number
        self._around = around
        self._link: Link | None = None
        self._gives: socket.socket | None = None
        self._process: FrontProcess | None = None
        self._watched = -1  # a descriptor that tells of the end
        self._answered = asyncio.Event()  # all requests, of one that ends
        self._gone = asyncio.Event()
        self._gone.set()
        self._said = 0  # the last number
        self._followed = 0
        self._changed = 0  # the number of the last change
        self._answers_until = 0.0  # of whoever has not followed the last change
        self._beaten_at = 0.0  # when the last beat was said, by the machine's seconds
        self._silent = 0  # beats since it followed one
        self._late_at = 0.0  # a front that does not listen then is ended
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._asked = 0
        self._settling: dict[int, asyncio.Future[None]] = {}  # by what was asked
        self._joining: asyncio.Task[None] | None = None
        self._failures = 0
        self._again: TimerHandle | None = None
        self._ending = False

    @property
    def ready(self) -> bool:
        """Whether its front takes requests."""
        return self.listens.is_set()

    @property
    def owes(self) -> bool:
        """Whether a change was said that the front has not followed yet, though it may answer."""
        return self._followed < self._changed and not self._gone.is_set() and self._left() > 0.0

    def begin(self) -> None:
        """Begin a front."""
        self._again = None
        try:
            self._begin()
        except Exception as error:  # noqa: BLE001 - mostly no descriptor, no process; whatever it is, it is tried again
            number = getattr(error, "errno", None)
            log.error("front_not_begun", front=self._number, error=type(error).__qualname__, errno=number)
            self._begin_again()

    def _begin(self) -> None:
        around = self._around
        with ExitStack() as undone:
            link, their_link = socket.socketpair()
            undone.callback(link.close)
            with their_link:
                gives, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                undone.callback(gives.close)
                with theirs:
                    listening = [each.fileno() for each in around.door.bound]
                    given = [their_link.fileno(), theirs.fileno(), *listening]
                    beginning = around.begin(self._number, their_link.fileno(), theirs.fileno(), listening)
                    process = around.processes.begin(beginning, [*given, *around.inherited])
                    self._program = beginning.program
            undone.callback(process.wait)
            undone.callback(process.kill)
            self._watched = os.pidfd_open(process.pid)
            undone.pop_all()
        self._process, self._gives = process, gives
        self._said = self._followed = self._changed = self._silent = 0
        self._answers_until = self._beaten_at = 0.0
        self._begun_at = around.elapsed()
        self._late_at = self._begun_at + READY_LIMIT
        self._gone.clear()
        self._answered.clear()
        loop = asyncio.get_running_loop()
        loop.add_reader(self._watched, self._ended)
        around.door.add_front(gives)
        self._joining = loop.create_task(self._join(link, process), name="link to a front")

    async def _join(self, end: socket.socket, process: FrontProcess) -> None:
        hearing = self._around.hearing
        takes: dict[str, Callable[[Any], None]] = {
            frames.READY: self._is_ready,
            frames.ACK: self._follows,
            frames.ROWS: self._rows,
            frames.QUEUED: self._queued,
            frames.CHANGED: lambda said: hearing.changed(frames.change_of(said)),
            frames.ANSWERED: lambda _: self._answered.set(),
            frames.LEFT: lambda _: hearing.changed(WithdrawalsLeft(())),  # who looks for them tells of them
            frames.FIGURES: self._figures,
            frames.EMPTIED: lambda said: hearing.emptied(said),
            frames.EXPECTED: lambda said: hearing.expected(datetime.fromisoformat(said)),
            frames.SENDS: self._sends,
            frames.SETTLED: self._settled,
            frames.ANSWER: self._answers,
            frames.WAITS: self._waited,
        }
        try:
            link = await Link.over(end, takes, lost=partial(kill, process))
        except Exception as error:  # noqa: BLE001 - whatever it is, nobody awaits this
            log.error("front_not_joined", front=self._number, error=type(error).__qualname__)
            end.close()
            kill(process)  # its end begins the next one, later and later
            return
        if process is self._process:
            self._link = link
        else:  # it has ended already
            link.close()

    def beat(self) -> None:
        """Let the front answer for a while; end one that follows nothing."""
        now = self._around.elapsed()
        if self._gone.is_set():
            return
        if self._link is None or not self.ready:
            # It answers nothing before its first beat, and so remembers nothing: no change waits for it.
            if now > self._late_at:
                log.error("front_late", front=self._number)
                self.kill()
            return
        self._silent = self._silent + 1 if self._followed < self._said else 0
        if self._silent >= SILENT_BEATS:
            log.error("front_silent", front=self._number)
            self.kill()
            return
        shares = self._around.shares
        self._say(frames.BEAT, now, *(() if shares is None else (shares.sends_until,)))
        self._beaten_at = now

    def say_changed(self, said: list[Any], kind: str = frames.CHANGE) -> None:
        """Say what was changed. A front that cannot be told is ended: it would answer by what it remembers."""
        if self._link is None or self._gone.is_set():
            return  # it remembers nothing yet, or nothing any more
        self._answers_until = self._beaten_at + frames.ANSWERS_FOR + _MARGIN
        self._say(kind, *said)
        self._changed = self._said

    def clock_believed(self) -> None:
        """What the machine's clock shows is believed here: the front has this process's clock."""
        if self._link is not None:
            self._link.give(frames.CLOCK)

    async def settled(self) -> None:
        """Until the front has followed what was said so far, or answers nothing any more."""
        followed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((self._changed, followed))
        clock = self._around.clock
        late = clock.call_at(clock.monotonic() + self._left(), lambda: _resolve(followed))
        try:
            await followed
        finally:
            late.cancel()

    async def claims_settled(self) -> None:
        """Until the front says that its claims are settled. One that stands still is killed for its silence."""
        if self._gone.is_set() or self._link is None:
            return
        self._asked += 1
        settled = self._settling[self._asked] = asyncio.get_running_loop().create_future()
        if not self._link.give(frames.SETTLE, self._asked):
            self.kill()
        await settled

    def stay(self) -> None:
        """Have another front follow, whenever one ends."""
        self._stays = True

    async def came_up(self) -> bool:
        """Whether the front that was begun listens; comes back when it does, or has ended."""
        await _either(self.listens, self._gone)
        return self.ready

    async def leave(self) -> None:
        """Have the front end so that no client notices; another takes requests already."""
        self._end_for_good()
        if self._link is None or not self.ready or not self._link.give(frames.LEAVE):
            self.kill()
        try:
            sends = 0.0 if self._around.shares is None else CALLS_END_WITHIN
            async with asyncio.timeout(LEAVE_LIMIT + sends):
                await self._gone.wait()
        except TimeoutError:
            log.warning("front_leaves_slowly", front=self._number)
            self.end()

    async def drain(self) -> None:
        """Have the front end in order; comes back when it has, or has none but calls to end."""
        self._end_for_good()
        if self._link is None or not self.ready:
            self.kill()  # nothing is under way there
        elif not self._link.give(frames.DRAIN):
            self.kill()  # it reads nothing
        if self._around.shares is None:
            await self.gone()
        else:
            await _either(self._answered, self._gone)

    async def gone(self) -> None:
        """Until its process is no more."""
        await self._gone.wait()

    @property
    def ends_calls(self) -> bool:
        """Whether it is about to end, and its calls are all that is under way."""
        return self._answered.is_set() and not self._gone.is_set()

    def end(self) -> None:
        """End what is left of it."""
        self._end_for_good()
        self.kill()
        if self._process is not None and not self._gone.is_set():
            self._process.wait()  # killed: a moment
            self._ended()

    def kill(self) -> None:
        """End the front at once; safe to call twice."""
        if self._process is not None:
            kill(self._process)

    def _end_for_good(self) -> None:
        self._ending = True
        if self._again is not None:
            self._again.cancel()

    def _left(self) -> float:
        return self._answers_until - self._around.elapsed()

    def _say(self, kind: str, *said: Any) -> None:
        self._said += 1
        if self._link is None or not self._link.give(kind, [self._said, *said]):
            self.kill()

    def _is_ready(self, program: object) -> None:
        if program != self._program:
            log.error("front_of_other_program", front=self._number)
            self.kill()
            return
        now = self._ready_at = self._around.elapsed()
        if self._ended_at is None:
            log.info("front_begun", front=self._number, seconds=round(now - self._begun_at, 1))
        else:
            log.info("front_back", front=self._number, seconds=round(now - self._ended_at, 1))
        if self._around.clock.set_by <= SET:
            self.clock_believed()  # it may have been set, and followed, while the front began
        self.listens.set()
        self.beat()
        if self._around.shares is not None and self._process is not None and self._link is not None:
            # By this link: another process that takes the place is no part of what is said to this one.
            self._around.shares.ready(self._number, self._process.pid, self._link.give, self._link.room)

    def _sends(self, _: object) -> None:
        if self._around.shares is not None and self._process is not None:
            self._around.shares.sends(self._number, self._process.pid)

    def _waited(self, said: list[Any]) -> None:
        if self._around.shares is not None and self._process is not None:
            self._around.shares.waited(self._number, self._process.pid, said)

    def _answers(self, said: list[Any]) -> None:
        if self._around.shares is not None and self._process is not None:
            self._around.shares.answered(self._number, self._process.pid, said)

    def _settled(self, asked: int) -> None:
        settled = self._settling.pop(asked, None)
        if settled is not None:
            _resolve(settled)

    def _follows(self, number: int) -> None:
        self._followed = number
        self._silent = 0
        while self._waiting and self._waiting[0][0] <= number:
            _resolve(self._waiting.popleft()[1])

    def _rows(self, said: list[Any]) -> None:
        *sender, rows = said
        hint = Arrived(unpacked_rows(rows)) if rows else Queued()
        self._around.hearing.tell(SenderKey(*sender), hint)

    def _queued(self, said: list[Any]) -> None:
        self._around.hearing.queued([SubscriptionKey(*key) for key in said])

    def _figures(self, said: dict[str, Any]) -> None:
        self._around.dropped += said.pop("dropped")
        self._around.hearing.counted(**said)

    def _ended(self) -> None:
        """The process is no more."""
        process, link, gives = self._process, self._link, self._gives
        if process is None:
            return
        self._process = self._link = self._gives = None
        asyncio.get_running_loop().remove_reader(self._watched)
        os.close(self._watched)
        status = process.wait()
        if link is not None:
            self._around.dropped += link.dropped
            link.close()
        if gives is not None:
            self._around.door.remove_front(gives)
        self.listens.clear()
        self._gone.set()
        if self._around.shares is not None:
            self._around.shares.ended(self._number, process.pid)
        while self._waiting:
            _resolve(self._waiting.popleft()[1])
        while self._settling:
            _resolve(self._settling.popitem()[1])
        ready_at, self._ready_at = self._ready_at, None
        if self._ending:
            return
        now = self._around.elapsed()
        if ready_at is not None:
            self._ended_at = now
            if now - ready_at >= LIVED:
                self._failures = 0
        if status == OTHER_PROGRAM:
            log.error("front_of_other_program", front=self._number)
        else:
            log.error("front_ended", front=self._number, status=status)
        self._begin_again()

    def _begin_again(self) -> None:
        if not self._stays:
            return
        self._failures += 1
        self._around.restarts += 1
        delay = AGAIN.delay(self._failures, self._around.random)
        clock = self._around.clock
        self._again = clock.call_at(clock.monotonic() + delay, self.begin)


async def _either(one: asyncio.Event, other: asyncio.Event) -> None:
    """Until one of them is set."""
    waiting = {asyncio.ensure_future(each.wait()) for each in (one, other)}
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for each in waiting:
            each.cancel()


def _resolve(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)
