"""Memory that callers' work may take, in all and of an owner: what does not fit is refused at once (C31)."""

from collections.abc import Iterator
from contextlib import contextmanager

from recado.domain.core.errors import Unavailable


class FairMemory:
    """`most` bytes in all, of which an owner has at most `each`. An owner is an organization as a rule."""

    def __init__(self, most: int, *, each: int) -> None:
        self._most = most
        self._each = each
        self._held: dict[str, int] = {}
        self.taken = 0

    @contextmanager
    def holding(self, owner: str) -> Iterator["Held"]:
        """What is taken through it is given back at the end."""
        held = Held(self, owner)
        try:
            yield held
        finally:
            self._give_back(owner, held.size)

    def take(self, owner: str, size: int) -> None:
        """Raises `Unavailable`, and takes nothing, where it does not fit."""
        of_owner = self._held.get(owner, 0) + size
        if self.taken + size > self._most or of_owner > self._each:
            raise Unavailable("Too much content is in memory: try again shortly.")
        self.taken += size
        self._held[owner] = of_owner

    def _give_back(self, owner: str, size: int) -> None:
        self.taken -= size
        left = self._held.get(owner, 0) - size
        if left > 0:
            self._held[owner] = left
        else:
            self._held.pop(owner, None)


class Held:
    """What one piece of work takes. `size`: bytes."""

    def __init__(self, memory: FairMemory, owner: str) -> None:
        self._memory = memory
        self._owner = owner
        self.size = 0

    def take(self, size: int) -> None:
        """So many bytes more. Raises `Unavailable`."""
        self._memory.take(self._owner, size)
        self.size += size
