"""Force and archive: guarded, audited, and decided on the row that a claim locks (C14.5, C15.4)."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import asyncpg
import pytest
from tests.post import LETTERS, POST
from tests.waiting import until_locked_out

from recado.domain.channels.policies import POLICIES
from recado.domain.core.ids import MESSAGE, IdSource
from recado.domain.messages.message import MessageStatus
from recado.engine.clock import SystemClock, VirtualClock
from recado.services.effects.consequences import Consequences
from recado.services.effects.outbox import event_of
from recado.storage.core import audit
from recado.storage.core.audit import AuditPrincipal
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.moves import AfterCommit, Effects, Moved
from recado.storage.messages import message_moves, message_reads, messages
from recado.storage.messages.message_reads import Message
from recado.storage.messages.messages import NewMessage

ORGANIZATION = "org_" + "0" * 21
NUMBER = "num_" + "0" * 21
ACTOR = AuditPrincipal("key", "key_" + "0" * 21)
CLOCK = VirtualClock(SystemClock().now().replace(microsecond=0))
IDS = IdSource(CLOCK, random.Random(3))
NOW = CLOCK.now()
HOUR = timedelta(hours=1)


class Heard:
    """Effects that note what they are told of."""

    def __init__(self, told: list[Moved]) -> None:
        self._told = told

    async def write(self, connection: Any, moved: Sequence[Moved]) -> AfterCommit:
        self._told += moved
        return lambda: None


async def stored(db: Database, *, due_at: datetime = NOW, channel: str = "chatapp") -> str:
    message_id = IDS.new(MESSAGE)
    fields: dict[str, Any] = {
        "organization_id": ORGANIZATION, "env": "test", "channel": channel, "id": message_id, "sender_id": NUMBER,
        "type": "text", "recipient": "+5511987654321", "recipient_hash": 1, "klass": 1, "force": False,
        "template_id": None, "payload": '{"text":{"body":"x"}}', "template_vars": None, "metadata": None,
        "campaign_id": None, "scheduled_at": None if due_at == NOW else due_at, "due_at": due_at, "ttl": HOUR,
        "held_base_ms": 0, "accepted_at": NOW,
    }  # fmt: skip
    assert await messages.accept(db, [NewMessage(**fields)]) == [messages.STORED]
    return message_id


async def read(db: Database, message_id: str) -> Message:
    found = await message_reads.get(db, ORGANIZATION, "test", message_id)
    assert found is not None
    return found


async def queue_row(db: Database, message_id: str) -> asyncpg.Record | None:
    return await db.fetchrow("select * from dispatch where id = $1", message_id)


async def claim(db: Database, message_id: str) -> None:
    await db.execute("update dispatch set claimed_epoch = 1, claimed_at = $2 where id = $1", message_id, NOW)
    await db.execute("update messages set status = 'sending' where id = $1", message_id)


async def settle(db: Database, message_id: str, status: str) -> None:
    await db.execute("delete from dispatch where id = $1", message_id)
    await db.execute("update messages set status = $2 where id = $1", message_id, status)


async def force(db: Database, message_id: str, at: datetime = NOW, env: str = "test") -> bool:
    return await message_moves.force(db, IDS, ACTOR, ORGANIZATION, env, message_id, at)


async def archive(
    db: Database, message_id: str, at: datetime = NOW, env: str = "test", effects: Effects | None = None
) -> bool:
    effects = effects or Consequences()
    return await message_moves.archive(db, IDS, ACTOR, ORGANIZATION, env, message_id, at, effects)


async def entries(db: Database) -> list[tuple[str, str | None]]:
    found = await audit.list_page(db, ORGANIZATION, "test", first_id="aud_", before_id="aud_~", limit=10)
    return [(entry.action, entry.target_id) for entry in found]


async def test_force_brings_a_scheduled_message_forward(database: Database) -> None:
    message_id = await stored(database, due_at=NOW + 9 * HOUR)
    assert await force(database, message_id, NOW + HOUR)
    row, queued = await read(database, message_id), await queue_row(database, message_id)
    assert (row.status, row.force, row.scheduled_at) == ("queued", True, NOW + HOUR)
    assert queued is not None
    assert (queued["force"], queued["not_before"], queued["reason"]) == (True, None, None)
    assert queued["due_at"] == NOW + HOUR
    assert queued["expires_at"] == NOW + 2 * HOUR
    assert await entries(database) == [("message.force", message_id)]


async def test_force_does_not_prolong_the_life_of_a_message_that_is_due(database: Database) -> None:
    message_id = await stored(database)
    assert await force(database, message_id, NOW + HOUR / 2)
    queued = await queue_row(database, message_id)
    assert queued is not None
    assert (queued["due_at"], queued["expires_at"]) == (NOW, NOW + HOUR)
    assert (await read(database, message_id)).scheduled_at is None


@pytest.mark.parametrize(("reason", "released"), [("quiet_hours", True), ("tier_limit", False), ("retry", False)])
async def test_force_passes_quiet_hours_and_leaves_other_holds(database: Database, reason: str, released: bool) -> None:
    message_id = await stored(database)
    await database.execute("update dispatch set not_before = $1, reason = $2", NOW + HOUR, reason)
    assert await force(database, message_id)
    queued = await queue_row(database, message_id)
    assert queued is not None
    assert (queued["not_before"] is None) == released
    assert (queued["reason"] is None) == released


async def test_only_a_queued_message_is_forced(database: Database) -> None:
    for status in set(MessageStatus) - {MessageStatus.QUEUED}:
        message_id = await stored(database)
        if status is MessageStatus.SENDING:
            await claim(database, message_id)
        else:
            await settle(database, message_id, status)
        assert not await force(database, message_id)
        row = await read(database, message_id)
        assert (row.status, row.force) == (status, False)
    assert await entries(database) == []


async def test_archive_withdraws_a_queued_message(database: Database) -> None:
    message_id = await stored(database)
    assert await archive(database, message_id)
    row = await read(database, message_id)
    assert (row.status, row.archived_at, row.updated_at) == ("archived", NOW, NOW)
    assert (row.last_error or "").startswith("withdrawn: ")
    assert await queue_row(database, message_id) is None
    assert await entries(database) == [("message.archive", message_id)]


async def test_a_queued_letter_that_is_withdrawn_has_failed_and_nobody_is_told(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its channel knows no `archived`."""
    monkeypatch.setitem(POLICIES, POST, LETTERS)
    monkeypatch.setattr(message_moves, "GENERIC_CHANNELS", ("chatapp", POST))
    message_id = await stored(database, channel=POST)
    told: list[Moved] = []
    assert await archive(database, message_id, effects=Heard(told))
    row = await message_reads.get(database, ORGANIZATION, "test", message_id, [POST])
    assert row is not None
    assert (row.status, row.failed_at, row.archived_at, row.outcome_certain) == ("failed", NOW, None, True)
    [move] = told
    assert (move.from_status, move.to_status, event_of(move)) == ("queued", "failed", None)
    assert event_of(replace(move, quiet=False)) == "sms.failed"
    assert not await archive(database, message_id)


async def test_archive_puts_a_failed_message_away_with_its_reason(database: Database) -> None:
    message_id = await stored(database)
    await settle(database, message_id, "failed")
    await database.execute("update messages set last_error = 'expired: too late'")
    assert await archive(database, message_id)
    row = await read(database, message_id)
    assert (row.status, row.last_error) == ("archived", "expired: too late")
    assert not await archive(database, message_id)
    assert await entries(database) == [("message.archive", message_id)]


async def test_what_has_left_is_not_archived(database: Database) -> None:
    for status in set(MessageStatus) - {MessageStatus.QUEUED, MessageStatus.FAILED, MessageStatus.SENDING}:
        message_id = await stored(database)
        await settle(database, message_id, status)
        assert not await archive(database, message_id)
        assert (await read(database, message_id)).status == status
    assert await entries(database) == []


async def test_a_claim_in_progress_decides(database: Database) -> None:
    message_id = await stored(database)
    async with database.transaction() as claiming:
        await claiming.execute("update dispatch set claimed_epoch = 1, claimed_at = $1", NOW)
        await claiming.execute("update messages set status = 'sending'")
        archiving = asyncio.create_task(archive(database, message_id))
        forcing = asyncio.create_task(force(database, message_id))
        await until_locked_out(database, 2)
    assert not await archiving
    assert not await forcing
    assert (await read(database, message_id)).status == "sending"
    assert await entries(database) == []


async def test_another_environment_or_organization_is_not_touched(database: Database) -> None:
    message_id = await stored(database)
    assert not await force(database, message_id, env="live")
    assert not await archive(database, message_id, env="live")
    other = "org_" + "1" * 21
    assert not await message_moves.force(database, IDS, ACTOR, other, "test", message_id, NOW)
    assert not await message_moves.archive(database, IDS, ACTOR, other, "test", message_id, NOW, Consequences())
    assert (await read(database, message_id)).status == "queued"
