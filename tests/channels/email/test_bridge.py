"""What an e-mail to a bridge carries (C29.3)."""

from dataclasses import replace
from typing import Any

import pytest
from tests.channels.behaviours import Behaviour, says
from tests.channels.email.email_cases import CONTENT

from recado.channels.core.errors import ProviderError
from recado.channels.core.provider import Account, OutboundMessage
from recado.channels.email.bridge import EmailBridge
from recado.domain.email.sender import DnsRecord, SenderLook
from recado.engine.clock import VirtualClock

GATEWAY = Account(sender_id="bridge", organization_id="", env="live", provider_id="bridge", owner="bridge")
ADDRESS = "https://recado.test/v2/callbacks/email/bridge"


async def test_a_send_carries_the_rendered_parts_and_their_headers(
    fake_bridge: Any, clock: VirtualClock, message: OutboundMessage
) -> None:
    fake_bridge.behaviour = says(200, '{"providerMessageId": "p-1"}')
    bridge = EmailBridge(url=fake_bridge.url, token="token", secret="secret", callback_url=ADDRESS, clock=clock)
    plain = replace(CONTENT, from_name=None, html=None, text="Hello", headers=(), transactional=True)
    await bridge.start()
    try:
        for content in (CONTENT, plain):
            email = replace(message, channel="email", to="ana@example.com", details={"content": content})
            await bridge.send(email, GATEWAY, 1)
    finally:
        await bridge.stop()

    first, second = (request.json for request in fake_bridge.requests)
    assert first == {
        "id": message.id,
        "channel": "email",
        "env": "live",
        "organizationId": message.organization_id,
        "account": "bridge",
        "to": "ana@example.com",
        "content": {
            "type": "email",
            "from": {"address": "hello@example.com", "name": "Example"},
            "subject": "the secret of the house",
            "html": "<p>Hello</p>",
            "headers": [{"name": "List-Unsubscribe", "value": "<https://example.com/u/1>"}],
            "transactional": False,
        },
        "callbackUrl": ADDRESS,
    }
    assert second["content"] == {
        "type": "email",
        "from": {"address": "hello@example.com"},
        "subject": "the secret of the house",
        "text": "Hello",
        "transactional": True,
    }


@pytest.mark.parametrize(
    ("behaviour", "look"),
    [
        (says(200, '{"verified": true}'), SenderLook((), True)),
        (
            says(200, '{"verified": false, "dnsRecords": [{"type": "CNAME", "name": "a.example.com", "value": "b"}]}'),
            SenderLook((DnsRecord("CNAME", "a.example.com", "b"),), False),
        ),
        (says(404, "{}"), None),
        (says(422, '{"code": "unknown_operation"}'), None),
        (says(200, "{}"), "unreachable"),
        (says(200, '{"verified": false, "dnsRecords": [{"type": "CNAME"}]}'), "unreachable"),
        (says(200, f'{{"verified": false, "dnsRecords": {[1] * 11}}}'), "unreachable"),
        (says(503, "{}"), "unreachable"),
    ],
)
async def test_a_bridge_says_how_a_sender_stands_or_knows_none(
    fake_bridge: Any, clock: VirtualClock, behaviour: Behaviour, look: SenderLook | str | None
) -> None:
    fake_bridge.behaviour = behaviour
    bridge = EmailBridge(url=fake_bridge.url, token="token", secret="secret", callback_url=ADDRESS, clock=clock)
    await bridge.start()
    try:
        found: SenderLook | str | None = await bridge.identity("example.com", "org_1")
    except ProviderError as error:
        found = error.kind
    finally:
        await bridge.stop()
    assert found == look
    (request,) = fake_bridge.requests
    assert request.path.endswith("/sender_status")
    assert request.json == {"env": "live", "organizationId": "org_1", "account": "bridge", "domain": "example.com"}
