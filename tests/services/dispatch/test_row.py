"""A row and the columns that it is read from."""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recado.services.dispatch.row import Row, row_from, row_of
from recado.storage.messages.messages import NewMessage
from recado.storage.messages.replacements import Replacement

RENAMED = {"klass": "class"}
NOT_READ = {"claimed_at", "contact_hash"}  # of a row that is ready nothing is known of a claim, nor of a direct send

NOW = datetime(2026, 3, 10, tzinfo=UTC)
NEW = NewMessage(
    organization_id="org_1", env="live", channel="chatapp", id="msg_1", sender_id="num_1", type="text",
    recipient="+5511987650001", recipient_hash=1, klass=1, force=False, template_id=None, payload=None,
    template_vars=None, metadata=None, campaign_id=None, scheduled_at=None, due_at=NOW, ttl=timedelta(hours=1),
    held_base_ms=0, accepted_at=NOW,
)  # fmt: skip


def of_a_batch(batch_id: str | None) -> Replacement:
    return Replacement("org_1", "live", "chatapp", "msg_0", "msg_1", False, batch_id=batch_id)


def test_each_field_is_read_from_the_column_of_its_name() -> None:
    columns = {field.name: RENAMED.get(field.name, field.name) for field in fields(Row) if field.name not in NOT_READ}
    row = row_from({column: column for column in columns.values()})
    assert {name: getattr(row, name) for name in columns} == columns
    assert row.claimed_at is None


@pytest.mark.parametrize(
    ("changes", "totaled"),
    [
        ({}, False),
        ({"campaign_id": "spring"}, True),
        ({"replaces": of_a_batch(None)}, False),
        ({"replaces": of_a_batch("btc_1")}, True),  # it is one of that batch in its place
    ],
)
def test_totals_change_when_a_message_leaves_that_has_a_campaign_or_takes_a_place_in_a_batch(
    changes: dict[str, Any], totaled: bool
) -> None:
    assert row_of(replace(NEW, **changes)).totaled is totaled
