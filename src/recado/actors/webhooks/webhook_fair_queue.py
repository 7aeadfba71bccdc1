"""The fair queue of calls to endpoints: organizations take turns, and each has a share of what is in flight (C31).

A turn is one of the turns of long work on the event loop: however much is to be delivered, a request waits for a few
attempts only, and another organization's single delivery for as many.
"""

from typing import Final, Protocol

import structlog

from recado.domain.webhooks.webhook import SubscriptionKey
from recado.engine.turns import Turns

log = structlog.get_logger()

MOST_CALLS: Final = 20_000  # in flight, of all subscriptions, where there are descriptors for so many (C31)
CALLS_OF_AN_ORGANIZATION: Final = 400  # at most half of all
# Of one subscription, though others of its organization hang and have all the rest; so few of all that the 40 of an
# organization have a quarter together.
CALLS_IN_ANY_CASE: Final = 10
MOST_UNWRITTEN: Final = 2_000  # C31: attempts of an organization that began, and whose results are not written yet
BEGUN_IN_A_TURN: Final = 64  # attempts; each takes the loop some 50 microseconds
BEGUN_BESIDE_REQUESTS: Final = 8


class Deliverer(Protocol):
    """One subscription's deliveries."""

    @property
    def in_flight(self) -> int:
        """How many calls it has in flight."""

    def begin_next(self) -> bool:
        """Begin the next attempt, if there is one that may begin now; answers whether there was."""


class Share:
    """What one organization has under way. `calls`: in flight; `unwritten`: those, and results not written yet."""

    __slots__ = ("calls", "unwritten", "waiting")

    def __init__(self) -> None:
        self.calls = 0
        self.unwritten = 0
        self.waiting: dict[str, Deliverer] = {}  # subscriptions, in the order of their turns

    @property
    def empty(self) -> bool:
        return not self.unwritten and not self.waiting

    def next(self, each: int, in_any_case: int) -> str | None:
        """The subscription whose turn it is, None when none that waits has room.

        `each`: calls of an organization; `in_any_case`: of each of its subscriptions.
        """
        if self.unwritten >= MOST_UNWRITTEN:
            return None
        if self.calls < each:
            return next(iter(self.waiting), None)
        few = (name for name, deliverer in self.waiting.items() if deliverer.in_flight < in_any_case)
        return next(few, None)


class FairCallQueue:
    """`calls`: those in flight, of all subscriptions; there are `most` at most."""

    def __init__(self, turns: Turns, most: int = MOST_CALLS) -> None:
        self.calls = 0
        self._most = most
        self._each = min(CALLS_OF_AN_ORGANIZATION, max(1, most // 2))
        self._in_any_case = min(CALLS_IN_ANY_CASE, max(1, most // 160))
        self._turns = turns
        self._asked = False
        self._shares: dict[str, Share] = {}
        self._order: dict[str, Share] = {}  # organizations that may begin something, in the order of their turns

    def enter(self, key: SubscriptionKey, deliverer: Deliverer) -> None:
        """It has something to deliver: it is asked to begin until it has nothing that may begin. Safe to call twice."""
        share = self._share(key.organization_id)
        if key.subscription_id not in share.waiting:
            share.waiting[key.subscription_id] = deliverer
            self._offer(key.organization_id, share)

    def leave(self, key: SubscriptionKey) -> None:
        """It delivers nothing more; what is under way goes on."""
        share = self._shares.get(key.organization_id)
        if share is not None:
            share.waiting.pop(key.subscription_id, None)
            self._forget(key.organization_id, share)

    def began(self, key: SubscriptionKey) -> None:
        """A call is in flight."""
        share = self._share(key.organization_id)
        self.calls += 1
        share.calls += 1
        share.unwritten += 1

    def ended(self, key: SubscriptionKey) -> None:
        """It is in flight no more."""
        share = self._shares[key.organization_id]
        self.calls -= 1
        share.calls -= 1
        if share.waiting:
            self._offer(key.organization_id, share)
        else:
            self._ask()

    def written(self, key: SubscriptionKey, count: int = 1) -> None:
        """What became of so many is written, or will not be."""
        share = self._shares[key.organization_id]
        share.unwritten -= count
        if share.waiting:
            self._offer(key.organization_id, share)
        elif not share.unwritten:
            self._forget(key.organization_id, share)

    def _share(self, organization_id: str) -> Share:
        share = self._shares.get(organization_id)
        if share is None:
            share = self._shares[organization_id] = Share()
        return share

    def _forget(self, organization_id: str, share: Share) -> None:
        if share.empty:
            self._shares.pop(organization_id, None)
            self._order.pop(organization_id, None)

    def _offer(self, organization_id: str, share: Share) -> None:
        if share.waiting:
            self._order.setdefault(organization_id, share)
        self._ask()

    def _ask(self) -> None:
        if self._order and not self._asked and self.calls < self._most:
            self._asked = True
            self._turns.ask(self._step)

    def _step(self) -> None:
        """Let some attempts begin: of each organization in turn, and of each of its subscriptions in turn."""
        self._asked = False
        order = self._order
        left = BEGUN_BESIDE_REQUESTS if self._turns.served else BEGUN_IN_A_TURN
        while left and order and self.calls < self._most:
            organization_id = next(iter(order))
            share = order.pop(organization_id)
            name = share.next(self._each, self._in_any_case)
            if name is None:  # it is in the queue again when something of it ended
                self._forget(organization_id, share)
                continue
            order[organization_id] = share
            deliverer = share.waiting.pop(name)
            try:
                began = deliverer.begin_next()
            except Exception as error:  # noqa: BLE001 - a fault of ours keeps no other from its turn
                log.error("delivery_not_begun", subscription_id=name, error=type(error).__name__)
                began = False
            if began:
                left -= 1
                share.waiting[name] = deliverer
        self._ask()
