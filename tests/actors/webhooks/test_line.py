"""Whose delivery begins next, and how much of one organization is under way (C31)."""

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from recado.actors.webhooks.webhook_line import (
    BEGUN_BESIDE_REQUESTS,
    BEGUN_IN_A_TURN,
    CALLS_IN_ANY_CASE,
    CALLS_OF_AN_ORGANIZATION,
    MOST_UNWRITTEN,
    CallLine,
)
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


class Queue:
    """One subscription with so many deliveries. `begun`: every one of a line, by its subscription."""

    def __init__(self, line: CallLine, begun: list[str], key: tuple[str, str], left: int) -> None:
        self.left = left
        self.in_flight = 0
        self._line, self._begun, self._key = line, begun, key
        line.enter(key, self)

    def begin_next(self) -> bool:
        if not self.left:
            return False
        self.left -= 1
        self.in_flight += 1
        self._line.began(self._key)
        self._begun.append(self._key[1])
        return True


@pytest.fixture
def turns() -> ByHand:
    return ByHand()


@pytest.fixture
def line(turns: ByHand) -> CallLine:
    return CallLine(turns)


@pytest.fixture
def begun() -> list[str]:
    return []


def test_a_turn_lets_a_few_begin_and_the_rest_waits_for_the_next(
    turns: ByHand, line: CallLine, begun: list[str]
) -> None:
    Queue(line, begun, (A, "one"), BEGUN_IN_A_TURN + 5)
    assert begun == []
    turns.give()
    assert len(begun) == BEGUN_IN_A_TURN
    turns.give_all()
    assert len(begun) == BEGUN_IN_A_TURN + 5 == line.calls


async def test_beside_a_request_a_turn_is_shorter(turns: ByHand, line: CallLine, begun: list[str]) -> None:
    task: Any = asyncio.current_task()
    turns.begin(task, SystemClock().monotonic())
    Queue(line, begun, (A, "one"), 100)
    turns.give()
    assert len(begun) == BEGUN_BESIDE_REQUESTS


def test_a_single_delivery_of_another_organization_is_the_second_to_begin(
    turns: ByHand, line: CallLine, begun: list[str]
) -> None:
    for number in range(20):
        Queue(line, begun, (A, f"a{number}"), 100)
    Queue(line, begun, (B, "b"), 1)
    turns.give()
    assert begun[1] == "b"


def test_the_subscriptions_of_an_organization_take_turns(turns: ByHand, line: CallLine, begun: list[str]) -> None:
    for number in range(4):
        Queue(line, begun, (A, f"a{number}"), 100)
    turns.give()
    assert set(Counter(begun).values()) == {BEGUN_IN_A_TURN // 4}


def test_all_subscriptions_of_an_organization_share_its_calls(turns: ByHand, line: CallLine, begun: list[str]) -> None:
    for number in range(20):
        Queue(line, begun, (A, f"a{number}"), 100)
    turns.give_all()
    assert len(begun) == CALLS_OF_AN_ORGANIZATION == line.calls
    Queue(line, begun, (B, "b"), 100)
    turns.give_all()
    assert begun.count("b") == 100
    line.ended((A, "a7"))
    turns.give_all()
    assert len(begun) == CALLS_OF_AN_ORGANIZATION + 101


def test_a_subscription_has_a_few_calls_although_others_hang_and_have_the_share(
    turns: ByHand, line: CallLine, begun: list[str]
) -> None:
    for number in range(4):
        Queue(line, begun, (A, f"hangs{number}"), CALLS_OF_AN_ORGANIZATION)
    turns.give_all()
    well = Queue(line, begun, (A, "well"), 100)
    turns.give_all()
    assert begun.count("well") == CALLS_IN_ANY_CASE
    well.in_flight -= 1
    line.ended((A, "well"))
    turns.give_all()
    assert begun.count("well") == CALLS_IN_ANY_CASE + 1
    assert len(begun) == CALLS_OF_AN_ORGANIZATION + CALLS_IN_ANY_CASE + 1


def test_results_that_are_not_written_yet_hold_further_attempts_back(
    turns: ByHand, line: CallLine, begun: list[str]
) -> None:
    Queue(line, begun, (A, "one"), MOST_UNWRITTEN + 100)
    turns.give_all()
    for _ in range(MOST_UNWRITTEN):
        line.ended((A, "one"))
        turns.give_all()
    assert (len(begun), line.calls) == (MOST_UNWRITTEN, 0)
    line.written((A, "one"))
    turns.give_all()
    assert len(begun) == MOST_UNWRITTEN + 1


def test_the_calls_of_all_organizations_are_bounded_and_one_has_half_of_them(turns: ByHand, begun: list[str]) -> None:
    line = CallLine(turns, most=8)
    Queue(line, begun, (A, "a"), 10)
    turns.give_all()
    assert begun == ["a"] * 4
    Queue(line, begun, (B, "b"), 10)
    turns.give_all()
    Queue(line, begun, ("org_c", "c"), 10)
    assert (begun, turns.asked) == (["a"] * 4 + ["b"] * 4, [])
    line.ended((A, "a"))
    turns.give_all()
    assert len(begun) == 9


def test_whoever_left_is_not_asked_again(turns: ByHand, line: CallLine, begun: list[str]) -> None:
    Queue(line, begun, (A, "gone"), 10)
    Queue(line, begun, (A, "there"), 10)
    line.leave((A, "gone"))
    turns.give_all()
    assert begun == ["there"] * 10


def test_nothing_is_kept_of_an_organization_that_has_nothing_under_way(
    turns: ByHand, line: CallLine, begun: list[str]
) -> None:
    queue = Queue(line, begun, (A, "one"), 3)
    turns.give_all()
    for _ in range(3):
        line.ended((A, "one"))
        line.written((A, "one"))
    assert vars(line)["_shares"] == {}
    queue.left = 2
    line.enter((A, "one"), queue)
    turns.give_all()
    assert len(begun) == 5


def test_a_subscription_that_fails_to_begin_stops_no_other(turns: ByHand, line: CallLine, begun: list[str]) -> None:
    class Broken:
        in_flight = 0

        def begin_next(self) -> bool:
            raise RuntimeError("a fault of ours")

    line.enter((A, "broken"), Broken())
    Queue(line, begun, (B, "b"), 3)
    turns.give_all()
    assert begun == ["b"] * 3
