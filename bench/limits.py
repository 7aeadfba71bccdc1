"""What counting a request by its key and its organization costs: in buckets of one process, and in shared ones."""

import multiprocessing
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager

from bench.harness import Figure, Say
from recado.http.callers.principal import Principal
from recado.http.callers.rate_limits import Limit, RateLimiter
from recado.http.callers.shared_buckets import SharedBuckets

REQUESTS = 50_000
ROUNDS = 7
MOST_MORE = 3.0  # µs a request
LIMITS: dict[str, Limit] = {"read": (5e6, 50_000_000)}  # nobody is refused
CEILINGS: dict[str, Limit] = {"read": (2e7, 200_000_000)}
CALLER = Principal("org_1", "live", "key", "key_1", frozenset())


async def run(say: Say) -> list[Figure]:
    """With the two lines of the answer's head."""
    table = SharedBuckets.make()
    try:
        say("limits of requests")
        alone, shared = [], []
        own, common = RateLimiter(LIMITS, CEILINGS), RateLimiter(LIMITS, CEILINGS, shared=table)
        for _ in range(ROUNDS):  # in turns: whatever else the machine does falls on both
            alone.append(_microseconds(own))
            shared.append(_microseconds(common))
        say("limits of requests, beside another process")
        with _another_process(table):
            crowded = statistics.median(_microseconds(common) for _ in range(ROUNDS))
    finally:
        table.close()
    private, both = statistics.median(alone), statistics.median(shared)
    return [
        Figure(
            "Request counted by key and organization, in buckets that processes share",
            f"{both:.1f} µs",
            f"{private:.1f} µs, of one process",
            both / private,
            f"≤ {MOST_MORE:g} µs more",
            both - private <= MOST_MORE,
        ),
        Figure("– while another process does nothing but count in the same two", f"{crowded:.1f} µs"),
    ]


def _microseconds(limiter: RateLimiter) -> float:
    """Of a core's time, for each request."""
    began = time.process_time()
    for _ in range(REQUESTS):
        _count(limiter)
    return (time.process_time() - began) / REQUESTS * 1e6


def _count(limiter: RateLimiter) -> str:
    now = time.monotonic()
    bucket, total = limiter.of_principal(CALLER, "read", now), limiter.of_organization(CALLER, "read", now)
    if not bucket.take(now) or total is None or not total.take(now):
        raise RuntimeError("a request was refused: what was measured is something else")
    return bucket.lines()


@contextmanager
def _another_process(table: SharedBuckets) -> Iterator[None]:
    """One that counts in the same buckets all the time."""
    process = multiprocessing.get_context("fork").Process(target=_count_on, args=(table,))
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def _count_on(table: SharedBuckets) -> None:
    limiter = RateLimiter(LIMITS, CEILINGS, shared=table)
    while True:
        _count(limiter)
