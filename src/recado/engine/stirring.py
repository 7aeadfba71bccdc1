"""Which children of a supervisor did anything lately: who shows thousands looks at those alone."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

MOST: Final = 20_000


class Stirring:
    """Children that were woken, began or ended, each at its last time. `count`: how often any did so far."""

    __slots__ = ("_at", "_forgotten", "count")

    def __init__(self) -> None:
        self.count = 0
        self._at: OrderedDict[Hashable, int] = OrderedDict()  # the last ones at the end
        self._forgotten = 0  # up to here not all are known any more

    def note(self, key: Hashable) -> None:
        """The child with this key does something."""
        self.count += 1
        at = self._at
        at[key] = self.count
        at.move_to_end(key)
        if len(at) > MOST:
            _, self._forgotten = at.popitem(last=False)

    def forget(self) -> None:
        """Know of nobody: whoever asks for what was before is told that it is not remembered."""
        self.count += 1
        self._forgotten = self.count
        self._at.clear()

    def since(self, count: int) -> list[Hashable] | None:
        """The keys of those that did anything since the count was this; None: they are too many to remember."""
        if count < self._forgotten:
            return None
        found = []
        for key, at in reversed(self._at.items()):
            if at <= count:
                break
            found.append(key)
        return found
