"""Signed bodies: what is believed, what is not, and until when (C23.4, C29.5)."""

import base64
import hashlib
import hmac
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from multidict import CIMultiDict

from recado.channels.core.signing import header, is_signed, signature, signing_key

AT = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
KEY = bytes(range(32))
BODY = b'{"events": []}'


def test_a_signature_is_the_hex_hmac_of_time_and_body() -> None:
    seconds = str(int(AT.timestamp()))
    expected = hmac.new(KEY, f"{seconds}.".encode() + BODY, hashlib.sha256).hexdigest()

    assert signature([KEY], BODY, AT) == f"t={seconds},v1={expected}"


KEYS = st.binary(min_size=32, max_size=32)  # of one length: HMAC fills shorter keys up with zeros


@given(st.binary(), KEYS, KEYS)
def test_a_body_is_believed_under_its_key_only(body: bytes, key: bytes, other: bytes) -> None:
    assume(key != other)
    signed = signature([key], body, AT)

    assert is_signed(signed, [key], body, AT)
    assert is_signed(signed, [other, key], body, AT)
    assert not is_signed(signed, [other], body, AT)
    assert not is_signed(signed, [], body, AT)
    assert not is_signed(signed, [key], body + b"x", AT)


@pytest.mark.parametrize(
    ("seconds", "believed"), [(0, True), (300, True), (-300, True), (301, False), (-301, False), (86_400, False)]
)
def test_a_signature_is_believed_for_five_minutes_around_its_time(seconds: int, believed: bool) -> None:
    assert is_signed(signature([KEY], BODY, AT), [KEY], BODY, AT + timedelta(seconds=seconds)) is believed


def test_one_good_signature_among_several_is_enough() -> None:
    assert is_signed(signature([b"retired", KEY, b"next"], BODY, AT), [KEY], BODY, AT)


GOOD = signature([KEY], BODY, AT)
TIME, DIGEST = GOOD.split(",")


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        TIME,
        DIGEST,
        "t=,v1=",
        f"t=-1,{DIGEST}",
        f"t=１７６３６４００００,{DIGEST}",
        f"{TIME}.0,{DIGEST}",
        f"{TIME},{TIME},{DIGEST}",
        f"{TIME},v2={DIGEST[3:]}",
        f"{TIME},v1={DIGEST[3:].upper()}",
        f"{TIME},v1={DIGEST[3:-1]}",
        f"{TIME},v1=é",
        f"{TIME},v1=\udcff",
        GOOD + ",v1=" + "0" * 1_024,
    ],
)
def test_a_header_of_another_form_is_not_believed(value: str | None) -> None:
    assert not is_signed(value, [KEY], BODY, AT)


def test_parts_may_be_spaced_and_in_any_order() -> None:
    assert is_signed(f"{DIGEST}, v1=00, {TIME}", [KEY], BODY, AT)


@given(st.text(max_size=200))
def test_no_header_breaks_the_check(value: str) -> None:
    assert not is_signed(value, [KEY], BODY, AT)


def test_the_key_is_the_decoded_secret_or_its_text() -> None:
    assert signing_key("whsec_" + base64.b64encode(KEY).decode()) == KEY
    assert signing_key("as it is") == b"as it is"


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_%%%"])
def test_a_secret_without_a_key_is_refused(secret: str) -> None:
    with pytest.raises(ValueError, match="signing secret"):
        signing_key(secret)


def test_a_header_is_found_whatever_its_case() -> None:
    assert header({"x-svc-a": "1"}, "X-SVC-A") == "1"
    assert header(CIMultiDict({"X-Svc-A": "1"}), "x-svc-a") == "1"
    assert header({}, "X-SVC-A") is None
