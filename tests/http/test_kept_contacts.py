"""What idempotency keys keep of contacts, and what a repeat gets when the contact is deleted (C6.2, C12.6)."""

import asyncio
from typing import Any

import pytest
from tests.http.conftest import Api
from tests.http.test_contacts import PHONE, full

from recado.storage.core.idempotency import IdempotencyKeys

KEY: dict[str, Any] = {"headers": {"Idempotency-Key": "once"}}
DETAILS = ("98765-4321", PHONE, "Maria", "Example.com", "Recife", "crm-7", "Loja Ágil", "+5511987650000")


async def kept(api: Api) -> str:
    """Everything that is stored of keys and answers, as text."""
    rows = await api.database.fetch("select *, convert_from(body, 'UTF8') as answer from idempotency")
    return "\n".join(repr(dict(row)) for row in rows)


def shown(text: str) -> list[str]:
    return [detail for detail in DETAILS if detail in text]


async def test_a_deletion_leaves_nothing_of_the_contact_in_what_its_key_keeps(api: Api) -> None:
    contact = (await api.post("/contacts", full(), **KEY)).body
    assert set(shown(await kept(api))) == {*DETAILS} - {"98765-4321"}
    assert (await api.delete(f"/contacts/{contact['id']}")).status == 204
    assert shown(await kept(api)) == []
    assert await api.database.fetchval("select fingerprint from idempotency") == b""


async def test_a_repeat_neither_makes_a_deleted_contact_anew_nor_shows_it(api: Api) -> None:
    contact = (await api.post("/contacts", full(), **KEY)).body
    await api.delete(f"/contacts/{contact['id']}")
    for body in (full(), {"phone": "+5511987654399"}):
        again = await api.post("/contacts", body, **KEY)
        assert (again.status, again.code, again.body["meta"]) == (409, "CONFLICT", {"contactId": contact["id"]})
        assert shown(str(again.body)) == []
    assert (await api.get("/contacts")).body["total"] == 0
    other = await api.post("/contacts", full(), headers={"Idempotency-Key": "another"})
    assert (other.status, other.body["phone"]) == (201, PHONE)
    assert other.body["id"] != contact["id"]
    assert (await api.post("/contacts", full(), **KEY)).status == 409


async def test_a_repeat_a_day_later_is_a_request_of_its_own(api: Api) -> None:
    contact = (await api.post("/contacts", full(), **KEY)).body
    await api.delete(f"/contacts/{contact['id']}")
    api.clock.shift(24 * 3600 + 1)
    again = await api.post("/contacts", full(), **KEY)
    assert (again.status, "Idempotency-Replayed" in again.headers) == (201, False)


async def test_the_answers_of_other_contacts_and_other_operations_stay(api: Api) -> None:
    contact = (await api.post("/contacts", full(), **KEY)).body
    other = {"phone": "+5511987654399", "name": "Ana"}
    await api.post("/contacts", other, headers={"Idempotency-Key": "other"})
    opt_out = {"contactId": contact["id"]}
    refused = await api.post("/contacts/opt-out", opt_out, **KEY)
    assert refused.body["contactId"] == contact["id"]
    await api.delete(f"/contacts/{contact['id']}")
    again = await api.post("/contacts", other, headers={"Idempotency-Key": "other"})
    assert (again.status, again.body["name"], again.headers["Idempotency-Replayed"]) == (201, "Ana", "true")
    again = await api.post("/contacts/opt-out", opt_out, **KEY)
    assert (again.status, again.body, again.headers["Idempotency-Replayed"]) == (200, refused.body, "true")


async def test_a_contact_that_is_deleted_before_its_answer_is_kept_is_not_kept(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    finish = IdempotencyKeys.finish
    reached, go_on = asyncio.Event(), asyncio.Event()

    async def late(*arguments: Any) -> None:
        reached.set()
        await go_on.wait()
        await finish(*arguments)

    monkeypatch.setattr(IdempotencyKeys, "finish", late)
    creating = asyncio.ensure_future(api.post("/contacts", full(), **KEY))
    await reached.wait()
    contact_id = await api.database.fetchval("select id from contacts")
    assert (await api.delete(f"/contacts/{contact_id}")).status == 204
    go_on.set()
    assert (await creating).status == 201
    assert shown(await kept(api)) == []
    assert (await api.post("/contacts", full(), **KEY)).body["meta"] == {"contactId": contact_id}
