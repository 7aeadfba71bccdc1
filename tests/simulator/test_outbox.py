"""Callbacks on their way: signed, batched, in order, and repeated until they are taken."""

import asyncio
from typing import Any

import orjson
import pytest

from recado.channels.core.signing import signing_key
from recado.simulator import outbox as module
from recado.simulator.outbox import CallbackOutbox


def status(number: int) -> bytes:
    return orjson.dumps(
        {"kind": "status", "status": "read", "at": "2026-11-20T12:00:00Z", "reference": f"msg_{number}"}
    )


def references(service: Any) -> list[str]:
    return [event.reference for event in service.events]


class Told:
    """The lines for the operator."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.something = asyncio.Event()

    def __call__(self, line: str) -> None:
        self.lines.append(line)
        self.something.set()


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
async def outbox(secret: str, told: Told, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(module, "FIRST_WAIT", 0.01)
    outbox = CallbackOutbox(signing_key(secret), gather_seconds=0, tell=told)
    await outbox.start()
    yield outbox
    await outbox.stop()


async def test_many_events_travel_in_batches_and_in_order(outbox: CallbackOutbox, service: Any, told: Told) -> None:
    for number in range(1_200):
        outbox.put(service.url, status(number))
    assert outbox.pending == 1_200

    await service.until(lambda it: len(it.events) == 1_200)

    assert references(service) == [f"msg_{number}" for number in range(1_200)]
    assert [len(orjson.loads(body)["events"]) for body in service.bodies] == [500, 500, 200]
    assert told.lines == []


async def test_a_service_that_fails_gets_the_same_body_again_until_it_takes_it(
    outbox: CallbackOutbox, service: Any, told: Told
) -> None:
    service.statuses = [503, 500]
    taken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    outbox.put(service.url, status(1))
    outbox.put(service.url, status(2), taken)

    await asyncio.wait_for(taken, 20)

    assert references(service) == ["msg_1", "msg_2"]
    assert service.refused == service.bodies * 2
    assert outbox.pending == 0
    assert told.lines == [f"callbacks to {service.url} wait: status 503", f"callbacks to {service.url} flow again"]


async def test_a_service_that_was_away_gets_everything_after_its_return(
    outbox: CallbackOutbox, service: Any, told: Told
) -> None:
    await service.stop()
    outbox.put(service.url, status(1))
    await asyncio.wait_for(told.something.wait(), 20)
    outbox.put(service.url, status(2))
    assert outbox.pending == 2

    await service.start()

    await service.until(lambda it: len(it.events) == 2)
    assert references(service) == ["msg_1", "msg_2"]


async def test_one_address_that_is_away_holds_up_no_other(outbox: CallbackOutbox, service: Any) -> None:
    outbox.put("http://127.0.0.1:9/away", status(1))
    outbox.put("not an address", status(2))
    taken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    outbox.put(service.url, status(3), taken)

    await asyncio.wait_for(taken, 20)

    assert references(service) == ["msg_3"]
    assert outbox.pending == 2


async def test_a_stopped_outbox_takes_nothing_and_stops_twice(outbox: CallbackOutbox, service: Any) -> None:
    await outbox.stop()
    await outbox.stop()
    outbox.put(service.url, status(1))

    assert outbox.pending == 0
