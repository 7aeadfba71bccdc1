"""Whose delivery begins next, and how much of one organization is under way (C31)."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from recado.actors.webhooks.webhook_fair_queue import (
    BEGUN_BESIDE_REQUESTS,
    BEGUN_IN_A_TURN,
    CALLS_IN_ANY_CASE,
    CALLS_OF_AN_ORGANIZATION,
    MOST_UNWRITTEN,
    FairCallQueue,
)
from recado.domain.webhooks.webhook import SubscriptionKey
from recado.engine.clock import SystemClock
from recado.engine.turns import Turns

A, B = "org_a", "org_b"


class ByHand(Turns):
    """Turns that a test gives, one by one."""

    def __init__(self) -> None:
        super().__init__(SystemClock())
        self.asked: list[Callable[[], None]] = []

    def ask(self, step: Callable[[], None]) -> None:
        self.asked.append(step)

    def give(self) -> None:
        assert len(self.asked) == 1
        self.asked.pop()()

    def give_all(self) -> None:
        while self.asked:
            self.give()


class Backlog:
    """One subscription with so many deliveries. `begun`: every one of a queue, by its subscription."""

    def __init__(self, queue: FairCallQueue, begun: list[str], key: SubscriptionKey, left: int) -> None:
        self.left = left
        self.in_flight = 0
        self._queue, self._begun, self._key = queue, begun, key
        queue.enter(key, self)

    def begin_next(self) -> bool:
        if not self.left:
            return False
        self.left -= 1
        self.in_flight += 1
        self._queue.began(self._key)
        self._begun.append(self._key.subscription_id)
        return True


@pytest.fixture
def turns() -> ByHand:
    return ByHand()


@pytest.fixture
def queue(turns: ByHand) -> FairCallQueue:
    return FairCallQueue(turns)


@pytest.fixture
def begun() -> list[str]:
    return []


def test_a_turn_lets_a_few_begin_and_the_rest_waits_for_the_next(
    turns: ByHand, queue: FairCallQueue, begun: list[str]
) -> None:
    Backlog(queue, begun, SubscriptionKey(A, "one"), BEGUN_IN_A_TURN + 5)
    assert begun == []
    turns.give()
    assert len(begun) == BEGUN_IN_A_TURN
    turns.give_all()
    assert len(begun) == BEGUN_IN_A_TURN + 5 == queue.calls


async def test_beside_a_request_a_turn_is_shorter(turns: ByHand, queue: FairCallQueue, begun: list[str]) -> None:
    task: Any = asyncio.current_task()
    turns.begin(task, SystemClock().monotonic())
    Backlog(queue, begun, SubscriptionKey(A, "one"), 100)
    turns.give()
    assert len(begun) == BEGUN_BESIDE_REQUESTS


def test_a_single_delivery_of_another_organization_is_the_second_to_begin(
    turns: ByHand, queue: FairCallQueue, begun: list[str]
) -> None:
    for number in range(20):
        Backlog(queue, begun, SubscriptionKey(A, f"a{number}"), 100)
    Backlog(queue, begun, SubscriptionKey(B, "b"), 1)
    turns.give()
    assert begun[1] == "b"


def test_the_subscriptions_of_an_organization_take_turns(turns: ByHand, queue: FairCallQueue, begun: list[str]) -> None:
    for number in range(4):
        Backlog(queue, begun, SubscriptionKey(A, f"a{number}"), 100)
    turns.give()
    assert set(Counter(begun).values()) == {BEGUN_IN_A_TURN // 4}


def test_all_subscriptions_of_an_organization_share_its_calls(
    turns: ByHand, queue: FairCallQueue, begun: list[str]
) -> None:
    for number in range(20):
        Backlog(queue, begun, SubscriptionKey(A, f"a{number}"), 100)
    turns.give_all()
    assert len(begun) == CALLS_OF_AN_ORGANIZATION == queue.calls
    Backlog(queue, begun, SubscriptionKey(B, "b"), 100)
    turns.give_all()
    assert begun.count("b") == 100
    queue.ended(SubscriptionKey(A, "a7"))
    turns.give_all()
    assert len(begun) == CALLS_OF_AN_ORGANIZATION + 101


def test_a_subscription_has_a_few_calls_although_others_hang_and_have_the_share(
    turns: ByHand, queue: FairCallQueue, begun: list[str]
) -> None:
    for number in range(4):
        Backlog(queue, begun, SubscriptionKey(A, f"hangs{number}"), CALLS_OF_AN_ORGANIZATION)
    turns.give_all()
    well = Backlog(queue, begun, SubscriptionKey(A, "well"), 100)
    turns.give_all()
    assert begun.count("well") == CALLS_IN_ANY_CASE
    well.in_flight -= 1
    queue.ended(SubscriptionKey(A, "well"))
    turns.give_all()
    assert begun.count("well") == CALLS_IN_ANY_CASE + 1
    assert len(begun) == CALLS_OF_AN_ORGANIZATION + CALLS_IN_ANY_CASE + 1


def test_results_that_are_not_written_yet_hold_further_attempts_back(
    turns: ByHand, queue: FairCallQueue, begun: list[str]
) -> None:
    Backlog(queue, begun, SubscriptionKey(A, "one"), MOST_UNWRITTEN + 100)
    turns.give_all()
    for _ in range(MOST_UNWRITTEN):
        queue.ended(SubscriptionKey(A, "one"))
        turns.give_all()
    assert (len(begun), queue.calls) == (MOST_UNWRITTEN, 0)
    queue.written(SubscriptionKey(A, "one"))
    turns.give_all()
    assert len(begun) == MOST_UNWRITTEN + 1


def test_the_calls_of_all_organizations_are_bounded_and_one_has_half_of_them(turns: ByHand, begun: list[str]) -> None:
    queue = FairCallQueue(turns, most=8)
    Backlog(queue, begun, SubscriptionKey(A, "a"), 10)
    turns.give_all()
    assert begun == ["a"] * 4
    Backlog(queue, begun, SubscriptionKey(B, "b"), 10)
    turns.give_all()
    Backlog(queue, begun, SubscriptionKey("org_c", "c"), 10)
    assert (begun, turns.asked) == (["a"] * 4 + ["b"] * 4, [])
    queue.ended(SubscriptionKey(A, "a"))
    turns.give_all()
    assert len(begun) == 9


def test_whoever_left_is_not_asked_again(turns: ByHand, queue: FairCallQueue, begun: list[str]) -> None:
    Backlog(queue, begun, SubscriptionKey(A, "gone"), 10)
    Backlog(queue, begun, SubscriptionKey(A, "there"), 10)
    queue.leave(SubscriptionKey(A, "gone"))
    turns.give_all()
    assert begun == ["there"] * 10


def test_nothing_is_kept_of_an_organization_that_has_nothing_under_way(
    turns: ByHand, queue: FairCallQueue, begun: list[str]
) -> None:
    backlog = Backlog(queue, begun, SubscriptionKey(A, "one"), 3)
    turns.give_all()
    for _ in range(3):
        queue.ended(SubscriptionKey(A, "one"))
        queue.written(SubscriptionKey(A, "one"))
    assert vars(queue)["_shares"] == {}
    backlog.left = 2
    queue.enter(SubscriptionKey(A, "one"), backlog)
    turns.give_all()
    assert len(begun) == 5


def test_a_subscription_that_fails_to_begin_stops_no_other(
    turns: ByHand, queue: FairCallQueue, begun: list[str]
) -> None:
    class Broken:
        in_flight = 0

        def begin_next(self) -> bool:
            raise RuntimeError("a fault of ours")

    queue.enter(SubscriptionKey(A, "broken"), Broken())
    Backlog(queue, begun, SubscriptionKey(B, "b"), 3)
    turns.give_all()
    assert begun == ["b"] * 3
