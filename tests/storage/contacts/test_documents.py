"""Documents as they are stored: readable at their one place, found by a keyed index (C30.1, C30.2)."""

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.storage.contacts.documents import DocumentCipher
from recado.storage.core.crypto import KeyRing, Tampered

OLD, NEW = bytes(range(32)), bytes(range(32, 64))
DOCUMENTS = DocumentCipher(KeyRing({"k1": OLD}), b"i" * 32)
PLACE = {"organization_id": "org_1", "env": "live", "contact_id": "cnt_1"}
CPF = "52998224725"

names = st.sampled_from(["cpf", "cnpj", "birthDate"])
texts = st.text("0123456789ABCDEF-", min_size=1, max_size=14)


def opened(documents: DocumentCipher, name: str, cipher: str, **place: str) -> str:
    found: dict[str, Any] = {**PLACE, **place}
    return documents.open(name, cipher, organization_id=found["organization_id"], contact_id=found["contact_id"])


@given(names, texts)
def test_what_was_sealed_opens_at_its_place(name: str, value: str) -> None:
    sealed = DOCUMENTS.seal(name, value, **PLACE)
    assert opened(DOCUMENTS, name, sealed.cipher) == value
    assert value not in sealed.cipher.split(".")[2] or len(value) < 4
    assert (sealed.index is None) == (name == "birthDate")


@given(texts)
@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("cnpj", {}),
        ("birthDate", {}),
        ("cpf", {"contact_id": "cnt_2"}),
        ("cpf", {"organization_id": "org_2"}),
    ],
)
def test_a_cipher_moved_to_another_field_contact_or_organization_does_not_open(
    name: str, place: dict[str, str], value: str
) -> None:
    cipher = DOCUMENTS.seal("cpf", value, **PLACE).cipher
    with pytest.raises(Tampered):
        opened(DOCUMENTS, name, cipher, **place)


def test_a_new_key_in_front_seals_and_the_old_one_still_opens() -> None:
    rotated = DocumentCipher(KeyRing({"k2": NEW, "k1": OLD}), b"i" * 32)
    before, after = DOCUMENTS.seal("cpf", CPF, **PLACE), rotated.seal("cpf", CPF, **PLACE)

    assert after.cipher.startswith("v1.k2.")
    assert opened(rotated, "cpf", before.cipher) == opened(rotated, "cpf", after.cipher) == CPF
    assert before.index == after.index
    with pytest.raises(Tampered):
        opened(DOCUMENTS, "cpf", after.cipher)


def test_a_value_is_sealed_differently_each_time_and_indexed_alike() -> None:
    first, second = [DOCUMENTS.seal("cpf", CPF, **PLACE) for _ in range(2)]
    assert first.cipher != second.cipher
    assert first.index == second.index


@pytest.mark.parametrize("other", [{"organization_id": "org_2"}, {"env": "test"}])
def test_indexes_of_other_organizations_and_environments_cannot_be_compared(other: dict[str, str]) -> None:
    where = {"organization_id": "org_1", "env": "live"}
    assert DOCUMENTS.index("cpf", CPF, **where) != DOCUMENTS.index("cpf", CPF, **{**where, **other})


@given(texts, texts)
def test_an_index_tells_values_and_fields_apart_and_is_no_plain_hash(first: str, second: str) -> None:
    where = {"organization_id": "org_1", "env": "live"}
    index = DOCUMENTS.index("cpf", first, **where)
    assert (index == DOCUMENTS.index("cpf", second, **where)) == (first == second)
    assert index != DOCUMENTS.index("cnpj", first, **where)
    assert index != DocumentCipher(KeyRing({"k1": OLD}), b"j" * 32).index("cpf", first, **where)
    assert index != hashlib.sha256(first.encode()).digest()


def test_a_search_asks_for_the_index_of_what_was_sealed() -> None:
    where = {"organization_id": "org_1", "env": "live"}
    assert DOCUMENTS.searched("529.982.247-25", **where) == ("cpf_index", DOCUMENTS.seal("cpf", CPF, **PLACE).index)
    assert DOCUMENTS.searched("11.222.333/0001-81", **where) == (
        "cnpj_index",
        DOCUMENTS.seal("cnpj", "11222333000181", **PLACE).index,
    )
    assert DOCUMENTS.searched("12345", **where) is None


def test_masked_documents_go_by_the_names_that_callers_see() -> None:
    ciphers = {
        "cpf": DOCUMENTS.seal("cpf", CPF, **PLACE).cipher,
        "cnpj": None,
        "birthDate": DOCUMENTS.seal("birthDate", "1990-12-31", **PLACE).cipher,
    }
    masked = DOCUMENTS.masked(ciphers, organization_id="org_1", contact_id="cnt_1")
    assert masked == {"cpf": "***.***.***-25", "nascimento": "1990-**-**"}


def test_nothing_of_a_sealed_document_is_shown() -> None:
    assert repr(DOCUMENTS.seal("cpf", CPF, **PLACE)) == "SealedDocument()"
