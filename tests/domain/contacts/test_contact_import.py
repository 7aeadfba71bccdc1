"""Options of an import, phones without a country, and the columns of a table (C12.7.1, C12.7.2)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.contacts.contact_import import (
    Country,
    ImportMode,
    ImportOptions,
    MatchBy,
    column_fault,
    international,
)
from recado.domain.core.phones import canonical_phone

OPTIONS = st.builds(
    ImportOptions,
    mode=st.sampled_from(ImportMode),
    match_by=st.sampled_from(MatchBy),
    list_id=st.none() | st.text(max_size=5),
    tags=st.lists(st.text(max_size=5)).map(tuple),
    default_country=st.none() | st.sampled_from(Country),
    emit_events=st.booleans(),
)


@given(OPTIONS)
def test_options_come_back_as_they_were_stored(options: ImportOptions) -> None:
    assert ImportOptions.load(options.stored()) == options


@pytest.mark.parametrize(
    ("text", "phone"),
    [
        ("11987654321", "+5511987654321"),
        (" (11) 98765-4321 ", "+5511987654321"),
        ("1187654321", "+5511987654321"),  # the old form of a mobile number
        ("1132654321", "+551132654321"),
        ("+15550102030", "+15550102030"),
        ("+55 11 98765.4321", "+5511987654321"),
    ],
)
def test_a_national_phone_receives_the_country(text: str, phone: str) -> None:
    assert canonical_phone(international(text)) == phone


@given(st.text())
def test_anything_but_ten_or_eleven_digits_stays_as_it_is(text: str) -> None:
    found = international(text)
    digits = [character for character in text if character in "0123456789"]
    assert found == text or (found == "+55" + "".join(digits) and len(digits) in (10, 11))


@pytest.mark.parametrize(
    ("columns", "match_by", "fits"),
    [
        (("phone",), MatchBy.PHONE, True),
        (("Phone",), MatchBy.PHONE, False),
        (("externalId", "name"), MatchBy.EXTERNAL_ID, True),
        (("phone",), MatchBy.EXTERNAL_ID, False),
        (("phone", "attributes.a.b-c_1"), MatchBy.PHONE, True),
        (("phone", "attributes."), MatchBy.PHONE, False),
        (("phone", "attributes.x" + "y" * 64), MatchBy.PHONE, False),
        (("phone", "externalIds.integration_d"), MatchBy.PHONE, True),
        (("phone", "externalIds.x"), MatchBy.PHONE, False),
        (("phone", "=cmd|' /C calc'!A0", "", "attributes"), MatchBy.PHONE, True),
    ],
)
def test_a_table_must_name_its_key_and_what_a_contact_can_have(
    columns: tuple[str, ...], match_by: MatchBy, fits: bool
) -> None:
    assert (column_fault(columns, match_by) is None) == fits
