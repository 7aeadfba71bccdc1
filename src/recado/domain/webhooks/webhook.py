"""A webhook subscription: its states, its health, and when a delivery is tried again (C23.2, C23.3)."""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, NamedTuple

from recado.domain.core.machine import Machine

MAX_SUBSCRIPTIONS: Final = 20  # per environment (C31)
MAX_AGE: Final = timedelta(hours=72)  # of a delivery, and of a failing subscription
FAILURES_TO_FAIL: Final = 10
FAILING_TAKES: Final = timedelta(seconds=60)
FIRST_PROBE, LONGEST_PROBE = 60, 900  # seconds
FREE_FAILURES: Final = 3
LONGEST_PAUSE: Final = 2.0  # seconds
LONGEST_BACKOFF: Final = 21_600.0  # seconds
JITTER: Final = 0.1
GONE: Final = 410


class SubscriptionKey(NamedTuple):
    """A subscription, found by its organization and its own id."""

    organization_id: str
    subscription_id: str


class SubscriptionStatus(StrEnum):
    """Only `active` and `failing` ones have new events queued."""

    ACTIVE = "active"  # the customer pauses it, its endpoint's answers make it failing or revoked
    PAUSED = "paused"  # by the customer, who alone resumes it
    FAILING = "failing"  # one probe at a time; a success heals it, 72 h without one end it
    REVOKED = "revoked"  # by failures, an answer 410 or DELETE; after DELETE for good


class SubscriptionEvent(StrEnum):
    """What happens to a subscription. The comments name who says so."""

    PAUSE = "pause"  # customer
    RESUME = "resume"  # customer
    DEGRADED = "degraded"  # ten failures in a row, over a minute at least
    RECOVERED = "recovered"  # a 2xx of any delivery
    GIVEN_UP = "given_up"  # 72 h of failing
    GONE = "gone"  # the endpoint answered 410
    DELETE = "delete"  # customer


_S = SubscriptionStatus
_E = SubscriptionEvent

SUBSCRIPTION_MACHINE: Final = Machine(
    "webhook subscription",
    {
        (_S.ACTIVE, _E.PAUSE): _S.PAUSED,
        (_S.FAILING, _E.PAUSE): _S.PAUSED,
        (_S.PAUSED, _E.RESUME): _S.ACTIVE,
        (_S.FAILING, _E.RESUME): _S.ACTIVE,
        (_S.REVOKED, _E.RESUME): _S.ACTIVE,
        (_S.ACTIVE, _E.DEGRADED): _S.FAILING,
        (_S.FAILING, _E.RECOVERED): _S.ACTIVE,
        (_S.FAILING, _E.GIVEN_UP): _S.REVOKED,
        (_S.ACTIVE, _E.GONE): _S.REVOKED,
        (_S.FAILING, _E.GONE): _S.REVOKED,
        (_S.ACTIVE, _E.DELETE): _S.REVOKED,
        (_S.PAUSED, _E.DELETE): _S.REVOKED,
        (_S.FAILING, _E.DELETE): _S.REVOKED,
        (_S.REVOKED, _E.DELETE): _S.REVOKED,
    },
    initial={"created": _S.ACTIVE},
)


@dataclass(frozen=True, slots=True)
class SubscriptionHealth:
    """How an endpoint fares. `probe_at`: while failing, when the next single delivery is tried."""

    status: SubscriptionStatus
    consecutive_failures: int = 0
    first_failure_at: datetime | None = None
    last_success_at: datetime | None = None
    last_failure_at: datetime | None = None
    failing_since: datetime | None = None
    probe_at: datetime | None = None
    probe_seconds: int = 0

    def moved(self, event: SubscriptionEvent) -> "SubscriptionHealth":
        """After an event that is none of an endpoint's; raises `IllegalMove` where the state does not know it.

        Anyone who is active again has no failure behind.
        """
        status = SUBSCRIPTION_MACHINE.move(self.status, event)
        clean = status is SubscriptionStatus.ACTIVE
        return replace(
            self,
            status=status,
            consecutive_failures=0 if clean else self.consecutive_failures,
            first_failure_at=None if clean else self.first_failure_at,
            failing_since=None,
            probe_at=None,
            probe_seconds=0,
        )

    def succeeded(self, at: datetime) -> "SubscriptionHealth":
        """After a 2xx."""
        if self.status is SubscriptionStatus.FAILING:
            return replace(self.moved(SubscriptionEvent.RECOVERED), last_success_at=at)
        if self.consecutive_failures:
            return replace(self, consecutive_failures=0, first_failure_at=None, last_success_at=at)
        return replace(self, last_success_at=at)

    def failed(self, at: datetime, *, gone: bool = False, probe: bool = False) -> "SubscriptionHealth":
        """After an attempt that was no success. `gone`: answered 410. `probe`: the one tried while failing."""
        after = replace(
            self,
            consecutive_failures=self.consecutive_failures + 1,
            first_failure_at=self.first_failure_at or at,
            last_failure_at=at,
        )
        if gone and self.status in SUBSCRIPTION_MACHINE.sources(SubscriptionEvent.GONE):
            return replace(after, status=SUBSCRIPTION_MACHINE.move(self.status, SubscriptionEvent.GONE), probe_at=None)
        if self.status is SubscriptionStatus.ACTIVE:
            since = after.first_failure_at or at
            if after.consecutive_failures >= FAILURES_TO_FAIL and at - since >= FAILING_TAKES:
                return replace(
                    after,
                    status=SUBSCRIPTION_MACHINE.move(self.status, SubscriptionEvent.DEGRADED),
                    failing_since=at,
                    probe_at=at + timedelta(seconds=FIRST_PROBE),
                    probe_seconds=FIRST_PROBE,
                )
        elif self.status is SubscriptionStatus.FAILING and probe:
            pause = min(max(self.probe_seconds, FIRST_PROBE // 2) * 2, LONGEST_PROBE)
            after = replace(after, probe_at=at + timedelta(seconds=pause), probe_seconds=pause)
        return after.aged(at)

    def aged(self, now: datetime) -> "SubscriptionHealth":
        """Revoked when it has been failing for 72 hours; otherwise as it is."""
        if self.status is not SubscriptionStatus.FAILING or self.failing_since is None:
            return self
        if now - self.failing_since < MAX_AGE:
            return self
        return replace(self, status=SUBSCRIPTION_MACHINE.move(self.status, SubscriptionEvent.GIVEN_UP), probe_at=None)


def retry_delay(attempts: int, backoff_seconds: int, chance: float, retry_after: float | None = None) -> float:
    """Seconds until the attempt after the `attempts`-th; `chance` in [0, 1) spreads them by ±10 %.

    A larger Retry-After wins, up to 6 h.
    """
    # Past the sixth power of four the ceiling holds whatever the first pause was.
    pause = min(backoff_seconds * 4.0 ** min(attempts - 1, 8), LONGEST_BACKOFF)
    pause *= 1 + JITTER * (2 * chance - 1)
    return max(pause, min(retry_after or 0.0, LONGEST_BACKOFF))


def failure_pause(consecutive_failures: int) -> float:
    """Seconds that nothing is begun after so many failures in a row.

    An endpoint that refuses at once would otherwise spend an attempt of its whole backlog, and everybody's time, before
    the minute is over that makes it failing.
    """
    return min(max(consecutive_failures - FREE_FAILURES, 0) * 0.1, LONGEST_PAUSE)
