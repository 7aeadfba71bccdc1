"""Contacts from files over HTTP (C12.7): three formats, what a row may and may not do, and files that are none."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from tests.http.people import session
from tests.waiting import until

JSON, NDJSON, CSV = "application/json", "application/x-ndjson", "text/csv"


async def hand_in(api: Any, content: bytes, media_type: str, query: str = "", **how: Any) -> Any:
    headers = {**how.pop("headers", {}), "Content-Type": media_type}
    return await api.call("POST", f"/contacts/import{query}", raw=content, headers=headers, **how)


async def imported(api: Any, rows: Any, query: str = "", **how: Any) -> Any:
    """The result of a file of NDJSON, or of CSV when `rows` is a text."""
    content, media_type = (
        (rows.encode(), CSV) if isinstance(rows, str) else (b"\n".join(map(orjson.dumps, rows)), NDJSON)
    )
    answer = await hand_in(api, content, media_type, query, **how)
    assert answer.status == 200, answer.body
    return answer.body


def counts(result: Any) -> dict[str, int]:
    """What became of the rows; the counts that are not 0."""
    names = ("created", "updated", "unchanged", "failed", "consentIgnored")
    return {name: result[name] for name in names if result[name]}


def phone(serial: int) -> str:
    return f"+55119{serial:08}"


async def contacts(api: Any, **how: Any) -> dict[str, Any]:
    """All of the environment by phone."""
    answer = await api.get("/contacts?limit=200", **how)
    return {item["phone"]: item for item in answer.body["items"]}


async def contact(api: Any, number: str = phone(1)) -> Any:
    return (await contacts(api))[number]


# The formats --------------------------------------------------------------------------------------------------------


async def test_a_document_of_contacts_and_options(api: Any) -> None:
    body = {
        "options": {"tags": ["novo"], "defaultCountry": "BR"},
        "contacts": [{"phone": "(11) 91234-5678", "name": " Ana ", "attributes": {"n": 1}}, {"phone": "nothing"}],
    }
    answer = await hand_in(api, orjson.dumps(body), JSON)
    assert answer.status == 200
    result = answer.body
    assert result | {"id": "", "createdAt": "", "finishedAt": ""} == {
        "id": "", "status": "completed", "format": "json", "total": 2, "processed": 2, "created": 1, "updated": 0,
        "unchanged": 0, "failed": 1, "consentIgnored": 0, "createdAt": "", "finishedAt": "",
        "errors": [{
            "row": 2, "field": "phone", "code": "PHONE_INVALID",
            "message": "The phone must be in international form: +, country code, number.",
        }],
    }  # fmt: skip
    assert result["id"].startswith("imp_")
    assert (await api.get(f"/contacts/imports/{result['id']}")).body == result
    found = await contact(api, "+5511912345678")
    assert (found["name"], found["tags"], found["attributes"], found["source"]) == ("Ana", ["novo"], {"n": 1}, "import")


async def test_lines_of_json_with_a_mark_blank_lines_and_a_broken_one(api: Any) -> None:
    lines = [
        b"\xef\xbb\xbf" + orjson.dumps({"phone": phone(1)}), b"", b'{"phone": "+551191234', b"\r", b"[1]", b'"text"',
        b'{"phone": "\xff"}', b'{"phone": NaN}', b"[" * 2000, orjson.dumps({"phone": phone(2)}),
    ]  # fmt: skip
    answer = await hand_in(api, b"\n".join(lines), NDJSON)
    result = answer.body
    assert (result["total"], counts(result)) == (8, {"created": 2, "failed": 6})
    assert [(error["row"], error["code"]) for error in result["errors"]] == [
        (2, "MALFORMED_JSON"), (3, "WRONG_TYPE"), (4, "WRONG_TYPE"), (5, "MALFORMED_JSON"), (6, "MALFORMED_JSON"),
        (7, "MALFORMED_JSON"),
    ]  # fmt: skip
    assert set(await contacts(api)) == {phone(1), phone(2)}


async def test_a_table_with_every_kind_of_column(api: Any) -> None:
    table = (
        "\ufeffphone;name;tags;attributes.cidade;optIn.status;optIn.at;optIn.source;externalIds.integration_a;Other\r\n"
        '+5511900000001;"Silva; Ana ""Nina""";vip|sp;São Paulo;granted;2026-01-02T03:04:05Z;site;x1;ignored\r\n'
        "+5511900000002;;;;;;;;\r\n"
    )
    result = await imported(api, table)
    assert (result["format"], counts(result)) == ("csv", {"created": 2})
    found = await contact(api)
    assert found["name"] == 'Silva; Ana "Nina"'
    assert (found["tags"], found["attributes"]) == (["vip", "sp"], {"cidade": "São Paulo"})
    assert found["externalIds"] == {"integration_a": "x1"}
    assert found["optIn"] == {"status": "granted", "source": "site", "at": "2026-01-02T03:04:05.000Z"}
    assert (await contact(api, phone(2)))["optIn"] == {"status": "unknown"}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ("+5511900000001,Ana,extra\n+5511900000002,Eva\n", [(1, "COLUMNS")]),
        ("+5511900000001\n+5511900000002,Eva\n", [(1, "COLUMNS")]),
        ('+5511900000001,"Ana" Lima\n+5511900000002,Eva\n', [(1, "UNREADABLE")]),
        ('+5511900000002,Eva\n+5511900000001,"Ana', [(2, "UNREADABLE")]),
        ("+5511900000002,Eva\n+55119", [(2, "COLUMNS")]),
        ("+5511900000002,Eva\n\n,Nobody\n", [(2, "REQUIRED")]),
        ("+5511900000002,Eva\n+5511900000001,a\0b\n", [(2, "INVALID_CHARACTER")]),
    ],
)
async def test_a_bad_row_of_a_table_fails_alone(api: Any, rows: str, expected: Any) -> None:
    result = await imported(api, "phone,name\n" + rows)
    assert [(error["row"], error["code"]) for error in result["errors"]] == expected
    assert counts(result) == {"created": 1, "failed": 1}
    assert set(await contacts(api)) == {phone(2)}


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (b"", "The file has no header row."),
        (b"\n", "The file has no header row."),
        (b",,\n", "The file has no header row."),
        (b"name,email\n", "No column is named phone."),
        (b"phone,name,phone\n", "The header names a column twice."),
        (b"phone,attributes.1a\n", "Column 2 does not name an attribute."),
        (b"phone,externalIds.other\n", "Column 2 does not name an integration."),
        (b'phone,"name\n', "The header is no row of CSV in UTF-8."),
        (b"phone," + b"," * 1000 + b"\n", "The header has more than 1000 columns."),
        (b"phone,na\0me\n+5511900000001,Ana\n", "The header contains U+0000."),
        (b"phone" * 20_000, "The header has more than 65536 characters."),
        (b"phone,nome\n" + b"+5511900000001,Ana\n" * 3_000 + b"+5511900000002,Jo\xe3o\n", "The file is not UTF-8."),
        ("phone,name\n+5511900000001,João\n".encode("utf-16"), "The file is not UTF-8."),
        (gzip.compress(b"phone\n"), "The file is not UTF-8."),
    ],
)  # fmt: skip
async def test_a_table_without_readable_columns_is_no_file(api: Any, header: bytes, reason: str) -> None:
    answer = await hand_in(api, header, CSV)
    assert (answer.status, answer.code, answer.body["detail"]) == (422, "IMPORT_INVALID", reason)
    assert await nothing_is_stored(api)


@pytest.mark.parametrize(
    "document",
    [
        b"", b" ", b"[]", b"{", b'{"contacts"', b'{"contacts": [', b'{"contacts": [{}', b'{"contacts": [{},]}',
        b'{"contacts": [{"phone": "a}]}', b'{"contacts": {}}', b'{"contacts": []} x', b"{}", b'{"other": 1}',
        b'{"contacts": [{}] "options": {}}', b'{"contacts": [], "contacts": []}', b'{"contacts": [nothing]}',
        b'{"contacts": [' + b"[" * 100_000, b'{"contacts": [{"a": "\xff"}]}', b"{'contacts': []}",
    ],
)  # fmt: skip
async def test_a_document_that_is_no_json_of_contacts_is_no_file(api: Any, document: bytes) -> None:
    answer = await hand_in(api, document, JSON)
    assert (answer.status, answer.code) == (422, "IMPORT_INVALID")
    assert await nothing_is_stored(api)


async def nothing_is_stored(api: Any) -> bool:
    tables = ("contacts", "contact_imports", "contact_import_blocks")
    return not any([await api.database.fetchval(f"select count(*) from {table}") for table in tables])


@pytest.mark.parametrize(
    ("options", "pointer"),
    [
        ({"mode": "replace"}, "/options/mode"),
        ({"matchBy": "email"}, "/options/matchBy"),
        ({"tags": [""]}, "/options/tags/0"),
        ({"tags": ["x" * 65]}, "/options/tags/0"),
        ({"defaultCountry": "AR"}, "/options/defaultCountry"),
        ({"emitEvents": "yes"}, "/options/emitEvents"),
        ([], "/options"),
    ],
)
async def test_options_that_are_not_valid_are_pointed_at(api: Any, options: Any, pointer: str) -> None:
    answer = await hand_in(api, orjson.dumps({"contacts": [{"phone": phone(1)}], "options": options}), JSON)
    assert (answer.status, [error["path"] for error in answer.body["errors"]]) == (422, [pointer])
    assert await nothing_is_stored(api)


@pytest.mark.parametrize(
    "query", ["?mode=replace", "?matchBy=email", "?tags=", "?emitEvents=yes", "?defaultCountry=br"]
)
async def test_options_in_the_query_are_checked_as_parameters(api: Any, query: str) -> None:
    answer = await hand_in(api, b"", NDJSON, query)
    assert (answer.status, answer.code) == (400, "INVALID_PARAMETER")


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", "text/csv; charset=latin-1"])
async def test_another_media_type_is_refused(api: Any, media_type: str) -> None:
    answer = await hand_in(api, b"phone\n", media_type)
    assert (answer.status, answer.code) == (415, "UNSUPPORTED_MEDIA_TYPE")


async def test_a_file_of_50_mib_and_a_byte_is_refused(api: Any) -> None:
    content = b" " * (50 * 1024 * 1024)
    refused = await hand_in(api, content + b" ", NDJSON)
    assert (refused.status, refused.code, refused.body["meta"]) == (413, "BODY_TOO_LARGE", {"limitBytes": len(content)})
    taken = await hand_in(api, content[:-100] + orjson.dumps({"phone": phone(1)}).rjust(100), NDJSON)
    assert counts(taken.body) == {"failed": 1}
    assert [error["code"] for error in taken.body["errors"]] == ["TOO_LONG"]


async def test_a_file_that_does_not_say_its_size_is_cut_off_at_the_limit(api: Any) -> None:
    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b" " * 1_048_576

    headers = {"Authorization": f"Bearer {api.token()}", "Content-Type": NDJSON}
    async with api.session.post(f"{api.base}/contacts/import", data=endless(), headers=headers) as answer:
        assert (answer.status, (await answer.json())["code"]) == (413, "BODY_TOO_LARGE")
    assert await nothing_is_stored(api)


async def test_a_file_of_one_row_too_many_is_refused(api: Any) -> None:
    answer = await hand_in(api, b"phone\n" + b"+\n" * 200_001, CSV)
    assert (answer.status, answer.code, answer.body["meta"]) == (422, "IMPORT_INVALID", {"limit": 200_000})
    assert await nothing_is_stored(api)


async def test_an_empty_list_is_done_at_once(api: Any) -> None:
    for content, media_type in ((b'{"contacts": []}', JSON), (b"", NDJSON), (b"phone\n", CSV)):
        answer = await hand_in(api, content, media_type)
        assert (answer.status, answer.body["status"], answer.body["total"]) == (200, "completed", 0)


async def test_more_than_two_thousand_rows_are_written_later(api: Any) -> None:
    rows = [{"phone": phone(n), "name": f"Contact {n}"} for n in range(2_001)]
    answer = await hand_in(api, b"\n".join(map(orjson.dumps, rows)), NDJSON)
    assert (answer.status, answer.body["status"], answer.body["total"]) == (202, "processing", 2_001)
    path = f"/contacts/imports/{answer.body['id']}"

    async def completed() -> bool:
        return bool((await api.get(path)).body["status"] == "completed")

    await until(completed, 20, "the import is completed")
    result = (await api.get(path)).body
    assert (result["processed"], counts(result)) == (2_001, {"created": 2_001})
    assert await api.database.fetchval("select count(*) from contacts") == 2_001
    assert await api.database.fetchval("select count(*) from contact_import_blocks") == 0


# What a row does ----------------------------------------------------------------------------------------------------


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
    assert await nothing_is_stored(api)


# Consent ------------------------------------------------------------------------------------------------------------

REFUSED = "2026-06-01T00:00:00Z"


def consent(status: str, **fields: Any) -> dict[str, Any]:
    return {"phone": phone(1), "optIn": {"status": status, **fields}}


@pytest.mark.parametrize(
    ("row", "expected", "status"),
    [
        (consent("granted", source="site", at="2026-05-01T00:00:00Z"), {"unchanged": 1, "consentIgnored": 1}, "denied"),
        (consent("granted", at="2026-07-01T00:00:00Z"), {"unchanged": 1, "consentIgnored": 1}, "denied"),
        (consent("granted", source="site", at="2026-07-01T00:00:00Z"), {"updated": 1}, "granted"),
        (consent("denied", revokedAt="2026-07-01T00:00:00Z"), {"unchanged": 1}, "denied"),
        (consent("unknown"), {"failed": 1}, "denied"),
        (consent("granted", source="site", at="2030-01-01T00:00:00Z"), {"failed": 1}, "denied"),
        ({"phone": phone(1), "name": "Ana"}, {"updated": 1}, "denied"),
    ],
)
async def test_a_row_undoes_no_later_refusal(api: Any, row: Any, expected: Any, status: str) -> None:
    await imported(api, [consent("denied", revokedAt=REFUSED)])
    result = await imported(api, [row])
    assert counts(result) == expected
    assert (await contact(api))["optIn"]["status"] == status


async def test_whoever_opted_out_before_is_born_denied(api: Any) -> None:
    for number in (1, 2):
        await api.post("/contacts/opt-out", {"phone": phone(number)})
    await api.post("/contacts/opt-out", {"email": "Eva@example.com"})
    rows = [
        {"phone": phone(1)},
        consent("granted") | {"phone": phone(2)},
        {"phone": phone(3), "email": "eva@Example.com"},
    ]
    assert counts(await imported(api, [*rows, {"phone": phone(4)}])) == {"created": 4, "consentIgnored": 1}
    found = await contacts(api)
    assert [found[phone(n)]["optIn"]["status"] for n in (1, 2, 3, 4)] == ["denied", "denied", "denied", "unknown"]


async def test_every_change_of_a_consent_in_a_file_has_its_place_in_the_history(api: Any) -> None:
    rows = [
        consent("granted", source="site", at="2026-01-01T00:00:00Z"),
        consent("denied", revokedAt="2026-02-01T00:00:00Z"),
        consent("granted", source="site", at="2026-01-15T00:00:00Z"),
        consent("granted", source="site", at="2026-03-01T00:00:00Z") | {"name": "Ana"},
    ]
    result = await imported(api, rows)
    assert counts(result) == {"created": 1, "updated": 2, "unchanged": 1, "consentIgnored": 1}
    found = await contact(api)
    assert (found["name"], found["optIn"]["status"], found["optIn"]["at"]) == (
        "Ana",
        "granted",
        "2026-03-01T00:00:00.000Z",
    )
    history = (await api.get(f"/contacts/{found['id']}/consents")).body["items"]
    assert [entry["to"] for entry in history] == ["granted", "denied", "granted"]


async def test_a_person_imports_consents_of_now_from_where_they_are(api: Any) -> None:
    row = orjson.dumps(consent("granted", source="balcão", at="2026-01-01T00:00:00Z"))
    headers = {"User-Agent": "a browser"}
    answer = await hand_in(api, row, NDJSON, token=await session(api), headers=headers)
    assert counts(answer.body) == {"created": 1}
    given = (await contact(api))["optIn"]
    assert (given["ip"], given["userAgent"], given["source"]) == ("127.0.0.1", "a browser", "balcão")
    assert given["at"] >= answer.body["createdAt"]


async def test_a_file_from_a_program_whose_name_is_no_utf8_is_taken(api: Any) -> None:
    lines = b"Content-Type: application/x-ndjson\r\nUser-Agent: caf\xe9\r\n"
    row = orjson.dumps(consent("granted", source="balcão"))
    answer = await api.speak("POST", "/contacts/import", lines, row, token=await session(api))
    assert (answer.status, counts(answer.body)) == (200, {"created": 1})
    assert (await contact(api))["optIn"]["userAgent"] == "caf\ufffd"


async def test_events_are_told_of_consents_always_and_of_births_when_asked_for(api: Any) -> None:
    hook = {"url": "https://hooks.example.com/", "events": ["contact.created", "contact.consent_changed"]}
    assert (await api.post("/webhooks", hook)).status == 201

    async def told() -> list[str]:
        return [row["type"] for row in await api.database.fetch("select type from events order by id")]

    await imported(api, [consent("granted"), {"phone": phone(2)}])
    assert await told() == ["contact.consent_changed"]
    await imported(api, [{"phone": phone(3)}, {"phone": phone(2)}], "?emitEvents=true")
    assert await told() == ["contact.consent_changed", "contact.created"]


# Repeats, races, tenants --------------------------------------------------------------------------------------------


async def test_a_key_gives_the_same_answer_again_and_is_bound_to_its_file(api: Any) -> None:
    row = orjson.dumps({"phone": phone(1)})
    key: dict[str, Any] = {"headers": {"Idempotency-Key": "one"}}
    first = await hand_in(api, row, NDJSON, **key)
    again = await hand_in(api, row, NDJSON, **key)
    assert (again.status, again.body, again.headers["Idempotency-Replayed"]) == (200, first.body, "true")
    other = await hand_in(api, orjson.dumps({"phone": phone(2)}), NDJSON, **key)
    assert (other.status, other.code) == (422, "IDEMPOTENCY_KEY_REUSED")
    assert set(await contacts(api)) == {phone(1)}


async def test_files_of_the_same_contacts_at_once_leave_each_contact_once(api: Any) -> None:
    rows = [{"phone": phone(n), "externalId": f"x{n}", "attributes": {"n": n}} for n in range(300)]
    results = await asyncio.gather(
        *(imported(api, rows if turn % 2 else rows[::-1]) for turn in range(6)),
        *(api.post("/contacts", {"phone": phone(n)}) for n in range(0, 300, 30)),
    )
    assert sum(result["failed"] for result in results[:6]) == 0
    assert await api.database.fetchval("select count(*) from contacts") == 300
    assert sum(result["created"] for result in results[:6]) + sum(a.status == 201 for a in results[6:]) == 300


async def test_environments_and_organizations_do_not_meet(api: Any) -> None:
    await imported(api, [{"phone": phone(1), "name": "Mine"}])
    result = await imported(api, [{"phone": phone(1), "name": "Hers"}], organization=1)
    assert counts(result) == {"created": 1}
    assert (await contact(api))["name"] == "Mine"
    path = f"/contacts/imports/{result['id']}"
    assert (await api.get(path)).status == 404
    assert (await api.get(path, organization=1, env="live")).status == 404
