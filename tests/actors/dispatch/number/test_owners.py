"""A paused batch at its number: nothing of it leaves, others do, and the pause does not shorten its life (C14.5)."""

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

from recado.actors.dispatch.lane_messages import Look
from recado.domain.core.ids import BATCH, JOURNEY
from recado.domain.messages.owner_pauses import OwnerPauses
from recado.services.dispatch.hints import Forced, OwnerMoved
from recado.storage.dispatch import dispatch

if TYPE_CHECKING:
    from tests.actors.dispatch.number.conftest import Line


async def own(line: "Line", message_ids: list[str]) -> str:
    """Let the messages belong to a batch, also as far as their number knows them already."""
    await line.traffic.quiet(line.clock)
    owner = line.ids.new(BATCH)
    await line.db.execute("update dispatch set owner = $1 where id = any($2::text[])", owner, message_ids)
    line.tell(Forced())  # forget, and read again
    await line.traffic.quiet(line.clock)
    return owner


async def test_what_a_paused_batch_has_ready_is_held_and_others_leave(line: "Line") -> None:
    batch, single = await line.queue(30), await line.queue(5)
    line.context.records.owners.paused(await own(line, batch), line.clock.now())
    await line.goes_on(2.0)
    assert sorted(line.provider.sent) == sorted(single)
    assert await line.reasons() == {"owner_paused"}


async def test_a_pause_holds_what_is_in_memory_already(line: "Line") -> None:
    await line.set_number(per_second=10)
    messages = await line.queue(60)
    owner = await own(line, messages)
    await line.goes_on(3.0)
    left = len(line.provider.sent)
    line.context.records.owners.paused(owner, line.clock.now())
    await line.goes_on(3.0)
    assert 0 < left <= len(line.provider.sent) <= left + 2  # what was claimed 50 ms ahead still leaves
    line.context.records.owners.resumed(owner, held_ms=3_000)
    line.tell(OwnerMoved(owner))
    await line.goes_on(6.0)
    assert sorted(line.provider.sent) == sorted(messages)
    assert await line.most_attempts() == 1


async def test_only_the_batch_that_goes_on_is_let_go(line: "Line") -> None:
    first, second = await line.queue(3), await line.queue(3)
    owners = [await own(line, messages) for messages in (first, second)]
    for owner in owners:
        line.context.records.owners.paused(owner, line.clock.now())
    await line.goes_on(2.0)
    assert line.provider.sent == []
    line.context.records.owners.resumed(owners[0], held_ms=2_000)
    line.tell(OwnerMoved(owners[0]))
    await line.goes_on(2.0)
    assert sorted(line.provider.sent) == sorted(first)
    assert await line.reasons() == {"owner_paused"}


async def test_time_in_a_pause_does_not_count_towards_the_time_to_live(line: "Line") -> None:
    mine, single = await line.queue(1, tell=False), await line.queue(1, tell=False)
    minute = timedelta(minutes=1)
    await line.db.execute("update dispatch set ttl_ms = 60000, expires_at = due_at + $1", minute)
    line.context.records.owners.resumed(await own(line, mine), held_ms=90_000)
    await line.clock.advance(100)
    line.tell(Look())
    await line.goes_on(2.0)
    assert line.provider.sent == mine
    assert await line.counts() == {"sent": 1, "failed": 1}
    assert single[0] not in line.provider.sent


async def test_a_pause_before_the_message_was_due_adds_nothing_to_its_time_to_live(line: "Line") -> None:
    mine, forced = await line.queue(1, due_in=100.0, tell=False), await line.queue(1, tell=False)
    minute, scheduled_at = timedelta(minutes=1), line.clock.now() + timedelta(seconds=100)
    await line.db.execute("update dispatch set ttl_ms = 60000, expires_at = due_at + $1", minute)
    owner = await own(line, mine + forced)
    line.context.records.owners.resumed(owner, held_ms=120_000, early_ms=90_000, scheduled_at=scheduled_at)
    await line.clock.advance(170)  # the one was due 70 s ago, of which 30 in a pause; the other 170 s ago, of which 120
    line.context.records.owners.paused(owner, line.clock.now())
    await line.clock.advance(15)
    line.context.records.owners.resumed(owner, held_ms=135_000, early_ms=90_000, scheduled_at=scheduled_at)
    await dispatch.release_due(line.db, line.clock.now())
    line.tell(OwnerMoved(owner))
    line.tell(Look())
    await line.goes_on(2.0)
    assert sorted(line.provider.sent) == sorted(mine + forced)


async def test_a_message_that_only_a_pause_before_it_was_due_held_expires(line: "Line") -> None:
    mine = await line.queue(1, due_in=100.0, tell=False)
    minute, scheduled_at = timedelta(minutes=1), line.clock.now() + timedelta(seconds=100)
    await line.db.execute("update dispatch set ttl_ms = 60000, expires_at = due_at + $1", minute)
    owner = await own(line, mine)
    line.context.records.owners.resumed(owner, held_ms=90_000, early_ms=90_000, scheduled_at=scheduled_at)
    await line.clock.advance(165)  # due 65 s ago: with the pause it would live 150 s
    await dispatch.release_due(line.db, line.clock.now())
    line.tell(Look())
    await line.goes_on(2.0)
    assert line.provider.sent == []
    assert await line.counts() == {"failed": 1}


async def test_a_paused_journey_holds_what_is_in_memory_already_until_it_goes_on(line: "Line") -> None:
    await line.set_number(per_second=10)
    messages = await line.queue(60)
    owner = await own(line, messages)
    await line.goes_on(3.0)
    left, began = len(line.provider.sent), line.clock.now()
    stands = OwnerPauses(line.organization.id, "test", owner, 2, began)
    assert line.context.records.owners.journey(stands)
    await line.goes_on(3.0)
    assert 0 < left <= len(line.provider.sent) <= left + 2  # what was claimed 50 ms ahead still leaves
    assert await line.reasons() == {"owner_paused"}
    past = (began, line.clock.now())
    assert line.context.records.owners.journey(replace(stands, revision=3, paused_at=None, past=past))
    line.tell(OwnerMoved(owner))
    await line.goes_on(6.0)
    assert sorted(line.provider.sent) == sorted(messages)
    assert await line.most_attempts() == 1


async def test_only_pauses_since_it_was_due_lengthen_the_life_of_a_message_of_a_journey(line: "Line") -> None:
    before = line.clock.now()
    await line.clock.advance(1000)
    due_at = line.clock.now()
    early, late = await line.queue(1, tell=False), await line.queue(1, tell=False)
    await line.db.execute("update dispatch set ttl_ms = 60000, expires_at = due_at + $1", timedelta(minutes=1))
    until_then = (before, before + timedelta(seconds=900))
    since_then = (due_at + timedelta(seconds=10), due_at + timedelta(seconds=30))
    for messages, past in zip((early, late), (until_then, since_then), strict=True):
        owner = line.ids.new(JOURNEY)
        await line.db.execute("update dispatch set owner = $1 where id = $2", owner, messages[0])
        assert line.context.records.owners.journey(OwnerPauses(line.organization.id, "test", owner, 2, None, past))
    await line.clock.advance(65)
    line.tell(Look())
    await line.goes_on(2.0)
    assert line.provider.sent == late
    assert await line.counts() == {"sent": 1, "failed": 1}
