"""What people do gathers while a commit is under way, and waits in order where one fails (C27.1)."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import pytest

from recado.domain.core.errors import Unavailable
from recado.engine.clock import VirtualClock
from recado.services.links import recorder
from recado.services.links.recorder import EVERY, NET, Done, Recorder
from recado.storage.core.statements.moves import AfterCommit

START = datetime(2026, 8, 1, tzinfo=UTC)


class Thing(NamedTuple):
    organization_id: str
    code: str


A, B, C = (Thing("org", code) for code in "abc")


class Commits:
    """`made`: what each holds, as codes and seconds since the start. `during`: called in each."""

    def __init__(self) -> None:
        self.clock = VirtualClock(START)
        self.made: list[list[tuple[str, list[float]]]] = []
        self.during: Callable[[], None] = lambda: None
        self.things: Recorder[Thing] = Recorder(
            "things", self.commit, key=lambda thing: thing.code, told_as="things_dropped", clock=self.clock
        )

    async def commit(self, done: Sequence[Done[Thing]]) -> AfterCommit | None:
        self.during()
        self.made.append(
            [(thing.code, [(at - START) / timedelta(seconds=1) for at in moments]) for thing, moments in done]
        )
        return None


@pytest.fixture
async def commits() -> AsyncIterator[Commits]:
    made = Commits()
    await made.things.start()
    yield made
    made.during = lambda: None
    await made.things.stop()


async def test_what_comes_during_a_commit_gathers_for_the_next(commits: Commits) -> None:
    def more() -> None:
        commits.during = lambda: None
        commits.things.take(A)
        commits.things.take(B)

    commits.during = more
    commits.things.take(A)
    await commits.clock.advance(EVERY)
    assert commits.made == [[("a", [0.0])]]
    commits.things.take(B)
    await commits.clock.advance(EVERY)
    assert commits.made[1:] == [[("a", [EVERY]), ("b", [EVERY, EVERY])]]
    await commits.clock.advance(NET)
    assert len(commits.made) == 2


async def test_what_fills_a_commit_waits_no_longer(commits: Commits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "IN_A_COMMIT", 2)

    def more() -> None:
        commits.during = lambda: None
        commits.things.take(B)
        commits.things.take(C)

    commits.during = more
    commits.things.take(A)
    await commits.clock.advance(EVERY)
    assert commits.made == [[("a", [0.0])], [("b", [EVERY]), ("c", [EVERY])]]


async def test_what_a_commit_could_not_hold_is_one_with_what_came_since(commits: Commits) -> None:
    def away() -> None:
        commits.things.take(B)
        commits.things.take(A)
        raise Unavailable

    commits.during = away
    commits.things.take(A)
    commits.things.take(C)
    with pytest.raises(Unavailable):
        await commits.things.record()
    commits.during = lambda: None
    commits.things.take(A)
    await commits.things.record()
    assert commits.made == [[("a", [0.0, 0.0, 0.0]), ("c", [0.0]), ("b", [0.0])]]


async def test_very_many_are_recorded_in_several_commits(commits: Commits, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "IN_A_COMMIT", 2)
    for thing in (A, A, A, B, C):
        commits.things.take(thing)
    await asyncio.gather(commits.things.record(), commits.things.record())
    assert commits.made == [[("a", [0.0] * 3)], [("b", [0.0]), ("c", [0.0])]]
