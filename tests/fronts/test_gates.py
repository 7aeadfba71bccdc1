"""What closes gates of messages, said to another process: that one knows the same afterwards, however much it is."""

import socket
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from tests.waiting import until

from recado.domain.batches.batch import BatchStatus
from recado.domain.messages.owner_pauses import OwnerPauses
from recado.domain.messages.withdrawal import Withdrawal, WithdrawalKind
from recado.engine.link import MOST_UNREAD, Link
from recado.fronts import frames, gates
from recado.fronts.gates import FollowedGates
from recado.services.dispatch.owners import Owners
from recado.services.dispatch.withdrawing import Withdrawing
from recado.storage.batches.batches import OpenBatch

NOW = datetime(2026, 3, 10, tzinfo=UTC)


def knowing() -> Any:
    return SimpleNamespace(owners=Owners(), withdrawing=Withdrawing())


def batch(number: int) -> OpenBatch:
    """A paused one."""
    return OpenBatch(
        "org_1", "test", f"bat_{number:021}", "chatapp", "num_1", BatchStatus.PAUSED, 7_000, NOW, 0, None
    )  # fmt: skip


def withdrawal(number: int) -> Withdrawal:
    return Withdrawal("org_1", "test", WithdrawalKind.DELETED, f"cnt_{number:021}", f"msg_{number:021}")


@pytest.mark.parametrize("count", [0, 3, 60_000])
async def test_all_of_it_crosses_a_link_however_much_it_is_and_each_change_meanwhile_and_after(count: int) -> None:
    here, there = knowing(), knowing()
    here.owners.load([batch(number) for number in range(count)])
    here.withdrawing.begin([withdrawal(number) for number in range(count)])
    there.owners.paused("bat_before", NOW)  # what was said to it before it had a copy
    following, said = FollowedGates(), 0

    def snapshot(part: list[Any]) -> None:
        following.snapshot(there, *part)

    def change(part: list[Any]) -> None:
        following.change(there, *part)

    ends = socket.socketpair()
    link = await Link.over(ends[0], {}, lost=lambda: None)
    other = await Link.over(ends[1], {frames.GATES: snapshot, frames.GATE: change}, lost=lambda: None)

    def say(text: str) -> None:
        for part in gates.parts(text):
            assert link.give(frames.GATE, part)

    gates.follow(here, say)
    try:
        for number, part in enumerate(gates.snapshot(here)):
            assert link.give(frames.GATES, part)
            said += len(part[0])
            here.owners.resumed(f"bat_{number:021}", 1_000)
            here.owners.paused(f"bat_{number:021}", NOW + timedelta(seconds=1))
            here.withdrawing.end([withdrawal(number)])
            await link.room()
        here.owners.paused("bat_last", NOW)
        here.owners.resumed("bat_last", 1_000)
        here.withdrawing.begin([withdrawal(count + number) for number in range(5_000)])
        here.owners.canceled("bat_end", NOW)
        await until(lambda: there.owners.holds("bat_end"), "the last change is followed")
    finally:
        link.close()
        other.close()
    assert (said > MOST_UNREAD) == (count == 60_000)
    assert there.owners.state == here.owners.state
    assert there.withdrawing.state == here.withdrawing.state
    assert not there.owners.holds("bat_before")
    assert there.owners.held_ms("bat_last", NOW - timedelta(seconds=5), NOW) == 1_000


def test_a_look_at_all_batches_and_journeys_says_only_what_is_otherwise() -> None:
    here, there, following = knowing(), knowing(), FollowedGates()
    batches = [batch(number) for number in range(10_000)]
    journeys = [OwnerPauses("org_1", "test", f"jny_{number}", 1, NOW) for number in range(1_000)]
    here.owners.load(batches)
    for each in journeys:
        here.owners.journey(each)
    for part in gates.snapshot(here):
        following.snapshot(there, *part)
    said: list[str] = []

    def say(text: str) -> None:
        said.append(text)
        for part in gates.parts(text):
            following.change(there, *part)

    gates.follow(here, say)
    here.owners.load(batches)
    here.owners.keep_journeys({each.owner for each in journeys})
    assert said == []
    other = [replace(batches[1], held_ms=5_000, paused_at=NOW + timedelta(seconds=5)), *batches[2:], batch(10_000)]
    here.owners.load(other)
    here.owners.keep_journeys({each.owner for each in journeys[1:]})
    assert sum(map(len, said)) < 5_000
    assert there.owners.state == here.owners.state
    assert not here.owners.holds(batches[0].id)
    assert not here.owners.holds("jny_0")
