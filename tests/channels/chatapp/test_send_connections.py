"""Whose connections a send takes, and whose all else (C31)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import pytest
from tests.channels.accounts import chatapp_account
from tests.channels.behaviours import Behaviour
from tests.channels.chatapp.cloud_answers import chunks_of

from recado.channel_table import PART_OF_AN_ACCOUNT, by_account
from recado.channels.chatapp.bridge import Bridge
from recado.channels.chatapp.cloud import Cloud
from recado.channels.core.provider import Accepted, Account, OutboundMessage
from recado.channels.http.outbound_http import MEDIA_CONNECTIONS, OTHER_CONNECTIONS

if TYPE_CHECKING:
    from tests.channels.peer import Connection, FakeBridge

ACCOUNT = chatapp_account(access_token="token")
OTHER = chatapp_account("num_2", phone_number_id="pn-2", business_account_id="ba-2", access_token="token")
MESSAGE = OutboundMessage(
    id="msg_1", organization_id="org_1", env="live", channel="chatapp", sender_id="num_1", to="+5511987650001",
    type="text", payload={"text": {"body": "hi"}},
)  # fmt: skip


async def test_operations_that_hang_take_no_connection_from_sends(
    fake_bridge: "FakeBridge", bridge_to: Callable[..., Awaitable[Bridge]]
) -> None:
    fake_bridge.behaviour, all_hang = hangs_for_one_account(OTHER_CONNECTIONS, only="/number_health")
    bridge = await bridge_to(fake_bridge.url)
    hanging = [asyncio.create_task(bridge.number_health(ACCOUNT)) for _ in range(OTHER_CONNECTIONS)]
    await all_hang.wait()
    outcome = await bridge.send(MESSAGE, ACCOUNT, 1)
    await given_up(hanging)
    assert outcome == Accepted("p-1")


@pytest.mark.parametrize("adapter", ["bridge", "cloud"])
async def test_an_account_whose_operations_hang_leaves_connections_to_the_others(
    adapter: str, fake_bridge: "FakeBridge", bridge_to: Callable[..., Any], cloud_to: Callable[..., Any]
) -> None:
    fake_bridge.behaviour, all_hang = hangs_for_one_account(OTHER_CONNECTIONS // PART_OF_AN_ACCOUNT)
    make = bridge_to if adapter == "bridge" else cloud_to
    provider: Bridge | Cloud = await make(fake_bridge.url, shares=by_account)
    # As many as there are connections: without shares the call of another account would get none.
    hanging = [asyncio.create_task(provider.disconnect(ACCOUNT)) for _ in range(OTHER_CONNECTIONS)]
    await all_hang.wait()
    await provider.disconnect(OTHER)
    await given_up(hanging)
    assert len(fake_bridge.requests) == OTHER_CONNECTIONS // PART_OF_AN_ACCOUNT + 1


async def test_uploads_of_an_account_hold_up_neither_its_operations_nor_other_accounts(
    fake_bridge: "FakeBridge", cloud_to: Callable[..., Any]
) -> None:
    fake_bridge.behaviour, all_hang = hangs_for_one_account(MEDIA_CONNECTIONS // PART_OF_AN_ACCOUNT, only="/media")
    cloud: Cloud = await cloud_to(fake_bridge.url, shares=by_account)
    hanging = [asyncio.create_task(uploads(cloud, ACCOUNT)) for _ in range(MEDIA_CONNECTIONS)]
    await all_hang.wait()
    assert await uploads(cloud, OTHER) == "m-1"
    await cloud.disconnect(ACCOUNT)
    await given_up(hanging)
    assert len(fake_bridge.requests) == MEDIA_CONNECTIONS // PART_OF_AN_ACCOUNT + 2


def hangs_for_one_account(count: int, only: str = "") -> tuple[Behaviour, asyncio.Event]:
    """Calls for ACCOUNT hang, if their path ends with `only`; the event: so many do."""
    all_hang, hanging = asyncio.Event(), 0

    async def behaviour(connection: "Connection") -> None:
        nonlocal hanging
        request = await connection.read_request()
        its_own = ACCOUNT.provider_id in request.path or ACCOUNT.provider_id.encode() in request.body
        if not its_own or not request.path.endswith(only):
            await connection.answer(200, b'{"id": "m-1", "success": true, "providerMessageId": "p-1"}')
            return
        hanging += 1
        if hanging == count:
            all_hang.set()
        await connection.hang()

    return behaviour, all_hang


async def uploads(cloud: Cloud, account: Account) -> str:
    return await cloud.upload_media(account, chunks_of(b"abc"), size=3, mime_type="image/png", filename="a.png")


async def given_up(tasks: list["asyncio.Task[Any]"]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
