"""The calls that a provider's adapter bears at once, and the share of one business account (C31).

There are never more calls than the adapter has connections: a call that waited for one would have its token taken, and
would be in doubt (C29.2), because of somebody else's account that hangs.
"""

from collections.abc import Callable
from typing import Final

import structlog

from recado.channels.core.provider import Account
from recado.channels.http.outbound_http import CONNECTIONS

log = structlog.get_logger()

CALLS_OF_AN_ACCOUNT: Final = 4_000  # of all numbers of one business account, where it is not more than half of all


class CallRoom:
    """`most`: calls of all accounts; `each`: of one, at most half of them."""

    __slots__ = ("_calls", "_of_accounts", "_waiting", "each", "most")

    def __init__(self, most: int = CONNECTIONS) -> None:
        self.most = most
        self.each = min(CALLS_OF_AN_ACCOUNT, max(1, most // 2))
        self._calls = 0
        # Both by business account; those that wait in the order of their turns, their numbers in that of their coming.
        self._of_accounts: dict[str, int] = {}
        self._waiting: dict[str, dict[Callable[[], None], None]] = {}

    def has_place(self, account: Account, resume: Callable[[], None]) -> bool:
        """Whether the account may make one more call; if not, `resume` is called when it may."""
        name = account.owner
        if self._calls < self.most and self._of_accounts.get(name, 0) < self.each:
            return True
        self._waiting.setdefault(name, {})[resume] = None
        return False

    def take(self, account: Account) -> None:
        """A call begins."""
        name = account.owner
        self._calls += 1
        self._of_accounts[name] = self._of_accounts.get(name, 0) + 1

    def leave(self, account: Account) -> None:
        """It ended: its place goes to whose turn it is."""
        name = account.owner
        self._calls -= 1
        left = self._of_accounts[name] - 1
        if left:
            self._of_accounts[name] = left
        else:
            del self._of_accounts[name]
        while self._waiting and self._calls < self.most:
            resume = self._next()
            if resume is None:
                return
            try:
                resume()
            except Exception as error:  # noqa: BLE001 - it fails for its own number; the call that ended here is not to blame
                log.error("departure_failed", freed_by=account.sender_id, error=type(error).__name__)

    def _next(self) -> Callable[[], None] | None:
        """The number whose turn it is; None when every account that waits has its share. Those are two at most."""
        name = next((name for name in self._waiting if self._of_accounts.get(name, 0) < self.each), None)
        if name is None:
            return None
        numbers = self._waiting.pop(name)
        resume = next(iter(numbers))
        del numbers[resume]
        if numbers:
            self._waiting[name] = numbers  # behind the other accounts
        return resume
