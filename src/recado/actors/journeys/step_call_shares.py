"""The shares of calls of webhook steps in flight: of a subscription, of an organization, and of all (C31).

An endpoint that hangs holds the few places of its subscription for ten seconds each, and no other's.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from recado.domain.webhooks.webhook import SubscriptionKey

MOST_STEP_CALLS: Final = 500  # in flight, where there are descriptors for so many
OF_AN_ORGANIZATION: Final = 50  # at most a quarter of all
OF_A_SUBSCRIPTION: Final = 10  # at most half of that


class StepCallShares:
    """`most`: calls in flight at once.

    A subscription has one call in any case, though others of its organization hang and have all of its share; together
    they never have more than half of all.
    """

    def __init__(self, most: int) -> None:
        self._most = max(1, most)
        self._each = min(OF_AN_ORGANIZATION, max(1, self._most // 4))
        self._of_subscription = min(OF_A_SUBSCRIPTION, max(1, self._each // 2))
        self._in_any_case = max(1, self._most // 2)
        self._calls: Counter[SubscriptionKey] = Counter()
        self._organizations: Counter[str] = Counter()
        self._in_flight = 0

    @property
    def in_flight(self) -> int:
        """Calls under way."""
        return self._in_flight

    @property
    def free(self) -> int:
        """How many may begin, of whomever."""
        return self._most - self._in_flight

    def rooms(self, waiting: Sequence[SubscriptionKey], most: int) -> dict[SubscriptionKey, int]:
        """How many calls of each of these may begin, in their order, up to `most` together; others have no room."""
        left = min(most, self.free)
        given: Counter[str] = Counter()
        rooms: dict[SubscriptionKey, int] = {}
        for key in waiting:
            if not left:
                break
            own, of_all = self._calls[key], self._organizations[key.organization_id] + given[key.organization_id]
            room = min(self._of_subscription - own, self._each - of_all, left)
            if room <= 0 and not own and of_all < self._in_any_case:
                room = 1
            if room > 0:
                rooms[key] = room
                given[key.organization_id] += room
                left -= room
        return rooms

    def begin(self, key: SubscriptionKey) -> None:
        """A call is in flight."""
        self._calls[key] += 1
        self._organizations[key.organization_id] += 1
        self._in_flight += 1

    def end(self, key: SubscriptionKey) -> None:
        """It is in flight no more."""
        self._in_flight -= 1
        self._calls[key] -= 1
        self._organizations[key.organization_id] -= 1
        if not self._calls[key]:
            del self._calls[key]
        if not self._organizations[key.organization_id]:
            del self._organizations[key.organization_id]
