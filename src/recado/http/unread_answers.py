"""The memory of large answers that their callers have not read yet: so much of one organization, and in all (C31).

An answer counts from the moment it is written until the kernel has taken its last byte, or the connection is lost.
Answers without a credential do not count: the large ones are documents, of which all readers share one copy.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from recado.domain.errors import Problem, Unavailable

STREAM_BYTES: Final = 2**20  # of an answer that is sent while it is read: two parts of it at most are in memory
RETRY_AFTER: Final = 1  # second


class UnreadAnswers:
    """Counts the bytes of large answers on their way. `held`: how many there are now; `share`: the most of one caller.

    To a caller who has left none unread one answer goes, however large, while all together have room for it.
    """

    def __init__(self, most: int) -> None:
        """`most` bytes in all, a quarter of it for one caller."""
        self.held = 0
        self.share = most // 4
        self._most = most
        self._by_caller: dict[str, int] = {}

    def admit(self, caller: str, size: int) -> None:
        """Pass, or refuse an answer of `size` bytes: 429 beyond the caller's share, 503 beyond what all have."""
        if not self.held:
            return
        of_caller = self._by_caller.get(caller, 0)
        if of_caller and of_caller + size > self.share:
            raise Problem(
                "RATE_LIMITED",
                "You have left too many large answers unread: read them, or close their connections, then repeat this.",
                meta={"limitBytes": self.share},
                headers={"Retry-After": str(RETRY_AFTER)},
            )
        if self.held + size > self._most:
            raise Unavailable(
                "The service holds too many large answers that nobody reads: repeat the request after Retry-After.",
                retry_after=RETRY_AFTER,
            )

    @contextmanager
    def holding(self, caller: str, size: int) -> Iterator[None]:
        """Count `size` bytes with `caller` meanwhile."""
        self._by_caller[caller] = self._by_caller.get(caller, 0) + size
        self.held += size
        try:
            yield
        finally:
            self.held -= size
            left = self._by_caller[caller] - size
            if left:
                self._by_caller[caller] = left
            else:
                del self._by_caller[caller]
