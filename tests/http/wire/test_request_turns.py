"""Requests that begin in one turn of the event loop (C31)."""

import asyncio

import pytest
from tests.waiting import until

from recado.http.wire import request_turns
from recado.http.wire.request_turns import BYTES_OF_PLACE, PROBES, RequestTurns

STRANGER = "?"  # how the names of those begin here who are no organization


class Crowd:
    """Requests that ask for their turn all at once. `begun`: their networks, in the order in which they began."""

    def __init__(self, most: int, *, others: bool = True) -> None:
        """`others`: some ask already, of two more networks."""
        self._turns = RequestTurns(most)
        self.begun: list[str] = []
        if others:
            assert self._turns.wait("x") is None
            assert self._turns.wait("y") is None

    async def request(self, network: str, body: int = 0) -> None:
        turn = self._turns.wait(network, stranger=network.startswith(STRANGER), body=body)
        if turn is not None:
            await turn
        self.begun.append(network)

    def begin_at_once(self, network: str, count: int) -> bool:
        """Whether none of so many requests has to wait."""
        turns = [self._turns.wait(network) for _ in range(count)]
        return turns == [None] * count

    def ask(self, *networks: str, body: int = 0) -> list[asyncio.Task[None]]:
        return [asyncio.create_task(self.request(network, body)) for network in networks]


async def test_who_asks_for_very_much_does_not_make_another_wait_for_all_of_it() -> None:
    crowd = Crowd(4)
    asked = crowd.ask(*"a" * 40)
    await asyncio.sleep(0)  # one turn
    assert crowd.begun == ["a"] * 4
    asked += crowd.ask("b")
    await asyncio.gather(*asked)
    assert "b" in crowd.begun[:12]  # three turns
    assert len(crowd.begun) == 41


async def test_bodies_take_places_of_a_turn_by_their_length() -> None:
    crowd = Crowd(8)
    asked = crowd.ask(*"a" * 8, body=3 * BYTES_OF_PLACE)  # four places each; the two before have taken two
    await asyncio.sleep(0)
    assert crowd.begun == ["a"] * 2
    asked += crowd.ask("b")
    await asyncio.gather(*asked)
    assert "b" in crowd.begun[:6]  # within the second turn that begins after it came
    assert len(crowd.begun) == 9


async def test_a_body_longer_than_a_turn_begins_at_its_turn() -> None:
    crowd = Crowd(4)
    asked = crowd.ask(*"abc", body=100 * BYTES_OF_PLACE)
    await asyncio.sleep(0)
    assert crowd.begun == ["a"]
    await asyncio.gather(*asked)
    assert crowd.begun == ["a", "b", "c"]


async def test_a_few_requests_begin_without_a_wait() -> None:
    crowd = Crowd(6)
    asked = crowd.ask(*"aabb")
    await asyncio.sleep(0)
    assert len(crowd.begun) == 4
    await asyncio.gather(*asked)


async def test_who_asks_for_little_goes_on_before_the_many_of_many_others() -> None:
    crowd = Crowd(4)
    asked = crowd.ask(*"cdefgh" * 20)
    await asyncio.sleep(0)
    asked += crowd.ask("b")
    await asyncio.gather(*asked)
    assert "b" in crowd.begun[:16]
    assert len(crowd.begun) == 121


async def test_very_many_strangers_do_not_make_organizations_wait_for_all_of_them() -> None:
    crowd = Crowd(4)
    strangers = [f"{STRANGER}{number}" for number in range(90)]
    asked = crowd.ask(*strangers, *"aaaabbbb")
    await asyncio.gather(*asked)
    assert set(crowd.begun[:20]) > {"a", "b"}
    assert [party for party in crowd.begun[:20] if party in "ab"] == [*"abababab"]


async def test_a_stranger_among_organizations_is_one_party() -> None:
    crowd = Crowd(4)
    await asyncio.gather(*crowd.ask(*[f"org_{number}" for number in range(9)] * 4, *[f"{STRANGER}a"] * 8))
    assert 1 <= crowd.begun[4:24].count(f"{STRANGER}a") <= 2


async def test_who_gives_up_some_requests_keeps_the_turn_of_the_next() -> None:
    crowd = Crowd(1)
    asked = crowd.ask(*"aaaa", *[f"org_{number}" for number in range(20)])
    await asyncio.sleep(0)
    for task in asked[1:3]:
        task.cancel()
    await asyncio.wait(asked)
    assert "a" in crowd.begun[1:3]


async def test_who_asks_alone_waits_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_turns, "ALONE_AFTER", 0.01)
    crowd = Crowd(4, others=False)
    await asyncio.gather(*crowd.ask(*"a" * 40))
    crowd.ask(*"b")
    await until(lambda: crowd.begin_at_once("b", 40), "it is alone again")


async def test_who_has_a_line_when_the_others_are_gone_waits_for_nothing_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_turns, "ALONE_AFTER", 0.01)
    crowd = Crowd(1)
    asking = True

    async def ask_on() -> None:
        while asking:
            await crowd.request("a")
            await asyncio.sleep(0)  # alone it waits for nothing

    lines = [asyncio.create_task(ask_on()) for _ in range(40)]
    await until(lambda: crowd.begin_at_once("a", 40), "it is alone, though there was always a line")
    asking = False
    await asyncio.gather(*lines)


async def test_newcomers_come_behind_those_who_wait() -> None:
    crowd = Crowd(1)
    order: list[int] = []

    async def one(number: int) -> None:
        await crowd.request("a")
        order.append(number)

    asked = []
    for number in range(6):
        asked.append(asyncio.create_task(one(number)))
        if number % 2:
            await asyncio.sleep(0)
    await asyncio.gather(*asked)
    assert order == sorted(order)


async def test_a_request_whose_connection_ended_takes_nobodys_turn() -> None:
    crowd = Crowd(1)
    first, gone, last = crowd.ask("a", "a", "a")
    await first
    gone.cancel()
    await asyncio.wait([gone, last])
    assert gone.cancelled()
    assert crowd.begun == ["a", "a"]


async def test_who_watches_the_program_now_and_then_makes_no_turns_for_the_others() -> None:
    turns = RequestTurns(4)
    for _ in range(PROBES):
        assert turns.wait("a") is None
        assert turns.wait(STRANGER, stranger=True, probe=True) is None
        assert not turns.several
    assert [turns.wait("a") for _ in range(40)] == [None] * 40


async def test_who_sends_more_probes_than_that_is_somebody_who_asks() -> None:
    turns = RequestTurns(4)
    for _ in range(PROBES + 1):
        assert turns.wait("a") is None
        turns.wait(STRANGER, stranger=True, probe=True)
    assert turns.several


async def test_probes_do_not_make_turns_go_on_once_one_is_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request_turns, "ALONE_AFTER", 0.02)
    turns = RequestTurns(4)
    assert turns.wait("a") is None
    assert turns.wait("b") is None
    assert turns.several

    def is_alone() -> bool:
        turns.wait("b")
        turns.wait(STRANGER, stranger=True, probe=True)
        return not turns.several

    await until(is_alone, "no turns are made for one alone")
