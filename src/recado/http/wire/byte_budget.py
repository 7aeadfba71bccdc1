"""The memory of what callers send, and of what they do not read: so much in all, a quarter of it for one caller (C31).

A caller is an organization; where no credential says which, the network that a request came from. The bytes of a
body are reserved before it is read and given back when its request was answered. Those of an answer count while its
caller does not take them; it is made by then, so that room for it is found by ending the connections of others.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from recado.domain.core.errors import Problem, Unavailable

DEFAULT: Final = 256 * 1024 * 1024  # bytes, of bodies
SMALL: Final = 64 * 1024  # bytes; an eighth is open only to bodies and answers up to this size
STREAM_BYTES: Final = 2**20  # of an answer that is sent while it is read: two parts of it at most are in memory


@dataclass(frozen=True, slots=True)
class Refusals:
    """What a caller is told who has too much, or when all together have; `retry_after` in seconds."""

    of_caller: str
    of_all: str
    retry_after: int


BODIES: Final = Refusals(
    "The bodies of your open requests are too large together: wait for their answers, then repeat this.",
    "The service holds too many large bodies now: repeat the request after Retry-After.",
    retry_after=2,
)
ANSWERS: Final = Refusals(
    "You have left too many large answers unread: read them, or close their connections, then repeat this.",
    "The service holds too many large answers that nobody reads: repeat the request after Retry-After.",
    retry_after=1,
)


class ByteBudget:
    """Counts bytes in memory. `held`: how many there are now; `share`: the most of one caller.

    A caller who holds nothing may take more than its share at once.
    """

    def __init__(self, most: int, refusals: Refusals) -> None:
        """`most` bytes in all; those without a credential have half of it together."""
        self.held = 0
        self.share = most // 4
        self._most = most
        self._refusals = refusals
        self._strangers_most = most // 2
        self._held_by_strangers = 0
        self._by_caller: dict[str, int] = {}
        self._unread: dict[str, dict[Room, None]] = {}  # by caller: what can be ended, the oldest first

    def room(self, caller: str, *, stranger: bool = False) -> "Room":
        """Return the place of one body, empty yet. `stranger`: the caller has shown no credential."""
        return Room(self, caller, stranger)

    def admit(self, caller: str, size: int) -> None:
        """Pass where an answer of `size` bytes may be held; 429 beyond the caller's share, 503 beyond what all have.

        Who would not hold more than another does passes beyond that too: the other one makes way.
        """
        self._check(Room(self, caller, stranger=False), size)

    @contextmanager
    def holding(self, caller: str, size: int, end: Callable[[], None]) -> Iterator[None]:
        """Count an answer of `size` bytes meanwhile; where there is no room for it, older ones make way.

        Beyond the caller's share these are its own, beyond what all have those of the one who holds most; one that is
        larger than a share ends others for no more than that. `end`: lets this one go; it counts no more from then on.
        """
        share, most = self._bounds(size)
        while caller in self._unread and self._by_caller[caller] + size > share:
            self._end_oldest(caller)
        while self._unread and self.held + min(size, share) > most:
            self._end_oldest(max(self._unread, key=self._by_caller.__getitem__))
        room = Room(self, caller, stranger=False, end=end)
        self._count(room, size)
        self._unread.setdefault(caller, {})[room] = None
        try:
            yield
        finally:
            room.give_back()

    def take(self, room: "Room", size: int) -> None:
        """Reserve `size` bytes more for `room`, or nothing: 429 beyond the caller's share, 503 beyond what all have."""
        self._check(room, size)
        self._count(room, size)

    def give_back(self, room: "Room") -> None:
        """Free what `room` holds."""
        size, room.size = room.size, 0
        left = self._by_caller[room.caller] - size
        if left:
            self._by_caller[room.caller] = left
        else:
            del self._by_caller[room.caller]
        self.held -= size
        if room.stranger:
            self._held_by_strangers -= size
        if room.end is not None:
            unread = self._unread[room.caller]
            del unread[room]
            if not unread:
                del self._unread[room.caller]

    def _bounds(self, size: int) -> tuple[int, int]:
        """The most of one caller, and of all, for a body or an answer that has come to `size` bytes."""
        eighth = self._most // 8
        return (self.share + self.share // 8, self._most) if size <= SMALL else (self.share, self._most - eighth)

    def _check(self, room: "Room", size: int) -> None:
        share, most = self._bounds(room.size + size)
        before = self._by_caller.get(room.caller, 0)
        if before and before + size > share:
            raise Problem(
                "RATE_LIMITED",
                self._refusals.of_caller,
                meta={"limitBytes": self.share},
                headers={"Retry-After": str(self._refusals.retry_after)},
            )
        of_strangers = room.stranger and self._held_by_strangers + size > self._strangers_most
        if of_strangers or (self.held + size > most and not self._holds_more(before + size)):
            raise Unavailable(self._refusals.of_all, retry_after=self._refusals.retry_after)

    def _holds_more(self, size: int) -> bool:
        """Whether somebody who can make way holds more than `size` bytes."""
        return any(self._by_caller[caller] > size for caller in self._unread)

    def _count(self, room: "Room", size: int) -> None:
        self._by_caller[room.caller] = self._by_caller.get(room.caller, 0) + size
        self.held += size
        room.size += size
        if room.stranger:
            self._held_by_strangers += size

    def _end_oldest(self, caller: str) -> None:
        room = next(iter(self._unread[caller]))
        room.give_back()
        if room.end is not None:
            room.end()


class Room:
    """The bytes that one body or answer may take: `size` of them are reserved. `end`: makes an answer let them go."""

    __slots__ = ("_budget", "caller", "end", "size", "stranger")

    def __init__(self, budget: ByteBudget, caller: str, stranger: bool, end: Callable[[], None] | None = None) -> None:
        self._budget = budget
        self.caller = caller
        self.stranger = stranger
        self.end = end
        self.size = 0

    @property
    def most(self) -> int:
        """The bytes of the largest body that ever fits."""
        return self._budget.share

    def take(self, size: int) -> None:
        """Reserve `size` bytes more; see `ByteBudget.take`."""
        if size:
            self._budget.take(self, size)

    def give_back(self) -> None:
        """Free everything; safe to call twice."""
        if self.size:
            self._budget.give_back(self)
