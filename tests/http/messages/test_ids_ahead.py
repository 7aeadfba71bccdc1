"""Ids that continue above those of a clock that was ahead (C32): what they say for their order makes nothing due."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.http.messages.conftest import Mail

from recado.domain.core.ids import MESSAGE, created_at, lowest_id


@pytest.fixture
def now(mail: Mail) -> datetime:
    """The present, two hours behind the newest id."""
    now: datetime = mail.api.clock.now()
    assert mail.api.ids.continue_after(lowest_id(MESSAGE, now + timedelta(hours=2)))
    return now


async def test_a_message_leaves_at_its_own_time(mail: Mail, now: datetime) -> None:
    at = (now + timedelta(hours=1)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    sent = await mail.send(scheduledAt=at)
    assert sent["scheduledAt"] == at
    assert created_at(sent["id"]) > now + timedelta(hours=2)
    read = (await mail.api.get(f"/messages/{sent['id']}")).body
    assert (read["status"], read["scheduledAt"], read["createdAt"]) == ("queued", at, sent["createdAt"])


async def test_a_message_without_a_schedule_is_due_now(mail: Mail, now: datetime) -> None:
    sent = await mail.send()
    due_at = await mail.api.database.fetchval("select due_at from dispatch where id = $1", sent["id"])
    assert due_at - now < timedelta(minutes=1)


async def test_a_batch_leaves_at_its_own_time(mail: Mail, now: datetime) -> None:
    at = (now + timedelta(hours=1)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    body: dict[str, Any] = {
        "numberId": mail.number_id, "type": "template", "templateId": mail.template.id, "scheduledAt": at,
        "recipients": [{"to": "+5511987650001", "templateVars": ["Ana"]}],
    }  # fmt: skip
    made = await mail.api.post("/messages/bulk", body)
    assert made.status == 202, made.body
    assert created_at(made.body["id"]) > now + timedelta(hours=2)
    due_at = await mail.api.database.fetchval("select min(due_at) from dispatch")
    assert due_at == datetime.fromisoformat(at)
