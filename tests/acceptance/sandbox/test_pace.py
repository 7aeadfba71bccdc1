"""The pace of one number as a customer measures it: 500 messages at 50 a second (C14.5)."""

import asyncio
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise, starmap
from math import inf
from typing import Any

import pytest
from tests.acceptance.sandbox.customer import Customer, moment, phone
from tests.program import Api
from tests.waiting import until

pytestmark = pytest.mark.alone

PACE = 50
CRITICAL, BULK = 340, 160
AT_ONCE = 32
SLOWEST = 10.5  # seconds
ACCEPTED_IN = 4.0  # seconds: in more of them too few are left that wait
ROUNDS = 3  # of which one is in time: a slow service is late in each, a busy machine is not


async def test_500_messages_leave_at_50_a_second_critical_before_bulk_and_tell_why_they_wait(api: Api) -> None:
    for _ in range(ROUNDS):
        took = await _left_in(api)
        print(f"500 messages took {took:.3f} s")
        assert took >= 9.5
        if took <= SLOWEST:
            return
    raise AssertionError(f"500 messages took {took:.3f} s")


async def _left_in(api: Api) -> float:
    """The seconds in which they leave: none are enough where they were not taken in time."""
    customer = await Customer.arrive(api, per_second=PACE)
    accepted = await _accept(customer, ["critical", "bulk", "critical"] * 160 + ["critical"] * 20)
    created = [moment(message["createdAt"]) for message in accepted]
    if (accepting := (max(created) - min(created)).total_seconds()) > ACCEPTED_IN:
        print(f"500 messages were taken in {accepting:.3f} s")
        return inf
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
    assert _most_in_a_second(times) <= PACE
    _assert_sixteen_to_one(departures, since=max(created))
    return (times[-1] - min(created)).total_seconds()


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

    await until(queue_is_empty, "all messages have left", every=0.2)
    return sorted([(moment(it["sentAt"]), it["priority"]) async for it in api.pages("/messages", **here)])


def _most_in_a_second(times: Sequence[datetime]) -> int:
    """The most departures in any sliding second, closed at its start and open at its end."""
    second = timedelta(seconds=1)
    return max(sum(1 for other in times[index:] if other - at < second) for index, at in enumerate(times))


def _assert_sixteen_to_one(departures: Sequence[tuple[datetime, str]], since: datetime) -> None:
    """Between two `bulk` messages lie sixteen `critical` ones, from when all are there until no critical one is.

    Claims are committed in batches, of which one may overtake the other by a place. What left in one millisecond, as
    much does after a busy moment, may have left in any order. While the lane reads the rows behind the 320 that it has
    in memory (C14.5.2), a `bulk` one may go ahead of those that are read.
    """
    critical = [at for at, klass in departures if at > since and klass == "critical"]
    bulk = [at for at, klass in departures if since < at <= critical[-1] and klass == "bulk"]
    before = [(bisect_left(critical, at), bisect_right(critical, at)) for at in bulk]  # so many at least, and at most
    assert len(bulk) >= 10

    def between(one: tuple[int, int], other: tuple[int, int]) -> range:
        return range(other[0] - one[1], other[1] - one[0] + 1)

    ahead = [each for each in starmap(between, pairwise(before)) if not {15, 16, 17} & {*each}]
    assert len(ahead) <= CRITICAL // 320
    assert all(most < 15 for _, most in map(_ends, ahead)), ahead
    whole = 16 * (len(bulk) - 1 - len(ahead))
    least, most = map(sum, zip((whole - 1, whole + 1), *map(_ends, ahead), strict=True))
    assert {*range(least, most + 1)} & {*between(before[0], before[-1])}


def _ends(numbers: range) -> tuple[int, int]:
    return numbers[0], numbers[-1]
