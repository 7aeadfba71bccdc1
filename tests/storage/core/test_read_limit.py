"""The time that a list may take: who looks for too much is told to narrow it, and holds no connection meanwhile."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from recado.domain.core.errors import Unavailable
from recado.domain.core.ids import MESSAGE, WEBHOOK
from recado.engine.clock import SystemClock
from recado.storage.contacts import contact_reads
from recado.storage.contacts.contact_reads import ContactFilter
from recado.storage.core.connections import read_limit
from recado.storage.messages import message_reads, resends
from recado.storage.messages.message_reads import MessageFilter
from recado.storage.messages.resends import FailedFilter
from recado.storage.webhooks import deliveries

ORGANIZATION, MESSAGE_ID = "org_" + "0" * 21, MESSAGE + "0" * 21
SUBSCRIPTION = (ORGANIZATION, WEBHOOK + "0" * 21)


class Stuck:
    """An executor that finds nothing, and does not end."""

    async def fetch(self, *_: object) -> Any:
        await asyncio.Event().wait()

    fetchrow = fetchval = execute = fetch


@pytest.mark.parametrize(
    "read",
    [
        lambda db: message_reads.list_page(
            db, MessageFilter(organization_id=ORGANIZATION, env="test", channels=("chatapp",)), limit=50
        ),
        lambda db: contact_reads.list_page(db, ContactFilter(organization_id=ORGANIZATION, env="test"), limit=50),
        lambda db: resends.failed(db, ORGANIZATION, "test", "chatapp", FailedFilter(), 1),
        lambda db: resends.replaced(db, ORGANIZATION, "test", "chatapp", FailedFilter()),
        lambda db: deliveries.list_page(db, SUBSCRIPTION, SystemClock().now(), message_id=MESSAGE_ID, limit=50),
    ],
    ids=["messages", "contacts", "failed", "replaced", "deliveries of a message"],
)
async def test_what_takes_too_long_to_find_answers_503(
    monkeypatch: pytest.MonkeyPatch, read: Callable[[Any], Awaitable[object]]
) -> None:
    monkeypatch.setattr(read_limit, "READ_LIMIT", 0.001)
    with pytest.raises(Unavailable, match="The search took too long: narrow ") as caught:
        await read(Stuck())
    assert caught.value.status == 503
    assert "Retry-After" in caught.value.headers
