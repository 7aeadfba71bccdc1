"""Segments are counted anew every hour (C32)."""

import asyncio
import os
import random
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.people import insert_people
from tests.waiting import until

from recado.actors.jobs.segment_sizes import SegmentSizes
from recado.domain.core.errors import Unavailable
from recado.domain.core.ids import SEGMENT, IdSource
from recado.engine.clock import VirtualClock
from recado.storage.audience import segments
from recado.storage.audience.segment_evaluation import Evaluation
from recado.storage.audience.segments import Segment
from recado.storage.core.connections.postgres import Database

NOW = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(NOW)


async def keep(db: Database, clock: VirtualClock, tag: str, *, organization_id: str = "org_1") -> Segment:
    ids = IdSource(clock, random.Random(os.urandom(8)))
    new = Segment(
        organization_id=organization_id,
        env="test",
        id=ids.new(SEGMENT),
        name=tag,
        filters=[{"field": "tag", "operator": "is", "value": tag}],
        due_at=clock.now(),
        updated_at=clock.now(),
    )
    async with db.transaction() as connection:
        return await segments.insert(connection, new)


async def sizes(db: Database) -> dict[str, Any]:
    found = await segments.list_page(db, "org_1", "test", limit=100, skip=0)
    return {segment.name: (segment.size, segment.size_at, segment.revision) for segment in found.items}


async def test_what_is_due_is_counted_and_is_due_again_after_an_hour(database: Database, clock: VirtualClock) -> None:
    await insert_people(database, "org_1", "test", [{"tags": ["a"]}, {"tags": ["A", "b"]}])
    for tag in ("a", "b", "c"):
        await keep(database, clock, tag)
    worker = SegmentSizes(database, Evaluation(database), clock=clock)
    await worker.work()
    assert await sizes(database) == {"a": (2, NOW, 1), "b": (1, NOW, 1), "c": (0, NOW, 1)}
    await database.execute("update contacts set tag_keys = '{c}'")
    await clock.advance(3_599)
    await worker.work()
    assert (await sizes(database))["c"] == (0, NOW, 1)
    await clock.advance(1)
    await worker.work()
    assert await sizes(database) == {
        "a": (0, NOW + timedelta(hours=1), 1),
        "b": (0, NOW + timedelta(hours=1), 1),
        "c": (2, NOW + timedelta(hours=1), 1),
    }


async def test_one_that_takes_too_long_keeps_none_of_the_others_waiting(
    database: Database, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = await keep(database, clock, "slow")
    await keep(database, clock, "quick")
    evaluation = Evaluation(database)
    count = evaluation.count

    async def counted(organization_id: str, env: str, tree: Any, now: datetime) -> int:
        if tree == slow.tree:
            raise Unavailable
        return await count(organization_id, env, tree, now)

    monkeypatch.setattr(evaluation, "count", counted)
    await SegmentSizes(database, evaluation, clock=clock).work()
    assert await sizes(database) == {"slow": (None, None, 1), "quick": (0, NOW, 1)}


async def test_organizations_take_turns_however_many_segments_of_one_are_due(
    database: Database, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a1", "a2", "a3"):
        await keep(database, clock, name)
    await clock.advance(1)
    for name in ("b1", "b2"):
        await keep(database, clock, name, organization_id="org_2")
    evaluation = Evaluation(database)
    counted: list[str] = []

    async def count(organization_id: str, *_: Any) -> int:
        counted.append(organization_id)
        return 0

    monkeypatch.setattr(evaluation, "count", count)
    await SegmentSizes(database, evaluation, clock=clock).work()
    assert sorted(counted[:2]) == sorted(counted[2:4]) == ["org_1", "org_2"]
    assert counted[4:] == ["org_1"]


@pytest.mark.parametrize("error", [Unavailable(), OSError("no reply")], ids=["no answer in time", "another failure"])
async def test_what_fails_in_one_organization_ends_no_count_of_another(
    error: Exception, database: Database, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = await keep(database, clock, "lost")
    await clock.advance(1)
    await keep(database, clock, "kept", organization_id="org_2")
    note_size = segments.note_size

    async def noted(db: Any, segment: Segment, *rest: Any) -> None:
        if segment.id == lost.id:
            raise error
        await note_size(db, segment, *rest)

    monkeypatch.setattr(segments, "note_size", noted)
    with nullcontext() if isinstance(error, Unavailable) else pytest.raises(OSError, match="no reply"):
        await SegmentSizes(database, Evaluation(database), clock=clock).work()
    assert await database.fetch("select name, size from segments where size is not null") == [("kept", 0)]


async def test_one_segment_is_counted_at_a_time_so_that_a_caller_has_the_other_place_and_a_stop_ends_it(
    database: Database, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in (1, 2, 3):
        await keep(database, clock, "a", organization_id=f"org_{n}")
    evaluation = Evaluation(database)
    begun: list[str] = []
    ended: list[str] = []

    async def count(organization_id: str, *_: Any) -> int:
        begun.append(organization_id)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(organization_id)
        return 0

    async def one_begun() -> bool:
        return bool(begun)

    monkeypatch.setattr(evaluation, "count", count)
    working = asyncio.ensure_future(SegmentSizes(database, evaluation, clock=clock).work())
    await until(one_begun, "one is being counted")
    await database.fetchval("select 1")  # a second one would have begun by then
    await clock.settle()
    assert len(begun) == 1
    working.cancel()
    await asyncio.wait([working])
    assert ended == begun


async def test_a_count_for_a_filter_that_was_changed_meanwhile_is_dropped(
    database: Database, clock: VirtualClock
) -> None:
    segment = await keep(database, clock, "a")
    await database.execute("update segments set revision = 2")
    await segments.note_size(database, segment, 7, NOW)
    assert await sizes(database) == {"a": (None, None, 2)}
