"""Holds and settlements of many wallets at once; their plans, however large the tables are (C25.2)."""

import random
import re
from typing import Any

import orjson
import pytest
from tests.purse import ENV, Purse
from tests.storage.access.test_resource_plans import scans

from recado.domain.core.ids import IdSource
from recado.engine.clock import SystemClock
from recado.storage.billing import wallet
from recado.storage.billing.wallet import SQL, Charge, Settlement
from recado.storage.core.connections.postgres import Database
from recado.storage.dispatch import departures
from recado.storage.messages import messages

FILL = """
insert into wallets (organization_id, env, id, status, balance_coins, held_coins, low_balance_threshold_coins,
        updated_at)
    select 'org_' || i, 'live', 'wal_' || i, 'ok', 1000000, 0, 0, now() from generate_series(1, 20000) i;
insert into ledger (organization_id, env, id, kind, coins, balance_after, message_id, position)
    select 'org_' || i % 20, 'live', 'led_' || i, 'charge', -1, 1, 'msg_' || i, i from generate_series(1, 20000) i;
insert into price_volumes select 'org_' || i, 'chatapp', date '2026-11-01', i from generate_series(1, 20000) i;
analyze;
"""


@pytest.fixture
async def purse(database: Database) -> Purse:
    clock = SystemClock()
    return await Purse(database, clock, IdSource(clock, random.Random(5))).open()


async def test_a_hold_is_all_or_nothing_over_several_wallets(purse: Purse) -> None:
    other = await Purse(purse.database, purse.clock, purse.ids).open()
    await purse.credit(1_000)
    await other.credit(500)
    keys = [(purse.organization_id, ENV), (other.organization_id, ENV)]

    async def hold(*coins: int) -> bool:
        async with purse.database.transaction() as connection:
            wanted = dict(zip(keys, coins, strict=True))
            return await wallet.hold_many(connection, purse.ids, wanted, now=purse.clock.now()) is not None

    assert not await hold(1_000, 501)
    assert (await purse.standing(), await other.standing()) == ((1_000, 0), (500, 0))
    assert await hold(1_000, 500)
    assert (await purse.standing(), await other.standing()) == ((1_000, 1_000), (500, 500))
    assert not await hold(1, 0)
    assert await hold(0, 0)


async def test_where_there_is_no_wallet_nothing_is_held_and_nothing_charged(purse: Purse) -> None:
    nowhere = ("org_nowhere", ENV)
    async with purse.database.transaction() as connection:
        assert not await wallet.hold(connection, purse.ids, *nowhere, 1, now=purse.clock.now())
        settlement = Settlement([Charge("msg_1", "chatapp", None, 600)], released=5)
        settled = await wallet.settle(connection, purse.ids, {nowhere: settlement}, {}, now=purse.clock.now())
    assert (settled.captured, settled.queued) == ((), ())
    assert await purse.database.fetchval("select count(*) from ledger where message_id is not null") == 0


async def test_entries_of_one_batch_run_in_the_order_of_their_charges(purse: Purse) -> None:
    await purse.credit(1_000)
    key = (purse.organization_id, ENV)
    charges = [Charge(f"msg_{n}", "chatapp", "btc_1" if n else None, 100 * (n + 1), held=bool(n)) for n in range(3)]
    async with purse.database.transaction() as connection:
        assert await wallet.hold(connection, purse.ids, *key, 800, now=purse.clock.now())
        await wallet.settle(connection, purse.ids, {key: Settlement(charges, 300)}, {}, now=purse.clock.now())

    rows = await purse.database.fetch("select * from ledger where kind = 'charge' order by id")
    assert [(row["coins"], row["balance_after"], row["batch_id"]) for row in rows] == [
        (-100, 900, None),
        (-200, 700, "btc_1"),
        (-300, 400, "btc_1"),
    ]
    assert await purse.standing() == (400, 0)
    await purse.check()


def nothing(statement: str) -> tuple[None, ...]:
    """Null for each of its parameters."""
    return (None,) * max(map(int, re.findall(r"\$(\d+)", statement)))


async def test_what_every_batch_asks_of_wallets_takes_an_index(purse: Purse) -> None:
    await purse.database.execute(FILL)
    a_batch: list[tuple[str, tuple[Any, ...]]] = [
        (SQL.lock, (["org_7"], [ENV])),
        (SQL.available, (["org_7"], [ENV])),
        (SQL.charged, (["org_7"], [ENV], ["msg_7"])),
        (SQL.charged_only, (["org_7"], [ENV], ["msg_7"])),
        (
            SQL.write,
            (
                ["org_7"],
                [ENV],
                [1],
                [0],
                ["ok"],
                [1],
                purse.clock.now(),
                *["x"] * 3,
                "1",
                "1",
                *["x"] * 3,
                [],
                [],
                [],
                [],
                "1",
                "x",
            ),
        ),
        (messages.ACCEPT, (*[None] * 23, True, *nothing(messages.ACCEPT)[24:])),
        (departures.DEPART.text, nothing(departures.DEPART.text)),
        (departures.DEPART_WITH_MORE.text, nothing(departures.DEPART_WITH_MORE.text)),
        (departures.PLAIN_FROM_SHARED.text, nothing(departures.PLAIN_FROM_SHARED.text)),
        (messages.SQL.known, (["org_7"], [ENV], ["chatapp"], ["msg_7"])),
    ]
    async with purse.database.hot.acquire() as connection:
        for sql, arguments in a_batch:
            plan = await connection.fetchval("explain (format json) " + sql, *arguments)
            read = scans(orjson.loads(plan)[0]["Plan"])
            assert not [table for table, node in read if node == "Seq Scan"], read
