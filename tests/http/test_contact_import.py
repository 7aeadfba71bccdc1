"""Contacts from files over HTTP (C12.7): three formats, files that are none, and files that are handed in again."""

import asyncio
import gzip
from collections.abc import AsyncIterator
from typing import Any

import orjson
import pytest
from tests.http.importing import (
    CSV,
    JSON,
    NDJSON,
    contact,
    contacts,
    counts,
    hand_in,
    imported,
    nothing_is_stored,
    phone,
)
from tests.waiting import until


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
            "message": "The phone must be in international form, such as +5521912345678.",
        }],
    }  # fmt: skip
    assert result["id"].startswith("imp_")
    assert (await api.get(f"/contacts/imports/{result['id']}")).body == result
    found = await contact(api, "+5511912345678")
    assert (found["name"], found["tags"], found["attributes"], found["source"]) == ("Ana", ["novo"], {"n": 1}, "import")


async def test_a_phone_without_its_country_is_refused_with_the_option_that_gives_it_one(api: Any) -> None:
    hint = " The option `defaultCountry` (--default-country) reads phones of one country without its code."
    table = b"phone\n(11) 98765-4321\n911\n+5511\n"
    rows = [{"phone": "11987654321"}, {"phone": "911"}]
    refused = [(await hand_in(api, table, CSV)).body, (await hand_in(api, orjson.dumps({"contacts": rows}), JSON)).body]
    assert [[error["message"].endswith(hint) for error in each["errors"]] for each in refused] == [
        [True, False, False], [True, False],
    ]  # fmt: skip
    taken = await hand_in(api, orjson.dumps({"contacts": rows[:1], "options": {"defaultCountry": "BR"}}), JSON)
    assert taken.body["failed"] == 0


async def test_who_reads_contacts_reads_how_far_an_import_is(api: Any) -> None:
    made = (await hand_in(api, orjson.dumps({"contacts": [{"phone": phone(1)}]}), JSON)).body
    reader, writer = await api.key("contacts:read"), await api.key("contacts:write")
    assert (await api.get(f"/contacts/imports/{made['id']}", token=reader)).body == made
    assert (await api.get(f"/contacts/imports/{made['id']}", token=writer)).code == "SCOPE_REQUIRED"


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
        (gzip.compress(b"phone\n", mtime=0), "The file is not UTF-8."),
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


MISSPELLED = {"contacts": [{"phone": phone(1), "nome": "Ana"}], "options": {"mod": "create"}, "foo": 1, "id": "x"}


async def test_misspelled_options_of_a_document_are_named_and_rows_are_not(api: Any) -> None:
    answer = await hand_in(api, orjson.dumps(MISSPELLED), JSON)
    assert (answer.status, counts(answer.body)) == (200, {"created": 1})
    named = {each["path"]: (each["code"], each["detail"]) for each in answer.body["warnings"]}
    assert named == {
        "/foo": ("UNKNOWN_FIELD", "This field is unknown and was ignored."),
        "/options/mod": ("UNKNOWN_FIELD", "This field is unknown and was ignored: did you mean mode?"),
    }


async def test_misspelled_options_are_refused_where_that_is_asked_for(api: Any) -> None:
    headers = {"Prefer": "handling=strict"}
    answer = await hand_in(api, orjson.dumps(MISSPELLED), JSON, headers=headers)
    assert (answer.status, answer.code) == (422, "VALIDATION_ERROR")
    assert {error["path"] for error in answer.body["errors"]} == {"/foo", "/options/mod"}
    assert await nothing_is_stored(api)
    known = {**MISSPELLED, "options": {"mode": "create"}}
    del known["foo"]
    assert (await hand_in(api, orjson.dumps(known), JSON, headers=headers)).status == 200


async def test_options_of_a_document_in_its_query_are_named_or_refused_and_no_options(api: Any) -> None:
    document = orjson.dumps({"contacts": [{"phone": phone(1)}]})
    query = "?mode=update&listId=lst_00000000000000000000000000"
    strict = await hand_in(api, document, JSON, query, headers={"Prefer": "handling=strict"})
    assert (strict.status, strict.code) == (422, "VALIDATION_ERROR")
    assert [(error["path"], error["code"]) for error in strict.body["errors"]] == [
        ("listId", "UNKNOWN_FIELD"),
        ("mode", "UNKNOWN_FIELD"),
    ]
    assert await nothing_is_stored(api)
    answer = await hand_in(api, document, JSON, query)
    assert (answer.status, counts(answer.body)) == (200, {"created": 1})
    assert [(each["path"], each["detail"]) for each in answer.body["warnings"]] == [
        (name, f"This field is unknown and was ignored: did you mean options.{name}?") for name in ("listId", "mode")
    ]


async def test_columns_that_give_nothing_are_named_or_refused(api: Any) -> None:
    table = f"id,phone,Name,optIn.sttus,attributes.city,,shoe size\nx,{phone(1)},Ana,granted,Rio,,38\n".encode()
    strict = await hand_in(api, table, CSV, headers={"Prefer": "handling=strict"})
    assert (strict.status, strict.code) == (422, "VALIDATION_ERROR")
    assert await nothing_is_stored(api)
    answer = await hand_in(api, table, CSV)
    assert (answer.status, counts(answer.body)) == (200, {"created": 1})
    assert [(each["path"], each["code"]) for each in answer.body["warnings"]] == [
        (name, "UNKNOWN_FIELD") for name in ("Name", "optIn.sttus", "shoe size")
    ]
    assert "did you mean name?" in answer.body["warnings"][0]["detail"]


async def test_a_repeat_of_an_import_has_the_warnings_of_the_first_and_those_of_its_query(api: Any) -> None:
    key: dict[str, Any] = {"headers": {"Idempotency-Key": "one"}}
    first = await hand_in(api, orjson.dumps(MISSPELLED), JSON, "?foo=1", **key)
    again = await hand_in(api, orjson.dumps(MISSPELLED), JSON, "?foo=1", **key)
    assert [each["path"] for each in first.body["warnings"]] == ["/foo", "/options/mod", "foo"]
    assert (again.status, again.body, again.headers["Idempotency-Replayed"]) == (200, first.body, "true")


@pytest.mark.parametrize(
    ("name", "code"),
    [(b'"a\\ud800"', None), (b'"' + b"x" * 500_000 + b'"', None), (b'"a\\u0000"', "INVALID_CHARACTER")],
    ids=["half a pair", "long", "nul"],
)
async def test_a_member_of_any_name_is_named_as_far_as_it_can_be(api: Any, name: bytes, code: str | None) -> None:
    answer = await hand_in(api, b'{"contacts": [], ' + name + b": 1}", JSON)
    assert answer.code == code if code else len(answer.body["warnings"]) == 1


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

    await until(completed, "the import is completed")
    result = (await api.get(path)).body
    assert (result["processed"], counts(result)) == (2_001, {"created": 2_001})
    assert await api.database.fetchval("select count(*) from contacts") == 2_001
    assert await api.database.fetchval("select count(*) from contact_import_blocks") == 0


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
        *(imported(api, rows if turn % 2 else rows[::-1]) for turn in range(4)),
        *(api.post("/contacts", {"phone": phone(n)}) for n in range(0, 300, 30)),
    )
    assert sum(result["failed"] for result in results[:4]) == 0
    assert await api.database.fetchval("select count(*) from contacts") == 300
    assert sum(result["created"] for result in results[:4]) + sum(a.status == 201 for a in results[4:]) == 300


async def test_environments_and_organizations_do_not_meet(api: Any) -> None:
    await imported(api, [{"phone": phone(1), "name": "Mine"}])
    result = await imported(api, [{"phone": phone(1), "name": "Hers"}], organization=1)
    assert counts(result) == {"created": 1}
    assert (await contact(api))["name"] == "Mine"
    path = f"/contacts/imports/{result['id']}"
    assert (await api.get(path)).status == 404
    assert (await api.get(path, organization=1, env="live")).status == 404
