"""What a row of an import may and may not do to a contact, and whose company, groups and list it may name (C12.7)."""

from typing import Any

import orjson
import pytest
from tests.http.importing import JSON, NDJSON, contact, contacts, counts, hand_in, imported, nothing_is_stored, phone


async def test_the_same_file_twice_changes_nothing(api: Any) -> None:
    rows = [
        {
            "phone": phone(n), "name": "Ana", "email": f"ana{n}@example.com", "attributes": {"a": ["x"], "b": None},
            "tags": ["a"], "externalId": f"id {n}", "cpf": "529.982.247-25", "cnpj": "11.222.333/0001-81",
            "birthDate": "1990-12-31", "optIn": {"status": "granted", "source": "site"},
            "debtorGroups": [{"company": "Loja", "phones": [phone(9)], "amountCents": 100}],
        }
        for n in range(3)
    ]  # fmt: skip
    assert counts(await imported(api, rows)) == {"created": 3}
    before = await api.database.fetch("select * from contacts order by id")
    assert counts(await imported(api, rows)) == {"unchanged": 3}
    assert await api.database.fetch("select * from contacts order by id") == before


async def test_an_update_merges_and_clears_nothing(api: Any) -> None:
    full = {
        "phone": phone(1), "name": "Ana", "email": "ana@example.com", "attributes": {"a": 1, "b": 2}, "tags": ["A"],
        "externalIds": {"integration_a": "1"}, "externalId": "x", "birthDate": "1990-01-01",
    }  # fmt: skip
    await imported(api, [full])
    sparse = {
        "phone": phone(1), "name": " ", "email": None, "attributes": {"b": 3, "c": None, "a": None}, "tags": ["a", "B"],
        "externalIds": {"integration_a": None, "integration_b": "2"}, "birthDate": "", "debtorGroups": [],
    }  # fmt: skip
    assert counts(await imported(api, [sparse])) == {"updated": 1}
    found = await contact(api)
    assert (found["name"], found["email"], found["externalId"]) == ("Ana", "ana@example.com", "x")
    assert found["attributes"] == {"a": 1, "b": 3, "c": None}
    assert found["tags"] == ["A", "B"]
    assert found["externalIds"] == {"integration_a": "1", "integration_b": "2"}
    assert "birthDateCipher" in found


async def test_a_stored_date_that_was_altered_keeps_no_file_from_being_written(api: Any) -> None:
    rows = [{"phone": phone(n), "birthDate": "1990-01-01"} for n in range(2)]
    await imported(api, rows)
    altered = "update contacts set birth_date_cipher = (select birth_date_cipher from contacts where phone = $2) "
    await api.database.execute(altered + "where phone = $1", phone(0), phone(1))
    assert counts(await imported(api, rows)) == {"updated": 1, "unchanged": 1}
    read = await api.get(f"/contacts/{(await contact(api, phone(0)))['id']}")
    assert read.body["documentos"] == {"nascimento": "1990-**-**"}


async def test_one_is_another_value_than_true(api: Any) -> None:
    await imported(api, [{"phone": phone(1), "attributes": {"a": 1, "b": "x"}}])
    assert counts(await imported(api, [{"phone": phone(1), "attributes": {"a": True}}])) == {"updated": 1}
    assert (await contact(api))["attributes"] == {"a": True, "b": "x"}


async def test_both_spellings_of_a_phone_are_one_contact_and_the_later_row_wins(api: Any) -> None:
    rows = [{"phone": "+551187654321", "name": "First", "tags": ["a"]}, {"phone": "+55 11 98765-4321", "name": "Last"}]
    result = await imported(api, rows)
    assert counts(result) == {"created": 1, "unchanged": 1}
    found = await contact(api, "+5511987654321")
    assert (found["name"], found["tags"]) == ("Last", ["a"])


async def test_a_bad_row_fails_alone_among_others_of_its_contact(api: Any) -> None:
    await imported(api, [{"phone": phone(9), "externalId": "taken"}])
    nobody = {"companyId": "emp_" + "0" * 21}
    rows = [
        {"phone": phone(1), "name": "Ana"}, {"phone": phone(1)} | nobody, {"phone": phone(1), "tags": ["a"]},
        {"phone": phone(2)} | nobody, {"phone": phone(2), "name": "Bia"},
        {"phone": phone(3), "externalId": "mine"}, {"phone": phone(3), "externalId": "taken"},
        {"phone": phone(1), "optIn": {"status": "granted", "source": "site", "at": "2999-01-01T00:00:00Z"}},
    ]  # fmt: skip
    result = await imported(api, rows)
    assert counts(result) == {"created": 3, "updated": 1, "failed": 4}
    assert [(error["row"], error["code"]) for error in result["errors"]] == [
        (2, "REFERENCE_NOT_FOUND"), (4, "REFERENCE_NOT_FOUND"), (7, "EXTERNAL_ID_TAKEN"),
        (8, "DATA_DO_CONSENTIMENTO_NO_FUTURO"),
    ]  # fmt: skip
    ana, bia, third = await contact(api), await contact(api, phone(2)), await contact(api, phone(3))
    assert (ana["name"], ana["tags"], bia["name"], third["externalId"]) == ("Ana", ["a"], "Bia", "mine")


async def test_a_phone_that_another_row_of_the_contact_has_not_fails_alone(api: Any) -> None:
    rows = [{"externalId": "a", "phone": phone(1)}, {"externalId": "a", "phone": phone(2)}]
    result = await imported(api, rows, "?matchBy=externalId")
    assert counts(result) == {"created": 1, "failed": 1}
    assert [(error["row"], error["code"]) for error in result["errors"]] == [(2, "PHONE_IMMUTABLE")]
    assert list(await contacts(api)) == [phone(1)]


async def test_the_later_row_wins_across_blocks_too(api: Any) -> None:
    rows = [{"phone": phone(n % 1_500), "name": f"row {n}"} for n in range(2_000)]
    assert counts(await imported(api, rows)) == {"created": 1_500, "updated": 500}
    name = await api.database.fetchval("select name from contacts where phone = $1", phone(499))
    assert name == "row 1999"
    rows = [{"phone": phone(5_000 + n % 1_200), "name": f"row {n}"} for n in range(1_300)]
    assert counts(await imported(api, rows, "?mode=create")) == {"created": 1_200, "updated": 100}


@pytest.mark.parametrize(
    ("mode", "expected", "code", "names"),
    [
        ("upsert", {"created": 1, "updated": 1}, None, ["New", "Newer"]),
        ("create", {"created": 1, "failed": 1}, "PHONE_TAKEN", ["Old", "Newer"]),
        ("update", {"updated": 1, "failed": 1}, "NOT_FOUND", ["New"]),
    ],
)
async def test_a_mode_decides_about_new_and_known_contacts(
    api: Any, mode: str, expected: Any, code: str | None, names: list[str]
) -> None:
    await api.post("/contacts", {"phone": phone(1), "name": "Old"})
    rows = [{"phone": phone(1), "name": "New"}, {"phone": phone(2), "name": "Newer"}]
    result = await imported(api, rows, f"?mode={mode}")
    assert counts(result) == expected
    assert [error["code"] for error in result["errors"]] == ([code] if code else [])
    assert [found["name"] for _, found in sorted((await contacts(api)).items())] == names


async def test_rows_can_be_matched_by_the_customers_own_id(api: Any) -> None:
    await imported(api, [{"phone": phone(1), "externalId": "a"}, {"phone": phone(2), "externalId": "b"}])
    rows = [
        {"externalId": "a", "name": "Without a phone"},
        {"externalId": "b", "phone": phone(3)},
        {"externalId": "c", "phone": phone(1)},
        {"externalId": "d"},
        {"phone": phone(4)},
        {"externalId": "e", "phone": phone(5)},
    ]
    result = await imported(api, rows, "?matchBy=externalId")
    assert counts(result) == {"created": 1, "updated": 1, "failed": 4}
    assert [(error["row"], error["field"], error["code"]) for error in result["errors"]] == [
        (2, "phone", "PHONE_IMMUTABLE"), (3, "phone", "PHONE_TAKEN"), (4, "phone", "REQUIRED"),
        (5, "externalId", "REQUIRED"),
    ]  # fmt: skip
    assert (await contact(api))["name"] == "Without a phone"


async def test_an_external_id_has_one_contact(api: Any) -> None:
    await imported(api, [{"phone": phone(1), "externalId": "a"}])
    rows = [
        {"phone": phone(2), "externalId": "a"},
        {"phone": phone(3), "externalId": "b"},
        {"phone": phone(4), "externalId": "b"},
    ]
    result = await imported(api, rows)
    assert counts(result) == {"created": 1, "failed": 2}
    assert [(error["row"], error["code"]) for error in result["errors"]] == [
        (1, "EXTERNAL_ID_TAKEN"), (3, "EXTERNAL_ID_TAKEN"),
    ]  # fmt: skip


async def test_a_row_that_makes_too_much_of_a_contact_fails(api: Any) -> None:
    await imported(api, [{"phone": phone(1), "attributes": {f"a{n}": n for n in range(100)}}])
    result = await imported(api, [{"phone": phone(1), "attributes": {"one_more": 1}}, {"phone": phone(2)}])
    assert counts(result) == {"created": 1, "failed": 1}
    assert (result["errors"][0]["field"], result["errors"][0]["code"]) == ("attributes", "TOO_MANY")


async def test_companies_and_debt_groups_must_be_ones_own(api: Any) -> None:
    mine = (await api.post("/v2/companies", {"nome": "Minha"})).body["id"]
    foreign = (await api.post("/v2/companies", {"nome": "Dela"}, organization=1)).body["id"]
    group = {"company": "Loja", "phones": [phone(9)]}
    await imported(api, [{"phone": phone(1), "debtorGroups": [group]}])
    (group_id,) = [row["id"] for row in await api.database.fetch("select id from debtor_groups")]
    rows = [
        {"phone": phone(2), "companyId": mine, "papelNaEmpresa": "decisor"},
        {"phone": phone(3), "companyId": foreign},
        {"phone": phone(4), "debtorGroups": [group | {"id": group_id}]},
        {"phone": phone(1), "debtorGroups": [group | {"id": group_id, "amountCents": 5}]},
    ]
    result = await imported(api, rows)
    assert counts(result) == {"created": 1, "updated": 1, "failed": 2}
    assert [(error["row"], error["field"], error["code"]) for error in result["errors"]] == [
        (2, "companyId", "REFERENCE_NOT_FOUND"), (3, "debtorGroups.0.id", "REFERENCE_NOT_FOUND"),
    ]  # fmt: skip
    assert (await contact(api, phone(2)))["companyId"] == mine
    assert (await contact(api))["debtorGroups"] == [group | {"id": group_id, "amountCents": 5}]


async def test_everyone_of_the_file_joins_the_list(api: Any) -> None:
    made = (await api.post("/v2/lists", {"name": "Clientes"})).body
    await imported(api, [{"phone": phone(1)}])
    rows = [{"phone": phone(n)} for n in (1, 2, 3)] + [{"phone": "x"}]
    await imported(api, rows, f"?listId={made['id']}")
    await imported(api, rows[:1], f"?listId={made['id']}")
    assert (await api.get(f"/v2/lists/{made['id']}")).body["size"] == 3


@pytest.mark.parametrize("owner", ["nobody", "another organization"])
async def test_a_list_of_others_is_none(api: Any, owner: str) -> None:
    foreign = (await api.post("/v2/lists", {"name": "Dela"}, organization=1)).body["id"]
    list_id = foreign if owner == "another organization" else "lst_" + "0" * 21
    answer = await hand_in(api, orjson.dumps({"phone": phone(1)}), NDJSON, f"?listId={list_id}")
    assert (answer.status, answer.code, answer.body["meta"]) == (422, "REFERENCE_NOT_FOUND", {"field": "listId"})
    assert [error["path"] for error in answer.body["errors"]] == ["listId"]
    document = {"contacts": [{"phone": phone(1)}], "options": {"listId": list_id}}
    answer = await hand_in(api, orjson.dumps(document), JSON)
    assert (answer.code, answer.body["meta"]) == ("REFERENCE_NOT_FOUND", {"field": "options.listId"})
    assert [error["path"] for error in answer.body["errors"]] == ["/options/listId"]
    assert await nothing_is_stored(api)
