"""Who of an audience is left out: whoever opted out, is not asked yet, or has not written (C15.5, C12.5)."""

from datetime import timedelta

import pytest
from tests.people import contact_id, phone
from tests.services.batches.audiences import a_list, a_template, built, people, reached
from tests.services.batches.conftest import Workshop

from recado.domain.core.ids import MESSAGE, lowest_id
from recado.domain.core.phones import phone_hash, recipient_hash
from recado.domain.templates.template import TemplateCategory
from recado.storage.dispatch import withdrawals

pytestmark = pytest.mark.usefixtures("nobody")


async def mixed(workshop: Workshop) -> str:
    """A list of one contact of each kind; one is in the registry."""
    statuses = ["granted", "denied", "unknown", "unknown"]
    ids = await people(workshop, [{"opt_in_status": status} for status in statuses])
    organization_id = workshop.organization.id
    await workshop.db.execute(
        "insert into opt_outs values ($1, 'test', 'phone', $2, now(), null)",
        organization_id,
        phone_hash(organization_id, phone(4)),
    )
    return await a_list(workshop, ids)


async def test_marketing_leaves_out_who_opted_out(workshop: Workshop) -> None:
    marketing = await a_template(workshop, TemplateCategory.MARKETING)
    batch = await built(workshop, list_id=await mixed(workshop), template_id=marketing)
    assert (batch.requested, batch.accepted, batch.skipped) == (4, 2, 2)
    assert batch.skipped_reasons == {"CONTACT_OPTED_OUT": 2}
    assert await reached(workshop) == [contact_id(1), contact_id(3)]


async def test_marketing_leaves_out_who_opted_out_under_a_former_spelling(workshop: Workshop) -> None:
    ids = await people(workshop, [{}, {"phone": "+525512345678"}])
    await workshop.db.execute(
        "insert into opt_outs values ($1, 'test', 'phone', $2, now(), null)",
        workshop.organization.id,
        phone_hash(workshop.organization.id, "+5215512345678"),
    )
    marketing = await a_template(workshop, TemplateCategory.MARKETING)
    batch = await built(workshop, list_id=await a_list(workshop, ids), template_id=marketing)
    assert batch.skipped_reasons == {"CONTACT_OPTED_OUT": 1}
    assert await reached(workshop) == [contact_id(1)]


async def test_an_organization_may_ask_for_consent_before_marketing(workshop: Workshop) -> None:
    await workshop.db.execute(
        "update organizations set require_granted_for_marketing = true where id = $1", workshop.organization.id
    )
    marketing = await a_template(workshop, TemplateCategory.MARKETING)
    batch = await built(workshop, list_id=await mixed(workshop), template_id=marketing)
    assert batch.skipped_reasons == {"CONTACT_OPTED_OUT": 2, "CONSENT_REQUIRED": 1}
    assert await reached(workshop) == [contact_id(1)]


async def test_utility_templates_reach_everybody(workshop: Workshop) -> None:
    batch = await built(workshop, list_id=await mixed(workshop))
    assert (batch.accepted, batch.skipped) == (4, 0)


async def test_who_opts_out_or_is_deleted_while_the_batch_rests_is_left_out(workshop: Workshop) -> None:
    ids = await people(workshop, [{}] * 3)
    marketing = await a_template(workshop, TemplateCategory.MARKETING)
    made = await workshop.made(
        workshop.draft(0, recipients=(), list_id=await a_list(workshop, ids), template_id=marketing)
    )
    assert await workshop.audiences.read(made.key) == 1  # read into a block, and no message made yet
    assert await workshop.batches.pause(await workshop.now(made))
    await workshop.db.execute("update contacts set opt_in_status = 'denied' where id = $1", ids[0])
    await workshop.db.execute("delete from contacts where id = $1", ids[1])
    assert await workshop.batches.resume(await workshop.now(made))
    batch = await workshop.built(made)
    assert batch.skipped_reasons == {"CONTACT_OPTED_OUT": 1, "REFERENCE_NOT_FOUND": 1}
    assert (batch.requested, batch.accepted) == (3, 1)
    assert await reached(workshop) == [ids[2]]


async def test_who_opts_out_after_the_making_gets_none_of_what_waits(workshop: Workshop) -> None:
    list_id = await a_list(workshop, await people(workshop, [{}] * 2))
    marketing = await built(
        workshop, list_id=list_id, template_id=await a_template(workshop, TemplateCategory.MARKETING)
    )
    utility = await built(workshop, list_id=list_id)
    refused = (workshop.organization.id, "test", recipient_hash(workshop.organization.id, phone(1)))
    now = workshop.clock.now()
    all_of_it = withdrawals.refusals([refused], lowest_id(MESSAGE, now + timedelta(seconds=1)))
    async with workshop.db.transaction() as connection:
        assert len(await withdrawals.opted_out(connection, all_of_it, now, limit=10)) == 1
    assert len(await workshop.queue(marketing)) == 1
    assert len(await workshop.queue(utility)) == 2


async def test_a_batch_whose_audience_may_not_be_sent_to_has_failed(workshop: Workshop) -> None:
    ids = await people(workshop, [{"opt_in_status": "denied"}] * 2)
    marketing = await a_template(workshop, TemplateCategory.MARKETING)
    batch = await built(workshop, list_id=await a_list(workshop, ids), template_id=marketing)
    assert (batch.status, batch.accepted, batch.skipped) == ("failed", 0, 2)
    assert batch.finished_at == workshop.clock.now()


async def test_free_form_reaches_only_who_has_written(workshop: Workshop) -> None:
    ids = await people(workshop, [{}] * 3)
    await workshop.db.execute(
        "insert into chat_windows values ($1, $2, $3, $4)",
        workshop.organization.id,
        workshop.number.id,
        recipient_hash(workshop.organization.id, phone(2)),
        workshop.clock.now() - timedelta(hours=1),
    )
    free = {"type": "text", "payload": {"text": {"body": "hi"}}, "template_id": None, "template_vars": None}
    batch = await built(workshop, list_id=await a_list(workshop, ids), **free)
    assert batch.skipped_reasons == {"WINDOW_CLOSED": 2}
    assert await reached(workshop) == [ids[1]]
