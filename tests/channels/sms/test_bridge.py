"""What an SMS to a bridge carries (C29.3)."""

from dataclasses import replace
from typing import Any

import pytest
from tests.channels.behaviours import says

from recado.channels.core.provider import Account, OutboundMessage
from recado.channels.sms.bridge import SmsBridge
from recado.engine.clock import VirtualClock

GATEWAY = Account(sender_id="gateway_b", organization_id="", env="live", provider_id="gateway_b", owner="gateway_b")


@pytest.mark.parametrize(
    ("details", "told"),
    [
        (
            {"route": "la_dedicada", "encoding": "GSM-7", "length": 23, "from": "28282"},
            {"route": "la_dedicada", "encoding": "GSM-7", "from": "28282"},
        ),
        ({"route": "otp", "transactional": True}, {"route": "otp", "transactional": True}),
        (None, {}),
    ],
)
async def test_a_send_carries_the_text_and_how_it_is_to_leave(
    fake_bridge: Any, clock: VirtualClock, message: OutboundMessage, details: Any, told: dict[str, Any]
) -> None:
    fake_bridge.behaviour = says(200, '{"providerMessageId": "p-1"}')
    address = "https://recado.test/v2/callbacks/sms/bridge_b"
    bridge = SmsBridge(
        url=fake_bridge.url, token="token", secret="secret", callback_url=address, clock=clock, name="bridge_b"
    )
    await bridge.start()
    try:
        await bridge.send(replace(message, channel="sms", details=details), GATEWAY, 1)
    finally:
        await bridge.stop()

    (request,) = fake_bridge.requests
    assert request.json == {
        "id": message.id,
        "channel": "sms",
        "env": "live",
        "organizationId": message.organization_id,
        "account": "gateway_b",
        "to": "+5511987654321",
        "content": {"type": "text", "text": "the secret of the house", **told},
        "callbackUrl": address,
    }
    assert bridge.name == "bridge_b"
