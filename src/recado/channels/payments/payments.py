"""What a payment provider reports, and how its bridge is believed (C29.3, C29.5). It is never asked, it calls."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, get_args

from recado.channels.core.bridge_body import events_of
from recado.channels.core.errors import MalformedCallback
from recado.channels.core.fields import Fields
from recado.channels.core.signing import PROVIDER_SIGNATURE, header, is_signed, signing_key

PAYMENTS = "payments"
MOST_CENTS = 10**15

PaymentStatus = Literal["paid", "canceled"]
_STATUSES: frozenset[PaymentStatus] = frozenset(get_args(PaymentStatus))


@dataclass(frozen=True, slots=True)
class Payment:
    """News of the payment of a top-up. `reference`: the top-up's `paymentReference`; `amount_cents`: what was paid."""

    reference: str
    status: PaymentStatus
    at: datetime
    amount_cents: int | None = None


def payment_from_json(item: object, where: str = "event") -> Payment:
    """Read one event of the kind `payment`; raises `MalformedCallback` naming the field."""
    fields = Fields(item, where)
    if fields.text("kind", 16) != "payment":
        raise MalformedCallback(f"{where}.kind")
    status = fields.choice("status", _STATUSES)
    amount = fields.optional_count("amountCents", MOST_CENTS)
    if status == "paid" and amount is None:
        raise MalformedCallback(f"{where}.amountCents")
    return Payment(fields.text("reference", 64), status, fields.time("at"), amount)


def payments_of(body: bytes) -> list[Payment]:
    """All payments of a callback, in their order; raises `MalformedCallback` with those that could be read."""
    return events_of(body, payment_from_json)


class PaymentsBridge:
    """The bridge to a payment provider. `secret`: what it signs its callbacks with."""

    name = "bridge"
    challenged = False
    read_with = ()

    def __init__(self, secret: str) -> None:
        self._keys = (signing_key(secret),)

    def verify_callback(self, headers: Mapping[str, str], body: bytes, now: datetime) -> bool:
        """Whether the bridge sent the callback, at most 300 s ago."""
        return is_signed(header(headers, PROVIDER_SIGNATURE), self._keys, body, now)

    def parse_callback(self, headers: Mapping[str, str], body: bytes) -> list[Payment]:
        return payments_of(body)

    def answer_challenge(self, query: Mapping[str, str]) -> str | None:
        return None
