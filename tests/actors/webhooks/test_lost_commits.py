"""Whatever becomes of the commit of a result, its delivery is made, and each attempt counts once."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web
from tests.actors.webhooks.conftest import Place, Receiver
from tests.crash.rows import read_untold

from recado.actors.webhooks.webhook_attempt import result_of
from recado.domain.core.errors import Unavailable
from recado.storage.webhooks import deliveries
from recado.storage.webhooks.deliveries import Result

SETTLE = "recado.actors.webhooks.webhook_dispatcher.deliveries.settle"


def refusing(receiver: Receiver, times: int) -> None:
    """Answer so often with 503, and then with 200."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=503 if len(receiver.received) <= times else 200)

    receiver.answer = answer


@pytest.fixture
def lose(monkeypatch: pytest.MonkeyPatch) -> Callable[..., asyncio.Event]:
    """Have the next write of results fail, by default after its commit; the event tells that one succeeded since."""
    settle = deliveries.settle

    def next_one(error: Exception, *, committed: bool = True) -> asyncio.Event:
        errors, written = [error], asyncio.Event()

        async def losing(executor: Any, results: Sequence[Result]) -> None:
            if committed or not errors:
                await settle(executor, results)
            if errors:
                raise errors.pop()
            written.set()

        monkeypatch.setattr(SETTLE, losing)
        return written

    return next_one


async def test_a_success_whose_commit_was_not_heard_of_is_logged_once(
    place: Place, receiver: Receiver, lose: Callable[..., asyncio.Event]
) -> None:
    subscription = await place.subscribe(receiver.url)
    written = lose(ConnectionResetError())
    await place.emit()
    await asyncio.wait_for(written.wait(), 10)

    (logged,) = await place.settled(subscription)
    assert (logged["status"], logged["attempts"], len(logged["history"])) == ("delivered", 1, 1)
    assert await place.pending(subscription) == []
    assert len(receiver.received) == 1


async def test_a_refusal_whose_commit_was_not_heard_of_counts_as_one_attempt(
    place: Place, receiver: Receiver, lose: Callable[..., asyncio.Event]
) -> None:
    refusing(receiver, 1)
    subscription = await place.subscribe(receiver.url)
    written = lose(ConnectionResetError())
    await place.emit()
    await asyncio.wait_for(written.wait(), 10)
    (row,) = await place.pending(subscription)
    assert (row["attempts"], len(row["history"])) == (1, 1)

    place.clock.ahead = timedelta(seconds=40)
    (logged,) = await place.settled(subscription)
    assert (logged["status"], logged["attempts"], len(logged["history"])) == ("delivered", 2, 2)
    assert len(receiver.received) == 2


@pytest.mark.parametrize("refused", [0, 1])
async def test_a_delivery_whose_result_is_not_written_is_made_once_more(
    place: Place, receiver: Receiver, lose: Callable[..., asyncio.Event], refused: int
) -> None:
    refusing(receiver, refused)
    subscription = await place.subscribe(receiver.url)
    lose(RuntimeError("no row of this batch can be written"), committed=False)
    await place.emit()

    (logged,) = await place.settled(subscription)
    assert (logged["status"], logged["attempts"], len(logged["history"])) == ("delivered", 1, 1)
    assert len(receiver.received) == 2


async def test_a_delivery_whose_result_finds_no_room_is_made_once_more(
    place: Place, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscription = await place.subscribe(receiver.url)
    put, full = (
        place.webhooks.dispatcher.results.put,
        [Unavailable("Too much work is waiting for the database: try again shortly.")],
    )

    def finding_none(result: Result) -> "asyncio.Future[None]":
        if full:
            raise full.pop()
        return put(result)

    monkeypatch.setattr(place.webhooks.dispatcher.results, "put", finding_none)
    await place.emit()

    (logged,) = await place.settled(subscription)
    assert (logged["status"], logged["attempts"]) == ("delivered", 1)
    assert len(receiver.received) == 2


async def test_a_delivery_whose_result_cannot_be_told_is_made_once_more(
    place: Place, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    subscription = await place.subscribe(receiver.url)
    faults = [RuntimeError("a fault of the program")]

    def faulty(*args: Any, **how: Any) -> Result:
        if faults:
            raise faults.pop()
        return result_of(*args, **how)

    monkeypatch.setattr("recado.actors.webhooks.webhook_subscription.result_of", faulty)
    await place.emit()

    (logged,) = await place.settled(subscription)
    assert (logged["status"], logged["attempts"]) == ("delivered", 1)
    assert len(receiver.received) == 2


async def test_after_four_refusals_the_next_attempt_waits_for_a_minute_and_is_made(
    place: Place, receiver: Receiver
) -> None:
    refusing(receiver, 4)
    subscription = await place.subscribe(receiver.url, backoff_seconds=1, max_attempts=15)
    await place.emit()
    for attempts in (1, 2, 3):
        await place.until_attempted(subscription, attempts)
        place.clock.ahead += timedelta(seconds=20)
    await place.until_attempted(subscription, 4)

    (untold,) = await read_untold(place.db)
    assert untold.attempts == len(receiver.received) == 4
    assert untold.pause is not None
    assert 57.6 <= untold.pause <= 70.41  # what was tried is stamped to the millisecond, rounded down
    place.clock.ahead += timedelta(seconds=71)
    (logged,) = await place.settled(subscription)
    assert (logged["status"], logged["attempts"]) == ("delivered", 5)
