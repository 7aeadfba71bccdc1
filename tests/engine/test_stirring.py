"""A supervisor that was asked to notes which of its children do anything, for those who show thousands."""

from tests.engine.workers import supervise

from recado.engine import stirring
from recado.engine.stirring import Stirring
from recado.engine.supervisor import Strategy


async def test_who_is_woken_ends_or_is_restarted_has_stirred(runtime, clock):
    root, refs = supervise(runtime, [], Strategy.ONE_FOR_ONE)
    await root.start()
    noted = root.notes()
    await clock.settle()

    async def stirred_by(happens):
        before = noted.count
        await happens()
        return set(noted.since(before))

    async def nothing():
        await clock.settle()

    async def told():
        refs["b"].tell("news")
        await clock.settle()

    async def restarted():
        await root.restart("root/c")

    async def ended():
        await root.find("a").stop()

    assert await stirred_by(nothing) == set()
    assert await stirred_by(told) == {"b"}
    assert await stirred_by(restarted) == {"c"}
    assert await stirred_by(ended) == {"a"}
    await root.stop()


def test_each_is_told_once_the_last_first():
    noted = Stirring()
    for key in "abcab":
        noted.note(key)
    assert noted.since(0) == ["b", "a", "c"]
    assert noted.since(3) == ["b", "a"]
    assert noted.since(noted.count) == []


def test_whoever_asks_for_more_than_is_remembered_is_told_so(monkeypatch):
    monkeypatch.setattr(stirring, "MOST", 2)
    noted = Stirring()
    for key in "abc":
        noted.note(key)
    assert noted.since(0) is None
    assert noted.since(1) == ["c", "b"]


async def test_nothing_is_noted_while_nobody_asks(runtime, clock):
    root, refs = supervise(runtime, [], Strategy.ONE_FOR_ONE)
    await root.start()
    before = root.notes().count
    root.notes_no_more()
    refs["a"].tell("news")
    await clock.settle()
    noted = root.notes()
    assert noted.since(before) is None
    assert noted.since(noted.count) == []
    await root.stop()
