"""The pace of one number as a customer measures it: 500 messages at 50 a second (C14.5)."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from tests.acceptance.sandbox.customer import Customer, moment, phone
from tests.program import Api
from tests.waiting import until

pytestmark = pytest.mark.alone

PACE = 50
CRITICAL, BULK = 340, 160
AT_ONCE = 32


async def test_500_messages_leave_at_50_a_second_critical_before_bulk_and_tell_why_they_wait(api: Api) -> None:
    customer = await Customer.arrive(api, per_second=PACE)
    accepted = await _accept(customer, ["critical", "bulk", "critical"] * 160 + ["critical"] * 20)
    last_bulk = next(message for message in reversed(accepted) if message["priority"] == "bulk")

    waiting = (await customer.read(last_bulk))["waiting"]
    health = await api.call("GET", f"/numbers/{customer.number_id}/health")

    assert waiting["reason"] in ("rate", "behind")
    assert waiting["ahead"] > 100
    assert moment(waiting["until"]) > moment(last_bulk["createdAt"])
    assert health["queue"]["critical"] > 100
    assert 100 < health["queue"]["bulk"] <= BULK
    assert health["throughput"] == {"perSecond": PACE}

    departures = await _departures(customer)
    assert len(departures) == CRITICAL + BULK
    times = [at for at, _ in departures]
    took = (times[-1] - min(moment(message["createdAt"]) for message in accepted)).total_seconds()
    print(f"500 messages took {took:.3f} s")
    assert 9.5 <= took <= 10.5
    assert _most_in_a_second(times) <= PACE
    _assert_sixteen_to_one(departures, since=max(moment(message["createdAt"]) for message in accepted))


async def _accept(customer: Customer, priorities: Sequence[str]) -> list[Any]:
    turns = asyncio.Semaphore(AT_ONCE)

    async def one(priority: str) -> Any:
        async with turns:
            return await customer.send(phone(), priority=priority)

    accepted = await asyncio.gather(*(one(priority) for priority in priorities))
    return sorted(accepted, key=lambda message: message["id"])


async def _departures(customer: Customer) -> list[tuple[datetime, str]]:
    """(departure, class) of every message of the number, when all have left."""
    api, here = customer.api, {"numberId": customer.number_id}

    async def queue_is_empty() -> bool:
        waiting = [
            await api.call("GET", "/messages", status=status, limit=1, **here) for status in ("queued", "sending")
        ]
        return not any(page["total"] for page in waiting)

    await until(queue_is_empty, 30, "all messages have left", every=0.2)
    return sorted([(moment(it["sentAt"]), it["priority"]) async for it in api.pages("/messages", **here)])


def _most_in_a_second(times: Sequence[datetime]) -> int:
    """The most departures in any sliding second, closed at its start and open at its end."""
    second = timedelta(seconds=1)
    return max(sum(1 for other in times[index:] if other - at < second) for index, at in enumerate(times))


def _assert_sixteen_to_one(departures: Sequence[tuple[datetime, str]], since: datetime) -> None:
    """Between two `bulk` messages lie sixteen `critical` ones, from when all are there until no critical one is.

    Claims are committed in batches, of which one may overtake the other by a place.
    """
    both = [klass for at, klass in departures if at > since]
    both = both[: len(both) - both[::-1].index("critical")]
    bulk = [position for position, klass in enumerate(both) if klass == "bulk"]
    assert len(bulk) >= 10
    assert {later - earlier for earlier, later in pairwise(bulk)} <= {16, 17, 18}
    assert abs((bulk[-1] - bulk[0]) - 17 * (len(bulk) - 1)) <= 1
