"""What a dead process had in hand: sent again only where a repeat does no harm, uncertain everywhere else (C29.2)."""

import random
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from recado.actors.rescuer import Rescuer
from recado.domain.ids import MESSAGE, IdSource
from recado.domain.retry import RETRY_DELAYS
from recado.engine.clock import SystemClock, VirtualClock
from recado.storage import dispatch, messages
from recado.storage.dispatch import CLAIMED, Claim
from recado.storage.messages import NewMessage
from recado.storage.postgres import Database

ORGANIZATION = "org_" + "0" * 21
NUMBER = "num_" + "0" * 21
CLOCK = VirtualClock(SystemClock().now().replace(microsecond=0))
IDS = IdSource(CLOCK, random.Random(9))
NOW = CLOCK.now()

Rescued = Callable[..., AbstractAsyncContextManager[None]]


async def claimed_by_a_dead_process(db: Database, *, env: str = "test", attempts: int = 1) -> str:
    message_id = IDS.new(MESSAGE)
    fields: dict[str, Any] = {
        "organization_id": ORGANIZATION, "env": env, "channel": "chatapp", "id": message_id, "number_id": NUMBER,
        "type": "template", "recipient": "+5511987654321", "recipient_hash": 1, "klass": 1, "force": False,
        "template_id": None, "payload": None, "template_vars": None, "metadata": None, "campaign_id": None,
        "scheduled_at": None, "due_at": NOW, "ttl": timedelta(hours=1), "held_base_ms": 0, "accepted_at": NOW,
    }  # fmt: skip
    assert await messages.accept(db, [NewMessage(**fields)]) == [messages.STORED]
    epoch = await dispatch.take_epoch(db, NOW)
    await db.execute("update dispatch set attempts = $2 where id = $1", message_id, attempts - 1)
    await db.execute("update messages set attempts = $2 where id = $1", message_id, attempts - 1)
    assert await dispatch.claim(db, [Claim(ORGANIZATION, message_id, 1, False, NOW)], epoch, NOW) == [CLAIMED]
    return message_id


async def state(db: Database, message_id: str) -> tuple[str, str | None, float | None, int]:
    """The message's status; why it waits, for how many seconds, and after how many attempts."""
    row = await db.fetchrow(
        "select m.status, d.reason, d.not_before, d.attempts, m.attempts as counted"
        " from messages m join dispatch d using (organization_id, id) where m.id = $1",
        message_id,
    )
    assert row is not None
    assert row["attempts"] == row["counted"]
    endless = row["not_before"] is None or row["not_before"].year > 9000
    return row["status"], row["reason"], None if endless else (row["not_before"] - NOW).total_seconds(), row["attempts"]


@pytest.fixture
def rescued(database: Database) -> Rescued:
    @asynccontextmanager
    async def take_over(*, idempotent_in: str) -> AsyncIterator[None]:
        """A new process, with an adapter that declares itself idempotent in one environment only."""
        epoch = await dispatch.take_epoch(database, NOW)
        records: Any = SimpleNamespace(
            db=database,
            clock=CLOCK,
            provider_for=lambda env: SimpleNamespace(name="scripted", idempotent=env == idempotent_in),
        )
        sending: Any = SimpleNamespace(epoch=epoch)
        rescuer = Rescuer(records, sending=sending, lost=lambda error: None)
        await rescuer.start()
        yield
        await rescuer.stop()

    return take_over


async def test_what_a_dead_process_had_in_hand_is_uncertain_and_not_sent_again(
    database: Database, rescued: Rescued
) -> None:
    message_id = await claimed_by_a_dead_process(database)
    async with rescued(idempotent_in="live"):
        assert await state(database, message_id) == ("sending", "uncertain", None, 1)


@pytest.mark.parametrize("attempts", [1, 2, 3, 4])
async def test_an_idempotent_adapter_is_given_it_again_after_the_delay_of_its_attempt(
    database: Database, rescued: Rescued, attempts: int
) -> None:
    message_id = await claimed_by_a_dead_process(database, attempts=attempts)
    async with rescued(idempotent_in="test"):
        assert await state(database, message_id) == ("queued", "retry", RETRY_DELAYS[attempts - 1], attempts)
    assert await dispatch.release_due(database, NOW + timedelta(seconds=600)) == [(ORGANIZATION, "test", NUMBER)]


async def test_after_the_last_attempt_it_is_uncertain_with_an_idempotent_adapter_too(
    database: Database, rescued: Rescued
) -> None:
    message_id = await claimed_by_a_dead_process(database, attempts=5)
    async with rescued(idempotent_in="test"):
        assert await state(database, message_id) == ("sending", "uncertain", None, 5)


async def test_what_is_uncertain_already_stays_so_whatever_adapter_comes_next(
    database: Database, rescued: Rescued
) -> None:
    message_id = await claimed_by_a_dead_process(database)
    async with rescued(idempotent_in="live"):
        pass
    async with rescued(idempotent_in="test"):
        assert await state(database, message_id) == ("sending", "uncertain", None, 1)
