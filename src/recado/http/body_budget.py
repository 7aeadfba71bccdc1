"""The memory of request bodies: so much in all, a quarter of it for one caller, taken before a body is read and given
back when its request was answered (C31).

A caller is an organization; where no credential says which, the network that the request came from.
"""

from typing import Final

from recado.domain.errors import Problem, Unavailable

DEFAULT: Final = 256 * 1024 * 1024
SMALL: Final = 64 * 1024  # bytes; an eighth more is open to bodies up to this size, whatever the large ones take
RETRY_AFTER: Final = 2  # seconds


class BodyBudget:
    """Counts the bytes of all bodies in memory. `held`: how many there are now; `share`: the most of one caller."""

    def __init__(self, most: int = DEFAULT) -> None:
        """`most` bytes in all; those without a credential have half of it together."""
        self.held = 0
        self.share = most // 4
        self._most = most
        self._strangers_most = most // 2
        self._held_by_strangers = 0
        self._by_caller: dict[str, int] = {}

    def room(self, caller: str, *, stranger: bool = False) -> "BodyRoom":
        """Return the place of one body, empty yet. `stranger`: the caller has shown no credential."""
        return BodyRoom(self, caller, stranger)

    def take(self, room: "BodyRoom", size: int) -> None:
        """Reserve `size` bytes more for `room`, or nothing: 429 beyond the caller's share, 503 beyond what all have."""
        caller, most, share = room.caller, self._most, self.share
        if room.size + size <= SMALL:
            share += share // 8
        else:
            most -= most // 8
        of_caller = self._by_caller.get(caller, 0) + size
        if of_caller > share:
            raise Problem(
                "RATE_LIMITED",
                "The bodies of your open requests are too large together: wait for their answers, then repeat this.",
                meta={"limitBytes": self.share},
                headers={"Retry-After": str(RETRY_AFTER)},
            )
        if self.held + size > most:
            raise _busy()
        if room.stranger:
            if self._held_by_strangers + size > self._strangers_most:
                raise _busy()
            self._held_by_strangers += size
        self._by_caller[caller] = of_caller
        self.held += size
        room.size += size

    def give_back(self, room: "BodyRoom") -> None:
        """Free what `room` holds."""
        size, room.size = room.size, 0
        left = self._by_caller.get(room.caller, 0) - size
        if left > 0:
            self._by_caller[room.caller] = left
        else:
            self._by_caller.pop(room.caller, None)
        self.held -= size
        if room.stranger:
            self._held_by_strangers -= size


class BodyRoom:
    """The bytes that one body may take: `size` of them are reserved."""

    __slots__ = ("_budget", "caller", "size", "stranger")

    def __init__(self, budget: BodyBudget, caller: str, stranger: bool) -> None:
        self._budget = budget
        self.caller = caller
        self.stranger = stranger
        self.size = 0

    @property
    def most(self) -> int:
        """The bytes of the largest body that ever fits."""
        return self._budget.share

    def take(self, size: int) -> None:
        """Reserve `size` bytes more; see `BodyBudget.take`."""
        if size:
            self._budget.take(self, size)

    def give_back(self) -> None:
        """Free everything; safe to call twice."""
        if self.size:
            self._budget.give_back(self)


def _busy() -> Unavailable:
    return Unavailable(
        "The service holds too many large bodies now: repeat the request after Retry-After.", retry_after=RETRY_AFTER
    )
