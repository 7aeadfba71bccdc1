"""Whose connections a send takes (C31)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from recado.channels.chatapp.bridge import Bridge
from recado.channels.provider import Accepted, Account, OutboundMessage

if TYPE_CHECKING:
    from tests.channels.chatapp.conftest import Connection, FakeBridge

ACCOUNT = Account(
    number_id="num_1", organization_id="org_1", env="live", phone_number_id="pn-1", business_account_id="ba-1"
)
MESSAGE = OutboundMessage(
    id="msg_1", organization_id="org_1", env="live", channel="chatapp", number_id="num_1", to="+5511987650001",
    type="text", payload={"text": {"body": "hi"}},
)  # fmt: skip


async def test_an_operation_that_hangs_takes_no_connection_from_sends(
    fake_bridge: "FakeBridge", bridge_to: Callable[..., Awaitable[Bridge]]
) -> None:
    hangs = asyncio.Event()

    async def behaviour(connection: "Connection") -> None:
        request = await connection.read_request()
        if request.path.endswith("/send"):
            await connection.answer(200, b'{"providerMessageId": "p-1"}')
        else:
            hangs.set()
            await connection.hang()

    fake_bridge.behaviour = behaviour
    bridge = await bridge_to(fake_bridge.url, timeout=2.0, connections=1)
    other = asyncio.create_task(bridge.number_health(ACCOUNT))
    await hangs.wait()
    outcome = await bridge.send(MESSAGE, ACCOUNT, 1)
    other.cancel()
    await asyncio.gather(other, return_exceptions=True)
    assert outcome == Accepted("p-1")
