"""A round of crashes with workers that send: they die, stand still, and their owner and PostgreSQL with them."""

import asyncio
import mmap
import os
import random
import re
import signal
import time
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

import asyncpg
from tests.crash.crashes import noted_kill
from tests.crash.evidence import Kill
from tests.crash.round import FLOW_LIMIT, Round
from tests.crash.stage import PACES, SimulatedStage
from tests.crash.traffic import Sender
from tests.crash.transports import SHARES
from tests.fronts.processes import fronts_of, is_front, owner_of, owners_of
from tests.program import Api
from tests.waiting import until

from recado.domain.dispatch.placement import shard_of
from recado.domain.senders.sender import SenderKey
from recado.fronts.frames import ANSWERS_FOR
from recado.storage.dispatch.begun_calls import NAME, Fenced, SeenCalls

PROCESSES = 3  # the owner, and two workers
STANDS_FOR = ANSWERS_FOR + 1.0  # seconds: it may begin nothing any more, and is not killed yet
CLOCKS_APART = timedelta(milliseconds=20)


class WorkerCrash(StrEnum):
    """What dies, or stands still."""

    WORKER = "a worker dies"
    OWNER = "the owner dies"
    BOTH = "a worker and the owner die"
    PAUSED = "a worker stands still, and goes on"
    STILL = "a worker stands still until it is killed"
    POSTGRES = "postgres dies"
    WORKER_IN_RELOAD = "a worker dies while a reload replaces it or another"
    OWNER_IN_RELOAD = "the owner dies amid a reload"


class WorkersStage(SimulatedStage):
    """A stage whose service has two workers, which send for two thirds of the numbers."""

    def __init__(self, folder: Path, *, seed: int) -> None:
        # Half of the lost answers are waited for, 15 s.
        super().__init__(folder, seed=seed, protocol="bridge", shares={**SHARES, "lost": 0.0})
        self.service.settings |= {"WORKERS": str(PROCESSES), "WORKERS_SEND": "true"}

    async def shares(self) -> set[int]:
        """The epochs of processes that have numbers."""
        connection = await asyncpg.connect(**self.database)
        try:
            return {row["epoch"] for row in await connection.fetch("select distinct epoch from shards")}
        finally:
            await connection.close()

    async def worker(self, draw: random.Random) -> "Watched":
        """One of those that have their share, once one has."""

        async def sharing() -> list[Watched]:
            found = [each for pid in fronts_of(self.service) if (each := Watched.of(pid)) is not None]
            shares = await self.shares()
            return [each for each in found if each.epoch in shares]

        return draw.choice(await until(sharing, "a worker has its share", limit=FLOW_LIMIT, every=0.05))

    async def senders(self, api: Api) -> list[Sender]:
        """One of each process, and others."""
        await until(self._all_share, "each process has its share", limit=FLOW_LIMIT, every=0.05)
        organization_id = (await api.call("GET", "/v2/organization"))["id"]
        found: list[Sender] = []
        processes: set[int] = set()
        while len(processes) < PROCESSES:
            paces = enumerate(PACES, len(found))
            found += await asyncio.gather(*(self.sender(api, index, pace) for index, pace in paces))
            keys = [SenderKey(organization_id, "live", "chatapp", each.number_id) for each in found]
            processes = {shard_of(key) % PROCESSES for key in keys}
        return found

    async def _all_share(self) -> bool:
        return len(await self.shares()) == PROCESSES


class Watched:
    """The calls of a worker that is to die: its file is removed soon after."""

    def __init__(self, pid: int, name: str) -> None:
        self.pid = pid
        self.epoch = int(name.rpartition("-")[2])
        with Path(name).open("rb") as file:
            self._content, again = (mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) for _ in range(2))
        self._seen = SeenCalls(again)

    @classmethod
    def of(cls, pid: int) -> "Watched | None":
        """None: it is not prepared to send."""
        try:
            found = re.search(rf"/\S*/{NAME}-\d+$", Path(f"/proc/{pid}/maps").read_text(), re.MULTILINE)
            return None if found is None else cls(pid, found.group())
        except (FileNotFoundError, ProcessLookupError):
            return None  # a reload has replaced it

    async def death(self, at: datetime) -> Kill:
        """What was under way then; once it is dead."""
        await until(lambda: not is_front(self.pid), "the worker is dead", limit=FLOW_LIMIT, every=0.005)
        notes = Fenced(self._content, self.epoch).read()
        assert notes is not None
        under_way = {
            message_id: departed_at - CLOCKS_APART
            for message_id, (_, departed_at) in notes.begun.items()
            if self._seen.moment_of(message_id) is not None
        }
        self._seen.close()
        return Kill(at, under_way)


class WorkersRound(Round[WorkerCrash]):
    """Many messages wait at each crash: the numbers have as much to do as they may."""

    rate = 220.0

    def __init__(self, folder: Path, *, seed: int) -> None:
        self._stage = WorkersStage(folder, seed=seed)
        super().__init__(folder, self._stage, seed=seed, large=False)

    async def cause(self, fault: WorkerCrash) -> None:
        stage, service = self._stage, self._stage.service
        if fault in {WorkerCrash.WORKER_IN_RELOAD, WorkerCrash.OWNER_IN_RELOAD}:
            await self._begin_reload()
        match fault:
            case WorkerCrash.WORKER | WorkerCrash.WORKER_IN_RELOAD:
                await self._kill_worker(signal.SIGKILL)
            case WorkerCrash.STILL:
                await self._kill_worker(signal.SIGSTOP)
            case WorkerCrash.PAUSED:
                worker = await stage.worker(self.random)
                until_then = time.monotonic() + STANDS_FOR
                self.stops.append(datetime.now(UTC))
                os.kill(worker.pid, signal.SIGSTOP)
                await until(lambda: time.monotonic() > until_then, "it stood still", limit=FLOW_LIMIT, every=0.05)
                os.kill(worker.pid, signal.SIGCONT)
            case WorkerCrash.OWNER | WorkerCrash.BOTH | WorkerCrash.OWNER_IN_RELOAD:
                worker = await stage.worker(self.random)
                await self._kill_owner(worker if fault is WorkerCrash.BOTH else None)
            case WorkerCrash.POSTGRES:
                self.database_deaths.append(datetime.now(UTC))
                await service.end_postgres(self.random.choice((signal.SIGKILL, signal.SIGQUIT, signal.SIGINT)))

    async def _kill_owner(self, worker: Watched | None) -> None:
        """Its launcher begins another, when what was under way has been noted. `worker`: that dies a moment before."""
        stage, service = self._stage, self._stage.service
        owner, fronts, at = owner_of(service), fronts_of(service), datetime.now(UTC)
        os.kill(service.pid, signal.SIGSTOP)
        try:
            if worker is not None:
                os.kill(worker.pid, signal.SIGKILL)
            os.kill(owner, signal.SIGKILL)
            if worker is not None:
                self.kills.append(await worker.death(at))
            await until(lambda: not any(map(is_front, fronts)), "they end with their owner", limit=FLOW_LIMIT)
            claimed, kill = await noted_kill(at, stage.database, service.data_dir)
            self.tell(f"{claimed} messages were claimed, the calls of {len(kill.claimed)} had begun")
            self.kills.append(kill)
        finally:
            os.kill(service.pid, signal.SIGCONT)
        await until(lambda: owners_of(service) not in ([], [owner]), "another one is begun", limit=FLOW_LIMIT)

    async def _begin_reload(self) -> None:
        """Until a new worker is beside those that it replaces."""
        service = self._stage.service
        before = set(await until(self._workers, "both workers are there", limit=FLOW_LIMIT, every=0.05))
        os.kill(service.pid, signal.SIGHUP)
        await until(lambda: set(fronts_of(service)) - before, "a reload begins", limit=FLOW_LIMIT, every=0.02)

    def _workers(self) -> list[int]:
        found = fronts_of(self._stage.service)
        return found if len(found) == PROCESSES - 1 else []

    async def _kill_worker(self, number: signal.Signals) -> None:
        """Whoever stands still is killed by the owner, and does nothing from this moment on."""
        worker = await self._stage.worker(self.random)
        at = datetime.now(UTC)
        if number is signal.SIGSTOP:
            self.stops.append(at)  # the owner dies a moment after the worker, with answers that nobody has settled
        os.kill(worker.pid, number)
        kill = await worker.death(at)
        self.tell(f"{len(kill.claimed)} calls were under way")
        self.kills.append(kill)
