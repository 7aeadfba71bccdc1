"""What a social message to a bridge carries, and what its accounts are connected with (C26.5, C29.3)."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

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
