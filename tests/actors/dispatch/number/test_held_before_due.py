"""Time held before a message is due does not lengthen its time to live; time held after that does (C14.5, TTL)."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from recado.actors.dispatch.lane_messages import Look
from recado.storage.access import organizations
from recado.storage.core.audit import AuditPrincipal
from recado.storage.core.connections.postgres import Database
from recado.storage.dispatch import dispatch
from recado.storage.messages import message_moves
from recado.storage.senders.numbers import NumberKey

if TYPE_CHECKING:
    from tests.actors.dispatch.number.conftest import Line

Release = Callable[[Database, datetime], Awaitable[list[NumberKey]]]
RELEASES = pytest.mark.parametrize("release", [dispatch.release_due, dispatch.release_of_each])


async def suspend(line: "Line", seconds: float) -> None:
    """The organization is suspended now, and for so long."""
    await move(line, organizations.SUSPENDED)
    await line.clock.advance(seconds)
    await move(line, organizations.ACTIVE)


async def move(line: "Line", status: str) -> None:
    now = line.clock.now()
    after = organizations.with_status(line.organization, status, now)
    line.organization = await organizations.save(line.db, line.organization, after, now)
    line.directories.organizations.clear()


async def scheduled(line: "Line", *, due_in: float) -> str:
    """A message that lives for a minute."""
    [message_id] = await line.queue(1, due_in=due_in, tell=False)
    minute = timedelta(minutes=1)
    await line.db.execute("update dispatch set ttl_ms = 60000, expires_at = due_at + $1", minute)
    return message_id


async def base(line: "Line") -> int:
    """How long its number had been held, as the message knows, in seconds."""
    held_ms: int = await line.db.fetchval("select held_base_ms from dispatch where sender_id = $1", line.number.id)
    return held_ms // 1000


@RELEASES
async def test_a_suspension_before_the_message_was_due_counts_for_nothing(line: "Line", release: Release) -> None:
    await scheduled(line, due_in=100.0)
    await suspend(line, 60)
    await line.clock.advance(40)
    assert len(await release(line.db, line.clock.now())) == 1
    assert await base(line) == 60


@RELEASES
async def test_one_that_lasts_when_it_is_due_counts_from_then_on(line: "Line", release: Release) -> None:
    await scheduled(line, due_in=100.0)
    await suspend(line, 60)
    await line.clock.advance(30)
    await move(line, organizations.SUSPENDED)
    await line.clock.advance(15)
    assert len(await release(line.db, line.clock.now())) == 1
    assert await base(line) == 70


@RELEASES
async def test_one_that_ended_between_the_due_time_and_the_release_counts_from_the_due_time(
    line: "Line", release: Release
) -> None:
    await scheduled(line, due_in=100.0)
    await line.clock.advance(90)
    await suspend(line, 15)
    await line.clock.advance(1)
    assert len(await release(line.db, line.clock.now())) == 1
    assert await base(line) == 10


@RELEASES
async def test_a_pause_of_the_number_counts_as_a_suspension_does(line: "Line", release: Release) -> None:
    await scheduled(line, due_in=100.0)
    paused_at = line.clock.now() + timedelta(seconds=80)
    await line.db.execute(
        "update numbers set held_ms = 30000, operator_paused_at = $2 where id = $1", line.number.id, paused_at
    )
    await line.clock.advance(100)
    assert len(await release(line.db, line.clock.now())) == 1
    assert await base(line) == 50


async def test_what_waited_for_another_reason_keeps_what_held_it(line: "Line") -> None:
    await line.queue(1, tell=False)
    not_before = line.clock.now() + timedelta(seconds=100)
    await line.db.execute("update dispatch set not_before = $1, reason = 'retry'", not_before)
    await suspend(line, 60)
    await line.clock.advance(40)
    assert len(await dispatch.release_due(line.db, line.clock.now())) == 1
    assert await base(line) == 0


@pytest.mark.parametrize(("at", "status"), [(175, "sent"), (185, "failed")])
async def test_a_scheduled_message_lives_as_long_as_it_was_not_held_since_it_was_due(
    line: "Line", at: int, status: str
) -> None:
    await scheduled(line, due_in=100.0)
    await suspend(line, 60)
    await line.clock.advance(30)
    await move(line, organizations.SUSPENDED)
    await line.clock.advance(10)
    await dispatch.release_due(line.db, line.clock.now())
    await line.clock.advance(20)
    await move(line, organizations.ACTIVE)  # 120 s after it was accepted, and 20 after it was due
    await line.clock.advance(at - 120)
    line.tell(Look())
    await line.goes_on(2.0)
    assert await line.counts() == {status: 1}


@pytest.mark.parametrize(("at", "status"), [(155, "sent"), (165, "failed")])
async def test_a_message_that_is_forced_before_it_is_due_lives_from_then_on(line: "Line", at: int, status: str) -> None:
    message_id = await scheduled(line, due_in=1_000.0)
    await suspend(line, 60)
    await line.clock.advance(40)
    actor, key = AuditPrincipal("key", "key_" + "0" * 21), (line.organization.id, "test", message_id)
    assert await message_moves.force(line.db, line.ids, actor, *key, line.clock.now())
    assert await base(line) == 60
    await line.clock.advance(at - 100)
    line.tell(Look())
    await line.goes_on(2.0)
    assert await line.counts() == {status: 1}


async def test_force_leaves_what_a_due_message_was_held(line: "Line") -> None:
    message_id = await scheduled(line, due_in=0.0)
    await suspend(line, 60)
    actor, key = AuditPrincipal("key", "key_" + "0" * 21), (line.organization.id, "test", message_id)
    assert await message_moves.force(line.db, line.ids, actor, *key, line.clock.now())
    assert await base(line) == 0
