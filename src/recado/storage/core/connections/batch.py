"""Gathers rows of many callers into one statement, and answers each caller after the commit that holds its row.

A batch leaves as soon as a flusher is free: alone when traffic is thin, hundreds at a time when it is dense. The
statement must bear being run twice with the same rows (`on conflict do nothing`): a lost connection hides its outcome.
"""

import asyncio
import contextlib
import itertools
from bisect import bisect_left
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final, Generic, TypeAlias, TypeVar
from weakref import WeakSet

import structlog

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.domain.core.solitude import ALONE_AFTER
from recado.storage.core.connections.failures import blames_the_statement, worth_repeating
from recado.storage.core.shielded import to_its_end

Row = TypeVar("Row")
Result = TypeVar("Result")
_Entry: TypeAlias = tuple[Row, asyncio.Future[Result], float]  # the row, its answer, and when it came (monotonic)

log = structlog.get_logger(__name__)

FIRST_PAUSE = 0.05
LONGEST_PAUSE = 1.0
LAST_ANSWER = 0.5  # seconds that a flusher which is cut off waits for the answer to its statement
ANSWERED_AT_ONCE = 10  # callers, each of whom goes on in the same pass of the loop; other owners wait for its end
DENSE = 4  # rows in the batch before: traffic in which waiting a moment for more pays
COMMIT_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds: a commit is counted under the first of them that it did not exceed."""


_started: "WeakSet[Batcher[Any, Any]]" = WeakSet()


def batchers() -> "list[Batcher[Any, Any]]":
    """Those of this process that are started, by name: they belong to many parts, and are looked at together."""
    return sorted(_started, key=lambda batcher: batcher.name)


class Batcher(Generic[Row, Result]):
    """One kind of statement for many rows; a service (`start`, `stop`)."""

    def __init__(
        self,
        name: str,
        run: Callable[[Sequence[Row]], Awaitable[Sequence[Result | Exception]]],
        *,
        clock: Clock,
        max_rows: int = 500,
        max_queue: int = 20_000,
        concurrency: int = 2,
        linger: float = 0.0,
        enough: int | None = None,
        deadline: float = 30.0,
        repair: Callable[[Exception], Awaitable[bool]] | None = None,
        owner: Callable[[Row], str] | None = None,
    ) -> None:
        """`run` commits the rows and answers one result for each, in order; an exception among them goes to its caller.

        `max_rows`: of one batch; `max_queue`: rows that wait beyond those in flight; `concurrency`: batches in flight,
        between which there is no order; `linger`: seconds that a batch waits for more rows while traffic is dense: a
        commit costs the same for one row as for many; `enough`: rows that wait for no more, `max_rows` unless it is
        said; `deadline`: seconds that a row may wait for a server that is
        away; `repair`: repairs what an error tells is missing, and answers whether the batch should run again; `owner`:
        whose a row is. Owners take turns, and one with half a batch of rows waiting is a crowd: it has batches of its
        own, which lock what is its own, and leaves one flusher to all others.
        """
        self.name = name
        self.rows = 0
        self.batches = 0
        self.seconds = 0.0  # of all commits
        self.commits = [0] * (len(COMMIT_BOUNDS) + 1)  # by `COMMIT_BOUNDS`, and last those that took longer
        self._run = run
        self._repair = repair
        self._clock = clock
        self._monotonic = clock.monotonic
        self._max_rows = max_rows
        self._max_queue = max_queue
        self._concurrency = concurrency
        self._crowd_room = max(1, concurrency - 1)  # flushers that crowds may have; the last is for all others
        self._linger = linger
        self._enough = max_rows if enough is None else enough
        # One flusher lingers, for all rows that come meanwhile; done when there are enough of them, or it was long.
        self._gathered: asyncio.Future[None] | None = None
        self._hurries = False  # somebody waits for a row: the batch with it gathers no more
        self._last_size = 0
        self._deadline = deadline
        self._owner = owner
        self._waiting: dict[str, deque[_Entry[Row, Result]]] = {}  # by owner, in the order of their turns
        self._queued = 0
        self._crowds: dict[str, int] = {}  # batches in flight that are a crowd's, by owner
        self._crowded = 0  # how many in all
        self._last_owner: str | None = None
        self._several_until = float("-inf")  # owners ask
        self._in_flight: dict[int, list[_Entry[Row, Result]]] = {}
        self._answering: dict[int, list[_Entry[Row, Result]]] = {}  # committed
        self._all_answered: asyncio.Future[None] | None = None
        self._idle: list[asyncio.Future[None]] = []
        self._flushers: list[asyncio.Task[None]] = []
        self._new_future: Callable[[], asyncio.Future[Result]] | None = None

    @property
    def queued(self) -> int:
        """Rows that wait for a flusher."""
        return self._queued

    @property
    def pending(self) -> int:
        """Rows that are not committed yet."""
        return self._queued + sum(map(len, self._in_flight.values()))

    async def start(self) -> None:
        """Begins to take rows."""
        _started.add(self)
        if not self._flushers:
            self._new_future = asyncio.get_running_loop().create_future
            self._flushers = [
                asyncio.create_task(self._flush_always(), name=f"batch-{self.name}-{number}")
                for number in range(self._concurrency)
            ]

    async def stop(self) -> None:
        """Takes no more rows, flushes those that it has, and comes back when all are answered. Safe to call twice."""
        self._new_future = None
        _started.discard(self)
        flushers, self._flushers = self._flushers, []
        while self._idle:
            self._idle.pop().set_result(None)
        try:
            await asyncio.gather(*flushers)
            if self._answering:
                self._all_answered = asyncio.get_running_loop().create_future()
                await self._all_answered
        finally:
            for entry in itertools.chain(*self._waiting.values()):
                self._refuse(entry)
            self._waiting.clear()
            self._queued = 0

    def put(self, row: Row, *, hurries: bool = False) -> "asyncio.Future[Result]":
        """Queues a row; the future has its result after the commit. A row whose future is cancelled in time is dropped.

        `hurries`: its batch does not wait for more rows.

        Raises Unavailable, also through the future, when the queue is full, the batcher is stopped, or the server stays
        away past the deadline.
        """
        if self._new_future is None or self._queued >= self._max_queue:
            raise Unavailable("Too much work is waiting for the database: try again shortly.")
        future = self._new_future()
        now = self._monotonic()
        owner = "" if self._owner is None else self._owner(row)
        if owner != self._last_owner:
            if self._last_owner is not None:
                self._several_until = now + ALONE_AFTER
            self._last_owner = owner
        queue = self._waiting.get(owner)
        if queue is None:
            queue = self._waiting[owner] = deque()
        queue.append((row, future, now))
        self._queued += 1
        if hurries:
            self._hurries = True
        if self._gathered is not None:
            if self._queued >= self._enough or hurries:
                self._end_gathering()
        elif self._idle and self._may_leave(owner):
            self._idle.pop().set_result(None)
        return future

    async def settled(self) -> None:
        """Until every row that was put before has its answer; not those that come meanwhile."""
        rows = itertools.chain(*self._waiting.values(), *self._in_flight.values(), *self._answering.values())
        if answers := [answer for _, answer, _ in rows if not answer.done()]:
            await asyncio.wait(answers)

    async def _flush_always(self) -> None:
        while True:
            if self._worth_lingering():
                await self._gather()
            crowd, batch = self._take()
            if batch:
                self._last_size = len(batch)
                self._in_flight[id(batch)] = batch
                settling = asyncio.create_task(self._settle_whole(batch, crowd))
                # Who is cut off waits a moment: the statement may be committed, and its callers are to know.
                await to_its_end(settling, partial(self._cut_off_soon, settling))
                del settling, batch
            elif self._new_future is None:
                return
            else:
                woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
                self._idle.append(woken)
                try:
                    await woken
                finally:
                    if woken in self._idle:  # cancelled, and not woken by a row
                        self._idle.remove(woken)

    async def _gather(self) -> None:
        """Wait a moment for more rows; of several flushers one, as two would share what comes meanwhile."""
        self._gathered = asyncio.get_running_loop().create_future()
        timer = self._clock.call_at(self._monotonic() + self._linger, self._end_gathering)
        try:
            await self._gathered
        finally:
            timer.cancel()
            self._gathered = None
        if self._queued > self._max_rows and self._idle:
            self._idle.pop().set_result(None)

    def _end_gathering(self) -> None:
        if self._gathered is not None and not self._gathered.done():
            self._gathered.set_result(None)

    def _worth_lingering(self) -> bool:
        dense = self._last_size >= DENSE and 0 < self._queued < self._enough and not self._hurries
        return dense and self._linger > 0 and self._gathered is None and self._new_future is not None

    def _is_crowd(self, owner: str) -> bool:
        if self._owner is None:
            return False
        return owner in self._crowds or len(self._waiting[owner]) >= self._max_rows // 2

    def _may_leave(self, owner: str) -> bool:
        return self._crowded < self._crowd_room or not self._is_crowd(owner)

    def _leave_crowd(self, owner: str) -> None:
        self._crowded -= 1
        self._crowds[owner] -= 1
        if not self._crowds[owner]:
            del self._crowds[owner]

    def _take(self) -> tuple[str | None, list[_Entry[Row, Result]]]:
        """The rows of the next batch, and their owner where it is a crowd."""
        batch: list[_Entry[Row, Result]] = []
        if self._gathered is not None:  # another flusher takes them
            return None, batch
        self._hurries = False
        for owner in list(self._waiting):
            crowd = self._is_crowd(owner)
            if not self._may_leave(owner) or (crowd and batch):
                continue
            self._move(owner, batch)
            if batch and crowd:
                self._crowded += 1
                self._crowds[owner] = self._crowds.get(owner, 0) + 1
                return owner, batch
            if len(batch) == self._max_rows:
                break
        return None, batch

    def _move(self, owner: str, batch: list[_Entry[Row, Result]]) -> None:
        """Move rows of the owner into the batch; what is left has its next turn after all others."""
        queue = self._waiting.pop(owner)
        while queue and len(batch) < self._max_rows:
            entry = queue.popleft()
            self._queued -= 1
            if not entry[1].done():
                batch.append(entry)
        if queue:
            self._waiting[owner] = queue

    async def _settle_whole(self, batch: list[_Entry[Row, Result]], crowd: str | None) -> None:
        """Settles what a flusher took."""
        try:
            await self._settle(batch)
        except BaseException:  # cancelled: nobody may be left without an answer
            self._refuse_uncommitted(batch)
            raise
        finally:
            del self._in_flight[id(batch)]
            if crowd is not None:
                self._leave_crowd(crowd)
            del batch

    def _cut_off_soon(self, settling: "asyncio.Task[None]") -> None:
        """A stop has its limit (C32), and a server that is slow now may not answer at all."""
        self._clock.call_at(self._clock.monotonic() + LAST_ANSWER, settling.cancel)

    async def _settle(self, batch: list[_Entry[Row, Result]]) -> None:
        """Runs a batch until every row of it has its answer."""
        losses = 0
        repaired = False
        try:
            while batch:
                begun = self._monotonic()
                try:
                    results = await self._run([row for row, _, _ in batch])
                except Exception as error:  # noqa: BLE001 - each kind is answered below
                    if worth_repeating(error):
                        pause = min(FIRST_PAUSE * 2**losses, LONGEST_PAUSE)
                        losses += 1
                        batch = self._still_in_time(batch, self._monotonic() + pause, error)
                        if batch:
                            await self._clock.sleep(pause)
                    elif not repaired and await self._mend(error):
                        repaired = True
                    elif len(batch) == 1 or blames_the_statement(error):
                        self._fail(batch, error)
                        return
                    else:
                        # Some row is at fault: halves find it in few steps, and the others get their answers.
                        middle = len(batch) // 2
                        await self._settle(batch[:middle])
                        await self._settle(batch[middle:])
                        return
                else:
                    took = self._monotonic() - begun
                    self.seconds += took
                    self.commits[bisect_left(COMMIT_BOUNDS, took)] += 1
                    self._answer(batch, results)
                    return
        finally:
            # An error holds this frame, and the rows' answers hold the error: only the collector would end that.
            del batch

    def _answer(self, batch: list[_Entry[Row, Result]], results: Sequence[Result | Exception]) -> None:
        if len(results) != len(batch):
            self._fail(batch, RuntimeError(f"the batch {self.name} answered {len(results)} of {len(batch)} rows"))
            return
        self.batches += 1
        self.rows += len(batch)
        self._answering[id(batch)] = batch
        self._answer_some(batch, results, 0)

    def _answer_some(self, batch: list[_Entry[Row, Result]], results: Sequence[Result | Exception], start: int) -> None:
        """All, or a few in each pass of the loop while several owners ask. The next batch does not wait for that."""
        several = self._monotonic() < self._several_until
        end = min(start + ANSWERED_AT_ONCE, len(batch)) if several else len(batch)
        for number in range(start, end):
            future, result = batch[number][1], results[number]
            if future.done():
                continue  # the caller left while its row was in flight
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)
        if end < len(batch):
            asyncio.get_running_loop().call_soon(self._answer_some, batch, results, end)
        else:
            del self._answering[id(batch)]
            if not self._answering and self._all_answered is not None:
                self._all_answered.set_result(None)
                self._all_answered = None

    async def _mend(self, error: Exception) -> bool:
        if self._repair is not None:
            with contextlib.suppress(Exception):  # what cannot be repaired now shows again when the rows run in halves
                return await self._repair(error)
        return False

    def _still_in_time(
        self, batch: list[_Entry[Row, Result]], next_try: float, error: Exception
    ) -> list[_Entry[Row, Result]]:
        """The rows of a batch with time left for another try; refuses the others, and such rows of the queue."""
        overdue = next_try - self._deadline
        left = [entry for entry in batch if entry[2] > overdue]
        refused = [entry for entry in batch if entry[2] <= overdue]
        for owner, queue in list(self._waiting.items()):
            while queue and queue[0][2] <= overdue:
                refused.append(queue.popleft())
                self._queued -= 1
            if not queue:
                del self._waiting[owner]
        for entry in refused:
            self._refuse(entry)
        if refused:
            # Of a server that is away, the pool has told; so have those that collided, of each other.
            log.debug("batch_refused", batch=self.name, rows=len(refused), error=type(error).__name__)
        return left

    def _refuse_uncommitted(self, batch: list[_Entry[Row, Result]]) -> None:
        """Refuses those of a batch that was cut off whose rows are not committed; the others are being answered."""
        committed = {id(entry) for answering in self._answering.values() for entry in answering}
        for entry in batch:
            if id(entry) not in committed:
                self._refuse(entry)

    def _refuse(self, entry: _Entry[Row, Result]) -> None:
        if not entry[1].done():
            entry[1].set_exception(Unavailable("The database is not available: try again shortly."))

    def _fail(self, batch: list[_Entry[Row, Result]], error: Exception) -> None:
        for _, future, _ in batch:
            if not future.done():
                future.set_exception(error)
