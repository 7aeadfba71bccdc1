"""Addresses of every kind (C2.4, C30.2, C30.3)."""

import pytest

from recado.domain.channels.address import MASK, Address, AddressKind, reported
from recado.domain.contacts.contact import email_hash
from recado.domain.core.phones import phone_hash, recipient_hash

K = AddressKind
ORGANIZATION = "org_1"


@pytest.mark.parametrize(
    ("text", "kind", "canonical"),
    [
        ("+55 (11) 8765-0001", K.PHONE, "+5511987650001"),
        ("551187650001", K.PHONE, "+5511987650001"),  # as providers tell it
        (" Maria@Example.com ", K.EMAIL, "maria@example.com"),
        (" 17841400 ", K.SOCIAL, "17841400"),
        (" BR.1234", K.SCOPED_USER, "BR.1234"),
        ("US.ENT.1a", K.SCOPED_USER, "US.ENT.1a"),
        ("dev_1", K.DEVICE, "dev_1"),
    ],
)
def test_what_a_provider_tells_is_brought_to_its_canonical_form(text: str, kind: K, canonical: str) -> None:
    assert reported(text, [kind]) == Address(kind, canonical)


@pytest.mark.parametrize(
    ("text", "kind"),
    [("user-1", K.PHONE), ("123", K.PHONE), ("maria", K.EMAIL), ("@example.com", K.EMAIL), (" ", K.SOCIAL)]
    + [(text, K.SCOPED_USER) for text in ("br.1", "BR.", "BR.ENT.", "BR.1-2", "B.1", "17841400", "BR." + "1" * 126)],
)
def test_what_cannot_be_of_a_kind_is_no_address(text: str, kind: K) -> None:
    assert reported(text, [kind]) is None


def test_of_several_kinds_the_first_that_it_can_be_counts() -> None:
    kinds = (K.PHONE, K.SCOPED_USER)
    assert [each.kind for text in ("5511987650001", "BR.1234") if (each := reported(text, kinds))] == list(kinds)


def test_the_registry_and_the_queue_know_it_by_the_same_hash() -> None:
    phone, email = Address(K.PHONE, "+5511987650001"), Address(K.EMAIL, "maria@example.com")
    assert phone.hash(ORGANIZATION) == phone_hash(ORGANIZATION, phone.text)
    assert email.hash(ORGANIZATION) == email_hash(ORGANIZATION, "Maria@Example.com")
    assert phone.recipient_hash(ORGANIZATION) == recipient_hash(ORGANIZATION, phone.text)


def test_a_phone_alone_was_spelled_otherwise_once() -> None:
    phone = Address(K.PHONE, "+525512345678")
    assert phone.spellings() == (phone, Address(K.PHONE, "+5215512345678"))
    assert [Address(kind, "+525512345678").spellings() for kind in set(K) - {K.PHONE}] == [
        (Address(kind, "+525512345678"),) for kind in set(K) - {K.PHONE}
    ]


@pytest.mark.parametrize("kind", K)
def test_every_kind_has_a_mask_and_no_repr_shows_an_address(kind: K) -> None:
    text = "+5511987650001"
    assert MASK[kind](text) != text
    assert text not in repr(Address(kind, text))
