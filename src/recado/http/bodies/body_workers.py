"""The worker processes that read large bodies, so that no other request waits for one (C2.3.6, C31).

A caller has one body read at a time, and callers take turns. A process that dies, or takes too long, is replaced.
"""

import asyncio
import contextlib
import os
import pickle
import socket
import sys
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from subprocess import Popen
from typing import Final

import structlog
from pydantic import BaseModel

from recado.domain.core.clock import Clock, TimerHandle
from recado.domain.core.errors import Problem, Unavailable
from recado.http.bodies.body_reading import (
    LENGTH,
    Find,
    Found,
    FoundItems,
    ItemsJob,
    Job,
    LargeBody,
    WorkerAnswer,
    has_many_items,
    large_body,
    name_of,
)
from recado.storage.core.shares.fair_places import FairPlaces

PROCESSES: Final = 2
MOST_WAITING: Final = 8  # bodies of one caller
VALUES: Final = 16  # that are worked on at once: each takes several times the size of its body
VALUES_OF_CALLER: Final = 4
VALUES_WAITING: Final = 64  # of one caller
LIMIT_SECONDS: Final = 20.0  # for one body, the start of the process included
READY_AFTER: Final = 5.0  # seconds after the start, which has enough to do
NO_OTHERS: Final[Mapping[str, type[BaseModel]]] = {}
_PIECE: Final = 256 * 1024  # bytes given to a process at once
_MOST_COMPLAINTS: Final = 64 * 1024  # bytes of which the last line is told
_LONGEST_COMPLAINT: Final = 300  # characters

_log = structlog.get_logger(__name__)


class BodyWorkers:
    """A service; processes begin with the first body that needs them.

    `expected`: models for which one is made ready some seconds after the start, so that the first body need not wait.
    """

    def __init__(self, clock: Clock, *, expected: Iterable[type[BaseModel]] = (), processes: int = PROCESSES) -> None:
        self._clock = clock
        self._expected = tuple(expected)
        self._timer: TimerHandle | None = None
        self._preparing: asyncio.Task[None] | None = None
        self._places = FairPlaces(processes, most_waiting=MOST_WAITING)
        self._values = FairPlaces(VALUES, each=VALUES_OF_CALLER, most_waiting=VALUES_WAITING)
        self._idle: list[_Worker] = []
        self._busy: set[_Worker] = set()
        self._reading: set[asyncio.Task[LargeBody]] = set()
        self._ending: set[asyncio.Task[None]] = set()
        self._stopped = False

    @property
    def idle(self) -> int:
        """How many processes have nothing to do."""
        return len(self._idle)

    @property
    def busy(self) -> int:
        """How many processes are reading a body."""
        return len(self._busy)

    async def start(self) -> None:
        self._stopped = False
        if self._expected and self._timer is None:
            self._timer = self._clock.call_at(self._clock.monotonic() + READY_AFTER, self._prepare)

    async def stop(self) -> None:
        """End the processes; anyone who waits for one gets `Unavailable`."""
        self._stopped = True
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
        workers = [*self._idle, *self._busy]
        self._idle.clear()
        await asyncio.gather(*(worker.end() for worker in workers))
        if self._preparing is not None:
            await self._preparing
        await asyncio.gather(*self._reading, return_exceptions=True)
        await asyncio.gather(*self._ending, return_exceptions=True)  # those that ended while they read, too

    def _prepare(self) -> None:
        self._preparing = asyncio.create_task(self._make_ready())

    async def _make_ready(self) -> None:
        for model in self._expected:
            with contextlib.suppress(Problem):
                async with self._places.place(""):
                    await self._read(Job(name_of(model), 422, None), b"{}")

    async def read(
        self,
        model: type[BaseModel],
        raw: bytes,
        *,
        caller: str,
        bad_status: int,
        most_values: int | None,
        by_channel: Mapping[str, type[BaseModel]] = NO_OTHERS,
    ) -> LargeBody:
        """Read a body for `caller`; `by_channel`: other models, see `model_of`.

        Raises `Problem`: 400 when it is no JSON, 413 when it takes too much memory,
        `Unavailable` when too many of this caller wait, or the process failed.
        """
        others = {channel: name_of(each) for channel, each in by_channel.items()}
        return await self._begin(Job(name_of(model), bad_status, most_values, others), raw, caller)

    def takes_long(self, raw: bytes) -> bool:
        """Whether `find` reads a body in a process."""
        return has_many_items(raw)

    async def find(self, find: Find, raw: bytes, *, caller: str) -> Found:
        """What `find` finds in a body: here where that takes no time, else in a process, whose answer comes in steps.

        An item of a large body that holds more values than any field takes is left out. Raises as `read`.
        """
        if not self.takes_long(raw):
            return find(raw)
        found: FoundItems = await (await self._begin(ItemsJob(find), raw, caller)).value()
        return found.items, found.failure

    async def _begin(self, job: Job | ItemsJob, raw: bytes, caller: str) -> LargeBody:
        begun = asyncio.Event()
        task = asyncio.create_task(self._in_turn(job, raw, caller, begun))
        self._reading.add(task)
        task.add_done_callback(self._forget)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            # What a process has begun keeps the caller's place until it is done, also when nobody wants it any more.
            if not begun.is_set():
                task.cancel()
            raise

    def place_of_value(self, caller: str) -> AbstractAsyncContextManager[None]:
        """Hold it while there is the value of a large body; `Unavailable` when too many of this caller's wait."""
        return self._values.place(caller)

    async def _in_turn(self, job: Job | ItemsJob, raw: bytes, caller: str, begun: asyncio.Event) -> LargeBody:
        async with self._places.place(caller):
            begun.set()
            return await self._read(job, raw)

    async def _read(self, job: Job | ItemsJob, raw: bytes) -> LargeBody:
        if self._stopped:
            raise Unavailable("The service is stopping.")
        worker = self._idle.pop() if self._idle else _Worker(self._clock)
        self._busy.add(worker)
        try:
            answer, pieces = await worker.read(job, raw)
        except BaseException as error:
            self._end(worker)
            if isinstance(error, (OSError, EOFError)):
                if not self._stopped:  # which ends them
                    _log.warning("body_worker_failed", late=worker.late, told=worker.told())
                raise Unavailable from None
            raise
        self._busy.discard(worker)
        if answer.last or self._stopped:
            self._end(worker)
        else:
            self._idle.append(worker)
        if answer.outcome is None:
            raise Problem("BODY_TOO_LARGE", "The body takes more memory than one may.")
        return large_body(answer.outcome, pieces)

    def _end(self, worker: "_Worker") -> None:
        self._busy.discard(worker)
        task = asyncio.create_task(worker.end())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    def _forget(self, task: "asyncio.Task[LargeBody]") -> None:
        self._reading.discard(task)
        if not task.cancelled():
            task.exception()  # who waited for it has seen it, or has left


class _Worker:
    """One process. `late`: it was ended because a body took too long."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._process: Popen[bytes] | None = None
        self._complaints = -1  # descriptor of what the process writes while it starts
        self._reader: asyncio.StreamReader
        self._writer: asyncio.StreamWriter
        self._ended = False
        self.late = False

    async def read(self, job: Job | ItemsJob, raw: bytes) -> tuple[WorkerAnswer, list[bytes]]:
        """Raises OSError or EOFError when the process fails, or is ended."""
        timer = self._clock.call_at(self._clock.monotonic() + LIMIT_SECONDS, self._give_up)
        try:
            if self._process is None:
                await self._begin()
            head = pickle.dumps(job)
            self._writer.write(len(head).to_bytes(LENGTH, "big") + head + len(raw).to_bytes(LENGTH, "big"))
            view = memoryview(raw)
            for start in range(0, len(raw), _PIECE):
                self._writer.write(view[start : start + _PIECE])
                await self._writer.drain()
            answer: WorkerAnswer = pickle.loads(await self._frame())  # noqa: S301 - written by our own process
            return answer, [await self._frame() for _ in range(answer.pieces)]
        finally:
            timer.cancel()

    def told(self) -> str:
        """Why the process could not start; empty when it could. It says nothing any more once it reads bodies."""
        if self._process is None:
            return ""
        lines = os.pread(self._complaints, _MOST_COMPLAINTS, 0).decode(errors="replace").splitlines()
        return lines[-1][:_LONGEST_COMPLAINT] if lines else ""

    async def end(self) -> None:
        """End the process, whatever it does, also one that is about to begin; safe to call twice."""
        self._ended = True
        process, self._process = self._process, None
        if process is None:
            return
        os.close(self._complaints)
        process.kill()
        self._writer.transport.abort()
        await asyncio.to_thread(process.wait)

    async def _begin(self) -> None:
        """Not by asyncio, which would copy the tables of all our memory for the new process."""
        ours, theirs = socket.socketpair()
        with theirs:
            self._reader, self._writer = await asyncio.open_connection(sock=ours, limit=_PIECE)
            complaints = -1
            try:
                if self._ended:  # meanwhile: nobody would end the process
                    raise EOFError
                complaints = os.memfd_create("complaints")
                # Of the environment only where modules are found: it holds secrets, which no parser needs. And no
                # module of the folder in which the service happens to run (-P): its files are not the program.
                self._process = Popen(  # noqa: ASYNC220 - a millisecond
                    [sys.executable, "-P", "-m", "recado.http.bodies.body_worker"],
                    stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=complaints, start_new_session=True,
                    env={"PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
                )  # fmt: skip
            except BaseException:
                self._writer.transport.abort()  # descriptors may be what there was too little of
                if complaints >= 0:
                    os.close(complaints)
                raise
            self._complaints = complaints

    def _give_up(self) -> None:
        self.late = True
        if self._process is not None:
            self._process.kill()

    async def _frame(self) -> bytes:
        length = int.from_bytes(await self._reader.readexactly(LENGTH), "big")
        return await self._reader.readexactly(length)
