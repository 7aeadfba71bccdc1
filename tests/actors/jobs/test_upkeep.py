"""The hourly round: what is past its time goes, by a clock that something speaks for (C32)."""

import random
from datetime import UTC, datetime, timedelta
from unittest.mock import Mock

import pytest
from tests.acme import acme

from recado.actors.jobs.clock_confirmation import ClockConfirmation
from recado.actors.jobs.upkeep import Upkeep
from recado.actors.webhooks.webhooks import Webhooks
from recado.domain.core.ids import CONTACT_IMPORT, DELIVERY, EVENT, IdSource, lowest_id
from recado.engine.clock import VirtualClock
from recado.http.bodies.body_workers import BodyWorkers
from recado.services.inbound.callbacks import Callbacks
from recado.storage.core.connections.postgres import Database

TODAY = datetime(2026, 6, 15, 12, tzinfo=UTC)
YEARS = timedelta(days=6 * 365)  # longer than anything here is kept
KEPT = (
    "insert into idempotency (organization_id, env, key_hash, fingerprint, created_at) values ($1, 'test', $3, $3, $2)",
    "insert into callbacks (channel, adapter, sha256, body, received_at) values ('chatapp', 'x' || $1, $3, $3, $2)",
    "insert into account_invites select $1 || encode($3, 'hex'), $3, $2::timestamptz",
    "insert into sessions select encode($3, 'hex'), $1, 'acc_1', $3, $3, $2::timestamptz, $2",
    "insert into login_attempts select $3, 1, $2::timestamptz where $1 <> ''",
    (
        "insert into contact_consents "
        "(organization_id, env, contact_id, revision, to_status, at, date_given, recorded_at) "
        "select $1, 'test', encode($3, 'hex'), 1, 'granted', $2, false, $2::timestamptz"
    ),
)
KEPT_BY_ID = {
    EVENT: "insert into events (organization_id, id, env, type) values ($1, $2, 'test', 'message.sent')",
    DELIVERY: "insert into deliveries (organization_id, subscription_id, id, event_id, event, status, settled_at, "
    "attempts, history, replayed) "
    "values ($1, 'wbh_1', $2, 'evt_1', 'message.sent', 'delivered', now(), 1, '[]', false)",
    CONTACT_IMPORT: "insert into contact_imports (organization_id, env, id, status, format, options, total, "
    "actor_type, actor_id) values ($1, 'test', $2, 'completed', 'csv', '{}', 1, 'key', 'key_1')",
}
SUBSCRIPTION = (
    "insert into webhook_subscriptions (organization_id, id, env, url, secret_cipher, secret_version, events, "
    "include_pii, max_attempts, backoff_seconds, status, revision, updated_at) "
    "values ($1, 'wbh_1', 'live', 'https://there.test', 's', 1, array['*'], false, 8, 30, 'active', 1, now())"
)


def upkeep(database: Database, clock: VirtualClock) -> Upkeep:
    receipts = Callbacks(
        database,
        clock=clock,
        providers={},
        receipts_of=Mock(),
        numbers=Mock(),
        social_accounts=Mock(),
        templates=Mock(),
        flows=Mock(),
        apart=BodyWorkers(clock),
    )
    webhooks = Webhooks(database, clock=clock, ids=Mock(), keys=Mock(), http=Mock(), runtime=Mock())
    return Upkeep(
        database,
        clock=clock,
        confirmation=ClockConfirmation(database, clock=clock),
        callbacks=receipts,
        webhooks=webhooks,
    )


async def store(database: Database, organization_id: str, at: datetime) -> None:
    """One row of everything that a round removes when its time comes."""
    for sql in KEPT:
        await database.execute(sql, organization_id, at, str(at).encode())
    for prefix, sql in KEPT_BY_ID.items():
        await database.execute(sql, organization_id, lowest_id(prefix, at))


async def kept(database: Database) -> dict[str, int]:
    tables = [sql.split()[2] for sql in (*KEPT, *KEPT_BY_ID.values())]
    return {table: await database.fetchval(f"select count(*) from {table}") for table in tables}


@pytest.fixture
async def organization_id(database: Database) -> str:
    """Of an organization that is in use until today."""
    clock = VirtualClock(TODAY)
    made = await acme(database, clock, IdSource(clock, random.Random(6)))
    await database.execute(SUBSCRIPTION, made.organization.id)
    return made.organization.id


async def test_everything_goes_that_is_past_its_time_and_nothing_else(database: Database, organization_id: str) -> None:
    await store(database, organization_id, TODAY)
    young = await kept(database)
    await store(database, organization_id, TODAY - YEARS)
    assert await kept(database) == dict.fromkeys(young, 2)
    await upkeep(database, VirtualClock(TODAY + timedelta(days=1, minutes=1))).work()
    assert await kept(database) == young == dict.fromkeys(young, 1)


@pytest.mark.parametrize(
    ("table", "period"),
    [
        ("idempotency", timedelta(hours=24)),
        ("callbacks", timedelta(days=7)),
        ("contact_consents", timedelta(days=5 * 365 + 2)),
        ("events", timedelta(days=30)),
        ("deliveries", timedelta(days=30)),
        ("contact_imports", timedelta(days=30)),
    ],
)
async def test_each_is_kept_for_its_time(
    database: Database, organization_id: str, table: str, period: timedelta
) -> None:
    clock = VirtualClock(TODAY)
    round_of = upkeep(database, clock)
    await clock.advance(86_400)  # now it is believed
    for at in (clock.now(), clock.now() - period + timedelta(hours=1), clock.now() - period - timedelta(hours=1)):
        await store(database, organization_id, at)
    await round_of.work()
    assert (await kept(database))[table] == 2


async def test_a_clock_that_runs_ahead_has_a_day_to_be_put_right_before_anything_goes_by_it(
    database: Database, organization_id: str
) -> None:
    await store(database, organization_id, TODAY)
    young = await kept(database)
    clock = VirtualClock(TODAY + YEARS)
    round_of = upkeep(database, clock)
    for _ in range(24):
        await round_of.work()
        assert await kept(database) == young
        await clock.advance(3_600)
    await round_of.work()
    assert await kept(database) == dict.fromkeys(young, 0)


async def test_a_new_installation_begins_without_removing_anything(database: Database) -> None:
    await store(database, "org_1", TODAY - YEARS)
    await database.execute("delete from callbacks")  # they would speak for the clock
    before = await kept(database)
    await upkeep(database, VirtualClock(TODAY)).work()
    assert await kept(database) == before
