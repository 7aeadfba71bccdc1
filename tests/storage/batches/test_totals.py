"""Totals as deltas: exact whatever the order, and no two commits wait for each other (C15.5, C15.6)."""

import asyncio
import random
from datetime import UTC, datetime
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.post import LETTERS, POST

from recado.domain.channels import chatapp
from recado.domain.channels.policies import POLICIES
from recado.domain.channels.policy import Policy
from recado.domain.messages.message import MessageStatus
from recado.storage.batches import totals
from recado.storage.batches.totals import BATCH, CAMPAIGN
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.moves import Moved

NOW = datetime(2026, 11, 21, tzinfo=UTC)
COUNTS = ("queued", "sent", "delivered", "read", "failed", "archived")
SHOWN = {MessageStatus.SENDING: "queued"}


def next_states(policy: Policy) -> dict[MessageStatus, list[MessageStatus]]:
    return {
        status: sorted({target for source, _, target in policy.machine.transitions() if source is status})
        for status in MessageStatus
    }


def moved(
    source: str | None, target: str, coins: int = 0, batch: str = "btc_1", campaign: str | None = "c",
    channel: str = "chatapp",
) -> Moved:  # fmt: skip
    return Moved("org_1", "test", channel, "msg_1", source, target, coins, None, batch, campaign)


@pytest.mark.parametrize("policy", [chatapp.POLICY, LETTERS], ids=["chat-app", "letters"])
@given(lives=st.lists(st.lists(st.integers(0, 9), max_size=8), max_size=20), price=st.integers(0, 500))
def test_each_message_is_in_one_count_and_its_coins_are_held_or_charged_or_free(
    policy: Policy, lives: list[list[int]], price: int
) -> None:
    """Each life is a walk through the states of a message, told as the commits tell it."""
    with patch.dict(POLICIES, {POST: LETTERS}):
        check_lives(policy, lives, price)


def check_lives(policy: Policy, lives: list[list[int]], price: int) -> None:
    after, by_state = next_states(policy), SHOWN | {state: str(status) for state, status in policy.shown.items()}
    sums = [0] * 9
    shown: list[MessageStatus] = []
    held = charged = 0
    for life in lives:
        status = MessageStatus.QUEUED
        steps = [moved(None, status, price, channel=policy.channel)]
        held += price
        paid = False
        for choice in life:
            if not after[status]:
                break
            before, status = status, after[status][choice % len(after[status])]
            step = moved(before, status, channel=policy.channel)
            if step.left_queue:
                step.coins = price
                held -= price
            elif before is MessageStatus.FAILED and status is not MessageStatus.ARCHIVED and not paid:
                step.coins = price
            if step.coins and status in ("sent", "delivered", "read"):
                paid = True
                charged += price
            steps.append(step)
        shown.append(status)
        for step in steps:
            for delta in totals.deltas([step]).values():
                sums = [a + b for a, b in zip(sums, delta, strict=True)]
    both = 2  # the batch and the campaign
    assert sums[0] == both * len(lives)
    for place, name in enumerate(COUNTS, start=1):
        assert sums[place] == both * sum(by_state.get(status, status.value) == name for status in shown)
    assert sums[7:] == [both * held, both * charged]


def test_what_changes_no_count_is_no_change() -> None:
    assert totals.deltas([moved("queued", "sending"), moved("sending", "queued")]) == {}
    assert totals.deltas([Moved("org_1", "test", "chatapp", "msg_1", None, "delivered")]) == {}


async def counts(database: Database, kind: str, key: str) -> dict[str, Any]:
    row = await database.fetchrow("select * from totals where kind = $1 and key = $2", kind, key)
    return {} if row is None else dict(row)


async def test_deltas_are_added_and_what_is_empty_is_known(database: Database) -> None:
    changed = await totals.add(database, totals.deltas([moved(None, "queued", 5), moved(None, "queued", 5)]), NOW)
    assert {(each.key[2:], each.queued) for each in changed} == {((BATCH, "btc_1"), 2), ((CAMPAIGN, "c"), 2)}
    await totals.add(database, totals.deltas([moved("sending", "sent", 5)]), NOW)
    changed = await totals.add(database, totals.deltas([moved("queued", "failed", 5)]), NOW)
    assert {each.queued for each in changed} == {0}
    row = await counts(database, BATCH, "btc_1")
    assert {name: row[name] for name in ("accepted", *COUNTS)} == {
        "accepted": 2, "queued": 0, "sent": 1, "delivered": 0, "read": 0, "failed": 1, "archived": 0,
    }  # fmt: skip
    assert (row["held_coins"], row["charged_coins"], row["first_at"], row["last_at"]) == (0, 5, NOW, NOW)


async def test_a_message_that_was_never_counted_counts_nowhere(database: Database) -> None:
    assert await totals.add(database, totals.deltas([moved("sent", "delivered")]), NOW) == []
    assert await counts(database, BATCH, "btc_1") == {}


async def test_many_commits_over_the_same_totals_wait_for_none_forever(database: Database) -> None:
    chance = random.Random(5)
    campaigns = [f"c{n}" for n in range(6)]
    await totals.add(database, totals.deltas([moved(None, "queued", campaign=c) for c in campaigns for _ in "ab"]), NOW)

    async def commit(source: str | None, target: str) -> None:
        some = chance.sample(campaigns, 4)
        async with database.hot.transaction() as connection:
            await totals.add(connection, totals.deltas([moved(source, target, campaign=c) for c in some]), NOW)

    await asyncio.gather(*(commit(None, "queued") for _ in range(40)), *(commit("queued", "sent") for _ in range(40)))
    rows = await database.fetch(
        "select sum(accepted) as a, sum(queued + sent) as n from totals where kind = 'campaign'"
    )
    assert (rows[0]["a"], rows[0]["n"]) == (12 + 160, 12 + 160)
    batch = await counts(database, BATCH, "btc_1")
    assert (batch["accepted"], batch["sent"]) == (12 + 160, 160)
