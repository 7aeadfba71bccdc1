"""Encryption of stored secrets (C30.1)."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.storage.core.crypto import KeyRing, Tampered

OLD = bytes(range(32))
NEW = bytes(range(32, 64))
PLACE = {"organization_id": "org_1", "record_id": "num_1", "field": "access_token"}
RING = KeyRing({"k1": OLD})

texts = st.text(st.characters(exclude_categories=["Cs"]))


@given(plain=texts)
def test_a_value_reads_back_at_its_place(plain: str) -> None:
    assert RING.decrypt(RING.encrypt(plain, **PLACE), **PLACE) == plain


@given(plain=texts, bit=st.integers(min_value=0))
def test_a_value_with_any_bit_turned_is_refused(plain: str, bit: int) -> None:
    version, kid, sealed = RING.encrypt(plain, **PLACE).split(".")
    raw = bytearray(base64.urlsafe_b64decode(sealed + "=" * (-len(sealed) % 4)))
    bit %= len(raw) * 8
    raw[bit // 8] ^= 1 << bit % 8
    altered = base64.urlsafe_b64encode(raw).decode().rstrip("=")

    with pytest.raises(Tampered):
        RING.decrypt(f"{version}.{kid}.{altered}", **PLACE)


@pytest.mark.parametrize("part", PLACE)
def test_a_value_moved_to_another_place_is_refused(part: str) -> None:
    stored = RING.encrypt("token", **PLACE)

    with pytest.raises(Tampered):
        RING.decrypt(stored, **PLACE | {part: "other"})


def test_parts_of_the_place_cannot_be_shifted_into_each_other() -> None:
    stored = RING.encrypt("token", organization_id="org_1", record_id="num_1", field="a")

    with pytest.raises(Tampered):
        RING.decrypt(stored, organization_id="org_1num_1", record_id="", field="a")


@given(plain=st.binary(), bit=st.integers(min_value=0))
def test_bytes_read_back_at_their_place_and_with_any_bit_turned_nowhere(plain: bytes, bit: int) -> None:
    stored = RING.seal(plain, **PLACE)
    assert RING.unseal(stored, **PLACE) == plain
    assert stored.startswith(RING.prefix.encode())
    altered = bytearray(stored)
    bit %= len(altered) * 8
    altered[bit // 8] ^= 1 << bit % 8
    with pytest.raises(Tampered):
        RING.unseal(bytes(altered), **PLACE)


@pytest.mark.parametrize("part", PLACE)
def test_bytes_moved_to_another_place_are_refused(part: str) -> None:
    with pytest.raises(Tampered):
        RING.unseal(RING.seal(b"rows", **PLACE), **PLACE | {part: "other"})


@pytest.mark.parametrize("stored", [b"", b"v1.k1.", b"v1.k9." + bytes(40), b"v2.k1." + bytes(40), b"plain"])
def test_bytes_that_no_key_sealed_are_refused(stored: bytes) -> None:
    with pytest.raises(Tampered):
        RING.unseal(stored, **PLACE)


def test_the_stored_form_names_version_and_key_and_hides_the_value() -> None:
    nonce = b"n" * 12
    ring = KeyRing({"k1": OLD}, random_bytes=lambda size: nonce[:size])

    version, kid, sealed = ring.encrypt("secret", **PLACE).split(".")

    raw = base64.urlsafe_b64decode(sealed + "=" * (-len(sealed) % 4))
    assert (version, kid, raw[:12], len(raw)) == ("v1", "k1", nonce, 12 + len("secret") + 16)
    assert b"secret" not in raw


def test_two_encryptions_of_one_value_differ() -> None:
    assert RING.encrypt("token", **PLACE) != RING.encrypt("token", **PLACE)


def test_after_a_rotation_the_first_key_encrypts_and_the_old_one_still_decrypts() -> None:
    old = RING.encrypt("token", **PLACE)
    rotated = KeyRing({"k2": NEW, "k1": OLD})

    assert rotated.encrypt("token", **PLACE).startswith("v1.k2.")
    assert rotated.decrypt(old, **PLACE) == "token"


def test_a_value_of_a_removed_key_names_the_key_that_is_missing() -> None:
    with pytest.raises(Tampered, match="key k1, which is not configured"):
        KeyRing({"k2": NEW}).decrypt(RING.encrypt("token", **PLACE), **PLACE)


@pytest.mark.parametrize(
    "stored", ["", "token", "v1.k1.", "v2.k1.AAAA", "v1.k1.AAAA", "v1.k1.A*AA", "v1..AAAA", "v1.k1"]
)
def test_a_value_of_another_form_is_refused(stored: str) -> None:
    with pytest.raises(Tampered, match="not an encrypted value"):
        RING.decrypt(stored, **PLACE)


def test_keys_are_read_from_their_text_form_in_order() -> None:
    def encode(key: bytes) -> str:
        return base64.b64encode(key).decode()

    ring = KeyRing.parse(f"k2:{encode(NEW)}, k1:{encode(OLD)}")

    assert ring.encrypt("token", **PLACE).startswith("v1.k2.")
    assert ring.decrypt(RING.encrypt("token", **PLACE), **PLACE) == "token"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "k1",
        "k1:",
        "k1:c2hvcnQ=",
        f":{base64.b64encode(OLD).decode()}",
        f"k.1:{base64.b64encode(OLD).decode()}",
        f"k1:{base64.b64encode(OLD).decode()},k1:{base64.b64encode(NEW).decode()}",
        f"k1:{base64.b64encode(OLD + NEW).decode()}",
    ],
)
def test_a_malformed_key_list_is_refused_without_repeating_it(text: str) -> None:
    with pytest.raises(ValueError, match="list of id:base64 of 32 bytes") as refusal:
        KeyRing.parse(text)

    assert not text or text not in str(refusal.value)
