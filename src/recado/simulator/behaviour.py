"""How the simulated provider behaves: what becomes of one request is drawn from a seeded generator. Pure."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from recado.channels.core.events import ReportStatus

REFUSALS = ("recipient_unreachable", "policy_blocked", "media_invalid", "template_unavailable")
_SPREAD = 0.5  # sigma of the latencies' logarithm: one in forty takes 2.7 times the median
_LONGEST = 10.0  # times the median


class Given(StrEnum):
    """What the provider did with a request."""

    ACCEPTED = "accepted"
    LOST = "lost"  # processed; the answer never arrives
    FAILED = "failed"  # processed; answered with a 5xx
    SLOW_DOWN = "slow_down"
    REFUSED = "refused"
    CODED = "coded"  # answered with an error code of the hosted API, and not processed

    @property
    def processed(self) -> bool:
        """Whether the message went out to its recipient, whatever the sender was told."""
        return self not in (Given.SLOW_DOWN, Given.REFUSED, Given.CODED)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestShares:
    """Shares of all requests, 0 to 1. The first four exclude one another and sum to at most 1."""

    slow_down: float = 0.0
    refuse: float = 0.0
    lost: float = 0.0
    error: float = 0.0
    duplicate: float = 0.0  # every receipt comes twice
    early: float = 0.0  # the first receipt comes before the answer to the send
    shuffle: float = 0.0  # "read" comes before "delivered"
    unreferenced: float = 0.0  # receipts name the provider's id only; where the answer arrived
    undelivered: float = 0.0  # the receipt is a failure
    silent: float = 0.0  # no receipt ever

    def __post_init__(self) -> None:
        for name in self.__slots__:
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"the share {name} is not between 0 and 1")
        if self.slow_down + self.refuse + self.lost + self.error > 1:
            raise ValueError("slow-down, refuse, lost and error shares sum to more than 1")


@dataclass(frozen=True, slots=True)
class Receipt:
    """A report to come `delay` seconds after the request was processed."""

    delay: float
    status: ReportStatus
    code: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What becomes of one request. `status` 0: the answer is lost; then `hang` tells silence from a reset."""

    given: Given
    latency: float  # seconds
    status: int = 200
    code: str | None = None
    error: int | None = None  # of the hosted API, where it was asked for
    hang: bool = False
    receipts: tuple[Receipt, ...] = ()
    early: bool = False
    referenced: bool = True


class Behaviour:
    """Draws plans. `latency` and `receipt_delay`: medians in seconds; 0 = at once.

    `codes`: shares of the hosted API's error codes, beside the others. `begun`: requests of earlier lives, so that a
    restart goes on to other fates and does not repeat the first ones.
    """

    def __init__(
        self,
        shares: RequestShares,
        *,
        seed: int,
        latency: float,
        receipt_delay: float,
        codes: Mapping[int, float] | None = None,
        begun: int = 0,
    ) -> None:
        self._shares = shares
        self._codes = dict(codes or {})
        if sum(self._codes.values()) > 1 or any(share < 0 for share in self._codes.values()):
            raise ValueError("the shares of error codes are between 0 and 1 and sum to at most 1")
        # A simulation, repeatable on purpose.
        self._random = random.Random(f"{seed}:{begun}" if begun else seed)  # noqa: S311
        self._latency = latency
        self._receipt_delay = receipt_delay

    def coded(self) -> Plan | None:
        """The plan of a request that meets one of the error codes; None when it meets none."""
        if not self._codes:
            return None
        draw = self._random.random()
        for code, share in self._codes.items():
            if draw < share:
                return Plan(given=Given.CODED, latency=self._drawn(self._latency), error=code)
            draw -= share
        return None

    def plan(self) -> Plan:
        shares, chance = self._shares, self._random.random
        latency = self._drawn(self._latency)
        draw = chance()
        if draw < shares.slow_down:
            return Plan(given=Given.SLOW_DOWN, latency=latency, status=429 if chance() < 0.5 else 503)
        draw -= shares.slow_down
        if draw < shares.refuse:
            status = 400 if chance() < 0.5 else 422
            return Plan(given=Given.REFUSED, latency=latency, status=status, code=self._random.choice(REFUSALS))
        draw -= shares.refuse
        receipts = self._receipts()
        early = chance() < shares.early
        if draw < shares.lost:
            return Plan(
                given=Given.LOST, latency=latency, status=0, hang=chance() < 0.5, receipts=receipts, early=early
            )
        draw -= shares.lost
        if draw < shares.error:
            status = self._random.choice((500, 502, 504))
            return Plan(given=Given.FAILED, latency=latency, status=status, receipts=receipts, early=early)
        return Plan(
            given=Given.ACCEPTED,
            latency=latency,
            status=200 if chance() < 0.5 else 202,
            receipts=receipts,
            early=early,
            referenced=chance() >= shares.unreferenced,
        )

    def _receipts(self) -> tuple[Receipt, ...]:
        shares, chance = self._shares, self._random.random
        if chance() < shares.silent:
            return ()
        delivered = self._drawn(self._receipt_delay)
        read = delivered + self._drawn(self._receipt_delay)
        if chance() < shares.undelivered:
            receipts = [Receipt(delivered, "failed", "recipient_unreachable")]
        elif chance() < shares.shuffle:
            receipts = [Receipt(delivered, "read"), Receipt(read, "delivered")]
        else:
            receipts = [Receipt(delivered, "delivered"), Receipt(read, "read")]
        if chance() < shares.duplicate:
            receipts = [copy for receipt in receipts for copy in (receipt, receipt)]
        return tuple(receipts)

    def _drawn(self, median: float) -> float:
        if median <= 0:
            return 0.0
        return min(self._random.lognormvariate(0.0, _SPREAD), _LONGEST) * median
