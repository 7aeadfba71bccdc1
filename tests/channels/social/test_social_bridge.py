"""What a social message to a bridge carries, and what its accounts are connected with (C26.5, C29.3)."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import orjson
import pytest
from tests.channels.behaviours import says

from recado.channels.core.provider import Account, OutboundMessage
from recado.channels.social.account import SocialDetails
from recado.channels.social.bridge import SocialBridge
from recado.engine.clock import VirtualClock

ADDRESS = "https://recado.test/v2/callbacks/social/bridge"
PAGE = Account(
    sender_id="soc_1",
    organization_id="org_1",
    env="live",
    provider_id="17841400001",
    owner="live 17841400001",
    details=SocialDetails(platform="page", access_token="page-token"),
)


@pytest.fixture
async def bridge(fake_bridge: Any, clock: VirtualClock) -> AsyncIterator[SocialBridge]:
    made = SocialBridge(url=fake_bridge.url, token="token", secret="secret", callback_url=ADDRESS, clock=clock)
    await made.start()
    yield made
    await made.stop()


async def test_a_send_carries_the_text_and_no_token_of_the_account(
    bridge: SocialBridge, fake_bridge: Any, message: OutboundMessage
) -> None:
    fake_bridge.behaviour = says(200, '{"providerMessageId": "p-1"}')
    payload = {"text": {"body": "Until six."}}
    await bridge.send(replace(message, channel="social", to="9876543210", payload=payload), PAGE, 1)
    (request,) = fake_bridge.requests
    assert request.json == {
        "id": message.id,
        "channel": "social",
        "env": "live",
        "organizationId": message.organization_id,
        "account": "17841400001",
        "to": "9876543210",
        "content": {"type": "text", "payload": payload},
        "callbackUrl": ADDRESS,
    }


async def test_an_account_is_connected_with_its_token_and_let_go_without(
    bridge: SocialBridge, fake_bridge: Any
) -> None:
    fake_bridge.behaviour = says(200, "{}")
    await bridge.connect(PAGE)
    await bridge.disconnect(PAGE)
    asked = {"env": "live", "organizationId": "org_1", "account": "17841400001", "platform": "page"}
    assert [each.json for each in fake_bridge.requests] == [{**asked, "accessToken": "page-token"}, asked]
    assert "page-token" not in repr(PAGE)


async def test_media_goes_up_and_comes_down_for_an_account_without_its_token(
    bridge: SocialBridge, fake_bridge: Any
) -> None:
    said = b'{"mediaId": "m-1"}'  # to both

    async def pieces() -> AsyncIterator[bytes]:
        yield b"content"

    fake_bridge.behaviour = says(200, said, "Content-Type: image/png\r\n")
    assert await bridge.upload_media(PAGE, pieces(), size=7, mime_type="image/png", filename="a.png") == "m-1"
    async with bridge.open_media(PAGE, "ref-1") as media:
        assert b"".join([chunk async for chunk in media.chunks]) == said
    up, down = fake_bridge.requests
    asked = {"env": "live", "organizationId": "org_1", "account": "17841400001"}
    assert orjson.dumps({**asked, "filename": "a.png", "mimeType": "image/png", "size": 7}) in up.body
    assert down.json == {**asked, "mediaRef": "ref-1"}
    assert b"page-token" not in up.body + down.body
