"""Media of the hosted API: what goes up, where the token goes, and what breaks off."""

import json
from typing import Any

import pytest
from tests.channels.chatapp.cloud_answers import chunks_of, replies

from recado.channels.chatapp import cloud_media
from recado.channels.chatapp.cloud import Cloud
from recado.channels.core.errors import ProviderError
from recado.channels.core.media_transfer import LARGEST
from recado.channels.core.provider import Account


async def test_an_upload_is_one_form_of_known_length(fake_bridge: Any, cloud_to: Any, account: Account) -> None:
    fake_bridge.behaviour = replies({"id": "m-1"})
    cloud: Cloud = await cloud_to(fake_bridge.url)
    content = bytes(range(256))

    media_id = await cloud.upload_media(
        account, chunks_of(content), size=256, mime_type="image/png\r\nX: y", filename='a".png'
    )

    (request,) = fake_bridge.requests
    assert (media_id, request.path) == ("m-1", "/base/pn-1/media")
    assert int(request.headers["content-length"]) == len(request.body)
    assert content in request.body
    assert b'filename="a_.png"\r\nContent-Type: image/png__X: y\r\n\r\n' in request.body


@pytest.mark.parametrize(
    ("address", "api", "safe"),
    [
        ("https://media.example/1", "https://graph.example", True),
        ("http://media.example/1", "https://graph.example", False),
        ("http://127.0.0.1:1/1", "http://127.0.0.1:2", True),
        ("http://media.example/1", "http://127.0.0.1:2", False),
        ("https://u:p@media.example/1", "https://graph.example", False),
        ("ftp://media.example/1", "https://graph.example", False),
        ("https://[", "https://graph.example", False),
        ("", "https://graph.example", False),
        ("https://graph.example:8443/1", "https://graph.example", True),
        ("https://10.0.0.7/1", "https://graph.example", False),
        ("https://[::1]/1", "https://graph.example", False),
        ("https://0x7f000001/1", "https://graph.example", False),
        ("https://localhost/1", "https://graph.example", False),
        ("https://vault.internal/1", "https://graph.example", False),
        ("https://media.example:22/1", "https://graph.example", False),
        ("https://10.0.0.7/1", "http://10.0.0.7", True),
    ],
)
def test_the_token_goes_to_safe_addresses_only(address: str, api: str, safe: bool) -> None:
    from yarl import URL

    if safe:
        assert str(cloud_media.download_address(address, URL(api))) == address
    else:
        with pytest.raises(ProviderError, match="malformed_answer"):
            cloud_media.download_address(address, URL(api))


async def test_media_that_breaks_off_or_is_refused_says_so(fake_bridge: Any, cloud_to: Any, account: Account) -> None:
    about = {"url": f"{fake_bridge.url}/m-1/content", "mime_type": "image/png", "file_size": 100}
    answers = [json.dumps(about).encode(), b"", json.dumps(about).encode(), b""]

    async def behave(connection: Any) -> None:
        while True:
            request = await connection.read_request()
            body = answers.pop(0)
            if not request.path.endswith("content"):
                await connection.answer(200, body)
            elif answers:
                await connection.answer(403, b"")
            else:
                connection.writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
                await connection.writer.drain()
                connection.writer.close()
                return

    fake_bridge.behaviour = behave
    cloud: Cloud = await cloud_to(fake_bridge.url)

    with pytest.raises(ProviderError, match="status 403"):
        async with cloud.open_media(account, "m-1"):
            pass
    async with cloud.open_media(account, "m-1") as media:
        with pytest.raises(ProviderError, match="broke off"):
            assert [chunk async for chunk in media.chunks] == []


@pytest.mark.parametrize("sent", [100, 101, 150_000])
async def test_no_more_of_media_is_read_than_the_provider_said(
    sent: int, fake_bridge: Any, cloud_to: Any, account: Account
) -> None:
    about = json.dumps({"url": f"{fake_bridge.url}/m-1/content", "mime_type": "image/png", "file_size": 100}).encode()

    async def behave(connection: Any) -> None:
        while True:
            request = await connection.read_request()
            await connection.answer(200, bytes(sent) if request.path.endswith("content") else about)

    fake_bridge.behaviour = behave
    cloud: Cloud = await cloud_to(fake_bridge.url)

    async with cloud.open_media(account, "m-1") as media:
        if sent == 100:
            assert sum([len(chunk) async for chunk in media.chunks]) == 100
        else:
            with pytest.raises(ProviderError, match="longer"):
                assert [chunk async for chunk in media.chunks] == []


async def test_media_that_is_too_large_for_anything_is_not_asked_for(
    fake_bridge: Any, cloud_to: Any, account: Account
) -> None:
    about = {"url": f"{fake_bridge.url}/m-1/content", "mime_type": "image/png", "file_size": LARGEST + 1}
    fake_bridge.behaviour = replies(about)
    cloud: Cloud = await cloud_to(fake_bridge.url)

    with pytest.raises(ProviderError, match="malformed"):
        async with cloud.open_media(account, "m-1"):
            pass
    assert len(fake_bridge.requests) == 1
