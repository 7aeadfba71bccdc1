"""Answers to sends whose outcome was unknown by then, and that say that nothing was taken (C29.2, C15.4)."""

from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest
from tests.storage.dispatch.test_claims import NOW, NUMBER, ORGANIZATION, of, stored

from recado.channels.core.events import NotTaken
from recado.domain.channels.source import Source
from recado.engine.clock import VirtualClock
from recado.services.contacts.consents import Gathered
from recado.services.effects.consequences import Consequences
from recado.services.inbound.receipts import Receipts
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.moves import Moved
from recado.storage.dispatch import dispatch, epochs, settlements
from recado.storage.dispatch.dispatch import CLAIMED
from recado.storage.dispatch.settlements import Uncertain

SOURCE = Source("chatapp", "any", "test")
LEFT_AT = NOW + timedelta(milliseconds=40)
ANSWERED_AT = NOW + timedelta(seconds=20)
Ends = tuple[str, str, int]
"""From a state to a state, with the coins that it held."""


class Moves:
    """A consequence that keeps what it hears."""

    def __init__(self) -> None:
        self.heard: list[Ends] = []

    async def wanted(self, environments: Collection[tuple[str, str]], to_status: str) -> bool:
        return True

    async def write(self, connection: Any, moved: Sequence[Moved]) -> None:
        self.heard += [(str(each.from_status), each.to_status, each.coins) for each in moved]


class Doubt:
    """A message of which nobody knows whether it has left."""

    def __init__(self, db: Database) -> None:
        self.db = db
        self.moves = Moves()
        clock = VirtualClock(ANSWERED_AT)
        nobody_writes = Mock(take_in=AsyncMock(side_effect=lambda *_: Gathered()))
        self.receipts = Receipts(db, clock=clock, consequences=Consequences(self.moves), inbound=nobody_writes)
        self.message_id = ""

    async def arise(self, attempts: int = 1) -> None:
        self.message_id = await stored(self.db)
        await self.db.execute("update dispatch set coins = 600, attempts = $1", attempts - 1)
        await self.db.execute("update messages set attempts = $1", attempts - 1)
        epoch = await epochs.take_epoch(self.db, NOW)
        assert await dispatch.claim(self.db, [of(self.message_id)], epoch, NOW) == [CLAIMED]
        await settlements.uncertain(self.db, [Uncertain(ORGANIZATION, self.message_id, NUMBER, LEFT_AT)])

    async def answered(self, source: Source = SOURCE, **answer: Any) -> None:
        async with self.receipts.transaction() as connection:
            await self.receipts.take_in(connection, source, [NotTaken(self.message_id, ANSWERED_AT, **answer)])

    async def queue(self) -> list[tuple[Any, ...]]:
        query = """
select claimed_epoch, claimed_at, case when isfinite(not_before) then not_before - $1 end, reason, attempts
from dispatch
"""
        return [tuple(row) for row in await self.db.fetch(query, ANSWERED_AT)]

    async def record(self) -> tuple[Any, ...]:
        query = "select status, attempts, sent_at, failure_code, outcome_certain from messages"
        return tuple(await self.db.fetchrow(query))


@pytest.fixture
def doubt(database: Database) -> Doubt:
    return Doubt(database)


async def test_a_refusal_fails_the_message_and_gives_its_coins_back(doubt: Doubt) -> None:
    await doubt.arise()
    await doubt.answered(code="recipient_unreachable")
    assert await doubt.record() == ("failed", 1, None, "recipient_unreachable", True)
    assert await doubt.queue() == []
    assert doubt.moves.heard == [("sending", "failed", 600)]
    await doubt.answered(code="recipient_unreachable")
    assert len(doubt.moves.heard) == 1, "once"


@pytest.mark.parametrize(
    ("attempts", "spent", "delay", "counted"),
    [(1, False, 5, 0), (1, True, 5, 1), (3, True, 120, 3), (5, False, 5, 4)],
)
async def test_what_was_refused_for_now_waits_for_its_next_try(
    doubt: Doubt, attempts: int, spent: bool, delay: int, counted: int
) -> None:
    await doubt.arise(attempts)
    await doubt.answered(spent=spent)
    assert await doubt.queue() == [(None, None, timedelta(seconds=delay), "retry", counted)]
    assert await doubt.record() == ("queued", counted, None, None, None)
    assert doubt.moves.heard == []
    await doubt.answered(spent=spent)
    assert (await doubt.queue())[0][4] == counted, "what waits is in doubt no more"


async def test_the_fifth_refusal_for_now_is_the_last(doubt: Doubt) -> None:
    await doubt.arise(attempts=5)
    await doubt.answered(spent=True)
    assert await doubt.record() == ("failed", 5, None, "provider_error", True)
    assert doubt.moves.heard == [("sending", "failed", 600)]


async def test_an_answer_of_another_channel_or_environment_changes_nothing(doubt: Doubt) -> None:
    await doubt.arise()
    before = await doubt.queue()
    for other in (Source("sms", "any", "test"), Source("chatapp", "any", "live")):
        await doubt.answered(other, code="provider_error")
    assert (await doubt.queue(), doubt.moves.heard) == (before, [])
