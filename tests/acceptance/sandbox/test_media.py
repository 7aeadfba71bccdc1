"""Media all the way: uploaded, sent, received, copied, downloaded, forgotten."""

import base64
import hashlib
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from tests.acceptance.sandbox.customer import Customer, phone
from tests.media_files import HTML, PDF, PNG, ogg
from tests.program import Api, Refused, Service
from tests.waiting import until


async def upload(api: Api, number_id: str, content: bytes, name: str, mime_type: str) -> Any:
    body = {"filename": name, "mimeType": mime_type, "dataBase64": base64.encodebytes(content).decode()}
    return await api.call("POST", f"/numbers/{number_id}/media", body)


async def receives(customer: Customer, person: str, content: bytes, mime_type: str, **said: str) -> str:
    media = {"mimeType": mime_type, "dataBase64": base64.b64encode(content).decode(), **said}
    body = {"numberId": customer.number_id, "from": person, "media": media}
    return str((await customer.api.call("POST", "/v2/sandbox/inbound", body))["messageId"])


async def copied(api: Api, message_id: str) -> Any:
    """The message when its media is stored."""
    latest: dict[str, Any] = {}

    async def there() -> bool:
        latest.update(await api.call("GET", f"/messages/{message_id}"))
        return "mediaStorage" in latest

    await until(there, "the media is copied", every=0.05)
    return latest


async def get(service: Service, token: str, path: str, **headers: str) -> tuple[int, bytes, Any]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(
            path if path.startswith("http") else service.url + path,
            headers={"Authorization": f"Bearer {token}", **headers},
            allow_redirects=False,
        ) as answer,
    ):
        return answer.status, await answer.read(), answer.headers


async def test_an_upload_is_kept_and_sent_by_any_number(api: Api, regular: Customer) -> None:
    made = await upload(api, regular.number_id, ogg(), "../note.ogg", "audio/ogg; codecs=opus")
    assert made == {
        "mediaId": made["mediaId"], "kind": "audio", "mimeType": "audio/ogg", "filename": "note.ogg",
        "size": len(ogg()), "sha256": hashlib.sha256(ogg()).hexdigest(), "voice": True,
    }  # fmt: skip
    kept = await api.call("GET", f"/media/{made['mediaId']}")
    assert kept["numberId"] == regular.number_id
    person, other = phone(), await Customer.arrive(api)
    payload = {"kind": "audio", "media": {"id": made["mediaId"], "voice": True}}
    for customer in (regular, other):
        await api.call("POST", "/v2/sandbox/inbound", {"numberId": customer.number_id, "from": person, "text": "hi"})
        sent = await customer.send(person, type="media", templateId=None, templateVars=None, payload=payload)
        assert sent["payload"]["media"]["id"] == made["mediaId"]
        await customer.reaches(sent, "read")


async def test_a_message_names_media_that_is_there_and_of_its_kind(api: Api, regular: Customer) -> None:
    made = await upload(api, regular.number_id, PNG, "dot.png", "image/png")
    person = phone()
    await api.call("POST", "/v2/sandbox/inbound", {"numberId": regular.number_id, "from": person, "text": "hi"})
    for kind, media_id, code in (
        ("video", made["mediaId"], "VALIDATION_ERROR"),
        ("image", "med_" + "0" * 21, "MEDIA_NOT_FOUND"),
    ):
        payload: dict[str, Any] = {"kind": kind, "media": {"id": media_id}}
        with pytest.raises(Refused) as refused:
            await regular.send(person, type="media", templateId=None, templateVars=None, payload=payload)
        assert (refused.value.status, refused.value.body["code"]) == (422, code)
    payload = {"kind": "document", "media": {"id": made["mediaId"], "filename": "dot.png"}}
    sent = await regular.send(person, type="media", templateId=None, templateVars=None, payload=payload)
    await regular.reaches(sent, "read")


async def test_a_binary_is_sent_as_it_is_and_repeated_under_a_key_once(
    service: Service, token: str, regular: Customer
) -> None:
    headers = {
        "Authorization": f"Bearer {token}", "Content-Type": "application/octet-stream", "Idempotency-Key": "one upload",
        "x-filename": "relat%C3%B3rio.pdf", "x-content-type": "application/pdf",
    }  # fmt: skip
    url = f"{service.url}/numbers/{regular.number_id}/media/binary"
    async with aiohttp.ClientSession() as session:
        answers = []
        for body, left_out in ((PDF, ()), (PDF, ()), (PDF + b"x", ()), (PDF, ("x-filename", "Idempotency-Key"))):
            given = {name: value for name, value in headers.items() if name not in left_out}
            async with session.post(url, data=body, headers=given) as answer:
                answers.append((answer.status, await answer.json(), answer.headers))
    assert [status for status, _, _ in answers] == [201, 201, 422, 400]
    assert answers[0][1] == answers[1][1]
    assert answers[0][1]["filename"] == "relatório.pdf"
    assert answers[1][2]["Idempotency-Replayed"] == "true"


@pytest.mark.parametrize(
    ("header", "value", "status", "path", "told"),
    [
        ("x-filename", "a" * 241, 422, "x-filename", "`x-filename` must have at most 240 characters."),
        ("x-filename", "..%2F", 422, "x-filename", "`x-filename` must name a file."),
        ("x-content-type", "a/" + "b" * 255, 400, None, "The header x-content-type has at most 256 characters."),
    ],
)  # fmt: skip
async def test_a_header_of_a_binary_that_cannot_be_taken_is_named(
    service: Service, token: str, regular: Customer, header: str, value: str, status: int, path: str | None, told: str
) -> None:
    headers = {
        "Authorization": f"Bearer {token}", "Content-Type": "application/octet-stream",
        "x-filename": "a.pdf", "x-content-type": "application/pdf", header: value,
    }  # fmt: skip
    url = f"{service.url}/numbers/{regular.number_id}/media/binary"
    async with aiohttp.ClientSession() as session, session.post(url, data=PDF, headers=headers) as answer:
        problem = await answer.json()
    assert (answer.status, problem["detail"]) == (status, told)
    assert [error["path"] for error in problem.get("errors", [])] == ([] if path is None else [path])


async def test_what_a_person_sends_is_copied_and_downloaded(service: Service, token: str, regular: Customer) -> None:
    message_id = await receives(regular, phone(), PNG, "image/png", filename="dot.png")
    message = await copied(regular.api, message_id)
    assert (message["type"], message["payload"]["kind"]) == ("media", "image")
    assert (message["mediaStorage"]["mimeType"], message["mediaStorage"]["size"]) == ("image/png", len(PNG))
    path = f"/messages/{message_id}/media"
    status, content, headers = await get(service, token, path)
    assert (status, content, headers["Content-Type"]) == (200, PNG, "image/png")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Content-Security-Policy"] == "default-src 'none'; sandbox"
    assert headers["Cache-Control"] == "private, no-store"
    assert headers["Content-Disposition"] == "inline; filename=\"dot.png\"; filename*=UTF-8''dot.png"
    status, content, headers = await get(service, token, path, Range="bytes=1-3")
    assert (status, content, headers["Content-Range"]) == (206, b"PNG", f"bytes 1-3/{len(PNG)}")
    status, _, headers = await get(service, token, path, Range=f"bytes={len(PNG)}-")
    assert (status, headers["Content-Range"]) == (416, f"bytes */{len(PNG)}")
    status, _, headers = await get(service, token, f"{path}?download=1&filename=outro.png")
    assert headers["Content-Disposition"].startswith('attachment; filename="outro.png"')


async def test_a_signed_address_opens_and_a_tampered_one_does_not(
    service: Service, token: str, regular: Customer
) -> None:
    message_id = await receives(regular, phone(), PNG, "image/png")
    await copied(regular.api, message_id)
    status, _, headers = await get(service, token, f"/messages/{message_id}/media?redirect=1&download=true")
    url = headers["Location"]
    assert status == 302
    status, content, headers = await get(service, "nobody", url, Range="bytes=-4")
    assert (status, content) == (206, PNG[-4:])
    assert headers["Content-Disposition"].startswith("attachment;")
    assert headers["X-Content-Type-Options"] == "nosniff"
    for old, new in (("image%2Fpng", "text%2Fhtml"), ("attachment", "inline"), ("exp=1", "exp=2"), ("sig=", "sig=A")):
        assert old in url
        assert (await get(service, "nobody", url.replace(old, new, 1)))[0] == 403
    assert (await get(service, "nobody", urlsplit(url)._replace(query="").geturl()))[0] == 403


async def test_markup_is_never_shown(service: Service, token: str, regular: Customer) -> None:
    message_id = await receives(regular, phone(), HTML, "image/png")
    for path in (f"/messages/{message_id}/media", f"/messages/{message_id}/media?filename=a.png"):
        status, content, headers = await get(service, token, path)
        assert (status, content, headers["Content-Type"]) == (200, HTML, "application/octet-stream")
        assert headers["Content-Disposition"].startswith("attachment;")
    message = await copied(regular.api, message_id)
    assert message["mediaStorage"]["mimeType"] == "text/html"
    assert message["payload"]["media"]["mime_type"] == "image/png"
    _, _, headers = await get(service, token, f"/messages/{message_id}/media")
    assert (headers["Content-Type"], headers["Content-Disposition"][:11]) == ("application/octet-stream", "attachment;")


async def test_media_goes_with_its_contact(service: Service, token: str, regular: Customer) -> None:
    message_id = await receives(regular, phone(), PNG, "image/png")
    message = await copied(regular.api, message_id)
    _, _, headers = await get(service, token, f"/messages/{message_id}/media?redirect=1")
    await regular.api.call("DELETE", f"/contacts/{message['contactId']}")

    async def gone() -> bool:
        return (await get(service, token, f"/messages/{message_id}/media"))[0] == 404

    await until(gone, "the media is forgotten", every=0.05)
    assert (await get(service, token, headers["Location"]))[0] == 404
    assert "mediaStorage" not in await regular.api.call("GET", f"/messages/{message_id}")
