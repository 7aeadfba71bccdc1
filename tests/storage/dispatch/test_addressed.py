"""Whom a number has addressed within a day, told from its messages when a limit comes to its tier (C14.5.5)."""

import random
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.causes import cause
from tests.plans import grow, indexes, plan_for_any, whole_tables

from recado.domain.core.ids import MESSAGE, IdSource
from recado.domain.senders.sender import SenderKey
from recado.engine.clock import SystemClock, VirtualClock
from recado.storage.core.connections.postgres import Database
from recado.storage.dispatch import addressed, dispatch, epochs, settlements
from recado.storage.dispatch.dispatch import CLAIMED, Claim
from recado.storage.dispatch.settlements import Departed, Failed, Returned, Uncertain
from recado.storage.messages import messages
from recado.storage.messages.messages import NewMessage
from recado.storage.senders import usage

ORGANIZATION = "org_" + "0" * 21
NUMBER, ANOTHER = "num_" + "0" * 21, "num_" + "1" * 21
SENDER = SenderKey(ORGANIZATION, "test", "chatapp", NUMBER)
NOW = SystemClock().now().replace(microsecond=0)
HOUR = timedelta(hours=1)


class Day:
    """What a number did: each message is to one recipient, named by a number."""

    def __init__(self, db: Database, epoch: int) -> None:
        self.db = db
        self.epoch = epoch
        self.random = random.Random(4)

    async def claimed(
        self,
        recipient: int,
        at: datetime,
        *,
        made: datetime | None = None,
        sender_id: str = NUMBER,
        kind: str = "template",
    ) -> str:
        made = made or at
        message_id = IdSource(VirtualClock(made), self.random).new(MESSAGE)
        fields: dict[str, Any] = {
            "organization_id": ORGANIZATION, "env": "test", "channel": "chatapp", "id": message_id,
            "sender_id": sender_id, "type": kind, "recipient": "+5511987654321", "recipient_hash": recipient,
            "klass": 1, "force": False, "template_id": None, "payload": None, "template_vars": None, "metadata": None,
            "campaign_id": None, "scheduled_at": None, "due_at": made, "ttl": 90 * 24 * HOUR, "held_base_ms": 0,
            "accepted_at": made,
        }  # fmt: skip
        assert await messages.accept(self.db, [NewMessage(**fields)]) == [messages.STORED]
        claim = Claim(ORGANIZATION, message_id, recipient, False, at)
        assert await dispatch.claim(self.db, [claim], self.epoch, at) == [CLAIMED]
        return message_id

    async def sent(self, recipient: int, at: datetime, **how: Any) -> str:
        message_id = await self.claimed(recipient, at, **how)
        left = Departed(
            ORGANIZATION, "test", "chatapp", message_id, how.get("sender_id", NUMBER), "p", at, None, None, at,
        )  # fmt: skip
        assert list(await settlements.departed(self.db, [left]))
        return message_id

    async def erased(self, message_id: str) -> None:
        """With its contact (C12.6)."""
        await self.db.execute("update messages set recipient_hash = null where id = $1", message_id)

    async def opened(self, recipient: int, at: datetime) -> None:
        await self.db.execute("insert into chat_windows values ($1, $2, $3, $4)", ORGANIZATION, NUMBER, recipient, at)


@pytest.fixture
async def day(database: Database) -> Day:
    return Day(database, await epochs.take_epoch(database, NOW - 30 * HOUR))


async def counted(db: Database) -> dict[int, datetime]:
    rows = await db.fetch("select * from tier_recipients where sender_id = $1", NUMBER)
    return {row["recipient_hash"]: row["last_at"] for row in rows}


async def test_a_claim_of_a_number_without_a_limit_keeps_no_recipient(day: Day, database: Database) -> None:
    await day.sent(1, NOW)
    assert await counted(database) == {}


async def test_who_was_sent_to_within_a_day_is_counted_from_then_on(
    day: Day, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(addressed, "BLOCK", 3)
    for recipient, at in ((1, NOW - 2 * HOUR), (2, NOW - HOUR), (1, NOW - 23 * HOUR), (3, NOW - 25 * HOUR)):
        await day.sent(recipient, at)
    await day.sent(4, NOW, sender_id=ANOTHER)
    await day.sent(5, NOW, kind="text")
    await day.erased(await day.sent(6, NOW))
    await addressed.count(database, SENDER, NOW)
    assert await counted(database) == {1: NOW - 2 * HOUR, 2: NOW - HOUR}


async def test_what_left_today_counts_whenever_it_was_made(day: Day, database: Database) -> None:
    await day.sent(1, NOW - HOUR, made=NOW - 20 * 24 * HOUR)
    for recipient in range(10, 15):
        await day.sent(recipient, NOW - 30 * HOUR)
    await addressed.count(database, SENDER, NOW)
    assert await counted(database) == {1: NOW - HOUR}


async def test_what_is_on_its_way_counts_however_old_and_what_came_back_or_failed_does_not(
    day: Day, database: Database
) -> None:
    old = NOW - 20 * 24 * HOUR
    await day.claimed(1, NOW - HOUR, made=old)
    unclear = await day.claimed(2, NOW - HOUR, made=old - HOUR)
    await settlements.uncertain(database, [Uncertain(ORGANIZATION, unclear, NUMBER, NOW - HOUR)])
    repeated = await day.claimed(3, NOW - HOUR, made=old - 2 * HOUR)
    again = Returned(
        ORGANIZATION, "test", "chatapp", repeated, NOW - HOUR, NOW, "retry", None, False, NOW - HOUR, NOW - HOUR
    )
    refused = await day.claimed(4, NOW - HOUR)
    back = Returned(ORGANIZATION, "test", "chatapp", refused, NOW - HOUR, NOW, "retry", None, False, NOW)
    await settlements.returned(database, [again, back], day.epoch)
    failed = await day.claimed(5, NOW - HOUR)
    await settlements.failed(
        database, [Failed(ORGANIZATION, "test", "chatapp", failed, cause("provider_error: no"), NOW, queued=False)]
    )
    await addressed.count(database, SENDER, NOW)
    # Of one that is to be repeated, a later moment is known.
    assert await counted(database) == {1: NOW - HOUR, 2: NOW - HOUR, 3: NOW}


async def test_a_template_into_a_window_that_was_open_counts_not_and_one_before_the_reply_does(
    day: Day, database: Database
) -> None:
    await day.opened(1, NOW - 5 * HOUR)
    await day.sent(1, NOW - HOUR)
    await day.opened(2, NOW - HOUR)
    await day.sent(2, NOW - 5 * HOUR)
    await day.opened(3, NOW - 26 * HOUR)
    await day.sent(3, NOW - HOUR)
    await addressed.count(database, SENDER, NOW)
    assert set(await counted(database)) == {2, 3}


async def test_what_was_counted_before_stays_as_late_as_it_was(day: Day, database: Database) -> None:
    await database.execute(
        "insert into tier_recipients values ($1, $2, 1, $3), ($1, $2, 2, $4)", ORGANIZATION, NUMBER, NOW, NOW - 9 * HOUR
    )
    for recipient in (1, 2):
        await day.sent(recipient, NOW - HOUR)
    await addressed.count(database, SENDER, NOW)
    await addressed.count(database, SENDER, NOW)
    assert await counted(database) == {1: NOW, 2: NOW - HOUR}


async def test_without_a_limit_they_are_told_without_being_kept(day: Day, database: Database) -> None:
    for recipient, at in ((1, NOW - 2 * HOUR), (1, NOW - HOUR), (2, NOW - 25 * HOUR), (3, NOW - HOUR)):
        await day.sent(recipient, at)
    await day.claimed(4, NOW - HOUR)
    await day.sent(5, NOW, sender_id=ANOTHER)
    await day.sent(6, NOW - HOUR)
    await day.opened(6, NOW - 2 * HOUR)
    await day.erased(await day.sent(8, NOW))
    await database.execute(  # while its tier had a limit
        "insert into tier_recipients values ($1, $2, 1, $3), ($1, $2, 7, $3)", ORGANIZATION, NUMBER, NOW - 3 * HOUR
    )
    assert await usage.addressed(database, SENDER, NOW - 24 * HOUR) == 4
    assert set(await counted(database)) == {1, 7}


async def test_a_day_of_millions_is_read_along_the_keys(database: Database) -> None:
    await database.execute(
        "insert into messages (organization_id, env, channel, id, direction, status, type, sender_id, recipient,"
        " recipient_hash, class, force, sent_at, updated_at)"
        " select 'org_' || i % 20, 'test', 'chatapp', $1 || lpad(i::text, 12, '0'), 'outbound', 'sent', 'template',"
        " 'num_' || i % 40, '+5511987654321', i, 1, false, now(), now() from generate_series(1, 20000) i",
        IdSource(VirtualClock(NOW), random.Random(1)).new(MESSAGE)[:-12],
    )
    (month,) = [row["name"] for row in await database.fetch(
        "select distinct tableoid::regclass::text as name from messages"
    )]  # fmt: skip
    minutes = "now() - i * interval '1 minute', 1, 0, 0, 'x'"
    for table, values in (("chat_windows", "i, now()"), ("tier_recipients", "i, now()"), ("sender_minutes", minutes)):
        await database.execute(
            f"insert into {table} select 'org_' || i % 20, 'num_' || i % 40, {values} from generate_series(1, 20000) i"
        )
    for table in (month, "sender_minutes", "chat_windows", "tier_recipients"):
        await database.execute(f"vacuum (analyze) {table}")
    await grow(database, month, 2_500_000)  # a file holds a gigabyte
    for pool, sql in (
        (database.bulk, addressed.SQL.count_block),
        (database.bulk, addressed.SQL.oldest),
        (database.searches, usage.SQL.addressed),
    ):
        found = await plan_for_any(pool, sql)
        assert whole_tables(found) <= {"claims"}, sql  # the notes of what is under way
        assert all(name.endswith("_pkey") for name in indexes(found) if name.startswith("messages")), sql
        sorts = [node for node in found if node["Node Type"].endswith("Sort")]
        assert all(node["Plan Rows"] <= usage.LOOKED_AT for node in sorts), sql
