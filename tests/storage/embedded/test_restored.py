"""The queue of a restored database: nothing of it leaves again, and a late report of what did leave is believed."""

import random
from datetime import timedelta
from typing import Any

import pytest
from tests.storage.batches.test_batch_races import building
from tests.storage.dispatch.test_claims import NOW, stored

from recado.domain.core.ids import MESSAGE, IdSource
from recado.engine.clock import SystemClock
from recado.storage.billing import ledger
from recado.storage.core.connections.postgres import Database
from recado.storage.embedded.restored import Ended, end_queue
from recado.storage.messages import message_reads, messages, receipts
from recado.storage.messages.messages import NewMessage
from recado.storage.messages.receipts import ReportRow

ORGANIZATION = "org_" + "0" * 21
HOUR = timedelta(hours=1)
OWED_REPLY = "insert into opt_out_replies values ('org_1', 'live', 'cnt_1', 'num_1', now(), 'chatapp')"


async def test_a_restored_queue_is_ended_and_late_reports_are_believed(database: Database) -> None:
    clock = SystemClock()
    ids, now = IdSource(clock, random.Random(5)), clock.now()
    message_id, later_id = ids.new(MESSAGE), ids.new(MESSAGE)
    async with database.transaction() as connection:
        await ledger.open_wallets(connection, ids, ORGANIZATION, now)
    await database.execute("update wallets set balance_coins = 1000, status = 'low' where env = 'live'")
    batch = await building(database)
    await database.execute(
        "insert into totals (organization_id, env, kind, key, accepted, queued, held_coins) "
        "values ($1, 'live', 'campaign', 'spring', 5, 5, 300)",
        ORGANIZATION,
    )
    fields: dict[str, Any] = {
        "organization_id": ORGANIZATION, "env": "live", "channel": "chatapp", "id": message_id,
        "sender_id": "num_" + "0" * 21, "type": "text", "recipient": "+5511987654321", "recipient_hash": 1, "klass": 1,
        "force": False, "template_id": None, "payload": '{"text":{"body":"x"}}', "template_vars": None,
        "metadata": None, "campaign_id": "spring", "scheduled_at": None, "due_at": now, "ttl": now - now,
        "held_base_ms": 0, "accepted_at": now, "coins": 100,
    }  # fmt: skip
    later = fields | {"id": later_id, "scheduled_at": now + HOUR, "due_at": now + HOUR}
    await messages.accept(database, [NewMessage(**fields), NewMessage(**later)])
    assert (await held(database)) == 200
    await database.execute(OWED_REPLY)

    assert await end_queue(database, now) == Ended(messages=2, scheduled=1)

    assert await database.fetchval("select count(*) from dispatch") == 0
    message = await message_reads.get(database, ORGANIZATION, "live", message_id)
    assert message is not None
    assert message.status == "failed"
    assert (await held(database)) == 0
    assert tuple(await database.fetchrow("select queued, failed, held_coins from totals where key = 'spring'")) == (
        3, 2, 100,
    )  # fmt: skip
    assert await database.fetchval("select status from batches where id = $1", batch.id) == "canceled"
    assert await database.fetchval("select count(*) from batch_blocks") == 0
    assert await database.fetchval("select count(*) from opt_out_replies") == 0
    report = ReportRow(ORGANIZATION, "live", "chatapp", message_id, "delivered", now, None, "prov-1")
    assert set(await receipts.apply(database, [report], now)) == {message_id}
    message = await message_reads.get(database, ORGANIZATION, "live", message_id)
    assert message is not None
    assert message.status == "delivered"


@pytest.mark.parametrize("column", ["claimed_at", "repeat_of"])
async def test_what_was_under_way_at_the_backup_left_when_its_call_began(database: Database, column: str) -> None:
    """The call, or the one before a repeat; a report of what left after the backup tells its own moment."""
    known, unknown = await stored(database), await stored(database)
    await database.execute(f"update dispatch set {column} = $2 where id = $1", known, NOW - HOUR)
    assert await end_queue(database, NOW) == Ended(messages=2, scheduled=0)

    reports = [
        ReportRow(ORGANIZATION, "test", "chatapp", each, "delivered", NOW, None, None) for each in (known, unknown)
    ]
    await receipts.apply(database, reports, NOW)

    sent_at = {
        each: await database.fetchval("select sent_at from messages where id = $1", each) for each in (known, unknown)
    }
    assert sent_at == {known: NOW - HOUR, unknown: NOW}
    assert await database.fetchval("select sum(sent) from sender_minutes") == 2


async def held(database: Database) -> int:
    """What the live wallet holds."""
    wallet = await ledger.get(database, ORGANIZATION, "live")
    assert wallet is not None
    return wallet.held_coins
