"""Whatever happens to messages that are captured in part, wallet, ledger, totals and deadlines agree (C25.2)."""

import random
from datetime import timedelta
from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.examples import examples
from tests.post import LETTERS, POST
from tests.purse import ENV, Purse
from tests.services.effects.test_deadlines import adjusting

from recado.domain.channels.policies import POLICIES, shown
from recado.domain.core.ids import IdSource
from recado.domain.messages.message import FailureCode
from recado.engine.clock import SystemClock
from recado.storage.core.connections.postgres import Database
from recado.storage.dispatch.settlements import Capture
from recado.storage.messages.messages import STORED, NewMessage

CLOCK = SystemClock()
IDS = IdSource(CLOCK, random.Random(12))
UNREPORTED = '{"unreported":true}'

which = st.integers(0, 30)
STEPS = st.one_of(
    st.tuples(st.just("send"), st.integers(1, 4), st.sampled_from([0, 100, 600, 1_800]), st.booleans()),
    st.tuples(st.just("depart"), which, st.sampled_from([None, 0, 60, 100, 700, 2_500])),
    st.tuples(st.just("adjust"), st.sampled_from([-50, 0, 400])),
    st.tuples(
        st.sampled_from(["claim", "sent", "delivered", "failed", "refuse", "expire", "archive"]),
        which,
    ),
    st.tuples(st.sampled_from(["overdue", "low", "credit"])),
)


async def check(purse: Purse) -> None:
    """The totals of the campaign say what rows, holds and entries say."""
    await purse.check()
    rows = await purse.database.fetch(
        """
        select m.channel, m.status, coalesce(d.coins, 0) + coalesce(l.held_coins, 0) as held,
            -coalesce((select sum(coins) from ledger where message_id = m.id), 0)::bigint as charged
        from messages m
        left join dispatch d on d.organization_id = m.organization_id and d.id = m.id
        left join message_deadlines l on l.organization_id = m.organization_id and l.message_id = m.id
        where m.organization_id = $1
        """,
        purse.organization_id,
    )
    if not rows:
        return
    counts: dict[str, int] = {}
    for row in rows:
        status = shown(row["channel"], row["status"])
        counts["queued" if status == "sending" else status] = counts.get(status, 0) + 1
    found = dict(
        await purse.database.fetchrow(
            "select queued, sent, delivered, read, failed, archived, held_coins, charged_coins from totals"
            " where organization_id = $1 and env = $2 and kind = 'campaign'",
            purse.organization_id,
            ENV,
        )
        or {}
    )
    assert found.pop("held_coins") == sum(row["held"] for row in rows)
    assert found.pop("charged_coins") == sum(row["charged"] for row in rows)
    assert {name: count for name, count in found.items() if count} == counts


@settings(
    max_examples=examples(60),
    deadline=timedelta(seconds=30),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=st.lists(STEPS, min_size=5, max_size=40))
async def test_whatever_is_captured_kept_let_go_and_adjusted_all_sums_up(
    database: Database, steps: list[tuple[Any, ...]]
) -> None:
    with patch.dict(POLICIES, {POST: LETTERS}):
        purse = await Purse(database, CLOCK, IDS).open()
        await purse.credit(20_000)
        letters: list[NewMessage] = []
        for step, *how in steps:
            await one(purse, letters, step, how)
            await check(purse)
        charged = await purse.charges()
        for letter in letters:
            assert charged.get(letter.id, 0) <= (letter.coins or 0)
        await purse.overdue()
        await check(purse)
        assert await purse.database.fetchval("select count(*) from message_deadlines") == 0


async def one(purse: Purse, letters: list[NewMessage], step: str, how: list[Any]) -> None:
    match step:
        case "send":
            count, coins, silent = how
            details = UNREPORTED if silent else None
            batch = [
                purse.message(coins, channel=POST, campaign_id="spring", details=details, units=2) for _ in range(count)
            ]
            stored = zip(batch, await purse.store(*batch), strict=True)
            letters += [letter for letter, result in stored if result == STORED]
        case "credit":
            await purse.credit(5_000)
        case "low":  # a wallet that something is let go in may recover
            await purse.database.execute(
                "update wallets set low_balance_threshold_coins = 2 * (balance_coins - held_coins), status = 'low'"
                " where organization_id = $1 and balance_coins - held_coins > 0",
                purse.organization_id,
            )
        case "overdue":
            await purse.overdue()
        case "adjust":
            await purse.overdue(handlers=adjusting(how[0]))
        case _ if letters:
            await move(purse, letters[how[0] % len(letters)], step, how[1:])


async def move(purse: Purse, letter: NewMessage, step: str, how: list[Any]) -> None:
    match step:
        case "claim":
            await purse.claim(letter)
        case "depart":
            await purse.depart(letter, capture=None if how[0] is None else Capture(how[0], 1, "sms_premium"))
        case "refuse":
            await purse.fail(letter, FailureCode.PROVIDER_ERROR, queued=False)
        case "expire":
            await purse.fail(letter, FailureCode.EXPIRED, queued=True)
        case "archive":
            await purse.archive(letter)
        case _:
            await purse.report(letter, step)
