"""Departures are recorded together with all that follows of them, in one statement or in several (C15.4, C25.2)."""

import random
from typing import Any

import pytest
from tests.purse import ENV, Purse

from recado.domain.core.ids import LEDGER_ENTRY, IdSource
from recado.engine.clock import SystemClock
from recado.storage.billing.holds import HoldsRefused
from recado.storage.core.connections.postgres import Database
from recado.storage.dispatch import departures
from recado.storage.dispatch.departures import Following
from recado.storage.dispatch.settlements import PlannedReport
from recado.storage.messages.messages import NewMessage

CLOCK = SystemClock()
IDS = IdSource(CLOCK, random.Random(9))
BATCH, CAMPAIGN = "btc_" + "1" * 21, "spring"
SUBSCRIPTION = "wbh_" + "1" * 21
A_SUBSCRIPTION = """
insert into webhook_subscriptions (organization_id, id, env, url, secret_cipher, secret_version, events,
    include_pii, max_attempts, backoff_seconds, status, revision, updated_at)
values ($1, $2, $3, 'https://x', 's', 1, '{message.sent}', false, 8, 30, 'active', 1, now())
"""
COUNTED = """
insert into totals (organization_id, env, kind, key, accepted, queued, held_coins)
values ($1, $2, 'batch', $3, 3, 3, 1800), ($1, $2, 'campaign', $4, 3, 3, 1800)
"""
OF_A_BATCH = """
with queued as (update dispatch set owner = $1, batch_id = $1::text, campaign_id = $2 where organization_id = $3)
update messages set batch_id = $1, campaign_id = $2 where organization_id = $3
"""


@pytest.fixture
async def purse(database: Database) -> Purse:
    purse = await Purse(database, CLOCK, IDS).open()
    await purse.credit(1_000_000)
    return purse


async def claimed(purse: Purse, count: int, **changes: Any) -> list[NewMessage]:
    messages = [purse.message(600, **changes) for _ in range(count)]
    await purse.store(*messages)
    for message in messages:
        await purse.claim(message)
    return messages


async def of_a_batch(purse: Purse, count: int) -> list[NewMessage]:
    """Claimed messages of one batch and campaign, of an environment where somebody hears of departures.

    The last was sent again after its batch was canceled.
    """
    messages = await claimed(purse, count)
    await purse.database.execute(A_SUBSCRIPTION, purse.organization_id, SUBSCRIPTION, ENV)
    await purse.database.execute(COUNTED, purse.organization_id, ENV, BATCH, CAMPAIGN)
    await purse.database.execute(OF_A_BATCH, BATCH, CAMPAIGN, purse.organization_id)
    await purse.database.execute("update dispatch set owner = 'single' where id = $1", messages[-1].id)
    return messages


async def totals(purse: Purse) -> dict[str, tuple[int, ...]]:
    rows = await purse.database.fetch("select kind, queued, sent, held_coins, charged_coins from totals")
    return {row["kind"]: tuple(row)[1:] for row in rows}


async def told(purse: Purse) -> list[str]:
    """The messages whose events are queued for the subscription, in the order of their ids."""
    rows = await purse.database.fetch(
        "select e.message_id from delivery_queue q join events e on e.organization_id = q.organization_id "
        "and e.id = q.event_id where q.subscription_id = $1 and e.type = 'message.sent' order by 1",
        SUBSCRIPTION,
    )
    return [row["message_id"] for row in rows]


def counting(purse: Purse, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which way departures were recorded: `refused` of the one statement, `in steps` of the transaction."""
    seen: list[str] = []
    depart, write = departures.depart, purse.consequences.write

    async def watched(*arguments: Any, **named: Any) -> Any:
        try:
            return await depart(*arguments, **named)
        except HoldsRefused:
            seen.append("refused")
            raise

    async def in_steps(*arguments: Any) -> Any:
        seen.append("in steps")
        return await write(*arguments)

    monkeypatch.setattr(departures, "depart", watched)
    monkeypatch.setattr(purse.consequences, "write", in_steps)
    return seen


@pytest.mark.parametrize("short", [False, True], ids=["in one statement", "in steps"])
async def test_all_that_follows_is_written_with_the_departure(
    purse: Purse, monkeypatch: pytest.MonkeyPatch, short: bool
) -> None:
    messages = await of_a_batch(purse, 3)
    if short:  # as after a hand in the database
        await purse.database.execute("update wallets set held_coins = 1199 where env = $1", ENV)
    seen = counting(purse, monkeypatch)

    await purse.depart(*messages[1:])

    assert seen == (["refused", "in steps"] if short else [])
    sent = [message.id for message in messages[1:]]
    assert await told(purse) == sent
    assert {await purse.status(message) for message in messages[1:]} == {"sent"}
    assert await purse.charges() == dict.fromkeys(sent, 600)
    assert await totals(purse) == dict.fromkeys(("batch", "campaign"), (1, 2, 600, 1200))
    assert await purse.standing() == (1_000_000 - 1200, 0 if short else 600)
    batches = await purse.database.fetch("select distinct batch_id, channel from ledger where kind = 'charge'")
    assert [tuple(row) for row in batches] == [(BATCH, "chatapp")]
    units = await purse.database.fetchval(
        "select units from price_volumes where organization_id = $1", messages[0].organization_id
    )
    assert units == 2
    if not short:
        await purse.check()
    assert purse.hinted


async def test_what_a_report_had_settled_before_is_told_and_charged_once(purse: Purse) -> None:
    messages = await of_a_batch(purse, 2)
    await purse.report(messages[0], "delivered")
    charged = await purse.charges()

    await purse.depart(*messages)
    await purse.depart(*messages)

    assert set(charged) == {messages[0].id}
    assert await purse.charges() == {message.id: 600 for message in messages}
    assert await told(purse) == [message.id for message in messages]
    assert await totals(purse) == dict.fromkeys(("batch", "campaign"), (1, 1, 600, 1200))


async def test_entries_count_in_the_order_in_which_they_changed_the_balance_whatever_their_ids(purse: Purse) -> None:
    """A credit came between the minting and the lock; another clock was an hour ahead."""
    messages = sorted(await claimed(purse, 3), key=lambda message: message.id)
    entry_ids = [purse.ids.new(LEDGER_ENTRY) for _ in messages]
    await purse.credit(5)
    await purse.database.execute("update ledger set id = 'led_y' where coins = 5")

    await departures.depart(purse.database.hot, purse.departed(*messages), Following(entry_ids=entry_ids))
    await purse.credit(7)

    rows = await purse.database.fetch(
        "select position, coins, balance_after from ledger where env = $1 order by 1", ENV
    )
    balances = [1_000_000, 1_000_005, 999_405, 998_805, 998_205, 998_212]
    assert [tuple(row) for row in rows] == [
        (place, coins, balance)
        for place, (coins, balance) in enumerate(zip([1_000_000, 5, -600, -600, -600, 7], balances, strict=True), 1)
    ]
    await purse.check()


async def test_less_held_than_is_captured_is_looked_at_in_steps(purse: Purse, monkeypatch: pytest.MonkeyPatch) -> None:
    (message,) = await claimed(purse, 1)
    await purse.database.execute("update wallets set held_coins = 599 where env = $1", ENV)
    seen = counting(purse, monkeypatch)

    await purse.depart(message)

    assert seen == ["refused", "in steps"]
    assert await purse.standing() == (1_000_000 - 600, 0)


async def test_without_a_price_nothing_is_captured(purse: Purse) -> None:
    messages = [purse.message(None), purse.message(0)]
    await purse.store(*messages)
    for message in messages:
        await purse.claim(message)
    await purse.depart(*messages)
    assert await purse.charges() == {}
    assert await purse.standing() == (1_000_000, 0)
    assert [await purse.status(message) for message in messages] == ["sent", "sent"]


async def test_the_last_departure_says_which_totals_are_empty(purse: Purse) -> None:
    messages = await of_a_batch(purse, 3)
    rows = sorted(purse.departed(*messages), key=lambda row: row.id)
    first = await departures.depart(purse.database.hot, rows[:1], Following())
    assert (first.left, first.emptied) == (frozenset(), ())
    last = await departures.depart(purse.database.hot, rows, Following())
    assert last.left == {rows[0].id}
    key: tuple[str, str] = (purse.organization_id, ENV)
    assert set(last.emptied) == {(*key, "batch", BATCH), (*key, "campaign", CAMPAIGN)}


async def test_of_one_that_is_in_no_totals_its_price_and_what_the_sandbox_will_report_are_written_as_of_any(
    purse: Purse,
) -> None:
    """By a statement without the parts for those of batches, unless something of these is needed."""
    messages = await claimed(purse, 3)
    rows = sorted(purse.departed(*messages), key=lambda row: row.id)
    for row in rows:
        row.totaled = False
    rows[2].planned = (PlannedReport(0, CLOCK.now(), "{}"),)
    entry_ids = [purse.ids.new(LEDGER_ENTRY) for _ in messages]

    followed = await departures.depart(purse.database.hot, rows[:2], Following(entry_ids=entry_ids[:2]))
    await departures.depart(purse.database.hot, rows[2:], Following(entry_ids=entry_ids[2:]))

    assert followed.left == frozenset()
    assert await purse.charges() == {message.id: 600 for message in messages}
    assert {await purse.status(message) for message in messages} == {"sent"}
    assert await purse.database.fetchval("select sum(sent) from sender_minutes") == len(messages)
    planned = await purse.database.fetch("select message_id from sandbox_reports")
    assert [report["message_id"] for report in planned] == [rows[2].id]
    await purse.check()
