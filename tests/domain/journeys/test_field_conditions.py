"""Field conditions: every operator over every kind of value (C9.4.3)."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domain.journeys.cases import BERLIN, SAO_PAULO, person

from recado.domain.contacts.consent import ConsentStatus
from recado.domain.journeys.field_conditions import field_holds
from recado.domain.journeys.field_values import OF_CONTACT, field_value
from recado.domain.journeys.graph import FieldOperator

ADA = person(
    name="Ada Lovelace",
    email="Ada@Example.com",
    tags=("VIP", "Sao Paulo"),
    source="api",
    external_id="007",
    company_id="emp_1",
    company_role="decisor",
    chatapp_profile_name="ada",
    opt_in_status=ConsentStatus.GRANTED,
    last_interaction_at=datetime(2026, 3, 1, 2, 59, tzinfo=UTC),  # 28 February in São Paulo
    attributes={
        "score": 10,
        "ratio": 9.5,
        "text": "10",
        "vip": True,
        "none": None,
        "blank": "  ",
        "empty": [],
        "sizes": ["M", "GG"],
        "renews": "2026-06-30",
        "seen": "2026-06-30T09:00:00-03:00",
        "never": "2026-02-30",
        "a.b": "dotted",
        "İ": "ISTANBUL",
    },
)
ENTRY = {"plan": "Anual", "total": 199.9, "paid": False, "name": "order"}


def holds(field: str, comparison: str, value: Any = None) -> bool:
    return field_holds(field_value(field, ADA, ENTRY), FieldOperator(comparison), value, SAO_PAULO)


@pytest.mark.parametrize(
    ("field", "comparison", "value", "expected"),
    [
        ("name", "igual", "ADA LOVELACE", True),
        ("name", "igual", "Ada", False),
        ("name", "diferente", "ada lovelace", False),
        ("name", "contem", "LOVE", True),
        ("name", "contem", "hate", False),
        ("email", "igual", "ada@example.COM", True),
        ("tags", "igual", "vip", True),
        ("tags", "igual", "vi", False),
        ("tags", "diferente", "vip", False),
        ("tags", "diferente", "new", True),
        ("tags", "contem", "sao paulo", True),
        ("tags", "contem", "sao", False),
        ("tags", "existe", None, True),
        ("tags", "maior", "A", False),
        ("source", "igual", "API", True),
        ("externalId", "igual", "007", True),
        ("externalId", "igual", "7", False),
        ("externalId", "igual", 7, False),
        ("companyId", "existe", None, True),
        ("papelNaEmpresa", "igual", "decisor", True),
        ("chatappProfileName", "igual", "ADA", True),
        ("optIn.status", "igual", "granted", True),
        ("optIn.status", "diferente", "denied", True),
        ("attributes.score", "igual", 10, True),
        ("attributes.score", "igual", 10.0, True),
        ("attributes.score", "igual", "10", False),
        ("attributes.score", "diferente", 11, True),
        ("attributes.score", "maior", 9.99, True),
        ("attributes.score", "maior", 10, False),
        ("attributes.score", "menor", 10, False),
        ("attributes.score", "menor", 10.5, True),
        ("attributes.score", "maior", "9", False),
        ("attributes.score", "maior", True, False),
        ("attributes.score", "contem", "1", False),
        ("attributes.ratio", "igual", 9.5, True),
        ("attributes.text", "igual", "10", True),
        ("attributes.text", "maior", 9, False),
        ("attributes.text", "menor", "11", False),
        ("attributes.vip", "igual", True, True),
        ("attributes.vip", "igual", False, False),
        ("attributes.vip", "igual", 1, False),
        ("attributes.vip", "maior", 0, False),
        ("attributes.sizes", "igual", "gg", True),
        ("attributes.sizes", "contem", "m", True),
        ("attributes.sizes", "contem", "G", False),
        ("attributes.renews", "maior", "2026-06-29", True),
        ("attributes.renews", "maior", "2026-06-30", False),
        ("attributes.renews", "menor", "2026-06-30T00:00:01", True),
        ("attributes.renews", "menor", "2026-06-30T02:59:59Z", False),
        ("attributes.renews", "maior", "2026-06-30T02:59:59Z", True),
        ("attributes.renews", "menor", "soon", False),
        ("attributes.renews", "igual", "2026-06-30", True),
        ("attributes.seen", "maior", "2026-06-30 08:59", True),
        ("attributes.seen", "menor", "2026-06-30T12:00:01.5z", True),
        ("attributes.seen", "maior", 1, False),
        ("attributes.never", "menor", "2027-01-01", False),
        ("attributes.a.b", "igual", "dotted", True),
        ("attributes.İ", "igual", "istanbul", True),
        ("createdAt", "maior", "2025-12-31", True),
        ("createdAt", "menor", "2026-01-01", True),  # it was 31 December where the journey is
        ("createdAt", "menor", "2025-12-31T23:30:00-03:00", False),
        ("createdAt", "igual", "2026-01-01T02:30:00.000Z", True),
        ("lastInteractionAt", "menor", "2026-03-01", True),
        ("lastInteractionAt", "maior", "2026-02-28", True),
        ("entrada.plan", "igual", "anual", True),
        ("entrada.total", "maior", 199, True),
        ("entrada.paid", "igual", False, True),
        ("entrada.paid", "existe", None, True),
        ("entrada.name", "igual", "order", True),
    ],
)
def test_a_value_compares_by_its_kind(field: str, comparison: str, value: Any, expected: bool) -> None:
    assert holds(field, comparison, value) is expected


@pytest.mark.parametrize(
    "field",
    [
        "attributes.unknown",
        "attributes.none",
        "attributes.blank",
        "attributes.empty",
        "attributes.",
        "entrada.unknown",
        "unknown",
        "avatarUrl",
        "cpf",
        "phone_hash",
    ],
)
def test_what_is_missing_holds_only_where_nothing_is_asked_of_it(field: str) -> None:
    value: Any
    for value in ("", "x", 1, 0, False, "2026-01-01"):
        for comparison in ("igual", "contem", "maior", "menor", "existe"):
            assert not holds(field, comparison, value), (comparison, value)
        assert holds(field, "diferente", value)
        assert holds(field, "nao_existe", value)


def test_a_contact_of_nothing_but_a_phone_has_no_other_field() -> None:
    bare = person(source="manual")
    missing = {name for name in OF_CONTACT if field_value(name, bare, {}) is None}
    assert set(OF_CONTACT) - missing == {"phone", "source", "createdAt"}
    assert field_value("optIn.status", bare, {}) == "unknown"


def test_the_fields_of_a_contact_are_those_of_the_contract() -> None:
    assert set(OF_CONTACT) == {
        "name", "phone", "email", "tags", "source", "externalId", "companyId", "papelNaEmpresa", "chatappProfileName",
        "createdAt", "lastInteractionAt",
    }  # fmt: skip


def test_a_moment_that_the_clock_shows_twice_has_an_order() -> None:
    first, second = "2026-10-25T02:30:00+02:00", "2026-10-25T02:10:00+01:00"
    assert field_holds(second, FieldOperator.MAIOR, first, BERLIN)
    assert field_holds(first, FieldOperator.MENOR, second, BERLIN)


scalars = st.one_of(
    st.text(max_size=12),
    st.integers(-100, 100),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.dates().map(str),
    st.datetimes().map(datetime.isoformat),
)


@given(st.one_of(scalars, st.none(), st.lists(st.text(max_size=5), max_size=3).map(tuple)), scalars)
def test_operators_agree_with_each_other(held: Any, value: Any) -> None:
    found = {each: field_holds(held, each, value, SAO_PAULO) for each in FieldOperator}
    assert found[FieldOperator.IGUAL] is not found[FieldOperator.DIFERENTE]
    assert found[FieldOperator.EXISTE] is not found[FieldOperator.NAO_EXISTE]
    assert not (found[FieldOperator.MAIOR] and found[FieldOperator.MENOR])
    if found[FieldOperator.IGUAL]:
        assert not found[FieldOperator.MAIOR]
        assert not found[FieldOperator.MENOR]
        assert found[FieldOperator.CONTEM] or not isinstance(held, str | tuple)
