"""What a payments bridge reports: one shape, and a signature (C29.3, C29.5)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.channels.errors import MalformedCallback
from recado.channels.payments import Payment, PaymentsBridge, payments_of
from recado.channels.signing import PROVIDER_SIGNATURE, signature, signing_key

AT = datetime(2026, 11, 20, 9, 0, 0, 250_000, tzinfo=UTC)
TIME = "2026-11-20T09:00:00.250Z"
PAID: dict[str, Any] = {"kind": "payment", "status": "paid", "reference": "r1", "amountCents": 1_000, "at": TIME}
CANCELED: dict[str, Any] = {"kind": "payment", "status": "canceled", "reference": "r2", "at": TIME}


def body(*events: Any) -> bytes:
    return orjson.dumps({"events": list(events)})


def test_payments_are_read_in_their_order() -> None:
    assert payments_of(body(PAID, CANCELED)) == [
        Payment("r1", "paid", AT, 1_000),
        Payment("r2", "canceled", AT, None),
    ]
    assert payments_of(body()) == []


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"kind": "status"}, "kind"),
        ({"kind": None}, "kind"),
        ({"status": "refunded"}, "status"),
        ({"reference": ""}, "reference"),
        ({"reference": "r" * 65}, "reference"),
        ({"reference": 7}, "reference"),
        ({"at": "2026-11-20T09:00:00"}, "at"),
        ({"at": None}, "at"),
        ({"amountCents": None}, "amountCents"),
        ({"amountCents": -1}, "amountCents"),
        ({"amountCents": 10.5}, "amountCents"),
        ({"amountCents": True}, "amountCents"),
        ({"amountCents": 10**15 + 1}, "amountCents"),
    ],
)
def test_a_payment_of_another_shape_is_named_by_its_place_and_the_others_are_kept(change: Any, where: str) -> None:
    with pytest.raises(MalformedCallback) as refusal:
        payments_of(body(CANCELED, PAID | change, PAID))
    assert refusal.value.where == f"events[1].{where}"
    assert [payment.reference for payment in refusal.value.events] == ["r2", "r1"]


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"7", b"{}", b'{"events": 1}', b'{"events": {}}', b"\xff"])
def test_a_body_of_another_shape_is_refused_whole(text: bytes) -> None:
    with pytest.raises(MalformedCallback) as refusal:
        payments_of(text)
    assert refusal.value.events == ()


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=10,
)
NEAR = st.builds(
    lambda base, changed: base | changed, st.just(PAID), st.dictionaries(st.sampled_from(sorted(PAID)), JSON)
)


@given(st.binary(max_size=200) | st.lists(NEAR | JSON).map(lambda items: orjson.dumps({"events": items})))
def test_whatever_a_callback_holds_it_is_read_or_refused_as_malformed(text: bytes) -> None:
    try:
        payments = payments_of(text)
    except MalformedCallback as error:
        payments = list(error.events)
    for payment in payments:
        assert payment.status == "canceled" or payment.amount_cents is not None


def test_a_callback_is_believed_by_its_signature_alone() -> None:
    bridge = PaymentsBridge("whsec_c2VjcmV0IG9mIHRoZSBiYW5r")
    text = body(PAID)
    good = signature([signing_key("whsec_c2VjcmV0IG9mIHRoZSBiYW5r")], text, AT)
    assert bridge.verify_callback({PROVIDER_SIGNATURE.lower(): good}, text, AT)
    assert bridge.verify_callback({PROVIDER_SIGNATURE: good}, text, AT + timedelta(seconds=299))
    assert not bridge.verify_callback({PROVIDER_SIGNATURE: good}, text, AT + timedelta(seconds=301))
    assert not bridge.verify_callback({PROVIDER_SIGNATURE: good}, text + b" ", AT)
    assert not bridge.verify_callback({PROVIDER_SIGNATURE: signature([b"other"], text, AT)}, text, AT)
    assert not bridge.verify_callback({}, text, AT)
