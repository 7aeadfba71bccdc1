"""Which journeys hold their messages back, and which rows of the queue those are (C9.12)."""

from datetime import timedelta

import pytest
from tests.storage.dispatch.test_claims import stored
from tests.storage.journeys.rows import ENV, NOW, ORGANIZATION, insert_journey

from recado.domain.journeys.journey import JourneyStatus
from recado.domain.messages.owner_pauses import OwnerPauses
from recado.domain.senders.sender import SenderKey
from recado.storage.core.connections.postgres import Database
from recado.storage.journeys import journey_queues
from recado.storage.journeys.journeys import Journey

MINUTE = timedelta(minutes=1)
PAUSE = (NOW - 3 * MINUTE, NOW - 2 * MINUTE)


def of(journey: Journey) -> tuple[str, str, str]:
    return (journey.organization_id, journey.env, journey.id)


async def queued(database: Database, journey: Journey, senders: list[str]) -> list[str]:
    """Messages of the journey, one from each of these senders; their ids."""
    ids = []
    for sender_id in senders:
        ids.append(await stored(database))
        mine = "update dispatch set owner = $2, source_kind = 'journey', sender_id = $3 where id = $1"
        await database.execute(mine, ids[-1], journey.id, sender_id)
    return ids


async def held(database: Database) -> set[str]:
    rows = await database.fetch("select id from dispatch where reason = 'owner_paused' and not_before = 'infinity'")
    return {row["id"] for row in rows}


async def test_who_stands_still_or_did_is_found_by_when_it_was_moved(database: Database) -> None:
    paused = await insert_journey(
        database, status=JourneyStatus.PAUSADA, pausada_em=NOW - MINUTE, updated_at=NOW - MINUTE
    )
    resumed = await insert_journey(database, pausas=PAUSE, updated_at=NOW - 2 * MINUTE, revision=4)
    await insert_journey(database)  # it never stood still
    await insert_journey(database, status=JourneyStatus.ARQUIVADA, pausada_em=NOW - MINUTE)
    replaced = await insert_journey(database, status=JourneyStatus.ARQUIVADA, pausas=PAUSE)
    long_ago = NOW - journey_queues.ARCHIVED_FOR - MINUTE
    await insert_journey(database, status=JourneyStatus.ARQUIVADA, pausas=PAUSE, updated_at=long_ago)

    found = {each.owner: each for each in await journey_queues.stood_still(database, NOW)}
    assert found == {
        paused.id: OwnerPauses(ORGANIZATION, ENV, paused.id, 1, NOW - MINUTE),
        resumed.id: OwnerPauses(ORGANIZATION, ENV, resumed.id, 4, None, PAUSE),
        replaced.id: OwnerPauses(ORGANIZATION, ENV, replaced.id, 1, None, PAUSE),
    }
    assert found == {journey.id: journey.pauses for journey in (paused, resumed, replaced)}
    lately = await journey_queues.stood_still(database, NOW, NOW - MINUTE)
    assert {each.owner for each in lately} == {paused.id, replaced.id}


async def test_blocks_hold_what_is_ready_sender_by_sender(database: Database) -> None:
    journey, other = [await insert_journey(database, status=JourneyStatus.PAUSADA) for _ in range(2)]
    mine = await queued(database, journey, ["num_2", "num_1", "num_2", "num_1", "num_1"])
    await queued(database, other, ["num_1", "num_2"])
    claimed, scheduled = mine[3:]
    await database.execute("update dispatch set claimed_epoch = 1 where id = $1", claimed)
    await database.execute("update dispatch set not_before = $2, reason = 'scheduled' where id = $1", scheduled, NOW)
    first = await journey_queues.hold(database, of(journey), limit=2)
    assert first == [("num_1", mine[1]), ("num_2", mine[0])]
    assert await journey_queues.hold(database, of(journey), first[-1], limit=2) == [("num_2", mine[2])]
    assert await held(database) == set(mine[:3])
    assert await journey_queues.senders(database, of(journey)) == [
        SenderKey(ORGANIZATION, ENV, "chatapp", sender_id) for sender_id in ("num_1", "num_2")
    ]


@pytest.mark.parametrize("status", [each for each in JourneyStatus if each is not JourneyStatus.PAUSADA])
async def test_nothing_of_one_that_is_not_paused_is_held(database: Database, status: JourneyStatus) -> None:
    journey = await insert_journey(database, status=status)
    await queued(database, journey, ["num_1"])
    assert await journey_queues.hold(database, of(journey), limit=9) == []
    assert await held(database) == set()
