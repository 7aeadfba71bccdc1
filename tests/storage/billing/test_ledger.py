"""The ledger in the database: it sums up to the balance whatever is credited, and each list of it takes its index."""

import random
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from tests.examples import seeds
from tests.storage.access.test_resource_plans import scans

from recado.domain.billing.wallet import WalletStatus, status_of
from recado.domain.core.errors import Problem
from recado.domain.core.ids import IdSource
from recado.engine.clock import SystemClock
from recado.storage.access.organizations import create_organization
from recado.storage.billing import grants, ledger, top_ups
from recado.storage.billing.ledger import Credited
from recado.storage.core.audit import SYSTEM
from recado.storage.core.connections.postgres import Database

NOW = datetime(2026, 11, 21, 9, tzinfo=UTC)

FILL = """
insert into ledger (organization_id, env, id, kind, coins, balance_after, channel, message_id, reference, position)
    select 'org_' || i % 20, 'live', 'led_' || lpad(i::text, 21, '0'),
        case when i % 1000 = 7 then 'topup' when i % 1000 = 8 then 'adjustment' else 'charge' end, -1, 0, 'chatapp',
        case when i % 1000 not in (7, 8) then 'msg_' || lpad(i::text, 21, '0') end,
        case when i % 1000 in (7, 8) then 'r' || i end, i
    from generate_series(1, 40000) i;
insert into top_ups select 'org_' || i % 20, 'live', 'top_' || lpad(i::text, 21, '0'),
        case when i % 500 = 0 then 'pending' else 'paid' end, 1000, 100000, 'recado' || i, null,
        now() + i * interval '1 minute', null, now()
    from generate_series(1, 20000) i;
analyze;
"""


async def organization(database: Database, ids: IdSource) -> str:
    async with database.transaction() as connection:
        made = await create_organization(
            connection, ids, name="Ledger", now=NOW, random_bytes=random.Random(3).randbytes
        )
    return made.organization.id


async def granted(
    database: Database, ids: IdSource, organization_id: str, coins: int, reference: str
) -> Credited | Problem:
    """A credit, or why there is none."""
    try:
        async with database.transaction() as connection:
            return await grants.grant(
                connection,
                ids,
                organization_id=organization_id,
                env="live",
                coins=coins,
                reference=reference,
                actor=SYSTEM,
                now=NOW,
            )
    except Problem as problem:
        return problem


@pytest.mark.parametrize("seed", seeds(6))
async def test_whatever_is_credited_the_ledger_sums_up_and_nothing_is_overdrawn(database: Database, seed: int) -> None:
    chance = random.Random(seed)
    ids = IdSource(SystemClock(), random.Random(seed))
    organization_id = await organization(database, ids)
    threshold, balance, status = 100_000, 0, WalletStatus.DEPLETED
    credited: dict[str, int] = {}
    for _ in range(60):
        if chance.random() < 0.15:
            threshold = chance.choice([0, 1, 50_000, 100_000])
            async with database.transaction() as connection:
                await ledger.set_threshold(connection, ids, organization_id, "live", threshold, NOW)
            status = status_of(status, balance, threshold)
        else:
            coins = chance.choice([-60_000, -30_000, -1, 1, 20_000, 55_000])
            reference = f"r{chance.randrange(40)}"
            done = await granted(database, ids, organization_id, coins, reference)
            if isinstance(done, Problem):
                expected = "CONFLICT" if reference in credited else "PAYMENT_REQUIRED"
                assert done.code == expected
                assert reference in credited or balance + coins < 0
            else:
                assert done.replayed == (reference in credited)
                if not done.replayed:
                    credited[reference] = coins
                    balance += coins
                    status = status_of(status, balance, threshold)
                    assert done.entry.balance_after == balance
        wallet = await ledger.get(database, organization_id, "live")
        assert wallet is not None
        assert (wallet.balance_coins, wallet.status) == (balance, status)
        assert wallet.low_balance_threshold_coins == threshold
    total = await database.fetchval(
        "select coalesce(sum(coins), 0)::bigint from ledger where organization_id = $1 and env = 'live'",
        organization_id,
    )
    assert total == balance == sum(credited.values())


async def test_every_list_of_the_ledger_and_every_look_at_a_top_up_takes_an_index(database: Database) -> None:
    await database.execute(FILL)
    now = await database.fetchval("select now()")
    page: tuple[Any, ...] = ("org_7", "live", 1, ledger.MOST_POSITIONS, "", ledger.LAST_ID, 51)
    (first, last) = ("led_" + str(number).rjust(21, "0") for number in (20_000, 30_000))
    hot: list[tuple[str, tuple[Any, ...], str]] = [
        (ledger.SQL.page, page, "ledger_position"),
        (ledger.SQL.page_of_charges, page, "ledger_position"),
        (ledger.SQL.positions, ("org_7", "live", first, last), "ledger_pkey"),
        (ledger.SQL.page_of_kind, (*page, "topup"), "ledger_uncharged"),
        (ledger.SQL.page_of_message, (*page, "msg_" + "7".rjust(21, "0"), None), "ledger_charge"),
        (ledger.SQL.by_reference, ("org_7", "live", "r7"), "ledger_reference"),
        (top_ups.SQL.by_id, ("org_7", "live", "top_7"), "top_ups_pkey"),
        (top_ups.SQL.page, ("org_7", "live", 50, 0), "top_ups_pkey"),
        (top_ups.SQL.by_reference_locked, ("recado7",), "top_ups_reference"),
        (top_ups.SQL.expire, (now, "expired", ["pending"]), "top_ups_expiry"),
    ]
    for sql, arguments, index in hot:
        (plan,) = orjson.loads(await database.fetchval(f"explain (format json) {sql}", *arguments))
        kinds = scans(plan["Plan"])
        assert kinds
        assert "Seq Scan" not in dict(kinds).values(), (sql, kinds)
        assert index in str(plan), (sql, plan)
