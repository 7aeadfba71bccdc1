"""Social in the sandbox: people write to an account, are answered, and become known contacts (C26, C28, C29.4)."""

import base64
import io
import itertools
from typing import Any

import aiohttp
import pytest
from tests.acceptance.sandbox.customer import Customer, ahead, phone
from tests.acceptance.sandbox.test_media import copied, get, upload
from tests.media_files import PDF, PNG
from tests.program import Api, Refused, Service
from tests.waiting import until

from recado.domain.media.media_types import MIB

_users = itertools.count(1)


def user(ending: str = "0000") -> str:
    """A user id that no other test has, with the last characters that tell the sandbox what to do."""
    return f"17841{next(_users):06}{ending}"


async def account(api: Api) -> str:
    """One that is connected."""
    body = {"platform": "page", "externalAccountId": f"page-{user()}", "displayName": "Padaria"}
    made = await api.call("POST", "/v2/social/accounts", body)
    account_id: str = (await api.call("POST", f"/v2/social/accounts/{made['id']}/connect"))["id"]
    return account_id


async def hears(api: Api, account_id: str, who: str, text: str | None = "Bom dia", **said: Any) -> str:
    body = {"channel": "social", "socialAccountId": account_id, "from": who, "text": text, **said}
    message_id: str = (await api.call("POST", "/v2/sandbox/inbound", body))["messageId"]
    return message_id


async def answer(api: Api, account_id: str, **fields: Any) -> Any:
    body = {"channel": "social", "socialAccountId": account_id, "type": "text", "payload": {"text": {"body": "Oi"}}}
    return await api.call("POST", "/messages", {**body, **fields})


async def is_refused(api: Api, account_id: str, who: str, code: str) -> None:
    with pytest.raises(Refused) as refused:
        await answer(api, account_id, to=who)
    assert (refused.value.status, refused.value.body["code"]) == (422, code)


@pytest.mark.parametrize(
    ("ending", "status", "error"),
    [
        ("0000", "read", None),
        ("9001", "failed", "recipient_unreachable"),
        ("9002", "failed", "provider_error"),
        ("9004", "delivered", None),
    ],
)
async def test_the_last_digits_of_a_user_decide(regular: Customer, ending: str, status: str, error: str | None) -> None:
    account_id, who = await account(regular.api), user(ending)
    await hears(regular.api, account_id, who)
    sent = await answer(regular.api, account_id, to=who)
    assert (sent["channel"], sent["socialAccountId"], sent["to"], sent["billing"]) == (
        "social", account_id, who, {"coins": 100},
    )  # fmt: skip
    found = await regular.reaches(sent, status)
    assert (found.get("lastError") or "").partition(":")[0] == (error or "")


async def test_nobody_is_written_to_who_has_not_written(regular: Customer) -> None:
    account_id = await account(regular.api)
    await is_refused(regular.api, account_id, user(), "WINDOW_CLOSED")


async def test_a_stranger_becomes_a_contact_with_what_came_before(regular: Customer) -> None:
    api, who = regular.api, user()
    account_id = await account(api)
    came = await hears(api, account_id, who)
    message = await api.call("GET", f"/messages/{came}")
    assert (message["direction"], message["to"]) == ("inbound", who)
    assert "contactId" not in message

    contact = await api.call("POST", "/contacts", {"phone": phone()})
    identity = {"socialAccountId": account_id, "userId": who}
    known = await api.call("PATCH", f"/contacts/{contact['id']}", {"socialIdentities": [identity]})
    assert known["socialIdentities"] == [identity]
    assert (await api.call("GET", f"/messages/{came}"))["contactId"] == contact["id"]
    assert (await answer(api, account_id, contactId=contact["id"]))["to"] == who

    again = await hears(api, account_id, who, "Sair!")
    assert (await api.call("GET", f"/messages/{again}"))["contactId"] == contact["id"]
    consent = (await api.call("GET", f"/contacts/{contact['id']}"))["optIn"]
    assert (consent["status"], consent["source"], consent["revokedReason"]) == (
        "denied", "inbound_keyword", "social: sair",
    )  # fmt: skip
    await regular.reaches(await answer(api, account_id, to=who), "read")  # a reply is exempt

    found = await api.call("GET", f"/messages?channel=social&contactId={contact['id']}")
    assert {each["channel"] for each in found["items"]} == {"social"}


async def test_what_a_disconnected_account_has_queued_waits_for_it(regular: Customer) -> None:
    api, who = regular.api, user()
    account_id = await account(api)
    await hears(api, account_id, who)
    await api.call("POST", f"/v2/social/accounts/{account_id}/disconnect")
    await is_refused(api, account_id, who, "NUMBER_UNAVAILABLE")
    await api.call("POST", f"/v2/social/accounts/{account_id}/connect")

    held = await answer(api, account_id, to=who, scheduledAt=ahead(2))
    await api.call("POST", f"/v2/social/accounts/{account_id}/disconnect")
    waiting = await regular.waits(held, "number_state")
    assert "connect it with POST /v2/social/accounts/" in waiting["detail"]
    await api.call("POST", f"/v2/social/accounts/{account_id}/connect")
    await regular.reaches(held, "read")


async def test_a_user_of_the_sandbox_replies(regular: Customer) -> None:
    api, who = regular.api, user("9007")
    account_id = await account(api)
    await hears(api, account_id, who)
    await regular.reaches(await answer(api, account_id, to=who), "read")

    async def replied() -> bool:
        found = (await api.call("GET", "/messages?channel=social&direction=inbound&limit=50"))["items"]
        return "OK" in [each["payload"]["text"]["body"] for each in found if each["to"] == who]

    await until(replied, "the user replied")


def sends(media_id: str, kind: str = "image") -> dict[str, Any]:
    return {"type": "media", "payload": {"kind": kind, "media": {"id": media_id, "caption": "O cardápio"}}}


async def test_an_upload_is_sent_by_an_account_as_by_any_number(regular: Customer) -> None:
    api, who, account_id = regular.api, user(), await account(regular.api)
    media_id = (await upload(api, regular.number_id, PNG, "dot.png", "image/png"))["mediaId"]
    with pytest.raises(Refused, match="WINDOW_CLOSED"):
        await answer(api, account_id, to=who, **sends(media_id))
    await hears(api, account_id, who)
    for _ in range(2):  # once read, once known
        sent = await answer(api, account_id, to=who, **sends(media_id))
        assert (sent["type"], sent["payload"]["media"]["id"], sent["billing"]) == ("media", media_id, {"coins": 100})
        assert (await regular.reaches(sent, "read"))["payload"]["media"]["id"] == media_id


async def test_an_account_sends_pictures_sound_and_films_that_are_there(regular: Customer) -> None:
    api, who, account_id = regular.api, user(), await account(regular.api)
    await hears(api, account_id, who)
    document = (await upload(api, regular.number_id, PDF, "a.pdf", "application/pdf"))["mediaId"]
    for media_id, kind, code, pointer in (
        (document, "document", "VALIDATION_ERROR", "/payload/kind"),
        (document, "image", "VALIDATION_ERROR", "/payload/kind"),
        ("med_" + "0" * 21, "image", "MEDIA_NOT_FOUND", "/payload/media/id"),
    ):
        with pytest.raises(Refused) as refused:
            await answer(api, account_id, to=who, **sends(media_id, kind))
        found = refused.value.body
        assert (refused.value.status, found["code"], found["errors"][0]["path"]) == (422, code, pointer)


async def test_what_a_user_sends_is_copied_and_downloaded(service: Service, token: str, regular: Customer) -> None:
    api, who, account_id = regular.api, user(), await account(regular.api)
    media = {"mimeType": "image/png", "dataBase64": base64.b64encode(PNG).decode()}
    came = await hears(api, account_id, who, None, media=media)
    message = await copied(api, came)
    assert (message["channel"], message["type"], message["payload"]["kind"]) == ("social", "media", "image")
    assert "contactId" not in message
    assert (await get(service, token, f"/messages/{came}/media"))[:2] == (200, PNG)
    await regular.reaches(await answer(api, account_id, to=who), "read")


async def test_an_account_takes_larger_pictures_than_a_number(service: Service, token: str, regular: Customer) -> None:
    api, who, account_id = regular.api, user(), await account(regular.api)
    await hears(api, account_id, who)
    path, large = f"/v2/social/accounts/{account_id}/media", PNG.ljust(8 * MIB, b"\0")
    headers = {
        "Authorization": f"Bearer {token}", "Content-Type": "application/octet-stream", "x-filename": "menu.png",
        "x-content-type": "image/png",
    }  # fmt: skip
    answers, made = [], ""
    async with aiohttp.ClientSession(service.url, headers=headers) as session:
        for place, content in (
            (path, large),
            (path, large + b"\0"),
            (f"/numbers/{regular.number_id}/media", large),
        ):
            async with session.post(f"{place}/binary", data=io.BytesIO(content)) as answered:
                said = await answered.json()
                answers.append((answered.status, said.get("code"), said.get("meta")))
                made = said.get("mediaId") or made
    assert answers == [
        (201, None, None),
        (413, "MEDIA_TOO_LARGE", {"limitBytes": 8 * MIB}),
        (413, "MEDIA_TOO_LARGE", {"limitBytes": 5 * MIB}),
    ]
    body = {"filename": "a.pdf", "mimeType": "application/pdf", "dataBase64": base64.b64encode(PDF).decode()}
    with pytest.raises(Refused, match="MEDIA_TYPE_NOT_ALLOWED"):
        await api.call("POST", path, body)

    kept = await api.call("GET", f"/media/{made}")
    assert (kept["socialAccountId"], kept["size"], "numberId" in kept) == (account_id, 8 * MIB, False)
    await regular.reaches(await answer(api, account_id, to=who, **sends(made)), "read")
    person = phone()
    await api.call("POST", "/v2/sandbox/inbound", {"numberId": regular.number_id, "from": person, "text": "hi"})
    with pytest.raises(Refused) as refused:
        await regular.send(person, templateId=None, templateVars=None, **sends(made))
    found = refused.value.body
    assert (refused.value.status, found["code"], found["errors"][0]["path"]) == (
        422, "VALIDATION_ERROR", "/payload/media/id",
    )  # fmt: skip
