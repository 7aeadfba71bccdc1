"""Rules of push without a database: how devices stand, whose they are, the ids of dispatches, kinds of units."""

import os

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.core.base64url import from_base64url
from recado.domain.core.ids import is_id
from recado.domain.core.machine import IllegalMove
from recado.domain.push.device import DEVICE_MACHINE, DeviceEvent, DeviceStatus, Identity, identified, registered
from recado.domain.push.dispatch_ids import KEY_BYTES, dispatch_id, messages_of, place_in
from recado.domain.push.message import PUSH_MACHINE, PushContent, PushEvent, PushStatus
from recado.domain.push.vapid import RANDOM_BYTES, private_key, vapid_pair

MESSAGE = "psh_0VbkOooJsP5OedpshQFzP"
KEY = b"k" * KEY_BYTES


@pytest.mark.parametrize(
    ("before", "opted_in", "after"),
    [
        (None, None, "registered"),
        (None, True, "registered"),
        (None, False, "opted_out"),
        ("registered", None, "registered"),
        ("registered", False, "opted_out"),
        ("opted_out", None, "opted_out"),  # C1.17: an app that starts does not undo an opt-out
        ("opted_out", True, "registered"),
        ("opted_out", False, "opted_out"),
        ("invalid", None, "registered"),
        ("invalid", True, "registered"),
        ("invalid", False, "opted_out"),
    ],
)
def test_a_registration_moves_a_device(before: str | None, opted_in: bool | None, after: str) -> None:
    assert registered(None if before is None else DeviceStatus(before), opted_in) == after


def test_only_a_registered_device_becomes_invalid() -> None:
    assert DEVICE_MACHINE.sources(DeviceEvent.UNREGISTERED) == {DeviceStatus.REGISTERED}


NOBODY, ANA, BIA = Identity(None, None), Identity("cnt_ana", "ana"), Identity("cnt_bia", "bia")


@pytest.mark.parametrize(
    ("before", "given", "found_id", "after"),
    [
        (NOBODY, NOBODY, None, NOBODY),
        (NOBODY, Identity(None, "ana"), "cnt_ana", ANA),
        (NOBODY, Identity("cnt_bia", "ana"), "cnt_ana", Identity("cnt_bia", "ana")),
        (ANA, NOBODY, None, ANA),
        (ANA, Identity(None, "bia"), "cnt_bia", BIA),
        (ANA, Identity(None, "who"), None, Identity(None, "who")),
        (ANA, Identity("cnt_bia", None), None, Identity("cnt_bia", "ana")),
        (Identity("cnt_bia", "ana"), Identity(None, "ana"), "cnt_ana", Identity("cnt_bia", "ana")),
        (Identity(None, "ana"), Identity(None, "ana"), "cnt_ana", ANA),
    ],
)
def test_a_device_is_linked_to_whom_its_app_names(
    before: Identity, given: Identity, found_id: str | None, after: Identity
) -> None:
    assert identified(before, given, found_id) == after


@given(st.integers(0, 62**5 - 1))
def test_an_id_of_a_dispatch_tells_its_place_to_whoever_has_the_key(place: int) -> None:
    made = dispatch_id(MESSAGE, place, KEY)
    assert is_id("dsp_", made)
    assert place_in(made, MESSAGE, KEY) == place
    assert place_in(made, MESSAGE, b"o" * KEY_BYTES) is None
    assert place_in(made, MESSAGE[:-1] + "Q", KEY) is None
    first, last = messages_of(made)
    assert first <= MESSAGE < last


@given(st.text(max_size=30))
def test_what_is_no_id_is_no_dispatch(text: str) -> None:
    assert place_in(text, MESSAGE, KEY) is None


def test_an_id_that_was_guessed_is_none() -> None:
    made = dispatch_id(MESSAGE, 7, KEY)
    guessed = made[:-9] + ("8" if made[-9] != "8" else "9") + made[-8:]
    assert place_in(guessed, MESSAGE, KEY) is None


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ({"title": "a", "body": "b"}, "simple"),
        ({"title": "a", "body": "b", "image_url": "https://example.com/a.png"}, "rich"),
        ({"title": "a", "body": "b", "actions": [{"label": "See"}]}, "rich"),
        ({"data": {"a": 1}}, "silent"),
    ],
)
def test_a_content_is_of_one_kind(content: dict[str, object], kind: str) -> None:
    assert PushContent(**content).rate_kind == kind  # type: ignore[arg-type]


def test_only_what_has_not_left_is_canceled() -> None:
    assert PUSH_MACHINE.sources(PushEvent.CANCELED) == {PushStatus.SCHEDULED, PushStatus.QUEUED}
    with pytest.raises(IllegalMove):
        PUSH_MACHINE.move(PushStatus.SENDING, PushEvent.CANCELED)


def test_a_key_pair_belongs_together() -> None:
    private, public = vapid_pair(os.urandom(RANDOM_BYTES))
    point = from_base64url(public)
    assert (len(point), point[0]) == (65, 4)
    numbers = private_key(private).public_key().public_numbers()
    assert ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), point).public_numbers() == numbers
