"""Holds without a moment of their own: let go in blocks, and found when their reason is gone."""

import random
from datetime import timedelta
from typing import Any

import pytest
from tests.storage.journeys.rows import insert_journey

from recado.domain.core.ids import BATCH, MESSAGE, NUMBER, TEMPLATE, IdSource
from recado.domain.journeys.journey import JourneyStatus
from recado.engine.clock import SystemClock, VirtualClock
from recado.storage.core.connections.postgres import Database
from recado.storage.dispatch import dispatch, overtaken, withdrawals
from recado.storage.messages import messages
from recado.storage.messages.messages import NewMessage

CLOCK = VirtualClock(SystemClock().now().replace(microsecond=0))
IDS = IdSource(CLOCK, random.Random(6))
NOW = CLOCK.now()
ORGANIZATION, ENV = "org_" + "0" * 21, "test"

ADD_NUMBER = """
insert into numbers (organization_id, id, env, phone_number_id, business_account_id, display_phone, status,
    quality_rating, messaging_tier, per_second, per_day, byo, profile, revision, updated_at)
values ($1, $2, 'test', 'phone', 'account', '+55119', $3, 'green', 'unlimited', 80, 1000, false, '{}', 1, now())
"""
ADD_TEMPLATE = """
insert into templates (organization_id, id, env, number_id, name, language, category, status, components, version,
    revision, updated_at)
values ($1, $2, 'test', $3, 'name', 'pt-BR', 'utility', $4, '[]', 1, 1, now())
"""


async def held(
    db: Database, reason: str, *, number: str = NUMBER + "0" * 21, klass: int = 1, template: str | None = None
) -> str:
    """A message that was held without end, for this reason."""
    message_id = IDS.new(MESSAGE)
    fields: dict[str, Any] = {
        "organization_id": ORGANIZATION, "env": ENV, "channel": "chatapp", "id": message_id, "sender_id": number,
        "type": "template", "recipient": "+5511987654321", "recipient_hash": 1, "klass": klass, "force": False,
        "template_id": template, "payload": None, "template_vars": None, "metadata": None, "campaign_id": None,
        "scheduled_at": None, "due_at": NOW, "ttl": timedelta(hours=1), "held_base_ms": 0, "accepted_at": NOW,
    }  # fmt: skip
    assert await messages.accept(db, [NewMessage(**fields)]) == [messages.STORED]
    await db.execute("update dispatch set not_before = 'infinity', reason = $2 where id = $1", message_id, reason)
    return message_id


async def let_go(db: Database) -> int:
    """How many rows of all that is held go on."""
    return sum([(await overtaken.release(db, group, limit=10)).released for group in await overtaken.groups(db)])


async def ready(db: Database, message_id: str) -> bool:
    row = await db.fetchrow("select not_before, reason from dispatch where id = $1", message_id)
    return (row["not_before"], row["reason"]) == (None, None)


@pytest.mark.parametrize(
    ("status", "klass", "goes_on"),
    [("connected", 1, True), ("flagged", 0, True), ("flagged", 1, False), ("disconnected", 0, False)],
)
async def test_what_waits_for_a_number_goes_on_when_it_is_back(
    database: Database, status: str, klass: int, goes_on: bool
) -> None:
    number = IDS.new(NUMBER)
    await database.execute(ADD_NUMBER, ORGANIZATION, number, status)
    message = await held(database, "number_state", number=number, klass=klass)

    assert await let_go(database) == goes_on
    assert await ready(database, message) is goes_on


@pytest.mark.parametrize(("quality", "goes_on"), [("green", True), ("yellow", True), ("red", False)])
async def test_what_waits_for_the_quality_goes_on_when_it_rose(database: Database, quality: str, goes_on: bool) -> None:
    number = IDS.new(NUMBER)
    await database.execute(ADD_NUMBER, ORGANIZATION, number, "connected")
    await database.execute("update numbers set quality_rating = $1", quality)
    message = await held(database, "quality", number=number, klass=2)

    assert await let_go(database) == goes_on
    assert await ready(database, message) is goes_on


@pytest.mark.parametrize(
    ("status", "goes_on"),
    [("approved", True), ("rejected", True), ("disabled", True), ("paused", False), ("draft", False), (None, True)],
)
async def test_what_waits_for_a_template_goes_on_when_it_can_be_sent_or_never_will(
    database: Database, status: str | None, goes_on: bool
) -> None:
    template = IDS.new(TEMPLATE)
    if status is not None:
        await database.execute(ADD_TEMPLATE, ORGANIZATION, template, IDS.new(NUMBER), status)
    message = await held(database, "template_state", template=template)

    assert await let_go(database) == goes_on
    assert await ready(database, message) is goes_on


async def test_what_waits_for_a_batch_that_is_not_paused_goes_on(database: Database) -> None:
    message = await held(database, "owner_paused")
    await database.execute("update dispatch set owner = $2 where id = $1", message, IDS.new(BATCH))

    assert await let_go(database) == 1
    assert await ready(database, message)


async def test_what_is_uncertain_stays_so(database: Database) -> None:
    message = await held(database, "uncertain")
    await database.execute("update dispatch set claimed_epoch = 1, claimed_at = $2 where id = $1", message, NOW)

    assert await let_go(database) == 0
    assert not await ready(database, message)


@pytest.mark.parametrize(("status", "goes_on"), [("pausada", False), ("ativa", True), ("arquivada", True)])
async def test_what_a_journey_holds_goes_on_when_it_is_paused_no_more(
    database: Database, status: str, goes_on: bool
) -> None:
    journey = await insert_journey(database, status=JourneyStatus(status))
    message = await held(database, "owner_paused")
    await database.execute("update dispatch set owner = $1, source_kind = 'journey'", journey.id)

    assert await let_go(database) == goes_on
    assert await ready(database, message) is goes_on


async def test_what_is_withdrawn_with_its_journey_is_not_let_go(database: Database) -> None:
    journey = await insert_journey(database, status=JourneyStatus.ARQUIVADA)
    await withdrawals.note(database, [withdrawals.of_archived(ORGANIZATION, ENV, journey.id)])
    message = await held(database, "owner_paused")
    await database.execute("update dispatch set owner = $1, source_kind = 'journey'", journey.id)

    assert await let_go(database) == 0
    assert not await ready(database, message)


async def test_a_block_is_chosen_once_however_the_statement_is_joined(database: Database) -> None:
    """Chosen from inside a join, it would be chosen anew for each row of the table."""
    statements = [
        (dispatch.SQL.release, "(text, text, text, text, integer, text)"),
        (dispatch.SQL.release_due, "(timestamptz, integer)"),
        (dispatch.SQL.hold_template, "(text, text, text, integer)"),
        (overtaken.SQL.release, "(text, text, text, text, text[], integer)"),
    ]
    for statement, types in statements:
        nulls = ", ".join(["null"] * (types.count(",") + 1))
        async with database.acquire() as connection:
            await connection.execute(f"prepare one{types} as {statement}")
            for way in ("enable_hashjoin", "enable_mergejoin", "enable_material"):
                await connection.execute(f"set {way} = off")
            await connection.execute("set plan_cache_mode = force_generic_plan")
            plan = "\n".join(row[0] for row in await connection.fetch(f"explain execute one({nulls})"))
            await connection.execute("deallocate one")
            await connection.execute("reset all")
        assert "InitPlan" in plan or "CTE Scan" in plan, f"{statement}:\n{plan}"


async def test_what_is_held_is_walked_along_its_index(database: Database) -> None:
    statements = [
        (overtaken.SQL.groups, "(text, text, text, text[], text[])"),
        (overtaken.SQL.release, "(text, text, text, text, text[], integer)"),
    ]
    for statement, types in statements:
        nulls = ", ".join(["null"] * (types.count(",") + 1))
        async with database.acquire() as connection:
            await connection.execute("set plan_cache_mode = force_generic_plan")
            await connection.execute(f"prepare walk{types} as {statement}")
            plan = "\n".join(row[0] for row in await connection.fetch(f"explain execute walk({nulls})"))
            await connection.execute("deallocate walk")
            await connection.execute("reset all")
        assert "dispatch_held" in plan, plan
        assert "Seq Scan on dispatch" not in plan, plan
