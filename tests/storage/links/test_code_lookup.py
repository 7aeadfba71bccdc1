"""What codes stand for is kept in shares: who has many, or guesses, forgets its own first (C27.1)."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import pytest

from recado.engine.clock import VirtualClock
from recado.storage.links import code_lookup
from recado.storage.links.code_lookup import KEPT, CodeLookup


class Link(NamedTuple):
    owner: str


class Links:
    """Codes begin with the name of their owner; those of nobody do not exist. `asked`: each time, in order."""

    def __init__(self) -> None:
        self.clock = VirtualClock(datetime(2026, 8, 1, tzinfo=UTC))
        self.asked: list[str] = []
        self.lookup: CodeLookup[Link] = CodeLookup("links", self.read, owner=lambda link: link.owner, clock=self.clock)

    async def read(self, codes: Sequence[str]) -> dict[str, Link]:
        self.asked += codes
        return {code: Link(code[0]) for code in codes if code[0] != "-"}

    async def open(self, owner: str, *numbers: int) -> None:
        for number in numbers:
            found = await self.lookup.get(f"{owner}{number}")
            assert found == (None if owner == "-" else Link(owner))

    async def known(self, owner: str, *numbers: int) -> list[int]:
        """Which of these need no look-up."""
        return [number for number in numbers if not hasattr(self.lookup.find(f"{owner}{number}"), "add_done_callback")]


@pytest.fixture
async def links(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Links]:
    monkeypatch.setattr(code_lookup, "CAPACITY", 12)
    monkeypatch.setattr(code_lookup, "AT_ONCE", 2)
    made = Links()
    await made.lookup.start()
    yield made
    await made.lookup.stop()


async def test_a_code_is_asked_for_once_in_a_while_also_one_that_stands_for_nothing(links: Links) -> None:
    for owner in ("a", "-"):
        await links.open(owner, 1, 1)
    await links.clock.advance(KEPT)
    await links.open("a", 1)
    assert links.asked == ["a1", "-1", "a1"]


async def test_what_changed_is_asked_for_again(links: Links) -> None:
    await links.open("a", 1)
    links.lookup.forget("a1")
    links.lookup.forget("a2")
    await links.open("a", 1)
    assert links.asked == ["a1", "a1"]


@pytest.mark.parametrize("crowd", ["b", "-"])
async def test_who_opens_very_many_forgets_its_own(links: Links, crowd: str) -> None:
    await links.open("a", 1, 2, 3)
    await links.open(crowd, *range(100))
    assert await links.known("a", 1, 2, 3) == [1, 2, 3]
    assert await links.known(crowd, *range(100)) == list(range(91, 100))


async def test_who_comes_later_finds_room_of_who_has_most(links: Links) -> None:
    await links.open("b", *range(12))
    await links.open("a", *range(6))
    await links.open("c", 1)
    assert await links.known("a", *range(6)) == list(range(6))
    assert await links.known("c", 1) == [1]
    assert len(links.lookup._known) <= 12


async def test_nothing_is_left_of_who_has_nothing_kept(links: Links, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(code_lookup, "CAPACITY", 3)
    for owner in "abcdefgh":
        await links.open(owner, 1, 2)
    assert sum(map(len, links.lookup._codes.values())) == len(links.lookup._known) <= 3
    assert all(links.lookup._codes.values())


async def test_of_more_owners_than_there_is_room_the_latest_are_kept(links: Links) -> None:
    owners = "abcdefghijklmnopqrst"
    for owner in owners:
        await links.open(owner, 1)
        assert await links.known(owner, 1) == [1]
    kept = [owner for owner in owners if await links.known(owner, 1)]
    assert kept == list(owners[-len(kept) :])
    assert 10 <= len(kept) <= 12


async def test_a_code_that_is_asked_for_again_counts_once_and_as_a_new_one(links: Links) -> None:
    await links.open("a", 1, 2)
    for _ in range(20):
        await links.clock.advance(KEPT)
        await links.open("a", 1)
    await links.open("a", *range(3, 13))
    assert await links.known("a", 1, *range(3, 13)) == [1, *range(3, 13)]
    assert len(links.lookup._known) == sum(map(len, links.lookup._codes.values())) == 12


async def test_a_code_that_somebody_else_has_by_now_is_kept_as_his_alone(links: Links) -> None:
    codes: dict[str, str] = {}

    async def read(asked: Sequence[str]) -> dict[str, Link]:
        return {code: Link(codes[code]) for code in asked if code in codes}

    lookup: CodeLookup[Link] = CodeLookup("links", read, owner=lambda link: link.owner, clock=links.clock)
    await lookup.start()
    assert await lookup.get("x") is None
    codes["x"] = "a"
    await links.clock.advance(KEPT)
    assert await lookup.get("x") == Link("a")
    assert {owner: list(kept) for owner, kept in lookup._codes.items()} == {"a": ["x"]}
    lookup.forget("x")
    assert lookup._codes == {}
    await lookup.stop()
