"""How the bridge of a payment provider is believed and read (C29.3, C29.5). It is never asked, it calls."""

from collections.abc import Mapping
from typing import Annotated

from recado.channels.core.bridge.bridge_callbacks import EVENTS, SignedCallbacks
from recado.channels.core.errors import MalformedCallback
from recado.channels.core.events import Payment
from recado.channels.core.fields import needed
from recado.channels.core.reading import Shape, read_body

PAYMENTS = "payments"

_PAYMENT = Shape[Payment](
    Annotated[Payment, needed("amountCents", lambda read: read.amount_cents is not None or read.status != "paid")]
)


def payments_of(body: bytes) -> list[Payment]:
    """All payments of a callback, in their order; raises `MalformedCallback` with those that could be read."""
    return read_body(body, EVENTS, _payment)


def _payment(item: object) -> tuple[Payment]:
    if isinstance(item, dict) and item.get("kind") != "payment":
        raise MalformedCallback("kind")
    return (_PAYMENT.read(item),)


class PaymentsBridge(SignedCallbacks):
    """The bridge to a payment provider."""

    @staticmethod
    def parse_callback(headers: Mapping[str, str], body: bytes) -> list[Payment]:
        return payments_of(body)
