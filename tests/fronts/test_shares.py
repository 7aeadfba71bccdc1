"""Who has the numbers of a share: processes that come, replace others, end and fail, and a database that is away."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until

from recado.actors.dispatch.places import Places
from recado.actors.dispatch.waits import Handed, Waits
from recado.domain.core.errors import Unavailable
from recado.domain.dispatch.leases import TOLERANCE, WINDOW
from recado.domain.dispatch.placement import SHARDS, shard_of
from recado.domain.senders.sender import SenderKey
from recado.engine.clock import VirtualClock
from recado.fronts import frames
from recado.fronts.shares import AGAIN_AFTER, Shares
from recado.storage.dispatch.begun_calls import BegunCalls
from recado.storage.dispatch.epochs import TakenEpoch

NOW = datetime(2026, 3, 10, tzinfo=UTC)
NUMBER = next(
    key for key in (SenderKey("org_1", "test", "chatapp", f"num_{n}") for n in range(100)) if shard_of(key) % 2 == 1
)
MINE = list(range(1, SHARDS, 2))


class Stage:
    """Everything around shares of two processes: what the table says, and what was done in which order."""

    def __init__(self, folder: Path) -> None:
        self.clock = VirtualClock(NOW)
        self.begun = BegunCalls(folder, boot="boot", notes=8)
        self.places = Places()
        self.opens = [0.0] * SHARDS
        self.waits = Waits()
        self.epoch_of = [1] * SHARDS
        self.epochs = 1
        self.ended: list[int] = []
        self.away = 0  # statements that fail
        self.gives_up = asyncio.Event()
        self.gives_up.set()
        itself: Any = self
        self.shares = Shares(
            2, ownership=itself, lanes=itself, places=self.places, opens=self.opens, waits=self.waits,
            rescuer=itself, begun=self.begun, clock=self.clock,
            elapsed=self.clock.monotonic, snapshot=lambda: iter([("gates", True), ("", False)]),
        )  # fmt: skip

    async def join(self, pid: int) -> TakenEpoch:
        self.epochs += 1
        return TakenEpoch(self.epochs, NOW, 0.0, None)

    async def give(self, shards: list[int], epoch: int) -> None:
        self._fail()
        for shard in shards:
            self.epoch_of[shard] = epoch

    async def end(self, epoch: int) -> None:
        self._fail()
        self.ended.append(epoch)
        self.epoch_of = [1 if each == epoch else each for each in self.epoch_of]

    async def rescue(self) -> None:
        """Nothing was in hand."""

    async def give_up(self, shards: frozenset[int]) -> Handed:
        await self.gives_up.wait()
        return self.waits.take(shards, self.waits.closed_among(shards))

    def _fail(self) -> None:
        if self.away:
            self.away -= 1
            raise Unavailable("The database is away.")

    @property
    def has(self) -> set[int]:
        """The epochs that have the share by the table."""
        return {self.epoch_of[shard] for shard in MINE}


class Worker:
    """A process that hears what it is told."""

    def __init__(self, stage: Stage, pid: int) -> None:
        self.pid = pid
        self.heard: list[tuple[str, Any]] = []
        self.reads = asyncio.Event()
        self.reads.set()
        self.takes = True
        self._stage = stage

    def hear(self, kind: str, said: Any) -> bool:
        if not self.takes:
            return False
        self.heard.append((kind, said))
        return True

    async def room(self) -> None:
        await self.reads.wait()

    def of(self, kind: str) -> list[Any]:
        return [said for each, said in self.heard if each == kind]

    async def prepares(self) -> None:
        self._stage.shares.ready(1, self.pid, self.hear, self.room)
        await until(lambda: self.of(frames.JOIN), "it is to prepare")
        assert [kind for kind, _ in self.heard] == [frames.GATES, frames.GATES, frames.JOIN]
        self._stage.shares.sends(1, self.pid)

    async def sends(self) -> None:
        await until(lambda: self.of(frames.SHARDS), "it has its share")
        ((shards, moment),) = self.of(frames.SHARDS)
        assert list(shards) == MINE
        assert moment == self._stage.clock.monotonic() + WINDOW + TOLERANCE

    def ends(self) -> None:
        self._stage.shares.ended(1, self.pid)


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


async def test_one_that_replaces_another_has_its_numbers_when_that_one_has_ended(stage: Stage) -> None:
    old, new = Worker(stage, 10), Worker(stage, 11)
    await old.prepares()
    await old.sends()
    await new.prepares()
    for _ in range(10):
        await asyncio.sleep(0)
    assert new.of(frames.SHARDS) == []
    assert stage.has == {2}
    await stage.clock.advance(3.0)
    old.ends()
    assert stage.places.away(NUMBER) is not None  # nobody's for a moment, and never ours
    await new.sends()
    assert stage.has == {3}
    assert stage.ended == [2]
    new.ends()
    await until(lambda: stage.places.away(NUMBER) is None, "they are ours")
    assert stage.has == {1}
    assert {stage.opens[shard] for shard in MINE} == {3.0 + WINDOW + TOLERANCE}
    assert stage.opens[0] == 0.0


async def test_one_that_ends_before_it_has_any_takes_none_from_the_one_that_sends(stage: Stage) -> None:
    old, new = Worker(stage, 10), Worker(stage, 11)
    await old.prepares()
    await old.sends()
    tells = stage.places.away(NUMBER)
    await new.prepares()
    new.ends()
    await until(lambda: stage.ended == [3], "its epoch has ended")
    assert stage.places.away(NUMBER) is tells
    assert stage.has == {2}


async def test_a_share_that_is_on_its_way_to_one_that_ends_comes_back(stage: Stage) -> None:
    worker = Worker(stage, 10)
    stage.gives_up.clear()
    await worker.prepares()
    await until(lambda: stage.places.away(NUMBER) is not None, "our lanes are told to let go")
    worker.ends()
    stage.gives_up.set()
    await until(lambda: stage.places.away(NUMBER) is None, "they are ours")
    assert stage.has == {1}
    assert worker.of(frames.SHARDS) == []


async def test_a_share_moves_once_the_database_is_back(stage: Stage) -> None:
    worker = Worker(stage, 10)
    stage.away = 2
    await worker.prepares()
    for left in (1, 0):
        await until(lambda left=left: stage.away == left, "it was tried")
        assert worker.of(frames.SHARDS) == []
        await stage.clock.advance(AGAIN_AFTER)
    await worker.sends()
    stage.away = 1
    worker.ends()
    await until(lambda: stage.away == 0, "it was tried")
    assert stage.places.away(NUMBER) is not None
    await stage.clock.advance(AGAIN_AFTER)
    await until(lambda: stage.places.away(NUMBER) is None, "they are ours")
    assert stage.ended == [2]
    await stage.shares.stop()


async def test_the_owner_knows_when_a_worker_began_a_call_until_what_it_had_in_hand_is_sorted_out(stage: Stage) -> None:
    first = Worker(stage, 11)
    calls = stage.begun.beside(2)
    calls.open(2, NOW)
    await first.prepares()
    await first.sends()
    assert stage.shares.called_at("msg_1") is None
    calls.began("org_1", "msg_1", NOW, NOW)
    assert stage.shares.called_at("msg_1") == NOW
    assert stage.shares.unrecorded == 1
    stage.away = 1
    first.ends()
    await until(lambda: not stage.away, "the database was asked")
    assert stage.shares.called_at("msg_1") == NOW
    await stage.clock.advance(AGAIN_AFTER)
    await until(lambda: stage.ended, "its epoch is ended")
    await until(lambda: stage.shares.called_at("msg_1") is None, "it is sorted out")
    assert stage.shares.unrecorded == 0


async def test_what_closes_gates_is_said_as_fast_as_it_is_read_and_ends_with_its_process(stage: Stage) -> None:
    worker, next_one = Worker(stage, 10), Worker(stage, 11)
    worker.reads.clear()
    stage.shares.ready(1, worker.pid, worker.hear, worker.room)
    await until(lambda: worker.of(frames.GATES), "the first part is said")
    for _ in range(10):
        await asyncio.sleep(0)
    assert worker.heard == [(frames.GATES, ("gates", True))]
    worker.takes = False
    worker.ends()
    worker.reads.set()
    await until(lambda: stage.ended == [2], "its epoch has ended")
    assert worker.of(frames.JOIN) == []
    await next_one.prepares()
    await next_one.sends()
    assert stage.ended == [2]
