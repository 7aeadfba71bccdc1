"""The file of begun calls: what it tells of a process that was killed, and when nothing may be concluded (C32)."""

import errno
import os
import signal
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.dispatch.leases import TTL, Lease
from recado.storage.dispatch import begun_calls
from recado.storage.dispatch.begun_calls import NAME, BegunCalls, FormerCalls

ORGANIZATION = "org_" + "0" * 21
TAKEN = datetime(2026, 3, 10, 12, 0, 0, 123_456, tzinfo=UTC)
LATER = TAKEN + timedelta(minutes=1)
EARLIER = TAKEN - timedelta(hours=1)


def message(number: int) -> str:
    return f"msg_{number:021}"


def opened(folder: Path, notes: int = 8) -> BegunCalls:
    calls = BegunCalls(folder, boot="boot-1", notes=notes)
    calls.open(7, TAKEN)
    return calls


def former(folder: Path, *, boot: str | None = "boot-1", epoch: int = 7, taken: datetime = TAKEN) -> FormerCalls | None:
    fenced = BegunCalls(folder, boot=boot).fence(epoch, taken)
    return None if fenced is None else fenced.read()


def test_the_next_owner_reads_which_calls_began_and_when(tmp_path: Path) -> None:
    calls = opened(tmp_path)
    calls.began(ORGANIZATION, message(1), LATER, LATER)
    calls.began(ORGANIZATION, message(2), LATER + timedelta(microseconds=1), LATER + timedelta(microseconds=1))
    calls.ended(message(1))
    found = former(tmp_path)
    assert found is not None
    assert found.began_at(message(1), LATER) == LATER
    assert found.began_at(message(2), LATER) == LATER + timedelta(microseconds=1)
    assert found.began_at(message(3), LATER) is None
    assert not found.never_began(message(1), LATER)
    assert not found.never_began(message(2), LATER)
    assert found.never_began(message(3), LATER)


CLAIMED, DEPARTED = LATER, LATER + timedelta(milliseconds=40)


@pytest.mark.parametrize("ended", [False, True])
@pytest.mark.parametrize(
    "step", [timedelta(), timedelta(seconds=30), timedelta(seconds=-30)], ids=["", "set forward", "set back"]
)
def test_a_call_is_of_its_claim_whatever_the_clock_showed(tmp_path: Path, step: timedelta, ended: bool) -> None:
    """Claims and departures are stamped apart: one may have seen a clock that was set, the other not yet."""
    calls = opened(tmp_path)
    departed = DEPARTED + step
    calls.began(ORGANIZATION, message(1), CLAIMED, departed)
    if ended:
        calls.ended(message(1))
    found = former(tmp_path)
    assert found is not None
    for as_in_the_table in (CLAIMED, max(CLAIMED, departed)):  # before and after it was told when the call began
        assert not found.never_began(message(1), as_in_the_table)
        assert found.began_at(message(1), as_in_the_table) == departed


def test_a_claim_after_a_call_that_was_refused_for_now_has_no_call_yet(tmp_path: Path) -> None:
    calls = opened(tmp_path)
    calls.began(ORGANIZATION, message(1), CLAIMED, DEPARTED)
    calls.ended(message(1))
    found = former(tmp_path)
    assert found is not None
    again = DEPARTED + timedelta(microseconds=1)
    assert found.never_began(message(1), again)
    assert found.began_at(message(1), again) is None


def test_of_two_calls_for_a_message_the_later_one_is_told_wherever_its_note_lies(tmp_path: Path) -> None:
    calls, second = opened(tmp_path, notes=3), timedelta(seconds=1)
    calls.began(ORGANIZATION, message(0), CLAIMED - 2 * second, DEPARTED - 2 * second)
    calls.ended(message(0))
    calls.began(ORGANIZATION, message(2), CLAIMED - second, DEPARTED - second)
    calls.began(ORGANIZATION, message(1), CLAIMED, DEPARTED)
    calls.ended(message(1))
    calls.began(ORGANIZATION, message(1), CLAIMED + second, DEPARTED + second)  # in the first place of the ring
    found = former(tmp_path)
    assert found is not None
    assert found.began_at(message(1), CLAIMED + second) == DEPARTED + second
    assert not found.never_began(message(1), CLAIMED + second)
    assert not found.never_began(message(1), CLAIMED)  # as after a failover that lost what followed


@pytest.mark.parametrize("step", [timedelta(), timedelta(seconds=30), timedelta(seconds=-30)])
def test_a_claim_whose_note_was_written_over_may_have_been_called_for(tmp_path: Path, step: timedelta) -> None:
    calls = opened(tmp_path, notes=1)
    departed = DEPARTED + step
    for number in range(2):
        calls.began(ORGANIZATION, message(number), CLAIMED, departed)
        calls.ended(message(number))
    found = former(tmp_path)
    assert found is not None
    assert not found.never_began(message(0), CLAIMED)
    assert not found.never_began(message(0), max(CLAIMED, departed))
    assert found.never_began(message(0), max(CLAIMED, departed) + timedelta(microseconds=1))


def test_the_moment_of_a_call_is_known_until_its_outcome_is_recorded(tmp_path: Path) -> None:
    calls = opened(tmp_path)
    calls.began(ORGANIZATION, message(1), LATER, LATER)
    assert calls.moment_of(message(1)) == LATER
    calls.ended(message(1))
    assert calls.moment_of(message(1)) is None


def test_whoever_was_fenced_begins_no_call_more(tmp_path: Path) -> None:
    calls = opened(tmp_path)
    assert calls.began(ORGANIZATION, message(1), LATER, LATER)
    found = former(tmp_path)
    assert not calls.began(ORGANIZATION, message(2), LATER, LATER)
    assert found is not None
    assert not found.never_began(message(1), LATER)
    found = former(tmp_path)
    assert found is not None
    assert set(found.begun) == {message(1)}  # the next owner may send the other


def test_whoever_has_closed_its_file_begins_no_call_more(tmp_path: Path) -> None:
    calls = opened(tmp_path)
    assert calls.may_begin()
    calls.close()
    assert not calls.may_begin()
    assert not calls.began(ORGANIZATION, message(1), LATER, LATER)
    found = former(tmp_path)
    assert found is not None
    assert found.never_began(message(1), LATER)


def test_past_the_lease_no_call_begins_and_none_is_noted(tmp_path: Path) -> None:
    calls = opened(tmp_path)
    now = [100.0]
    lease = calls.lease = Lease(lambda: now[0])
    lease.renewed(lease.asked())
    assert calls.began(ORGANIZATION, message(1), LATER, LATER)
    now[0] += TTL
    assert not calls.began(ORGANIZATION, message(2), LATER, LATER)
    lease.renewed(lease.asked())
    assert calls.began(ORGANIZATION, message(3), LATER, LATER)
    found = former(tmp_path)
    assert found is not None
    assert set(found.begun) == {message(1), message(3)}


@pytest.mark.parametrize(
    "other", [{"boot": "boot-2"}, {"boot": None}, {"epoch": 6}, {"taken": TAKEN + timedelta(microseconds=1)}]
)
def test_the_file_of_another_boot_or_ownership_proves_nothing(tmp_path: Path, other: dict[str, object]) -> None:
    opened(tmp_path)
    assert former(tmp_path, **other) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("content", [None, b"", b"recado", bytes(4_096)])
def test_a_file_that_is_missing_or_none_of_ours_proves_nothing(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / NAME).write_bytes(content)
    assert former(tmp_path) is None


def test_a_claim_of_before_the_oldest_note_may_have_been_called_for(tmp_path: Path) -> None:
    calls = opened(tmp_path, notes=4)
    for number in range(5):
        calls.began(ORGANIZATION, message(number), LATER + timedelta(seconds=number), LATER + timedelta(seconds=number))
        calls.ended(message(number))
    found = former(tmp_path)
    assert found is not None
    assert message(0) not in found.begun
    assert not found.never_began(message(0), LATER)
    assert found.never_began(message(9), LATER + timedelta(seconds=5))


def test_more_calls_at_once_than_notes_prove_nothing(tmp_path: Path) -> None:
    calls = opened(tmp_path, notes=4)
    for number in range(5):
        assert calls.began(ORGANIZATION, message(number), LATER, LATER)
    assert former(tmp_path) is None


def test_without_room_on_the_disk_calls_begin_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.posix_fallocate

    def full(descriptor: int, start: int, size: int) -> None:
        real(descriptor, start, size // 2)
        raise OSError(errno.ENOSPC, "no space left")

    opened(tmp_path)
    monkeypatch.setattr(os, "posix_fallocate", full)
    calls = BegunCalls(tmp_path, boot="boot-1")
    calls.open(8, LATER)
    assert list(tmp_path.iterdir()) == []  # half a file would keep what is left of the disk
    assert calls.began(ORGANIZATION, message(1), LATER, LATER)
    assert calls.moment_of(message(1)) == LATER
    calls.ended(message(1))
    assert former(tmp_path) is None
    assert former(tmp_path, epoch=8, taken=LATER) is None


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 12)), max_size=60))
def test_whatever_began_and_was_not_forgotten_is_told(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[bool, int]]
) -> None:
    folder = tmp_path_factory.mktemp("calls")
    calls, under_way, began = opened(folder, notes=16), set(), {}
    for position, (begins, number) in enumerate(steps):
        if begins and number not in under_way:
            moment = LATER + timedelta(seconds=position)
            calls.began(ORGANIZATION, message(number), moment, moment)
            under_way.add(number)
            began[number] = moment
        elif not begins and number in under_way:
            calls.ended(message(number))
            under_way.discard(number)
    found = former(folder)
    assert found is not None
    for number, moment in began.items():
        assert not found.never_began(message(number), moment)
        if number in under_way:
            assert found.began_at(message(number), moment) == moment
    assert found.never_began(message(99), LATER + timedelta(seconds=len(steps) + 2))


_KILLED = """
import sys, os, signal
from datetime import datetime
from pathlib import Path
from recado.storage.dispatch.begun_calls import BegunCalls
calls = BegunCalls(Path(sys.argv[1]), boot="boot-1")
taken = datetime.fromisoformat(sys.argv[2])
calls.open(7, taken)
for number in range(1_000):
    calls.began("org", f"msg_{number:021}", taken, taken)
    if number % 2:
        calls.ended(f"msg_{number:021}")
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_notes_outlive_a_killed_process(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", _KILLED, str(tmp_path), TAKEN.isoformat()], check=False)
    assert ended.returncode == -signal.SIGKILL
    found = former(tmp_path)
    assert found is not None
    assert len(found.begun) == 1_000


def test_this_machine_names_its_boot_or_has_none() -> None:
    assert begun_calls.boot_id() == begun_calls.boot_id()


def test_another_process_sees_which_calls_are_under_way_though_the_ring_goes_round(tmp_path: Path) -> None:
    calls = opened(tmp_path, notes=4)
    seen = BegunCalls(tmp_path, boot="boot-1", notes=4).seen()
    assert seen is not None
    assert seen.moment_of(message(1)) is None
    calls.began(ORGANIZATION, message(1), CLAIMED, DEPARTED)
    assert seen.moment_of(message(1)) == DEPARTED
    for number in range(2, 12):  # past the note that stays
        calls.began(ORGANIZATION, message(number), CLAIMED, LATER)
        assert seen.moment_of(message(number)) == LATER
        assert seen.moment_of(message(number - 2)) in (None, DEPARTED)
        calls.ended(message(number))
        assert seen.moment_of(message(number)) is None
    assert seen.moment_of(message(1)) == DEPARTED
    calls.ended(message(1))
    assert seen.moment_of(message(1)) is None
    calls.began(ORGANIZATION, message(1), LATER, LATER + timedelta(seconds=1))  # once more
    assert seen.moment_of(message(1)) == LATER + timedelta(seconds=1)
    seen.close()


def test_who_sees_the_calls_of_another_keeps_few_of_those_that_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(begun_calls, "_KEPT", 8)
    calls = opened(tmp_path, notes=64)
    seen = BegunCalls(tmp_path, boot="boot-1", notes=64).seen()
    assert seen is not None
    for number in range(200):
        calls.began(ORGANIZATION, message(number), CLAIMED, DEPARTED)
        assert seen.moment_of(message(number)) == DEPARTED
        if number % 10:
            calls.ended(message(number))
    assert [number for number in range(200) if seen.moment_of(message(number))] == [*range(0, 200, 10)]
    assert len(seen) == 20
    assert len(seen._places) <= 3 * 20 + 8
    seen.close()


def test_of_a_file_that_is_not_there_nothing_is_seen(tmp_path: Path) -> None:
    assert BegunCalls(tmp_path, boot="boot-1").seen() is None
    assert BegunCalls(None).seen() is None
