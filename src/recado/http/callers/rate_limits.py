"""Request rate limits: a token bucket per credential (or address) and class, and one of the organization (C6.1)."""

import math
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from recado.domain.core.errors import Problem
from recado.http.callers.principal import Principal
from recado.http.wire.client_ip import network_of

if TYPE_CHECKING:  # what it needs is loaded where processes share a table
    from recado.http.callers.shared_buckets import SharedBuckets, SlotOfBucket

MOST_BUCKETS = 100_000

FAILED = "failed"
PUBLIC = "public"
ANONYMOUS = "anonymous"

_ADDRESS: Final = "ip "  # begins the key of a bucket of an address

Limit = tuple[float, int]  # refill per second, capacity


class Bucket:
    """Tokens of one caller in one class. `refill` is per second; times are monotonic seconds."""

    __slots__ = ("_at", "_capacity", "_refill", "_tokens", "_whose", "limit", "name", "policy", "policy_line")

    def __init__(self, name: str, limit: Limit, now: float, whose: str = "") -> None:
        """`whose`: the end of a sentence on its requests, where they are not those of a single caller."""
        self.name = name
        self._whose = whose
        self.limit = limit  # refill per second, capacity
        self._refill, self._capacity = limit
        self._tokens = float(self._capacity)
        self._at = now
        self.policy = f'"{name}";q={self._capacity};w={math.ceil(self._capacity / self._refill)}'
        self.policy_line = f"RateLimit-Policy: {self.policy}\r\n"

    def take(self, now: float) -> bool:
        """Take one token; False when there is none."""
        self._fill(now)
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True

    def has_token(self, now: float) -> bool:
        """Whether a token is there, without taking it."""
        self._fill(now)
        return self._tokens >= 1.0

    def owe(self, now: float) -> None:
        """Take one token, also where there is none: requests that began together had all seen the last one."""
        self._fill(now)
        self._tokens = max(self._tokens - 1.0, -float(self._capacity))

    def retry_after(self) -> int:
        """Whole seconds until one token is there, at least 1."""
        return max(1, math.ceil((1.0 - self._tokens) / self._refill))

    def lines(self) -> str:
        """Return the two header lines about this bucket."""
        left = self._tokens
        full = math.ceil((self._capacity - left) / self._refill)
        return f'{self.policy_line}RateLimit: "{self.name}";r={int(left)};t={full}\r\n'

    def refusal(self) -> Problem:
        """Return the 429 for a caller whose bucket is empty."""
        return Problem(
            "RATE_LIMITED",
            f"Too many requests of the class {self.name}{self._whose}: try again after the seconds in Retry-After.",
            meta={"policy": self.policy},
            headers={"Retry-After": str(self.retry_after())},
        )

    def _fill(self, now: float) -> None:
        passed = now - self._at
        if passed > 0.0:
            self._at = now
            tokens = self._tokens + passed * self._refill
            self._tokens = tokens if tokens < self._capacity else float(self._capacity)


class SharedBucket(Bucket):
    """A bucket that other processes take from, too; what it tells is what was left when this one last looked.

    It counts as one that is not shared, with what the table keeps between two looks. Where the limit has changed, the
    caller keeps its tokens, of which those beyond the capacity are cut. While another process stands still in the
    middle of a look, this one counts by itself.
    """

    __slots__ = ("_place",)

    def __init__(self, name: str, limit: Limit, now: float, whose: str, place: "SlotOfBucket") -> None:
        super().__init__(name, limit, now, whose)
        self._place = place

    def take(self, now: float) -> bool:
        place = self._place
        if not place.hold():
            return super().take(now)
        try:
            self._load(now)
            taken = super().take(now)
            self._keep(now)
        finally:
            place.release()
        return taken

    def has_token(self, now: float) -> bool:
        place = self._place
        if not place.hold():
            return super().has_token(now)
        try:
            known = self._load(now)
            there = super().has_token(now)
            if known:
                self._keep(now)
        finally:
            place.release()
        return there

    def owe(self, now: float) -> None:
        place = self._place
        if not place.hold():
            super().owe(now)
            return
        try:
            self._load(now)
            super().owe(now)
            self._keep(now)
        finally:
            place.release()

    def _load(self, now: float) -> bool:
        """What the table has; whether it has any."""
        found = self._place.read()
        if found is None:
            self._tokens, self._at = float(self._capacity), now
            return False
        tokens, self._at = found
        self._tokens = tokens if tokens < self._capacity else float(self._capacity)
        return True

    def _keep(self, now: float) -> None:
        tokens = self._tokens
        self._place.write(tokens, self._at, self._at + (self._capacity - tokens) / self._refill, now)


class RateLimiter:
    """All buckets of this process; the least recently used one goes when there are too many.

    What processes share is in their table. Here is only what this process knows of it, so nothing is lost with it.
    """

    def __init__(
        self,
        limits: Mapping[str, Limit],
        ceilings: Mapping[str, Limit],
        *,
        most_buckets: int = MOST_BUCKETS,
        shared: "SharedBuckets | None" = None,
    ) -> None:
        """`limits` of a credential or address by class, `ceilings` of an organization's environment by class.

        `shared`: where all processes of the service keep their buckets; None where there is one.
        """
        self._shared = shared
        self._limits = dict(limits)
        self._ceilings = dict(ceilings)
        self._most = most_buckets
        self._buckets: OrderedDict[tuple[str, str], Bucket] = OrderedDict()

    @property
    def classes(self) -> frozenset[str]:
        """The names of all classes."""
        return frozenset(self._limits)

    def of_principal(self, principal: Principal, name: str, now: float) -> Bucket:
        """Return the caller's bucket of the class `name`, by the overrides of its credential if it has any.

        An override is bounded by the ceiling, which may have come later, unless the operator gave it.
        """
        key = (principal.actor_id, name)
        bucket = self._buckets.get(key)
        overrides = principal.rate_limits
        limit = self._limits[name]
        if bucket is not None and not overrides and bucket.limit is limit:
            self._buckets.move_to_end(key)
            return bucket
        if name in overrides:
            limit = overrides[name]
            ceiling = self._ceilings.get(name)
            if ceiling is not None and not principal.from_operator:
                limit = (min(limit[0], ceiling[0]), min(limit[1], ceiling[1]))
        return self._keep(key, name, limit, now)

    def of_organization(self, principal: Principal, name: str, now: float) -> Bucket | None:
        """Return the bucket of all credentials of the caller's organization and environment; None where none counts.

        Keys are made faster than they use up a limit of their own: without this, a new one is a full bucket.
        """
        if name not in self._ceilings or (principal.from_operator and name in principal.rate_limits):
            return None
        key = (f"{principal.organization_id} {principal.env}", name)
        return self._keep(key, name, self._ceilings[name], now, " from all keys and sessions of the organization")

    def of_address(self, address: str, name: str, now: float) -> Bucket:
        """Return the bucket of the class `name` of a caller known by its address only: an IPv6 one by its /64."""
        return self._keep((_ADDRESS + network_of(address), name), name, self._limits[name], now)

    def lets_in(self, address: str, name: str, now: float) -> bool:
        """Whether a caller known by its address has a token, without taking it. Who has used none needs no bucket."""
        if self._shared is not None:  # it may have used them at another process
            return self.of_address(address, name, now).has_token(now)
        bucket = self._buckets.get((_ADDRESS + network_of(address), name))
        return bucket is None or bucket.has_token(now)

    def _keep(self, key: tuple[str, str], name: str, limit: Limit, now: float, whose: str = "") -> Bucket:
        bucket = self._buckets.get(key)
        if bucket is None or bucket.limit != limit:
            bucket = self._buckets[key] = self._made(key, name, limit, now, whose)
        self._buckets.move_to_end(key)
        if len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return bucket

    def _made(self, key: tuple[str, str], name: str, limit: Limit, now: float, whose: str) -> Bucket:
        if self._shared is None:
            return Bucket(name, limit, now, whose)
        place = self._shared.place(key, stranger=key[0].startswith(_ADDRESS))
        return SharedBucket(name, limit, now, whose, place)
