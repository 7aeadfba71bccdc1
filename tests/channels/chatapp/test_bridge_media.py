"""Media of a bridge: the form that goes up, the stream that comes down, and what the bridge says instead."""

from email.parser import BytesParser
from email.policy import HTTP
from typing import Any

import orjson
import pytest
from tests.channels.behaviours import breaks_inside, hangs, resets_after_reading, says
from tests.channels.chatapp.cloud_answers import chunks_of, replies

from recado.channels.chatapp.bridge import Bridge
from recado.channels.core.bridge.bridge import ChannelBridge
from recado.channels.core.errors import ProviderError
from recado.channels.core.media_transfer import LARGEST
from recado.channels.core.provider import Account

CONTENT = bytes(range(256)) * 1_000


async def test_an_upload_is_a_form_of_a_request_and_a_file(fake_bridge: Any, bridge_to: Any, account: Account) -> None:
    fake_bridge.behaviour = replies({"mediaId": "m-1"})
    bridge: Bridge = await bridge_to(fake_bridge.url)

    media_id = await bridge.upload_media(
        account, chunks_of(CONTENT), size=len(CONTENT), mime_type="image/png", filename='a".png'
    )

    (request,) = fake_bridge.requests
    assert (media_id, request.path) == ("m-1", "/base/upload_media")
    assert request.headers["authorization"] == "Bearer bridge-token-9f2c"
    assert int(request.headers["content-length"]) == len(request.body)
    head = f"Content-Type: {request.headers['content-type']}\r\n\r\n".encode()
    said, file = BytesParser(policy=HTTP).parsebytes(head + request.body).iter_parts()
    assert (said.get_content_type(), said.get_param("name", header="content-disposition")) == (
        "application/json",
        "request",
    )
    assert orjson.loads(said.get_payload(decode=True)) == {
        "env": "live", "organizationId": account.organization_id, "account": "pn-1", "businessAccount": "ba-1",
        "filename": 'a".png', "mimeType": "image/png", "size": len(CONTENT),
    }  # fmt: skip
    assert (file.get_content_type(), file.get_filename()) == ("image/png", "a_.png")
    assert file.get_payload(decode=True) == CONTENT
    assert b"number-token" not in request.body


@pytest.mark.parametrize("answer", [{}, {"mediaId": 7}, {"mediaId": "m" * 257}])
async def test_an_upload_without_an_id_is_malformed(
    answer: Any, fake_bridge: Any, bridge_to: Any, account: Account
) -> None:
    fake_bridge.behaviour = replies(answer)
    bridge: Bridge = await bridge_to(fake_bridge.url)
    with pytest.raises(ProviderError, match="malformed_answer"):
        await bridge.upload_media(account, chunks_of(b"x"), size=1, mime_type="image/png", filename="f")


async def test_an_upload_that_the_bridge_refuses_says_so(fake_bridge: Any, bridge_to: Any, account: Account) -> None:
    fake_bridge.behaviour = says(422, '{"code": "media_invalid", "message": "too long"}')
    bridge: Bridge = await bridge_to(fake_bridge.url)
    with pytest.raises(ProviderError, match="refused: media_invalid: too long"):
        await bridge.upload_media(account, chunks_of(b"x"), size=1, mime_type="image/png", filename="f")


@pytest.mark.parametrize(
    ("headers", "mime_type"),
    [("Content-Type: image/png; q=1\r\n", "image/png; q=1"), ("", "application/octet-stream")],
)
async def test_what_a_person_sent_is_the_body_of_the_answer(
    headers: str, mime_type: str, fake_bridge: Any, bridge_to: Any, account: Account
) -> None:
    fake_bridge.behaviour = says(200, CONTENT, headers)
    bridge: Bridge = await bridge_to(fake_bridge.url)
    async with bridge.open_media(account, "ref-1") as media:
        read = b"".join([chunk async for chunk in media.chunks])
    assert (read, media.mime_type, media.size) == (CONTENT, mime_type, len(CONTENT))
    (request,) = fake_bridge.requests
    assert (request.method, request.path) == ("POST", "/base/open_media")
    assert request.json == {
        "env": "live", "organizationId": account.organization_id, "account": "pn-1", "businessAccount": "ba-1",
        "mediaRef": "ref-1",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("behaviour", "kind", "code"),
    [
        (says(410), "refused", "not_found"),
        (says(404), "unreachable", "no_answer"),  # an older bridge: it gives no media, and nothing is gone
        (says(405), "unreachable", "no_answer"),
        (says(401), "unreachable", "unauthorized"),
        (says(503), "unreachable", "no_answer"),
        (says(204), "unreachable", "malformed_answer"),
        (says(206, "x"), "unreachable", "malformed_answer"),
        (says(422, '{"code": "media_invalid", "message": "no"}'), "refused", "media_invalid"),
        (says(422, "x" * 200_000), "refused", "provider_error"),
        (resets_after_reading, "unreachable", "no_answer"),
        (breaks_inside(f"HTTP/1.1 200 OK\r\nContent-Length: {LARGEST + 1}\r\n\r\n", True), "unreachable", "malformed"),
    ],
)
async def test_a_bridge_that_gives_no_media_says_whether_it_may_be_asked_again(
    behaviour: Any, kind: str, code: str, fake_bridge: Any, bridge_to: Any, account: Account
) -> None:
    fake_bridge.behaviour = behaviour
    bridge: Bridge = await bridge_to(fake_bridge.url)
    with pytest.raises(ProviderError, match=f"{kind}: {code}"):
        async with bridge.open_media(account, "ref-1"):
            pass


async def test_a_bridge_that_never_answers_is_given_up(fake_bridge: Any, bridge_to: Any, account: Account) -> None:
    fake_bridge.behaviour = hangs
    bridge: Bridge = await bridge_to(fake_bridge.url, timeout=0.15)
    with pytest.raises(ProviderError, match="no_answer"):
        async with bridge.open_media(account, "ref-1"):
            pass


async def test_media_that_breaks_off_or_is_longer_than_any_is_not_taken(
    fake_bridge: Any, bridge_to: Any, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    bridge: Bridge = await bridge_to(fake_bridge.url)
    fake_bridge.behaviour = breaks_inside("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", False)
    async with bridge.open_media(account, "ref-1") as media:
        with pytest.raises(ProviderError, match="broke off"):
            assert [chunk async for chunk in media.chunks] == []
    monkeypatch.setattr("recado.channels.core.media_transfer.LARGEST", 5)
    fake_bridge.behaviour = breaks_inside("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nlonger", False)
    async with bridge.open_media(account, "ref-1") as media:
        assert media.size is None
        with pytest.raises(ProviderError, match="longer"):
            assert [chunk async for chunk in media.chunks] == []


async def test_connections_of_media_are_closed_though_closing_the_others_fails(
    fake_bridge: Any, bridge_to: Any, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_bridge.behaviour = replies({"mediaId": "m-1"})
    bridge: Bridge = await bridge_to(fake_bridge.url)

    async def fails(self: ChannelBridge) -> None:
        raise OSError("cannot close")

    with monkeypatch.context() as patched:
        patched.setattr(ChannelBridge, "stop", fails)
        with pytest.raises(OSError, match="cannot close"):
            await bridge.stop()
    with pytest.raises(ProviderError, match="connect_failed"):
        await bridge.upload_media(account, chunks_of(b"x"), size=1, mime_type="image/png", filename="f")
