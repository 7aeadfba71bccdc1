"""How an endpoint fares: what is known, what is written, and whose word stands (C23.3)."""

from datetime import UTC, datetime, timedelta

from recado.actors.webhooks.webhook_health import EVERY, EndpointHealth
from recado.domain.webhooks.webhook import FAILURES_TO_FAIL, MAX_AGE, SubscriptionHealth, SubscriptionStatus

AT = datetime(2026, 3, 10, 12, tzinfo=UTC)
KEY, URL = ("org_1", "wbh_1"), "https://example.com/"
ACTIVE, FAILING, PAUSED = SubscriptionStatus.ACTIVE, SubscriptionStatus.FAILING, SubscriptionStatus.PAUSED


def book(status: SubscriptionStatus = ACTIVE) -> EndpointHealth:
    made = EndpointHealth()
    assert made.read(SubscriptionHealth(status, failing_since=AT if status is FAILING else None), first=True)
    return made


def test_counters_are_written_once_a_second_and_a_status_at_once() -> None:
    fares = book()
    assert fares.pause(100.0) is None
    fares.succeeded(AT)
    assert not fares.written
    assert fares.pause(100.0) is not None
    note = fares.begin(KEY, URL, 100.0)
    assert (note.expected, note.health.last_success_at) == (ACTIVE, AT)
    fares.succeeded(AT + timedelta(seconds=1))
    assert fares.pause(100.1) is None  # while it is being written
    fares.ended(note, True)
    assert fares.pause(100.25) == EVERY - 0.25
    for number in range(FAILURES_TO_FAIL):
        fares.failed(AT + timedelta(seconds=10 * number), gone=False, probe=False)
    assert fares.status is FAILING
    assert fares.pause(100.25) == 0.0


def test_a_success_between_failures_is_counted_before_them() -> None:
    fares = book()
    fares.failed(AT, gone=False, probe=False)
    fares.succeeded(AT)
    fares.failed(AT, gone=False, probe=False)
    assert fares.current.consecutive_failures == 1
    fares.succeeded(AT)
    assert fares.current.consecutive_failures == 0


def test_a_success_heals_at_once() -> None:
    fares = book(FAILING)
    fares.succeeded(AT)
    assert fares.status is ACTIVE


def test_the_word_of_whoever_moved_the_status_stands() -> None:
    fares = book()
    fares.failed(AT, gone=False, probe=False)
    assert not fares.read(SubscriptionHealth(ACTIVE), first=False)
    assert fares.current.consecutive_failures == 1
    note = fares.begin(KEY, URL, 0.0)
    assert not fares.read(SubscriptionHealth(PAUSED), first=False)  # it may be its own writing that is seen
    fares.ended(note, False)
    assert fares.read(SubscriptionHealth(PAUSED), first=False)
    assert (fares.status, fares.stored, fares.written) == (PAUSED, PAUSED, True)


def test_a_status_that_was_seen_while_another_was_written_is_looked_at_again() -> None:
    fares = book()
    fares.succeeded(AT)
    note = fares.begin(KEY, URL, 0.0)
    fares.read(SubscriptionHealth(PAUSED), first=False)
    fares.ended(note, True)
    assert fares.unheeded
    assert fares.read(SubscriptionHealth(PAUSED), first=False)
    assert (fares.status, fares.unheeded) == (PAUSED, False)


def test_what_was_not_taken_falls_though_the_status_is_the_same() -> None:
    """It was about another address."""
    fares = book()
    fares.failed(AT, gone=True, probe=False)
    fares.ended(fares.begin(KEY, URL, 0.0), False)
    assert fares.read(SubscriptionHealth(ACTIVE, consecutive_failures=3), first=False)
    assert (fares.status, fares.current.consecutive_failures, fares.written) == (ACTIVE, 3, True)
    assert not fares.read(SubscriptionHealth(ACTIVE), first=False)


def test_what_could_not_be_written_is_written_later() -> None:
    fares = book()
    fares.succeeded(AT)
    fares.ended(fares.begin(KEY, URL, 0.0), None)
    assert not fares.written
    assert fares.pause(0.5) == EVERY - 0.5


def test_it_is_given_up_after_three_days() -> None:
    fares = book(FAILING)
    assert not fares.aged(AT + MAX_AGE - timedelta(seconds=1))
    assert fares.aged(AT + MAX_AGE)
    assert fares.status is SubscriptionStatus.REVOKED
    assert fares.current.probe_at is None


def test_nothing_is_to_be_written_of_a_row_that_was_never_read() -> None:
    fares = EndpointHealth()
    assert fares.written
    fares.read(SubscriptionHealth(ACTIVE), first=True)
    fares.failed(AT, gone=False, probe=False)
    assert not fares.written
