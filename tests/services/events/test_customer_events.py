"""Events are stored many in a commit, in turns of their organizations, and once whatever becomes of an answer (C21)."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from tests.waiting import until_locked_out

from recado.domain.core.errors import Unavailable
from recado.domain.core.ids import CUSTOMER_EVENT, IdSource
from recado.domain.events.customer_event import ContactKeys, CustomerEvent, NewCustomerEvent
from recado.engine.clock import SystemClock
from recado.services.events.customer_events import IN_A_COMMIT, CustomerEvents
from recado.storage.core.connections.postgres import Database
from recado.storage.events import customer_events

ORGANIZATION = "org_" + "0" * 21
CLOCK = SystemClock()
IDS = IdSource(CLOCK, random.Random(6))


def event(event_id: str, organization_id: str = ORGANIZATION) -> NewCustomerEvent:
    return NewCustomerEvent(
        organization_id=organization_id, env="test", id=IDS.new(CUSTOMER_EVENT), event_id=event_id, name="order.paid",
        contact=ContactKeys(external_id="nobody"), occurred_at=CLOCK.now(), window=timedelta(hours=1), value=None,
        currency="BRL", properties=None,
    )  # fmt: skip


@pytest.fixture
async def events(database: Database) -> AsyncIterator[CustomerEvents]:
    service = CustomerEvents(database, clock=CLOCK)
    await service.start()
    yield service
    await service.stop()


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[NewCustomerEvent]]:
    """What each statement stored."""
    stored: list[Sequence[NewCustomerEvent]] = []
    store = customer_events.store

    async def noted(executor: Any, batch: Sequence[NewCustomerEvent]) -> dict[str, CustomerEvent]:
        stored.append(batch)
        return await store(executor, batch)

    monkeypatch.setattr(customer_events, "store", noted)
    return stored


async def test_many_events_of_several_organizations_go_in_one_commit(
    events: CustomerEvents, batches: list[Sequence[NewCustomerEvent]]
) -> None:
    given = [event(str(number), f"org_{number % 3:021}") for number in range(IN_A_COMMIT)]
    answers = await asyncio.gather(*map(events.record, given))
    assert [answer.event.id for answer in answers] == [new.id for new in given]
    assert not any(answer.duplicate for answer in answers)
    assert len(batches) <= 4  # the first ones that come find a free connection each
    assert max(len({new.organization_id for new in batch}) for batch in batches) == 3


async def test_a_commit_whose_answer_was_lost_is_answered_as_the_first(
    events: CustomerEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, losses = customer_events.store, [1]

    async def losing(executor: Any, batch: Sequence[NewCustomerEvent]) -> dict[str, CustomerEvent]:
        found = await store(executor, batch)
        if losses:
            losses.pop()
            raise ConnectionResetError
        return found

    monkeypatch.setattr(customer_events, "store", losing)
    new = event("e")
    answer = await events.record(new)
    assert (answer.event.id, answer.duplicate, losses) == (new.id, False, [])
    again = await events.record(event("e"))
    assert (again.event, again.duplicate) == (answer.event, True)


async def test_a_repeat_waits_for_the_first_that_is_being_stored(events: CustomerEvents, database: Database) -> None:
    first, second = event("e"), event("e")
    async with database.transaction() as connection:
        assert (await customer_events.store(connection, [first])).keys() == {first.id}
        repeat = events.record(second)
        await until_locked_out(database)
        assert not repeat.done()
    answer = await repeat
    assert (answer.event.id, answer.duplicate) == (first.id, True)


async def test_a_repeat_is_stored_when_the_first_was_undone(events: CustomerEvents, database: Database) -> None:
    first, second = event("e"), event("e")
    with suppress(ZeroDivisionError):
        async with database.transaction() as connection:
            assert (await customer_events.store(connection, [first])).keys() == {first.id}
            repeat = events.record(second)
            await until_locked_out(database)
            raise ZeroDivisionError
    answer = await repeat
    assert (answer.event.id, answer.duplicate) == (second.id, False)


async def test_what_is_gone_before_it_can_be_shown_is_to_be_sent_again(
    events: CustomerEvents, monkeypatch: pytest.MonkeyPatch
) -> None:
    await events.record(event("e"))

    async def nothing(*_: Any) -> dict[Any, Any]:
        return {}

    monkeypatch.setattr(customer_events, "known", nothing)
    with pytest.raises(Unavailable):
        await events.record(event("e"))
