"""Contacts through the interface: create, read, change, delete (C12.1 to C12.3, C12.6)."""

import asyncio
from typing import Any

import pytest
from tests.http.conftest import Api

PHONE = "+5511987654321"


def full() -> dict[str, Any]:
    """A contact with everything that a caller can give."""
    return {
        "phone": "+55 (11) 98765-4321",
        "name": "  Maria da Conceição ",
        "email": "Maria@Example.com",
        "avatarUrl": "https://example.com/maria.png",
        "cpf": "529.982.247-25",
        "cnpj": "12.abc.345/01de-35",
        "birthDate": "1990-12-31",
        "attributes": {"cidade": "Recife", "pontos": 10, "vip": True, "nada": None, "lista": ["a", "b"]},
        "tags": ["VIP", "vip", "Nova"],
        "externalId": "crm-7",
        "externalIds": {"integration_a": "A1", "another": "ignored"},
        "papelNaEmpresa": "decisor",
        "debtorGroups": [
            {"company": "Loja Ágil", "phones": ["+5511987650000"], "amountCents": 1050, "status": "vencida"}
        ],
        "source": "api",
    }


async def made(api: Api, phone: str = PHONE, **fields: Any) -> dict[str, Any]:
    answer = await api.post("/contacts", {"phone": phone, **fields})
    assert answer.status == 201, answer.body
    return dict(answer.body)


async def test_a_contact_keeps_what_it_was_given_in_its_normal_form(api: Api) -> None:
    answer = await api.post("/contacts", full())
    assert answer.status == 201
    assert answer.etag == '"1"'
    contact = answer.body
    assert contact["phone"] == PHONE
    assert contact["name"] == "Maria da Conceição"
    assert contact["email"] == "Maria@Example.com"
    assert contact["tags"] == ["VIP", "Nova"]
    assert contact["attributes"] == full()["attributes"]
    assert contact["externalIds"] == {"integration_a": "A1"}
    assert contact["optIn"] == {"status": "unknown"}
    assert contact["debtorGroups"][0]["id"].startswith("grp_")
    assert "documentos" not in contact
    assert [each["path"] for each in contact.pop("warnings")] == ["/externalIds/another"]
    read = await api.get(f"/contacts/{contact['id']}")
    assert read.body == contact | {
        "documentos": {"cpf": "***.***.***-25", "cnpj": "**.***.***/****-35", "nascimento": "1990-**-**"}
    }
    assert "52998224725" not in str(read.body)


async def test_only_the_phone_is_required(api: Api) -> None:
    contact = await made(api)
    assert set(contact) == {
        "id", "organizationId", "phone", "phoneHash", "attributes", "tags", "optIn", "source", "createdAt", "updatedAt",
    }  # fmt: skip
    assert contact["source"] == "manual"
    assert (contact["attributes"], contact["tags"]) == ({}, [])


@pytest.mark.parametrize(
    ("fields", "path", "code"),
    [
        ({"phone": "12"}, "/phone", "PHONE_INVALID"),
        ({"phone": None}, "/phone", "REQUIRED"),
        ({"cpf": "529.982.247-26"}, "/cpf", "CPF_INVALID"),
        ({"cnpj": "123"}, "/cnpj", "CNPJ_INVALID"),
        ({"birthDate": "1899-12-31"}, "/birthDate", "INVALID"),
        ({"birthDate": "2999-01-01"}, "/birthDate", "INVALID"),
        ({"email": "no address"}, "/email", "INVALID"),
        ({"avatarUrl": "https://user:word@example.com/"}, "/avatarUrl", "URL_NOT_ALLOWED"),
        ({"avatarUrl": "data:text/html;base64,AAAA"}, "/avatarUrl", "URL_NOT_ALLOWED"),
        ({"attributes": {"a": {"b": 1}}}, "/attributes/a", "WRONG_TYPE"),
        ({"attributes": {"9": 1}}, "/attributes", "PATTERN_MISMATCH"),
        ({"tags": ["x" * 65]}, "/tags/0", "TOO_LONG"),
        ({"source": "webhook"}, "/source", "NOT_ALLOWED"),
        ({"companyId": "emp_none"}, "/companyId", "REFERENCE_NOT_FOUND"),
        ({"debtorGroups": [{"company": "A", "phones": []}]}, "/debtorGroups/0/phones", "TOO_FEW"),
        ({"optIn": {}}, "/optIn/status", "REQUIRED"),
    ],
)
async def test_what_is_not_acceptable_is_named_by_its_place(
    api: Api, fields: dict[str, Any], path: str, code: str
) -> None:
    answer = await api.post("/contacts", {"phone": PHONE, **fields})
    assert answer.status == 422
    assert [(error["path"], error["code"]) for error in answer.body["errors"]] == [(path, code)]
    assert (await api.get("/contacts")).body["total"] == 0


async def test_phone_and_external_id_are_unique_in_an_environment(api: Api) -> None:
    holder = {"contactId": (await made(api, externalId="one"))["id"]}
    same_phone = await api.post("/contacts", {"phone": "+55 11 8765-4321"})
    assert (same_phone.status, same_phone.code, same_phone.body["meta"]) == (409, "PHONE_TAKEN", holder)
    taken = await api.post("/contacts", {"phone": "+5511987654322", "externalId": "one"})
    assert (taken.status, taken.code, taken.body["meta"]) == (409, "EXTERNAL_ID_TAKEN", holder)
    other = await api.post("/contacts", {"phone": PHONE, "externalId": "one"}, env="live")
    assert other.status == 201


async def test_of_two_calls_on_one_phone_one_creates_and_one_is_told_that_it_is_taken(api: Api) -> None:
    answers = await asyncio.gather(*(api.post("/contacts", {"phone": PHONE, "externalId": f"e{n}"}) for n in range(8)))
    assert sorted(answer.status for answer in answers) == [201] + [409] * 7
    assert {answer.code for answer in answers if answer.status == 409} == {"PHONE_TAKEN"}


async def test_of_two_calls_on_one_external_id_one_creates(api: Api) -> None:
    answers = await asyncio.gather(
        *(api.post("/contacts", {"phone": f"+551198765432{n}", "externalId": "same"}) for n in range(8))
    )
    assert sorted(answer.status for answer in answers) == [201] + [409] * 7
    assert {answer.code for answer in answers if answer.status == 409} == {"EXTERNAL_ID_TAKEN"}


async def test_a_change_merges_what_merges_and_replaces_the_rest(api: Api) -> None:
    contact = (await api.post("/contacts", full())).body
    answer = await api.patch(
        f"/contacts/{contact['id']}",
        {
            "name": "Maria",
            "email": None,
            "attributes": {"cidade": "Olinda", "novo": 1},
            "removeAttributes": ["pontos"],
            "addTags": ["nova", "Outra"],
            "removeTags": ["vip"],
            "externalIds": {"integration_a": None, "integration_b": "B1"},
            "cpf": None,
            "debtorGroups": [{"id": contact["debtorGroups"][0]["id"], "company": "Loja", "phones": ["+5511987650001"]}],
        },
        headers={"If-Match": '"1"'},
    )
    assert answer.status == 200
    assert answer.etag == '"2"'
    changed = answer.body
    assert changed["name"] == "Maria"
    assert "email" not in changed
    assert changed["attributes"] == {"cidade": "Olinda", "vip": True, "nada": None, "lista": ["a", "b"], "novo": 1}
    assert changed["tags"] == ["Nova", "Outra"]
    assert changed["externalIds"] == {"integration_b": "B1"}
    assert changed["debtorGroups"] == [
        {"id": contact["debtorGroups"][0]["id"], "company": "Loja", "phones": ["+5511987650001"]}
    ]
    read = (await api.get(f"/contacts/{contact['id']}")).body
    assert set(read["documentos"]) == {"cnpj", "nascimento"}
    assert {name: value for name, value in read.items() if name != "documentos"} == changed


async def test_a_change_that_changes_nothing_leaves_the_version(api: Api) -> None:
    contact = await made(api, name="Maria")
    answer = await api.patch(f"/contacts/{contact['id']}", {"name": "Maria", "phone": PHONE, "source": "manual"})
    assert (answer.status, answer.etag, answer.body) == (200, '"1"', contact)


@pytest.mark.parametrize(
    ("fields", "path", "code"),
    [
        ({"phone": "+5511987654322"}, "/phone", "PHONE_IMMUTABLE"),
        ({"source": "api"}, "/source", "NOT_ALLOWED"),
        ({"tags": None}, "/tags", "REQUIRED"),
        ({"attributes": {f"k{n}": n for n in range(100)}}, "/attributes", "TOO_MANY"),
        ({"addTags": [f"t{n}" for n in range(100)]}, "/addTags", "TOO_MANY"),
        ({"companyId": "emp_none"}, "/companyId", "REFERENCE_NOT_FOUND"),
    ],
)
async def test_a_change_that_is_not_allowed_changes_nothing(
    api: Api, fields: dict[str, Any], path: str, code: str
) -> None:
    contact = await made(api, tags=["first"], attributes={"first": 1})
    answer = await api.patch(f"/contacts/{contact['id']}", {"name": "Maria", **fields})
    assert answer.status == 422
    assert [(error["path"], error["code"]) for error in answer.body["errors"]] == [(path, code)]
    assert (await api.get(f"/contacts/{contact['id']}")).body == contact


async def test_a_change_guarded_by_another_version_is_refused(api: Api) -> None:
    contact = await made(api)
    answer = await api.patch(f"/contacts/{contact['id']}", {"name": "Maria"}, headers={"If-Match": '"9"'})
    assert (answer.status, answer.code, answer.body["meta"]) == (412, "VERSION_MISMATCH", {"currentETag": '"1"'})
    assert (await api.delete(f"/contacts/{contact['id']}", headers={"If-Match": '"9"'})).status == 412


async def test_an_external_id_of_another_contact_cannot_be_taken_over(api: Api) -> None:
    one = await made(api, externalId="one")
    other = await made(api, "+5511987654322")
    answer = await api.patch(f"/contacts/{other['id']}", {"externalId": "one"})
    assert (answer.status, answer.code, answer.body["meta"]) == (409, "EXTERNAL_ID_TAKEN", {"contactId": one["id"]})
    assert (await api.get(f"/contacts/{other['id']}")).body == other


async def test_the_holder_of_a_phone_or_an_external_id_is_named_to_nobody_who_may_not_read_it(api: Api) -> None:
    one = await made(api, externalId="one")
    other = await made(api, "+5511987654322")
    writer = await api.key("contacts:write")
    for path, fields in (
        ("/contacts", {"phone": PHONE}),
        ("/contacts", {"phone": "+5511987654323", "externalId": "one"}),
    ):
        answer = await api.post(path, fields, token=writer)
        assert (answer.status, one["id"] in str(answer.body)) == (409, False)
    answer = await api.patch(f"/contacts/{other['id']}", {"externalId": "one"}, token=writer)
    assert (answer.status, one["id"] in str(answer.body)) == (409, False)


async def test_a_debt_group_of_another_contact_cannot_be_taken_over(api: Api) -> None:
    mine = (await api.post("/contacts", full())).body["debtorGroups"][0]
    other = await made(api, "+5511987654322")
    group = {"id": mine["id"], "company": "Mine", "phones": [PHONE]}
    answer = await api.patch(f"/contacts/{other['id']}", {"debtorGroups": [group]})
    assert (answer.status, answer.code) == (422, "REFERENCE_NOT_FOUND")
    assert answer.body["errors"][0]["path"] == "/debtorGroups/0/id"
    born = await api.post("/contacts", {"phone": "+5511987654323", "debtorGroups": [group]})
    assert (born.status, born.code) == (422, "REFERENCE_NOT_FOUND")
    assert (await api.get("/v2/debtor-groups")).body["total"] == 1


async def test_phones_are_masked_without_the_scope_also_in_a_repeated_answer(api: Api) -> None:
    key = await api.key("contacts:read", "contacts:write")
    how: dict[str, Any] = {"token": key, "headers": {"Idempotency-Key": "once"}}
    first = await api.post("/contacts", full(), **how)
    assert first.body["phone"] == "+55*******4321"
    assert first.body["debtorGroups"][0]["phones"] == ["+55*******0000"]
    again = await api.post("/contacts", full(), **how)
    assert (again.body, again.headers["Idempotency-Replayed"]) == (first.body, "true")
    seen = await api.post("/contacts", full(), headers={"Idempotency-Key": "once"})
    assert seen.body["phone"] == PHONE
    assert (await api.get("/contacts", token=key)).body["items"][0]["phone"] == "+55*******4321"
    assert (await api.get("/v2/debtor-groups", token=key)).body["items"][0]["phones"] == ["+55*******0000"]


async def test_a_deleted_contact_is_gone_and_its_phone_is_free(api: Api) -> None:
    contact = (await api.post("/contacts", full())).body
    made_list = (await api.post("/v2/lists", {"name": "one"})).body
    await api.post(f"/v2/lists/{made_list['id']}/members", {"contactIds": [contact["id"]]})
    assert (await api.delete(f"/contacts/{contact['id']}")).status == 204
    assert (await api.get(f"/contacts/{contact['id']}")).status == 404
    assert (await api.delete(f"/contacts/{contact['id']}")).status == 404
    assert (await api.get("/v2/debtor-groups")).body["total"] == 0
    assert (await api.get(f"/v2/lists/{made_list['id']}")).body["size"] == 0
    entry = (await api.get("/v2/audit?action=contact.delete")).body["items"][0]
    assert entry["targetId"] == contact["id"]
    again = (await api.post("/contacts", full())).body
    assert again["id"] != contact["id"]


async def test_changes_at_the_same_moment_all_take_effect(api: Api) -> None:
    contact = await made(api)
    path = f"/contacts/{contact['id']}"
    changes = [api.patch(path, {"attributes": {f"k{n}": n}, "addTags": [f"t{n}"]}) for n in range(8)]
    answers = await asyncio.gather(*changes, api.post("/contacts/opt-out", {"contactId": contact["id"]}))
    assert {answer.status for answer in answers} == {200}
    read = (await api.get(path)).body
    assert read["attributes"] == {f"k{n}": n for n in range(8)}
    assert sorted(read["tags"]) == [f"t{n}" for n in range(8)]
    assert read["optIn"]["status"] == "denied"


async def test_of_changes_meant_for_one_version_one_is_made(api: Api) -> None:
    contact = await made(api)
    how = {"headers": {"If-Match": '"1"'}}
    answers = await asyncio.gather(
        *(api.patch(f"/contacts/{contact['id']}", {"name": f"n{n}"}, **how) for n in range(6))
    )
    assert sorted(answer.status for answer in answers) == [200] + [412] * 5


async def test_a_contact_that_is_deleted_while_it_changes_is_changed_first_or_gone(api: Api) -> None:
    contact = await made(api, attributes={"a": 1})
    path = f"/contacts/{contact['id']}"
    changed, deleted, again = await asyncio.gather(api.patch(path, {"name": "x"}), api.delete(path), api.delete(path))
    assert changed.status in {200, 404}
    assert sorted([deleted.status, again.status]) == [204, 404]
    assert await api.database.fetchval("select count(*) from contacts") == 0


async def test_a_change_of_nothing_needs_no_body(api: Any) -> None:
    made = (await api.post("/contacts", {"phone": "+5511987650001"})).body
    answer = await api.patch(f"/contacts/{made['id']}")
    assert (answer.status, answer.body, answer.etag) == (200, made, '"1"')


async def test_an_organization_hides_the_hash_of_phones_from_those_who_see_no_phones(api: Any) -> None:
    read = ("contacts:read", "contacts:write", "crm:read", "crm:write")
    limited, full = await api.key(*read), await api.key(*read, "pii:full")
    contact = (await api.post("/contacts", {"phone": "+5511987650001"}, token=full)).body
    company = (await api.post("/v2/companies", {"nome": "Padaria"}, token=full)).body
    await api.patch(f"/contacts/{contact['id']}", {"companyId": company["id"]}, token=full)
    segment = (
        await api.post(
            "/v2/segments",
            {"name": "all", "filters": [{"field": "optIn", "operator": "is", "value": "unknown"}]},
            token=full,
        )
    ).body
    keyed = {"Idempotency-Key": "hashes"}
    await api.post("/contacts", {"phone": "+5511987650002"}, token=full, headers=keyed)

    async def shown(token: str) -> list[bool]:
        one = await api.get(f"/contacts/{contact['id']}", token=token)
        changed = await api.patch(f"/contacts/{contact['id']}", {"name": token[-6:]}, token=token)
        repeated = await api.post("/contacts", {"phone": "+5511987650002"}, token=token, headers=keyed)
        lists = [
            await api.get("/contacts", token=token),
            await api.get(f"/v2/companies/{company['id']}/contacts", token=token),
            await api.get(f"/v2/segments/{segment['id']}/contacts", token=token),
        ]
        answers = [one.body, changed.body, repeated.body, *(answer.body["items"][-1] for answer in lists)]
        return ["phoneHash" in answer for answer in answers]

    assert await shown(limited) == [True] * 6
    assert (await api.get("/v2/organization")).body["hidePhoneHash"] is False
    hidden = await api.patch("/v2/organization", {"hidePhoneHash": True})
    assert (hidden.status, hidden.body["hidePhoneHash"]) == (200, True)
    assert await shown(limited) == [False] * 6
    assert await shown(full) == [True] * 6
    await api.patch("/v2/organization", {"hidePhoneHash": False})
    assert await shown(limited) == [True] * 6
