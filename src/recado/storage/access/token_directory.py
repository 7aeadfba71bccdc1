"""Who a bearer token is: the cached way from a token to its record (C3.1), one dictionary look-up when it is known.

Form and checksum are tested before the database is asked, so that rubbish costs no query. That a token is unknown is
not remembered. Keys and sessions differ in what stands behind a token and in why it is refused.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Generic, Protocol, TypeVar

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem
from recado.domain.core.tokens import token_env, token_hash
from recado.storage.core.directory import Directory
from recado.storage.core.statements.rows import Executor

TTL = 5.0  # seconds until a change made by another process holds here (C24.2, C24.4)
MOST_USED = 100_000  # records whose last use waits to be written

# Of those who ask again and again: a third of what it takes to know a caller. The last ones that were shown, whatever
# they are, stay in memory for that; a hash says nothing of what its token may do.
_hash_of = lru_cache(maxsize=1_024)(token_hash)


class Known(Protocol):
    """What stands behind a token. `ends_at`: when it is valid no more, None for never."""

    @property
    def ends_at(self) -> datetime | None: ...


T = TypeVar("T", bound=Known)
U = TypeVar("U", bound=Hashable)


class TokenDirectory(ABC, Generic[T, U]):
    """Tokens to records. At most 5 s behind other processes; in this one every write calls a `forget_…`."""

    def __init__(self, executor: Executor, *, clock: Clock, capacity: int = 10_000) -> None:
        self._executor = executor
        self._now = clock.now
        self._known: Directory[bytes, T] = Directory(self._load, clock=clock, ttl=TTL, capacity=capacity)
        self._used: dict[U, datetime] = {}

    def peek(self, token: str) -> T | None:
        """The record of a valid token when it is at hand, without waiting; None = ask `authenticate`."""
        known = self._known.peek(_hash_of(token))
        if known is None or (known.ends_at is not None and known.ends_at <= self._now()):
            return None
        return known

    async def authenticate(self, token: str) -> T:
        """The record of a valid token; raises `Problem` 401."""
        known = self.peek(token)
        if known is not None:
            return known
        if token_env(token) is None:
            raise Problem(
                "UNAUTHORIZED",
                "Unknown API key: keys begin with svc_test_ or svc_live_, and this one is cut or misspelled.",
            )
        known = await self._known.get(_hash_of(token))
        if known is None:
            raise Problem(
                "UNAUTHORIZED",
                "Unknown API key: this installation has none such. Was it made in another data folder or environment?",
            )
        now = self._now()
        self._refuse_ended(known, now)
        # A token in use comes by here every five seconds, which is exact enough for the moment of its last use.
        key = self._use(known, now)
        if len(self._used) < MOST_USED or key in self._used:
            self._used[key] = now
        return known

    def forget_where(self, condition: Callable[[T], bool]) -> None:
        """Serve none of the records that meet the condition any more."""
        self._known.forget_where(condition)

    async def flush(self) -> None:
        """Write the last uses gathered since the last flush, in one statement. Run every minute and at the end."""
        if not self._used:
            return
        used, self._used = self._used, {}
        try:
            await self._touch(list(used.items()))
        except BaseException:
            self._used = used | self._used
            raise

    @abstractmethod
    async def _load(self, hashed: bytes) -> T | None:
        """What stands behind the token with this hash."""

    @abstractmethod
    def _refuse_ended(self, known: T, now: datetime) -> None:
        """Raise the 401 that says why a token is valid no more."""

    @abstractmethod
    def _use(self, known: T, now: datetime) -> U:
        """Note that the record is used; answer what the last use is written for."""

    @abstractmethod
    async def _touch(self, used: Sequence[tuple[U, datetime]]) -> None:
        """Write last uses."""
