"""What a database knows of time: the newest id, wherever it is, of those that are later than a clock shows."""

import random
from datetime import timedelta
from typing import Any, cast

import pytest
from tests.acme import acme
from tests.captured import capture_logs
from tests.plans import indexes, plan_for_any, whole_tables

from recado.domain.core.ids import BATCH, CONTACT, EVENT, LEDGER_ENTRY, MESSAGE, IdSource
from recado.engine.clock import SystemClock, VirtualClock
from recado.storage.core.connections import server_clock
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.rows import Executor
from recado.storage.messages import messages
from recado.storage.messages.messages import NewMessage

LATER = VirtualClock(SystemClock().now() + timedelta(hours=1))
IDS = IdSource(LATER, random.Random(3))
ROWS = {
    EVENT: "insert into events (organization_id, id, env, type) values ($1, $2, 'test', 'message.sent')",
    LEDGER_ENTRY: "insert into ledger (organization_id, env, id, position, kind, coins, balance_after) "
    "values ($1, 'live', $2, 1, 'topup', 1, 1)",
    BATCH: "insert into batches (organization_id, env, id, channel, sender_id, type, class, status, requested, "
    "skipped, skipped_reasons, errors, ttl_ms, held_base_ms, blocks_left, open, updated_at) "
    "values ($1, 'test', $2, 'chatapp', 'num_1', 'text', 1, 'done', 1, 0, '{}', '[]', 1, 0, 0, false, now())",
    CONTACT: "insert into contacts (organization_id, env, id, phone, phone_hash, source, opt_in_status, search, "
    "updated_at) values ($1, 'live', $2, '+5511900000001', 'h', 'api', 'unknown', '', now())",
}


@pytest.mark.parametrize("prefix", [MESSAGE, *ROWS])
async def test_the_newest_id_is_found_wherever_it_is(database: Database, prefix: str) -> None:
    clock = SystemClock()
    number = (await acme(database, clock, IdSource(clock, random.Random(5)))).number
    now = clock.now() + timedelta(seconds=1)
    assert await server_clock.newest_id(database, now) is None
    made = IDS.new(prefix)
    if prefix == MESSAGE:
        fields: dict[str, Any] = {
            "organization_id": number.organization_id, "env": "test", "channel": "chatapp", "id": made,
            "sender_id": number.id, "type": "template", "recipient": "+5511987654321", "recipient_hash": 1, "klass": 1,
            "force": False, "template_id": None, "payload": None, "template_vars": None, "metadata": None,
            "campaign_id": None, "scheduled_at": None, "due_at": now, "ttl": timedelta(hours=1), "held_base_ms": 0,
            "accepted_at": now,
        }  # fmt: skip
        await messages.accept(database, [NewMessage(**fields)])
    else:
        await database.execute(ROWS[prefix], number.organization_id, made)
    assert await server_clock.newest_id(database, now) == made.removeprefix(prefix)


@pytest.mark.parametrize(("seconds", "told"), [(0.099, False), (0.102, True), (30.0, True)])
async def test_ids_continue_above_the_newest_one_and_only_a_clock_that_is_behind_is_told_of(
    database: Database, seconds: float, told: bool
) -> None:
    clock = VirtualClock(SystemClock().now())
    organization = (await acme(database, clock, IdSource(clock, random.Random(5)))).number.organization_id
    former = VirtualClock(clock.now() + timedelta(seconds=seconds))
    newest = IdSource(former, random.Random(3)).new(EVENT)
    await database.execute(ROWS[EVENT], organization, newest)
    ids = IdSource(clock, random.Random(7))
    with capture_logs() as logged:
        await server_clock.continue_ids(database, clock, ids)
    assert ids.new(EVENT) > newest
    assert [(entry["event"], entry["ids_continue"]) for entry in logged] == [("clock_is_behind", True)] * told


class TurnedByTheRead:
    """An executor whose answer takes two seconds, in which an owner before makes one more id."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock

    async def fetchval(self, *_: object) -> str:
        await self._clock.advance(2.0)
        return IdSource(self._clock, random.Random(3)).new("")


async def test_an_id_that_was_made_during_the_hand_over_tells_nothing_of_the_clock() -> None:
    clock = VirtualClock(SystemClock().now())
    with capture_logs() as logged:
        await server_clock.continue_ids(
            cast("Executor", TurnedByTheRead(clock)), clock, IdSource(clock, random.Random(7))
        )
    assert logged == []


async def test_it_is_looked_for_at_the_ends_of_the_keys(database: Database) -> None:
    found = await plan_for_any(database.hot, server_clock.SQL.newest)
    assert whole_tables(found) <= {"organizations"}
    assert {"events_pkey", "ledger_pkey", "audit_pkey", "batches_pkey", "contacts_pkey"} <= indexes(found)
