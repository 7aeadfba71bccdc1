"""What a send to a bridge carries."""

from dataclasses import replace
from typing import Any

from tests.channels.behaviours import says

from recado.channels.chatapp.bridge import Bridge
from recado.channels.core.provider import Account, OutboundMessage, TemplateContent


async def test_a_send_carries_the_message_and_its_idempotency_key(
    fake_bridge: Any, bridge_to: Any, message: OutboundMessage, account: Account
) -> None:
    fake_bridge.behaviour = says(200, '{"providerMessageId": "p-1"}')
    bridge: Bridge = await bridge_to(fake_bridge.url + "/")

    await bridge.send(message, account, 1)

    (request,) = fake_bridge.requests
    assert request.path == "/base/send"
    assert request.headers["authorization"] == "Bearer bridge-token-9f2c"
    assert request.headers["idempotency-key"] == message.id
    assert request.json == {
        "id": message.id,
        "channel": "chatapp",
        "env": "live",
        "organizationId": account.organization_id,
        "account": "pn-1",
        "to": "+5511987654321",
        "content": {"type": "text", "payload": {"text": {"body": "the secret of the house"}}},
        "callbackUrl": "https://recado.test/v2/callbacks/chatapp/bridge",
    }


async def test_a_template_travels_with_its_variables(
    fake_bridge: Any, bridge_to: Any, message: OutboundMessage, account: Account
) -> None:
    fake_bridge.behaviour = says(200, '{"providerMessageId": "p-1"}')
    bridge: Bridge = await bridge_to(fake_bridge.url)
    components = [{"type": "BODY", "payload": {"text": "Olá {{1}}!"}}]

    await bridge.send(
        replace(
            message,
            type="template",
            payload=None,
            template=TemplateContent(
                name="ola", category="utility", language="pt-BR", components=components, variables=["Ana"]
            ),
        ),
        account,
        1,
    )

    assert fake_bridge.requests[0].json["content"] == {
        "type": "template",
        "template": {"name": "ola", "language": "pt-BR", "components": components, "variables": ["Ana"]},
    }
