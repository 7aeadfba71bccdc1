"""Every rule that a message must pass before it is stored (C15.2)."""

import os
from dataclasses import replace
from typing import Any

import pytest

from recado.domain.core.ids import lowest_id
from recado.domain.messages.message import Priority
from recado.domain.senders.number import NumberStatus
from recado.domain.templates.template import TemplateCategory, TemplateStatus
from recado.storage.access import organizations
from recado.storage.senders import numbers
from recado.storage.templates import templates

PHONE = "+5511987654321"
BODY = ({"type": "BODY", "payload": {"text": "Hello {{1}}, code {{2}}!"}},)


async def test_what_does_not_exist_here_is_not_found(house: Any) -> None:
    missing = lowest_id("num_", house.clock.now())
    refusal = await house.refusal(house.draft(sender_id=missing))
    assert (refusal.code, refusal.meta) == ("REFERENCE_NOT_FOUND", {"field": "numberId"})
    refusal = await house.refusal(house.draft(template_id=lowest_id("tpl_", house.clock.now())))
    assert (refusal.code, refusal.meta) == ("REFERENCE_NOT_FOUND", {"field": "templateId"})
    refusal = await house.refusal(house.draft(contact_id="cnt_" + "1" * 21))
    assert (refusal.code, refusal.meta) == ("REFERENCE_NOT_FOUND", {"field": "contactId"})


async def test_records_of_others_do_not_exist(house: Any) -> None:
    async with house.db.transaction() as connection:
        other = await organizations.create_organization(
            connection, house.ids, name="Other", now=house.clock.now(), random_bytes=os.urandom
        )
    assert (await house.refusal(house.draft(sender_id=other.number.id))).code == "REFERENCE_NOT_FOUND"
    assert (await house.refusal(house.draft(organization_id=other.organization.id))).code == "REFERENCE_NOT_FOUND"
    assert (await house.refusal(house.draft(env="live"))).code == "REFERENCE_NOT_FOUND"


async def test_a_template_belongs_to_its_number(house: Any) -> None:
    async with house.db.transaction() as connection:
        sibling = numbers.sandbox_number(
            house.ids, organization_id=house.organization.id, display_phone="+15555550101", now=house.clock.now()
        )
        await numbers.insert(connection, sibling)
    refusal = await house.refusal(house.draft(sender_id=sibling.id))
    assert (refusal.code, refusal.meta) == ("REFERENCE_NOT_FOUND", {"field": "templateId"})


async def test_only_an_approved_template_is_sent(house: Any) -> None:
    for status in set(TemplateStatus) - {TemplateStatus.APPROVED}:
        template = await house.add_template(status=status)
        refusal = await house.refusal(house.draft(template_id=template.id))
        assert (refusal.code, refusal.meta) == ("TEMPLATE_NOT_APPROVED", {"status": status.value})


async def test_the_variables_are_exactly_those_of_the_template(house: Any) -> None:
    for given, path in (
        (None, "/templateVars"),
        ([], "/templateVars"),
        (["a"], "/templateVars"),
        (["a", "b", "c"], "/templateVars"),
        (["a", ""], "/templateVars/1"),
    ):
        refusal = await house.refusal(house.draft(template_vars=given))
        assert refusal.code == "TEMPLATE_VARS_MISMATCH"
        assert [error.path for error in refusal.errors] == [path]


async def test_a_header_with_a_variable_takes_a_text_and_no_other_does(house: Any) -> None:
    header = {"type": "HEADER", "payload": {"format": "TEXT", "text": "Order {{1}}"}}
    template = await house.add_template(components=(header, *BODY))
    given = {"header": {"text": "7"}}
    assert (await house.refusal(house.draft(template_id=template.id))).code == "TEMPLATE_VARS_MISMATCH"
    assert (await house.refusal(house.draft(payload=given))).code == "TEMPLATE_VARS_MISMATCH"
    await house.accepted(house.draft(template_id=template.id, payload=given))


async def test_an_edit_of_the_template_changes_what_it_asks_for_at_once(house: Any) -> None:
    await house.accepted(house.draft())
    after = replace(house.template, components=({"type": "BODY", "payload": {"text": "Hello {{1}}!"}},), version=2)
    await templates.save(house.db, house.template, after, house.clock.now())
    house.directories.templates.clear()
    assert (await house.refusal(house.draft())).code == "TEMPLATE_VARS_MISMATCH"
    await house.accepted(house.draft(template_vars=["Ana"]))


async def test_only_a_connected_or_flagged_number_sends(house: Any) -> None:
    for status in NumberStatus:
        await house.set_number(status=status)
        if status in {NumberStatus.CONNECTED, NumberStatus.FLAGGED}:
            await house.accepted(house.draft())
        else:
            refusal = await house.refusal(house.draft())
            assert (refusal.code, refusal.meta) == ("NUMBER_UNAVAILABLE", {"status": status.value})
            waits = "wait until it is available, then POST" in refusal.detail
            assert waits is (status is NumberStatus.PENDING)
            assert refusal.detail.endswith("/connect, or send from another number.")


async def test_critical_is_not_for_marketing(house: Any) -> None:
    template = await house.add_template(category=TemplateCategory.MARKETING)
    refusal = await house.refusal(house.draft(template_id=template.id, priority=Priority.CRITICAL))
    assert refusal.code == "PRIORITY_NOT_ALLOWED"
    await house.hear_from(PHONE, house.clock.now())
    await house.accepted(house.free_form(priority=Priority.CRITICAL))


async def test_free_form_messages_need_an_open_window(house: Any) -> None:
    assert (await house.refusal(house.free_form())).code == "WINDOW_CLOSED"
    await house.hear_from(PHONE, house.clock.now())
    await house.accepted(house.free_form())
    assert (await house.refusal(house.free_form(to="+5511987650000"))).code == "WINDOW_CLOSED"
    await house.clock.advance(24 * 3600 + 1)
    assert (await house.refusal(house.free_form())).code == "WINDOW_CLOSED"


@pytest.mark.parametrize(
    ("draft", "code", "field"),
    [
        ({"channel": "social"}, "ROUTE_NOT_AVAILABLE", None),
        (
            {"type": "media", "payload": {"kind": "image", "media": {"id": "med_1"}}},
            "MEDIA_NOT_FOUND",
            "payload.media.id",
        ),
        (
            {"payload": {"header": {"media": {"id": "med_1"}}}, "type": "template"},
            "MEDIA_NOT_FOUND",
            "payload.header.media.id",
        ),
        (
            {
                "type": "interactive",
                "payload": {"interactive": {"type": "button", "header": {"media": {"id": "m"}}, "body": "x"}},
            },
            "MEDIA_NOT_FOUND",
            "payload.interactive.header.media.id",
        ),
        (
            {"type": "interactive", "payload": {"interactive": {"type": "flow", "action": {"flowId": "flw_1"}}}},
            "REFERENCE_NOT_FOUND",
            "payload.interactive.action.flowId",
        ),
    ],
)
async def test_what_is_not_there_is_refused_plainly(
    house: Any, draft: dict[str, Any], code: str, field: str | None
) -> None:
    refusal = await house.refusal(house.free_form(**draft))
    assert refusal.status == 422
    assert (refusal.code, refusal.meta.get("field")) == (code, field)


async def test_an_environment_without_a_provider_answers_502(house: Any) -> None:
    acceptance = house.acceptance
    acceptance._rules["chatapp"].sends_in = frozenset()
    refusal = await house.refusal(house.draft())
    assert (refusal.status, refusal.code) == (502, "DEPENDENCY_FAILED")
