"""What a payments bridge reports, besides what holds for every adapter (C29.3, C29.5)."""

import orjson
import pytest
from tests.channels.payment_events import CANCELED, PAID

from recado.channels.core.errors import MalformedCallback
from recado.channels.core.events import Payment
from recado.channels.payments.payments import payments_of


def test_payments_are_read_in_their_order_around_one_of_another_shape() -> None:
    with pytest.raises(MalformedCallback) as refusal:
        payments_of(orjson.dumps({"events": [CANCELED, PAID | {"status": "refunded"}, PAID]}))

    assert refusal.value.where == "events[1].status"
    assert [event.reference for event in refusal.value.events if isinstance(event, Payment)] == ["r2", "r1"]


def test_no_payments_are_no_error() -> None:
    assert payments_of(b'{"events": []}') == []
