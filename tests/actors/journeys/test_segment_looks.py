"""Whoever comes to match the segment of a journey arrives at it, once for each time (C9.7)."""

import os
import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.acme import acme
from tests.people import insert_people
from tests.storage.journeys.rows import insert_journey

from recado.actors.journeys import segment_looks as looks
from recado.actors.journeys.segment_looks import SegmentLooks
from recado.domain.core.errors import Unavailable
from recado.domain.core.ids import SEGMENT, IdSource
from recado.domain.journeys.journey import JourneyStatus
from recado.engine.clock import VirtualClock
from recado.storage.audience import segments
from recado.storage.audience.segment_evaluation import Evaluation
from recado.storage.audience.segments import Segment
from recado.storage.core.connections.postgres import Database
from recado.storage.journeys import states
from recado.storage.journeys.journeys import JOURNEYS, Journey

ORGANIZATION, OTHER = "org_" + "1" * 21, "org_" + "2" * 21
QUARTER = timedelta(minutes=15)


class Club:
    """Contacts with the tag `vip`, and journeys that begin with those."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.clock = VirtualClock(datetime(2026, 11, 23, 12, tzinfo=UTC))
        self.ids = IdSource(self.clock, random.Random(os.urandom(8)))
        self.evaluation = Evaluation(db)
        self.looks = SegmentLooks(db, self.evaluation, clock=self.clock)

    async def segment(self, organization_id: str = ORGANIZATION) -> Segment:
        new = Segment(
            organization_id=organization_id, env="test", id=self.ids.new(SEGMENT), name="VIP",
            filters=[{"field": "tag", "operator": "is", "value": "vip"}],
            due_at=self.clock.now(), updated_at=self.clock.now(),
        )  # fmt: skip
        async with self.db.transaction() as connection:
            return await segments.insert(connection, new)

    async def people(self, count: int, organization_id: str = ORGANIZATION) -> list[str]:
        known = await self.db.fetchval("select count(*) from contacts")
        given = [{"tags": ["vip"]} for _ in range(count)]
        return await insert_people(self.db, organization_id, "test", given, first=known + 1)

    async def tag(self, contact_ids: Sequence[str], tags: list[str]) -> None:
        await self.db.execute(
            "update contacts set tags = $2, tag_keys = $2 where id = any($1)", list(contact_ids), tags
        )

    async def journey(self, segment: Segment) -> Journey:
        trigger = {"tipo": "segmento", "segmentId": segment.id}
        made = await insert_journey(
            self.db, organization_id=segment.organization_id, gatilho=trigger, status=JourneyStatus.RASCUNHO
        )
        await self.move(made, states.activate)
        return made

    async def move(self, journey: Journey, move: Any) -> None:
        async with self.db.transaction() as connection:
            before = await JOURNEYS.get_locked(connection, journey.organization_id, "test", journey.id)
            await move(connection, before, self.clock.now())

    async def look(self, after: timedelta = timedelta()) -> list[str]:
        """Who arrives by what is due then."""
        await self.clock.advance(after.total_seconds())
        await self.looks.work()
        rows = await self.db.fetch("select contact_id from journey_arrivals order by id")
        await self.db.execute("delete from journey_arrivals")
        return [row["contact_id"] for row in rows]


@pytest.fixture
def club(database: Database) -> Club:
    return Club(database)


async def test_who_matches_arrives_at_once_and_then_who_comes_to_match(club: Club) -> None:
    first = await club.people(3)
    await club.journey(await club.segment())
    assert await club.look() == first
    assert await club.look(QUARTER) == []
    more = await club.people(2)
    await club.tag(first[:1], [])
    assert await club.look(QUARTER - timedelta(seconds=1)) == []
    assert await club.look(timedelta(seconds=1)) == more
    await club.tag(first[:1], ["vip"])
    assert await club.look(QUARTER) == first[:1]


async def test_a_look_goes_on_from_block_to_block_and_from_turn_to_turn(
    club: Club, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looks, "BLOCK", 2)
    monkeypatch.setattr(looks, "BLOCKS", 2)
    people = await club.people(9)
    await club.journey(await club.segment())
    assert await club.look() == people
    await club.tag(people[4:6], [])
    await club.look(QUARTER)
    await club.tag(people[4:], ["vip"])
    assert await club.look(QUARTER) == people[4:6]


async def test_a_journey_that_a_person_paused_looks_when_it_goes_on(club: Club) -> None:
    journey = await club.journey(await club.segment())
    await club.look()
    await club.move(journey, states.pause)
    people = await club.people(1)
    assert await club.look(QUARTER) == []
    await club.move(journey, states.activate)
    assert await club.look(timedelta(minutes=1)) == people


async def test_nothing_stays_of_a_journey_that_is_over(club: Club) -> None:
    journey = await club.journey(await club.segment())
    await club.people(3)
    await club.look()
    await club.move(journey, states.archive)
    assert await club.look(QUARTER) == []
    for table in ("journey_segments", "journey_matches"):
        assert await club.db.fetchval(f"select count(*) from {table}") == 0


async def test_a_look_that_takes_too_long_keeps_no_other_waiting(club: Club, monkeypatch: pytest.MonkeyPatch) -> None:
    await club.people(1)
    others = await club.people(1, OTHER)
    slow = await club.journey(await club.segment())
    await club.journey(await club.segment(OTHER))
    next_of, failing = club.evaluation.next_of, True

    async def limited(organization_id: str, *given: Any, **named: Any) -> Any:
        if failing and organization_id == slow.organization_id:
            raise Unavailable("too long")
        return await next_of(organization_id, *given, **named)

    monkeypatch.setattr(club.evaluation, "next_of", limited)
    assert await club.look() == others
    failing = False
    assert len(await club.look(timedelta(minutes=1))) == 1


async def test_a_suspended_organization_looks_when_that_is_over(club: Club) -> None:
    suspended, other = [(await acme(club.db, club.clock, club.ids)).organization.id for _ in range(2)]
    await club.db.execute("update organizations set status = 'suspended' where id = $1", suspended)
    people = {organization_id: await club.people(1, organization_id) for organization_id in (suspended, other)}
    for organization_id in people:
        await club.journey(await club.segment(organization_id))
    assert await club.look() == people[other]
    await club.db.execute("update organizations set status = 'active'")
    assert await club.look() == people[suspended]


async def test_a_look_that_takes_too_long_again_and_again_is_made_less_often(
    club: Club, monkeypatch: pytest.MonkeyPatch
) -> None:
    await club.people(1)
    await club.journey(await club.segment())
    tries: list[datetime] = []

    async def limited(*given: Any, **named: Any) -> Any:
        tries.append(club.clock.now())
        raise Unavailable("too long")

    monkeypatch.setattr(club.evaluation, "next_of", limited)
    for _ in range(40):
        await club.look(timedelta(minutes=1))
    assert [(at - tries[0]) // timedelta(minutes=1) for at in tries] == [0, 1, 3, 7, 15, 30]


async def test_many_who_match_no_more_are_forgotten_in_blocks(club: Club, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recado.storage.journeys.segment_looks.FORGET_BLOCK", 2)
    people = await club.people(6)
    await club.journey(await club.segment())
    assert await club.look() == people
    await club.tag(people[1:], [])
    assert await club.look(QUARTER) == []
    assert [row["contact_id"] for row in await club.db.fetch("select * from journey_matches")] == people[:1]
