"""What an RCS bridge is told and asked (C17, C29.3)."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from tests.channels.behaviours import says

from recado.channels.core.errors import ProviderError
from recado.channels.core.provider import Accepted, Account, OutboundMessage, Refused
from recado.channels.rcs.bridge import RcsBridge
from recado.domain.dispatch.breaker import FIRST_PAUSE, IN_A_ROW
from recado.engine.clock import VirtualClock

GATEWAY = Account(sender_id="bridge", organization_id="org_1", env="live", provider_id="bridge", owner="org_1")
CARD = {"title": "A card", "suggestions": [{"type": "reply", "text": "Yes", "value": "yes"}]}
TAKEN = '{"providerMessageId": "p-1"}'


@pytest.fixture
async def bridge(fake_bridge: Any, clock: VirtualClock) -> AsyncIterator[RcsBridge]:
    address = "https://recado.test/v2/callbacks/rcs/bridge"
    made = RcsBridge(url=fake_bridge.url, token="token", secret="secret", callback_url=address, clock=clock)
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
def rcs(message: OutboundMessage) -> OutboundMessage:
    payload = {"text": {"body": "Hello"}, "card": CARD, "fallback": {"text": "By SMS"}}
    return replace(message, channel="rcs", payload=payload, details={"route": "easy_rcs", "deliveredVia": "rcs"})


def paths(fake_bridge: Any) -> list[str]:
    return [request.path.removeprefix("/base") for request in fake_bridge.requests]


async def test_a_send_carries_what_the_message_says_and_not_its_sms(
    fake_bridge: Any, bridge: RcsBridge, rcs: OutboundMessage
) -> None:
    fake_bridge.behaviour = says(200, TAKEN)
    assert await bridge.send(rcs, GATEWAY, 1) == Accepted("p-1")
    asked, sent = fake_bridge.requests
    assert paths(fake_bridge) == ["/capable", "/send"]
    assert asked.json["to"] == rcs.to
    assert sent.json["content"] == {"type": "text", "text": "Hello", "card": CARD, "route": "easy_rcs"}


async def test_a_phone_without_rcs_is_refused_and_known_for_a_day(
    fake_bridge: Any, bridge: RcsBridge, rcs: OutboundMessage, clock: VirtualClock
) -> None:
    fake_bridge.behaviour = says(200, '{"capable": false}')
    for _ in range(2):
        found = await bridge.send(rcs, GATEWAY, 1)
        assert isinstance(found, Refused)
        assert found.code == "not_rcs_capable"
    assert paths(fake_bridge) == ["/capable"]
    await clock.advance(86_400)
    await bridge.send(rcs, GATEWAY, 1)
    assert paths(fake_bridge) == ["/capable"] * 2


async def test_a_refused_send_tells_it_as_well(fake_bridge: Any, bridge: RcsBridge, rcs: OutboundMessage) -> None:
    fake_bridge.behaviour = says(400, '{"code": "not_rcs_capable"}')
    for _ in range(2):
        assert isinstance(await bridge.send(rcs, GATEWAY, 1), Refused)
    assert paths(fake_bridge) == ["/capable", "/send"]


async def test_a_bridge_that_does_not_say_is_asked_less_and_less(
    fake_bridge: Any, bridge: RcsBridge, rcs: OutboundMessage, clock: VirtualClock
) -> None:
    async def asked_for(first: int) -> int:
        before = paths(fake_bridge).count("/capable")
        for number in range(first, first + 10):
            await bridge.send(replace(rcs, to=f"+55119876500{number}"), GATEWAY, 1)
        return paths(fake_bridge).count("/capable") - before

    answer = [500, b""]

    async def behave(connection: Any) -> None:
        while True:
            await connection.read_request()
            await connection.answer(*answer, "")

    fake_bridge.behaviour = behave
    assert await asked_for(10) == IN_A_ROW
    await clock.advance(FIRST_PAUSE)
    assert await asked_for(20) == 1
    await clock.advance(FIRST_PAUSE)
    assert await asked_for(30) == 0
    answer[:] = 200, b'{"capable": true}'
    await clock.advance(FIRST_PAUSE)
    assert await asked_for(40) == 10
    assert paths(fake_bridge).count("/send") == 40


async def test_phones_that_a_bridge_refuses_to_look_up_keep_no_other_from_it(
    fake_bridge: Any, bridge: RcsBridge, rcs: OutboundMessage
) -> None:
    fake_bridge.behaviour = says(400, '{"code": "invalid_number"}')
    for number in range(2 * IN_A_ROW):
        await bridge.send(replace(rcs, to=f"+55119876500{number:02}"), GATEWAY, 1)
    assert paths(fake_bridge) == ["/capable", "/send"] * 2 * IN_A_ROW


@pytest.mark.parametrize(
    ("answer", "revoked"), [('{"revoked": true}', True), ('{"revoked": false}', False), ('{"revoked": 1}', False)]
)
async def test_a_message_is_taken_back(fake_bridge: Any, bridge: RcsBridge, answer: str, revoked: bool) -> None:
    fake_bridge.behaviour = says(200, answer)
    assert await bridge.revoke("msg_1", "p-1", "+5511987654321", GATEWAY) is revoked
    (request,) = fake_bridge.requests
    assert paths(fake_bridge) == ["/revoke"]
    assert {"id": "msg_1", "providerMessageId": "p-1", "to": "+5511987654321"}.items() <= request.json.items()


@pytest.mark.parametrize(("status", "kind"), [(400, "refused"), (422, "refused"), (500, "unreachable")])
async def test_what_a_bridge_does_not_do_is_told_apart(
    fake_bridge: Any, bridge: RcsBridge, status: int, kind: str
) -> None:
    fake_bridge.behaviour = says(status, '{"code": "provider_error", "message": "no"}')
    with pytest.raises(ProviderError) as error:
        await bridge.revoke("msg_1", "p-1", "+5511987654321", GATEWAY)
    assert error.value.kind == kind
