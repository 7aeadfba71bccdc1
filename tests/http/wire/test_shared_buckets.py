"""Token buckets that processes share (C6.1): exact over all, whoever is killed, and however many others there are."""

import mmap
import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from recado.http.callers.principal import Principal
from recado.http.callers.rate_limits import Bucket, RateLimiter
from recado.http.callers.shared_buckets import SLOTS, SharedBuckets
from recado.http.server import ServerPart

_FORK = multiprocessing.get_context("fork")
_CALLER = Principal("org_1", "live", "key", "key_1", frozenset())
_Work = Callable[[Connection], None]


@pytest.fixture
def table() -> Iterator[SharedBuckets]:
    made = SharedBuckets.make(groups=64)
    yield made
    made.close()


@pytest.fixture
def crowded() -> Iterator[SharedBuckets]:
    """A table with one group for strangers, and one for everybody else."""
    made = SharedBuckets.make(groups=2)
    yield made
    made.close()


@contextmanager
def another_process(work: _Work) -> Iterator[tuple[BaseProcess, Connection]]:
    """A process that does `work`, with our end of its connection; it is killed if it does not end by itself."""
    ours, theirs = _FORK.Pipe()
    process = _FORK.Process(target=work, args=(theirs,))
    process.start()
    theirs.close()
    try:
        yield process, ours
    finally:
        process.kill()
        process.join()
        ours.close()


def limiter(table: SharedBuckets, limit: tuple[float, int]) -> RateLimiter:
    return RateLimiter({"x": limit}, {}, shared=SharedBuckets.at(table.descriptor, table.salt))


def left(bucket: Bucket, now: float) -> int:
    """How many tokens there are; afterwards there are none."""
    count = 0
    while bucket.take(now):
        count += 1
    return count


def test_all_processes_together_let_through_exactly_what_the_limit_says(table: SharedBuckets) -> None:
    tries, rounds = 2_000, (50.0, 51.0, 51.0, 52.5)

    def hammer(told: Connection) -> None:
        bucket = limiter(table, (600.0, 3_001)).of_principal(_CALLER, "x", 0.0)
        while (now := told.recv()) is not None:
            told.send(sum(bucket.take(now) for _ in range(tries)))

    with another_process(hammer) as (_, a), another_process(hammer) as (_, b), another_process(hammer) as (_, c):
        passed = []
        for now in rounds:
            for each in (a, b, c):
                each.send(now)
            passed.append(sum(each.recv() for each in (a, b, c)))
    assert passed == [3_001, 600, 0, 900]


def test_a_process_of_its_own_program_finds_the_table_by_its_descriptor(table: SharedBuckets) -> None:
    program = """
import sys
from recado.http.callers.rate_limits import RateLimiter
from recado.http.callers.shared_buckets import SharedBuckets

table = SharedBuckets.at(int(sys.argv[1]), bytes.fromhex(sys.stdin.readline()))
bucket = RateLimiter({"x": (1.0, 5)}, {}, shared=table).of_address("192.0.2.1", "x", 0.0)
print([bucket.take(0.0) for _ in range(3)], bucket.lines())
"""
    ended = subprocess.run(
        [sys.executable, "-c", program, str(table.descriptor)],
        pass_fds=[table.descriptor], input=table.salt.hex(), capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ended.stdout.startswith("[True, True, True]")
    assert '"x";r=2;t=3' in ended.stdout
    assert left(limiter(table, (1.0, 5)).of_address("192.0.2.1", "x", 0.0), 0.0) == 2


async def test_a_limit_holds_over_two_servers(serve: Any, thing: Any, table: SharedBuckets) -> None:
    apis = [await serve(thing(rate_class="tiny"), part=ServerPart(shared_buckets=table)) for _ in range(2)]
    seen = []
    for api in (apis[0], apis[1], apis[0], apis[1]):
        async with api.client.get("/things") as answer:
            seen.append((answer.status, answer.headers["RateLimit"]))
    assert seen == [(200, '"tiny";r=1;t=2'), (200, '"tiny";r=0;t=4')] + [(429, '"tiny";r=0;t=4')] * 2


def test_who_is_killed_with_a_lock_holds_up_nobody(table: SharedBuckets) -> None:
    def hold(told: Connection) -> None:
        place = limiter(table, (1.0, 5)).of_principal(_CALLER, "x", 0.0)._place  # type: ignore[attr-defined]
        told.send(place.hold())
        told.recv()

    mine = SharedBuckets.at(table.descriptor, table.salt)
    bucket = RateLimiter({"x": (1.0, 5)}, {}, shared=mine).of_principal(_CALLER, "x", 0.0)
    for remaining in (4, 3, 2):
        with another_process(hold) as (process, told):
            assert told.recv()
            process.kill()
            process.join()
            assert process.exitcode == -signal.SIGKILL
            assert bucket.take(0.0)
        assert f"r={remaining};" in bucket.lines()
        assert not mine.stuck
    assert left(limiter(table, (1.0, 5)).of_principal(_CALLER, "x", 0.0), 0.0) == 2


def test_who_is_killed_in_the_middle_of_thousands_leaves_a_table_that_counts_on(table: SharedBuckets) -> None:
    capacity, rounds = 10_000_000, 15
    counted = mmap.mmap(-1, 8 * rounds)
    counts = memoryview(counted).cast("Q")

    def hammer(told: Connection, number: int) -> None:
        bucket = limiter(table, (1.0, capacity)).of_principal(_CALLER, "x", 0.0)
        while True:
            for _ in range(500):
                bucket.take(0.0)
                counts[number] += 1
            told.send(None)

    bucket = limiter(table, (1.0, capacity)).of_principal(_CALLER, "x", 0.0)
    own = 0
    for number in range(rounds):
        with another_process(lambda told, number=number: hammer(told, number)) as (process, told):  # type: ignore[misc]
            told.recv()
            own += sum(bucket.take(0.0) for _ in range(50))
            process.kill()
            process.join()
            assert process.exitcode == -signal.SIGKILL
            own += bucket.take(0.0)
    remaining = int(bucket.lines().partition(";r=")[2].partition(";")[0])
    assert own == rounds * 51
    assert sum(counts) >= rounds * 500
    # Each of them may have been killed between its take and its own count of it.
    assert 0 <= capacity - own - sum(counts) - remaining <= rounds


class _Deadly:
    """Words of the table, of which one write too many kills its process."""

    def __init__(self, words: Any, writes: list[int]) -> None:
        self._words = words
        self._writes = writes

    def __getitem__(self, index: int) -> Any:
        return self._words[index]

    def __setitem__(self, index: int, value: Any) -> None:
        if not self._writes:
            os.kill(os.getpid(), signal.SIGKILL)
        self._writes.pop()
        self._words[index] = value


def die_after(writes: int, table: SharedBuckets, caller: str, now: float) -> bool:
    """Whether a process dies that takes a token and may write so many words."""

    def take(told: Connection) -> None:
        mine = SharedBuckets.at(table.descriptor, table.salt)
        allowed = [0] * writes
        mine.words, mine.numbers = _Deadly(mine.words, allowed), _Deadly(mine.numbers, allowed)  # type: ignore[assignment]
        RateLimiter({"x": (0.5, 10)}, {}, shared=mine).of_principal(principal(caller), "x", now).take(now)
        told.send(None)
        told.recv()

    with another_process(take) as (process, told):
        try:
            told.recv()
        except EOFError:
            process.join()
            assert process.exitcode == -signal.SIGKILL
            return True
        return False


def principal(actor_id: str) -> Principal:
    return Principal("org_1", "live", "key", actor_id, frozenset())


def test_a_write_that_a_kill_tore_gives_no_bucket_more_than_it_had(table: SharedBuckets) -> None:
    now, deaths = 0.0, 0
    bucket = limiter(table, (0.5, 10)).of_principal(principal("torn"), "x", now)
    for writes in range(20):
        now += 1_000.0
        for _ in range(7):
            assert bucket.take(now)  # 3 of 10 are left, of which 8 seconds make 7
        if not die_after(writes, table, "torn", now + 8.0):
            assert left(bucket, now + 8.0) == 6
            break
        deaths += 1
        assert left(bucket, now + 8.0) in ({7} if writes < 2 else {3}), f"killed before write {writes}"
        assert left(bucket, now + 28.0) == 10
    assert deaths == 3


def test_a_slot_that_a_kill_left_between_two_buckets_is_free(crowded: SharedBuckets) -> None:
    mine = limiter(crowded, (0.5, 10))
    names = [f"key_{number}" for number in range(SLOTS)]
    oldest = 3  # in the middle of the group
    deaths = 0
    for writes in range(20):
        now = 1_000.0 * (writes + 1)
        for number, name in enumerate(names):
            assert left(mine.of_principal(principal(name), "x", now), now + (number - oldest) % SLOTS / 100) == 10
        if not die_after(writes, crowded, f"other_{writes}", now + 1.0):
            break
        deaths += 1
        found = [mine.of_principal(principal(name), "x", now).has_token(now + 1.0) for name in names]
        lost = [oldest] if writes else []
        assert [number for number in range(SLOTS) if found[number]] == lost, "the one used longest ago begins full"
        other = mine.of_principal(principal(f"other_{writes}"), "x", now)
        assert left(other, now + 1.0) == 10
        found = [mine.of_principal(principal(name), "x", now).has_token(now + 1.0) for name in names]
        assert sum(found) == 1
        assert not writes or found[oldest], "it takes the slot that is free"
    assert deaths == 5


def test_strangers_push_out_nobody_with_a_credential(crowded: SharedBuckets) -> None:
    mine = RateLimiter({"x": (0.001, 1)}, {"x": (0.001, 1)}, shared=crowded)
    keys = [mine.of_principal(principal(f"key_{number}"), "x", 0.0) for number in range(SLOTS - 1)]
    total = mine.of_organization(_CALLER, "x", 0.0)
    assert total is not None
    for bucket in (*keys, total):
        assert left(bucket, 0.0) == 1
    for number in range(1_000):
        assert mine.of_address(f"2001:db8:0:{number:x}::1", "x", 1.0).take(1.0)
    assert not any(bucket.has_token(1.0) for bucket in (*keys, total))


@pytest.mark.parametrize("look", ["take", "has_token", "owe"])
def test_a_bucket_is_lost_only_after_eight_others_of_its_group_were_used(crowded: SharedBuckets, look: str) -> None:
    mine = RateLimiter({"x": (0.001, 1)}, {}, shared=crowded)
    buckets = [mine.of_address(f"192.0.2.{number}", "x", 0.0) for number in range(SLOTS + 4)]
    for number in range(SLOTS):
        assert left(buckets[number], number / 10) == 1
    for now, number in ((1.0, 3), (1.1, 0), (1.2, 1)):
        assert not getattr(buckets[number], look)(now)
    for number in range(SLOTS, SLOTS + 4):
        assert buckets[number].take(2.0)
    lost = [number for number in range(SLOTS) if buckets[number].has_token(2.0)]
    assert lost == [2, 4, 5, 6], "those of the group that were used longest ago: they begin full"


def test_whoever_has_used_its_tokens_up_at_one_process_is_not_let_in_by_another(table: SharedBuckets) -> None:
    here, there = limiter(table, (1.0, 1)), limiter(table, (1.0, 1))
    assert there.lets_in("192.0.2.1", "x", 0.0)
    assert here.of_address("192.0.2.1", "x", 0.0).take(0.0)
    assert not limiter(table, (1.0, 1)).lets_in("192.0.2.1", "x", 0.0)
    assert not there.lets_in("192.0.2.1", "x", 0.0)
    assert there.lets_in("192.0.2.1", "x", 1.0)


def test_buckets_that_are_full_again_give_way_first(crowded: SharedBuckets) -> None:
    mine = RateLimiter({"x": (1.0, 5), "slow": (0.001, 1)}, {}, shared=crowded)
    assert left(mine.of_address("192.0.2.1", "slow", 0.0), 0.0) == 1
    for number in range(200):  # each has used one token, which is back after a second
        now = 1.0 + number
        for part in range(SLOTS - 2):
            assert mine.of_address(f"198.51.{part}.{number}", "x", now).take(now)
    assert not mine.lets_in("192.0.2.1", "slow", 201.0), "used longest ago of all, and not full"


_TIMES = st.one_of(st.just(0.0), st.floats(0, 20), st.integers(0, 5).map(float))
_STEPS = st.lists(
    st.tuples(
        _TIMES, st.integers(0, 1), st.sampled_from(["address", "principal", "organization"]), st.integers(0, 3),
        st.sampled_from(["take", "take", "take", "owe", "has_token", "lets_in"]), st.integers(1, 12),
    ),
    max_size=60,
)  # fmt: skip


@settings(max_examples=examples(3_000))
@given(refill=st.floats(0.01, 1_000), capacity=st.integers(1, 30), start=st.floats(0, 1e6), steps=_STEPS)
def test_shared_buckets_answer_as_those_of_one_process(
    refill: float, capacity: int, start: float, steps: list[tuple[float, int, str, int, str, int]]
) -> None:
    limits, ceilings = {"x": (refill, capacity)}, {"x": (refill * 2, capacity * 2)}
    table = SharedBuckets.make(groups=64)
    try:
        model = RateLimiter(limits, ceilings)
        processes = [RateLimiter(limits, ceilings, shared=SharedBuckets.at(table.descriptor, table.salt)) for _ in "ab"]
        now = start
        for passed, process, kind, number, deed, times in steps:
            now += passed
            for _ in range(times):
                told = [answer(each, kind, number, deed, now) for each in (model, processes[process])]
                assert told[0] == told[1]
    finally:
        table.close()


def answer(each: RateLimiter, kind: str, number: int, deed: str, now: float) -> tuple[Any, ...]:
    """What a deed gives, and what the bucket tells afterwards."""
    address, caller = f"192.0.2.{number}", Principal(f"org_{number}", "live", "key", f"key_{number}", frozenset())
    if deed == "lets_in":
        return (each.lets_in(address, "x", now),)
    bucket: Bucket | None
    if kind == "address":
        bucket = each.of_address(address, "x", now)
    elif kind == "principal":
        bucket = each.of_principal(caller, "x", now)
    else:
        bucket = each.of_organization(caller, "x", now)
    assert bucket is not None
    given = getattr(bucket, deed)(now)
    return given, bucket.lines(), bucket.retry_after(), bucket.refusal().detail


def test_a_clock_that_stands_still_or_is_read_late_by_another_process_adds_nothing(table: SharedBuckets) -> None:
    early, late = (limiter(table, (1.0, 1)).of_principal(_CALLER, "x", 0.0) for _ in range(2))
    assert early.take(10.0)
    assert not late.take(9.0)
    assert not early.take(10.0)
    assert not late.take(10.5)
    assert late.take(11.0)
    assert not early.take(11.0)


def test_a_changed_limit_leaves_the_tokens_and_cuts_those_beyond_it(table: SharedBuckets) -> None:
    mine = limiter(table, (0.001, 10))
    wide = mine.of_principal(_CALLER, "x", 0.0)
    assert wide.take(0.0)
    narrow = Principal("org_1", "live", "key", "key_1", frozenset(), rate_limits={"x": (0.001, 4)})
    assert left(mine.of_principal(narrow, "x", 0.0), 0.0) == 4
    assert not mine.of_principal(_CALLER, "x", 0.0).has_token(0.0), "a change fills no bucket"


def test_who_stands_still_with_a_lock_holds_up_nobody_for_long(table: SharedBuckets) -> None:
    def stand_still(told: Connection) -> None:
        place = limiter(table, (1.0, 3)).of_principal(_CALLER, "x", 0.0)._place  # type: ignore[attr-defined]
        told.send(place.hold())
        told.recv()
        place.release()
        told.send(None)
        told.recv()

    mine = SharedBuckets.at(table.descriptor, table.salt)
    bucket = RateLimiter({"x": (1.0, 3)}, {}, shared=mine).of_principal(_CALLER, "x", 0.0)
    with another_process(stand_still) as (_, told):
        assert told.recv()
        assert left(bucket, 0.0) == 3, "it counts by itself meanwhile"
        assert mine.stuck
        told.send(None)
        told.recv()
        assert left(bucket, 0.0) == 3, "what the others have counted"
        assert not mine.stuck
    assert left(limiter(table, (1.0, 3)).of_principal(_CALLER, "x", 0.0), 0.0) == 0


def test_what_is_no_table_is_refused() -> None:
    descriptor = os.memfd_create("other")
    try:
        for size in (0, 1_000):
            os.ftruncate(descriptor, size)
            with pytest.raises(ValueError, match="not a table of buckets"):
                SharedBuckets.at(descriptor, b"salt")
    finally:
        os.close(descriptor)


def test_a_table_is_closed_twice_and_its_buckets_count_on(table: SharedBuckets) -> None:
    bucket = RateLimiter({"x": (1.0, 2)}, {}, shared=table).of_principal(_CALLER, "x", 0.0)
    table.close()
    table.close()
    assert left(bucket, 0.0) == 2
