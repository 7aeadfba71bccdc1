"""How a subscription's endpoint fares, as its actor knows it, beside what its row says."""

from dataclasses import replace
from datetime import datetime

from recado.domain.webhooks.webhook import (
    SUBSCRIPTION_MACHINE,
    SubscriptionEvent,
    SubscriptionHealth,
    SubscriptionKey,
    SubscriptionStatus,
)
from recado.storage.webhooks.webhooks import HealthNote

EVERY = 1.0  # seconds between writes of counters; a status is written at once


class EndpointHealth:
    """`stored`: the status that the row is believed to have; `unheeded`: it said another one while this was written."""

    __slots__ = ("_health", "_noted", "_noted_at", "_noting", "_refused", "_succeeded_at", "stored", "unheeded")

    def __init__(self) -> None:
        self.unheeded = False
        self._refused = False  # what was written last did not stand
        self.stored = SubscriptionStatus.ACTIVE
        self._health = SubscriptionHealth(self.stored)
        self._noted: SubscriptionHealth | None = None
        self._noted_at = float("-inf")
        self._noting = False
        self._succeeded_at: datetime | None = None  # not in the health yet: thousands a second come

    @property
    def current(self) -> SubscriptionHealth:
        """As it is now."""
        if self._succeeded_at is not None:
            self._health, self._succeeded_at = self._health.succeeded(self._succeeded_at), None
        return self._health

    @property
    def status(self) -> SubscriptionStatus:
        return self._health.status

    @property
    def in_service(self) -> bool:
        """Whether an answer 410 ends it (C23.2)."""
        return self.status in SUBSCRIPTION_MACHINE.sources(SubscriptionEvent.GONE)

    @property
    def written(self) -> bool:
        """Nothing is left to be written; before the row was read there is nothing either."""
        if self._noted is None:
            return True
        return not self._noting and self._succeeded_at is None and self._health == self._noted

    def read(self, found: SubscriptionHealth, *, first: bool) -> bool:
        """What the row says; its own findings stand unless somebody moved the status, or they were not taken.

        Answers whether they fell.
        """
        moved = found.status is not self.stored
        self.unheeded = moved and self._noting  # it may be its own writing that is seen
        fell = first or self._refused or (moved and not self._noting)
        if fell:
            self._health = self._noted = found
            self.stored = found.status
            self._refused = False
        return fell

    def succeeded(self, at: datetime) -> None:
        self._succeeded_at = at
        if self._health.status is not SubscriptionStatus.ACTIVE:
            self._health = self.current

    def failed(self, at: datetime, *, gone: bool, probe: bool) -> None:
        self._health = self.current.failed(at, gone=gone, probe=probe)

    def aged(self, now: datetime) -> bool:
        """Whether it has been failing for so long that it is given up now."""
        before = self.current
        self._health = before.aged(now)
        return self._health is not before

    # Writing ----------------------------------------------------------------------------------------------------------

    def pause(self, monotonic: float) -> float | None:
        """Seconds until something is to be written, None when nothing is."""
        if self._noting or (self._succeeded_at is None and self._health == self._noted):
            return None
        return self._noted_at + EVERY - monotonic if self._health.status is self.stored else 0.0

    def begin(self, key: SubscriptionKey, url: str, monotonic: float) -> HealthNote:
        """What to write about the endpoint; it is being written from then on."""
        self._noting, self._noted_at = True, monotonic
        return HealthNote(key, url, self.stored, self.current)

    def ended(self, note: HealthNote, stood: bool | None) -> None:
        """It is written; `stood` False: another moved status or address, whose word stands; None: it is not written."""
        self._noting = False
        if stood:
            self.stored, self._noted = note.health.status, note.health
        elif stood is False:
            self._noted = self._health = replace(self.current, status=note.expected)
            self._refused = True
