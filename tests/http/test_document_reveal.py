"""A contact's documents in the clear (C12.4): for people with the scope, with a reason, in the audit, and not often."""

import asyncio
from typing import Any

import pytest
from tests.captured import capture_logs
from tests.http.people import person, session

from recado.storage.contacts.reveals import MOST

CPF, CNPJ, BORN = "529.982.247-25", "12.abc.345/01de-35", "1990-12-31"
WHY = {"motivo": "the customer asked by phone"}


async def contact(api: Any, phone: str = "+5511987650001", **fields: Any) -> str:
    answer = await api.post("/contacts", {"phone": phone, "cpf": CPF, "cnpj": CNPJ, "birthDate": BORN, **fields})
    assert answer.status == 201, answer.body
    return str(answer.body["id"])


async def reveal(api: Any, contact_id: str, token: str, **body: Any) -> Any:
    return await api.post(f"/v2/contacts/{contact_id}/documentos/revelar", WHY | body, token=token)


async def test_a_person_sees_the_documents_and_the_audit_sees_the_person(api: Any) -> None:
    contact_id, account = await contact(api), await person(api)
    token = await session(api, account)

    shown = await reveal(api, contact_id, token)

    audit_id = shown.body.pop("auditId")
    assert (shown.status, shown.headers["Cache-Control"]) == (200, "no-store")
    assert shown.body == {"cpf": "52998224725", "cnpj": "12ABC34501DE35", "nascimento": BORN}
    (entry,) = (await api.get("/v2/audit?action=contact.reveal")).body["items"]
    assert (entry["id"], entry["targetId"], entry["ip"]) == (audit_id, contact_id, "127.0.0.1")
    assert entry["actor"] == {"type": "account", "id": account.id}
    assert entry["details"] == {"fields": ["cnpj", "cpf", "nascimento"], "reason": WHY["motivo"]}


async def test_only_what_was_asked_for_and_exists_is_shown(api: Any) -> None:
    token = await session(api)
    contact_id = await contact(api, cnpj=None)

    shown = await reveal(api, contact_id, token, campos=["cnpj", "nascimento", "nascimento"])

    assert shown.body.keys() == {"nascimento", "auditId"}


async def test_a_read_shows_masks_even_to_a_person(api: Any) -> None:
    contact_id = await contact(api)
    masks = {"cpf": "***.***.***-25", "cnpj": "**.***.***/****-35", "nascimento": "1990-**-**"}
    for token in (api.token(), await session(api)):
        read = await api.get(f"/contacts/{contact_id}", token=token)
        assert read.body["documentos"] == masks
        assert "52998224725" not in str(read.body)


async def test_a_key_never_sees_a_document_whatever_it_holds(api: Any) -> None:
    contact_id = await contact(api)
    refused = await reveal(api, contact_id, api.token())
    assert (refused.status, refused.code) == (403, "SESSION_ONLY")


async def test_nothing_is_shown_of_another_version_than_the_caller_means(api: Any) -> None:
    contact_id, token = await contact(api), await session(api)
    path = f"/v2/contacts/{contact_id}/documentos/revelar"
    other = await api.post(path, WHY, token=token, headers={"If-Match": '"7"'})
    assert (other.status, other.code, other.body["meta"]) == (412, "VERSION_MISMATCH", {"currentETag": '"1"'})
    assert (await api.get("/v2/audit?action=contact.reveal")).body["items"] == []
    assert (await api.post(path, WHY, token=token, headers={"If-Match": '"1"'})).status == 200


@pytest.mark.parametrize("role", ["operator", "analyst"])
async def test_a_person_without_the_scope_sees_none(api: Any, role: str) -> None:
    contact_id = await contact(api)
    token = await session(api, role)
    refused = await reveal(api, contact_id, token)
    assert (refused.status, refused.body["meta"]) == (403, {"requiredScope": "contacts:pii"})
    assert (await api.get(f"/contacts?documento={CPF}", token=token)).body.get("meta") == {
        "requiredScope": "contacts:pii"
    }


async def test_a_document_finds_its_contact_for_a_person_with_the_scope(api: Any) -> None:
    first, _ = await contact(api), await contact(api, "+5511987650002", cpf="111.444.777-35", cnpj=None)
    token = await session(api)
    for text in (CPF, "52998224725", CNPJ.upper()):
        found = await api.get(f"/contacts?documento={text}", token=token)
        assert [each["id"] for each in found.body["items"]] == [first], text
    assert (await api.get("/contacts?documento=52998224726", token=token)).body["items"] == []
    assert (await api.get(f"/contacts?documento={CPF}", token=await session(api, env="live"))).body["items"] == []
    elsewhere = await session(api, organization=1)
    assert (await api.get(f"/contacts?documento={CPF}", token=elsewhere)).body["items"] == []
    assert (await api.get(f"/contacts?documento={CPF}")).status == 403


async def test_other_organizations_and_environments_have_no_such_contact(api: Any) -> None:
    contact_id = await contact(api)
    for token in (await session(api, env="live"), await session(api, organization=1)):
        missing = await reveal(api, contact_id, token)
        assert (missing.status, missing.code) == (404, "NOT_FOUND")
    assert (await reveal(api, "cnt_" + "0" * 21, await session(api))).status == 404


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ({"motivo": "too short"}, "/motivo"),
        ({"motivo": " " * 20}, "/motivo"),
        ({"motivo": "x" * 301}, "/motivo"),
        ({"motivo": None}, "/motivo"),
        ({"campos": []}, "/campos"),
        ({"campos": ["rg"]}, "/campos/0"),
    ],
)
async def test_without_a_reason_nothing_is_shown_and_nothing_written(api: Any, body: Any, path: str) -> None:
    contact_id = await contact(api)
    refused = await reveal(api, contact_id, await session(api), **body)
    assert (refused.status, [error["path"] for error in refused.body["errors"]]) == (422, [path])
    assert await api.database.fetchval("select count(*) from audit where action = 'contact.reveal'") == 0


async def test_an_account_sees_sixty_an_hour_also_when_it_asks_at_once(api: Any) -> None:
    contact_id, account = await contact(api), await person(api)
    tokens = [await session(api, account, env="test") for _ in range(2)]

    answers = await asyncio.gather(*(reveal(api, contact_id, tokens[n % 2]) for n in range(MOST + 5)))

    assert sorted(answer.status for answer in answers) == [200] * MOST + [429] * 5
    refused = await reveal(api, contact_id, tokens[0])
    assert (refused.code, refused.body["meta"]) == ("RATE_LIMITED", {"limit": MOST})
    assert 3_500 <= int(refused.headers["Retry-After"]) <= 3_600
    assert await api.database.fetchval("select count(*) from audit where action = 'contact.reveal'") == MOST
    assert (await reveal(api, contact_id, await session(api))).status == 200
    api.clock.shift(3_601)
    assert (await reveal(api, contact_id, tokens[0])).status == 200


@pytest.mark.parametrize("elsewhere", ["another contact", "another field"])
async def test_a_cipher_moved_elsewhere_is_never_answered_and_is_in_the_audit(api: Any, elsewhere: str) -> None:
    contact_id = await contact(api)
    other = await contact(api, "+5511987650002", cpf="111.444.777-35")
    source = "o.cpf_cipher" if elsewhere == "another contact" else "c.cnpj_cipher"
    await api.database.execute(
        f"update contacts c set cpf_cipher = {source} from contacts o where c.id = $1 and o.id = $2", contact_id, other
    )
    token = await session(api)

    with capture_logs() as logs:
        answers = [await reveal(api, contact_id, token), await api.get(f"/contacts/{contact_id}", token=token)]

    assert [(answer.status, answer.code) for answer in answers] == [(500, "INTERNAL_ERROR")] * 2
    rows = await api.database.fetch("select action, target_id from audit where action ~ 'tampered|reveal'")
    assert [tuple(row) for row in rows] == [("record.tampered", contact_id)] * 2
    assert "11144477735" not in str(logs) + str([answer.body for answer in answers])


async def test_nothing_that_is_stored_or_logged_holds_a_document(api: Any) -> None:
    with capture_logs() as logs:
        contact_id = await contact(api)
        await reveal(api, contact_id, await session(api))
    stored = str(await api.database.fetch("select to_jsonb(c) from contacts c")) + str(
        await api.database.fetch("select to_jsonb(a) from audit a")
    )
    for document in ("52998224725", "12ABC34501DE35", BORN, CPF):
        assert document not in stored
        assert document not in str(logs)
