"""What is read of a contact that a caller or a file gives (C12.2, C12.3)."""

from datetime import UTC, date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.contacts.contact_attributes import merged, read_attributes
from recado.domain.contacts.contact_input import read_changes, read_new
from recado.domain.core.reading import Refusal

TODAY = date(2026, 3, 1)
PHONE = "+5511987654321"
GROUP: dict[str, Any] = {"company": "A", "phones": [PHONE]}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
FIELDS = (
    "phone", "name", "email", "avatarUrl", "cpf", "cnpj", "birthDate", "attributes", "tags", "optIn", "source",
    "externalId", "externalIds", "companyId", "papelNaEmpresa", "debtorGroups", "addTags", "removeTags",
    "removeAttributes",
)  # fmt: skip


def read(**fields: Any) -> dict[str, Any]:
    found = read_new({"phone": PHONE, **fields}, TODAY)
    assert found.errors == ()
    return dict(found.values)


def errors(**fields: Any) -> list[tuple[str, str]]:
    return [(error.path, error.code) for error in read_new({"phone": PHONE, **fields}, TODAY).errors]


@given(st.dictionaries(st.sampled_from(FIELDS), json_values) | json_values)
def test_whatever_is_given_is_read_or_refused_by_its_place(document: Any) -> None:
    for found in (read_new(document, TODAY), read_changes(document, TODAY)):
        for error in found.errors:
            name = error.path.split("/")[1] if error.path else ""
            assert error.code.isupper()
            assert name == "" or name in FIELDS


@given(st.dictionaries(st.sampled_from(FIELDS), json_values))
def test_what_was_refused_is_not_among_the_values(document: dict[str, Any]) -> None:
    found = read_changes(document, TODAY)
    named = {error.path.split("/")[1] for error in found.errors}
    assert len(found.values) == len(document) - len(named)


def test_everything_comes_in_its_stored_form() -> None:
    values = read(
        phone="+55 11 8765-4321", name="  Maria ", email=" Maria@Example.com ", cpf="529.982.247-25",
        cnpj="12.abc.345/01de-35", birthDate="1990-12-31", tags=["VIP", "vip"], externalIds={"integration_b": " 7 "},
        papelNaEmpresa="financeiro", optIn={"status": "granted", "at": "2026-01-01T00:00:00-03:00"},
        debtorGroups=[{"company": "A", "phones": ["+55 11 8765-4321", PHONE], "amountCents": 0, "status": "em_dia"}],
    )  # fmt: skip
    assert (values["phone"], values["name"], values["email"]) == (PHONE, "Maria", "Maria@Example.com")
    assert (values["cpf"], values["cnpj"], values["birth_date"]) == ("52998224725", "12ABC34501DE35", "1990-12-31")
    assert (values["tags"], values["external_ids"]) == (("VIP",), {"integration_b": "7"})
    assert values["opt_in"].at == datetime(2026, 1, 1, 3, tzinfo=UTC)
    (group,) = values["debtor_groups"]
    assert (group.phones, group.amount_cents, group.status) == ((PHONE,), 0, "em_dia")


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"name": "x" * 201}, ("/name", "TOO_LONG")),
        ({"name": "  "}, ("/name", "TOO_SHORT")),
        ({"name": "a\0b"}, ("/name", "INVALID_CHARACTER")),
        ({"email": "a@b@c"}, ("/email", "INVALID")),
        ({"email": "a@b..com"}, ("/email", "INVALID")),
        ({"email": "a@b.com."}, ("/email", "INVALID")),
        ({"email": "x" * 250 + "@b.co"}, ("/email", "TOO_LONG")),
        ({"avatarUrl": "ftp://example.com"}, ("/avatarUrl", "URL_NOT_ALLOWED")),
        ({"avatarUrl": "https://a@example.com"}, ("/avatarUrl", "URL_NOT_ALLOWED")),
        ({"avatarUrl": "https://example.com/" + "x" * 2_048}, ("/avatarUrl", "TOO_LONG")),
        ({"avatarUrl": "data:image/svg+xml;base64,AAAA"}, ("/avatarUrl", "URL_NOT_ALLOWED")),
        ({"avatarUrl": "data:image/png;base64," + "A" * 65_536}, ("/avatarUrl", "TOO_LONG")),
        ({"attributes": {"a": "x" * 1_001}}, ("/attributes/a", "TOO_LONG")),
        ({"attributes": {"a": ["x" * 201]}}, ("/attributes/a/0", "TOO_LONG")),
        ({"attributes": {"a": ["x"] * 51}}, ("/attributes/a", "TOO_MANY")),
        ({"attributes": {"a": 2**63}}, ("/attributes/a", "OUT_OF_RANGE")),
        ({"attributes": {"a": float(2**63)}}, ("/attributes/a", "OUT_OF_RANGE")),
        ({"attributes": {"a": [1]}}, ("/attributes/a/0", "WRONG_TYPE")),
        ({"attributes": {f"k{n}": 1 for n in range(101)}}, ("/attributes", "TOO_MANY")),
        ({"tags": [f"t{n}" for n in range(101)]}, ("/tags", "TOO_MANY")),
        ({"tags": "one"}, ("/tags", "WRONG_TYPE")),
        ({"externalIds": {"integration_a": 1}}, ("/externalIds/integration_a", "WRONG_TYPE")),
        ({"debtorGroups": [{"company": "A"}]}, ("/debtorGroups/0/phones", "REQUIRED")),
        ({"debtorGroups": [GROUP | {"amountCents": -1}]}, ("/debtorGroups/0/amountCents", "OUT_OF_RANGE")),
        ({"debtorGroups": [GROUP | {"id": "grp_1"}]}, ("/debtorGroups/0/id", "REFERENCE_NOT_FOUND")),
        ({"optIn": {"status": "granted", "at": "2026-01-01"}}, ("/optIn/at", "WRONG_TYPE")),
        ({"optIn": {"status": "yes"}}, ("/optIn/status", "NOT_ALLOWED")),
    ],
)
def test_each_limit_is_kept(fields: dict[str, Any], expected: tuple[str, str]) -> None:
    assert errors(**fields) == [expected]


def test_null_is_absent_at_birth_and_clears_later() -> None:
    assert read(name=None, email=None, tags=None) == {"phone": PHONE}
    cleared = read_changes({"name": None, "cpf": None, "companyId": None, "debtorGroups": None}, TODAY)
    assert cleared.values == {"name": None, "cpf": None, "company_id": None, "debtor_groups": None}
    for name in ("phone", "attributes", "tags", "optIn", "source"):
        (error,) = read_changes({name: None}, TODAY).errors
        assert (error.path, error.code) == (f"/{name}", "REQUIRED")


def test_unknown_fields_are_ignored() -> None:
    assert read(id="cnt_1", organizationId="org_1", env="live", nothing=1) == {"phone": PHONE}


keys = st.text("abc", min_size=1, max_size=2)


@given(st.dictionaries(keys, st.integers(0, 9)), st.dictionaries(keys, st.none() | st.integers(0, 9)), st.lists(keys))
def test_attributes_merge_key_by_key(before: dict[str, Any], given_: dict[str, Any], removed: list[str]) -> None:
    after = merged(before, given_, removed)
    assert set(after) == (set(before) | set(given_)) - set(removed)
    assert all(
        after[key] == given_.get(key, before.get(key)) if key in given_ else after[key] == before[key] for key in after
    )


@given(json_values)
def test_attributes_that_are_taken_are_flat(value: Any) -> None:
    try:
        taken = read_attributes(value)
    except Refusal:
        return
    for item in taken.values():
        assert item is None or isinstance(item, (str, int, float, bool, list))
        if isinstance(item, list):
            assert all(isinstance(each, str) for each in item)


def test_all_that_a_debt_group_lacks_is_named_at_once() -> None:
    given = read_new({"phone": PHONE, "debtorGroups": [GROUP, {"reference": "7"}]}, TODAY)
    assert [(error.path, error.code) for error in given.errors] == [
        ("/debtorGroups/1/company", "REQUIRED"),
        ("/debtorGroups/1/phones", "REQUIRED"),
    ]


@pytest.mark.parametrize("url", ["http://a.b:99999/", "http://a.b:x/", "http://[::1", "https://[a]/", "http://:80/"])
def test_an_avatar_that_nothing_can_open_is_refused(url: str) -> None:
    given = read_new({"phone": PHONE, "avatarUrl": url}, TODAY)
    assert [(error.path, error.code) for error in given.errors] == [("/avatarUrl", "URL_NOT_ALLOWED")]
