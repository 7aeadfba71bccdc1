"""What acceptance stores: the row, its times, its place in the queue, and the record of force (C14.5, C15.2)."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import orjson
import pytest

from recado.domain.messages.message import Priority
from recado.domain.templates.template import TemplateCategory
from recado.services.dispatch.hints import Arrived
from recado.services.messages.acceptance_rules import LONGEST_SCHEDULE
from recado.services.messages.chatapp_rules import held_ms
from recado.storage.core import audit
from recado.storage.core.audit import AuditPrincipal

PHONE = "+5511987654321"
OPERATOR = AuditPrincipal("key", "key_000000000000000000001", ip="203.0.113.9", request_id="req_1")
BODY = ({"type": "BODY", "payload": {"text": "Hello {{1}}, code {{2}}!"}},)


async def test_an_accepted_message_is_committed_and_its_number_is_told(house: Any) -> None:
    new = await house.accepted(
        house.draft(metadata={"order": "x1", "paid": True}, campaign_id="spring", priority=Priority.BULK)
    )
    row = await house.row(new.id)
    assert (row.status, row.direction, row.type, row.klass, row.force) == ("queued", "outbound", "template", 2, False)
    assert (row.recipient, row.sender_id, row.template_id) == (PHONE, house.number.id, house.template.id)
    assert orjson.loads(row.template_vars or "") == ["Ana", "42"]
    assert orjson.loads(row.metadata or "") == {"order": "x1", "paid": True}
    assert row.campaign_id == "spring"
    assert row.created_at == row.updated_at == new.accepted_at
    [(number, arrived)] = house.told
    assert number[-1] == house.number.id
    assert isinstance(arrived, Arrived)
    assert [told.id for told in arrived.rows] == [new.id]


@pytest.mark.parametrize(
    ("category", "priority", "seconds", "expected"),
    [
        (TemplateCategory.UTILITY, Priority.NORMAL, None, timedelta(hours=24)),
        (TemplateCategory.MARKETING, Priority.BULK, None, timedelta(hours=72)),
        (TemplateCategory.UTILITY, Priority.CRITICAL, None, timedelta(hours=1)),
        (TemplateCategory.AUTHENTICATION, Priority.NORMAL, None, timedelta(minutes=10)),
        (TemplateCategory.AUTHENTICATION, Priority.NORMAL, 90, timedelta(seconds=90)),
    ],
)
async def test_the_time_to_live_follows_category_priority_and_wish(
    house: Any, category: TemplateCategory, priority: Priority, seconds: int | None, expected: timedelta
) -> None:
    template = await house.add_template(category=category)
    new = await house.accepted(house.draft(template_id=template.id, priority=priority, ttl_seconds=seconds))
    assert new.ttl == expected
    expires = await house.db.fetchval("select expires_at from dispatch where id = $1", new.id)
    assert expires == new.due_at + expected


async def test_time_already_held_is_the_base_of_the_time_to_live(house: Any) -> None:
    now = house.clock.now()
    number = replace(house.number, held_ms=1_000, operator_paused_at=now - timedelta(seconds=5))
    organization = replace(house.organization, held_ms=200, held_since=now - timedelta(seconds=1))
    assert held_ms(number, organization, now) == 7_200
    assert held_ms(house.number, house.organization, now) == 0


async def test_a_schedule_waits_in_the_table_and_a_past_one_means_now(house: Any) -> None:
    now = house.clock.now()
    later = await house.accepted(house.draft(scheduled_at=now + timedelta(days=2)))
    assert later.scheduled_at == later.due_at == now + timedelta(days=2)
    assert house.told == []
    past = await house.accepted(house.draft(scheduled_at=now - timedelta(days=2)))
    assert past.due_at == past.scheduled_at == past.accepted_at
    assert len(house.told) == 1


async def test_ninety_days_are_the_furthest_schedule(house: Any) -> None:
    instant = house.clock.now().replace(microsecond=house.clock.now().microsecond // 1000 * 1000)
    await house.accepted(house.draft(scheduled_at=instant + LONGEST_SCHEDULE))
    refusal = await house.refusal(house.draft(scheduled_at=instant + LONGEST_SCHEDULE + timedelta(milliseconds=1)))
    assert refusal.code == "SCHEDULE_TOO_FAR"


async def test_force_is_stored_with_the_message_and_audited_with_its_credential(house: Any) -> None:
    new = await house.accepted(house.draft(forced_by=OPERATOR))
    assert (await house.row(new.id)).force
    [entry] = await audit.list_page(
        house.db, house.organization.id, "test", first_id="aud_", before_id="aud_~", action="message.force", limit=10
    )
    assert (entry.action, entry.actor_id, entry.target_id) == ("message.force", OPERATOR.id, new.id)


async def test_a_refused_force_leaves_no_trace(house: Any) -> None:
    await house.refusal(house.draft(forced_by=OPERATOR, template_vars=[]))
    assert await house.db.fetchval("select count(*) from audit where action = 'message.force'") == 0
