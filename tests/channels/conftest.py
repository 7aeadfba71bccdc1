"""Values that every adapter test starts from."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.channels.accounts import chatapp_account
from tests.channels.peer import Connection, FakeBridge

from recado.channels.core.provider import Account, OutboundMessage
from recado.engine.clock import VirtualClock

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(NOW)


@pytest.fixture
def account() -> Account:
    return chatapp_account("num_000000000000000000001", "org_000000000000000000001", access_token="number-token")


@pytest.fixture
def message() -> OutboundMessage:
    return a_message()


@pytest.fixture
def message_to() -> Any:
    return lambda to: a_message(to=to)


@pytest.fixture
async def fake_bridge() -> AsyncIterator[FakeBridge]:
    async def unset(connection: Connection) -> None:
        raise AssertionError("a test sets `behaviour` before it calls")

    server = FakeBridge(unset)
    await server.start()
    yield server
    await server.stop()


def a_message(**changes: Any) -> OutboundMessage:
    fields: dict[str, Any] = {
        "id": "msg_0000000100000000000a1",
        "organization_id": "org_000000000000000000001",
        "env": "live",
        "channel": "chatapp",
        "sender_id": "num_000000000000000000001",
        "to": "+5511987654321",
        "type": "text",
        "payload": {"text": {"body": "the secret of the house"}},
    }
    return OutboundMessage(**{**fields, **changes})
