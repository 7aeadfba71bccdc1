"""Batches to lists and segments: who is read into blocks, who is left out, and what is counted (C15.5, C12.5)."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from tests.actors.acme import add_template
from tests.actors.batches.conftest import PRICE, Workshop
from tests.people import contact_id, insert_people, phone

from recado.actors import batch_audience
from recado.actors.batch_acceptance import ReplayedBatch
from recado.domain.errors import Problem, Unavailable
from recado.domain.ids import SEGMENT
from recado.domain.phones import phone_hash, recipient_hash
from recado.domain.template import TemplateCategory
from recado.storage import lists, segments, withdrawals
from recado.storage.batches import Batch
from recado.storage.lists import StaticList
from recado.storage.segments import Segment


@pytest.fixture(autouse=True)
async def nobody(workshop: Workshop) -> None:
    await workshop.db.execute(
        "truncate contacts, static_lists, static_list_members, segments, batch_audiences, opt_outs"
    )


async def people(workshop: Workshop, given: list[dict[str, Any]], first: int = 1) -> list[str]:
    return await insert_people(workshop.db, workshop.organization.id, "test", given, first)


async def a_list(workshop: Workshop, members: list[str], list_id: str = "lst_1") -> str:
    now = workshop.clock.now()
    async with workshop.db.transaction() as connection:
        new = StaticList(organization_id=workshop.organization.id, env="test", id=list_id, name=list_id, updated_at=now)
        await lists.insert(connection, new)
        await lists.join(connection, workshop.organization.id, "test", list_id, members, now)
    return list_id


async def a_segment(workshop: Workshop, tag: str) -> str:
    now = workshop.clock.now()
    new = Segment(
        organization_id=workshop.organization.id,
        env="test",
        id=workshop.ids.new(SEGMENT),
        name=tag,
        filters=[{"field": "tag", "operator": "is", "value": tag}],
        due_at=now,
        updated_at=now,
    )
    async with workshop.db.transaction() as connection:
        return (await segments.insert(connection, new)).id


async def a_template(workshop: Workshop, category: TemplateCategory) -> str:
    added = await add_template(
        workshop.db, workshop.clock, workshop.ids, workshop.number, name=f"of {category}", category=category
    )
    return added.id


async def built(workshop: Workshop, **to: Any) -> Batch:
    """A batch to an audience, as it is when all of it is made."""
    made = await workshop.made(workshop.draft(0, recipients=(), **to))
    await workshop.batches.work()
    return await workshop.now(made)


async def reached(workshop: Workshop) -> list[str]:
    return [row["contact_id"] for row in await workshop.db.fetch("select contact_id from messages order by id")]


async def refusal(workshop: Workshop, **to: Any) -> Problem:
    with pytest.raises(Problem) as caught:
        await workshop.acceptance.accept(workshop.draft(0, recipients=(), **to))
    for table in ("batches", "batch_audiences", "messages", "idempotency"):
        assert await workshop.db.fetchval(f"select count(*) from {table}") == 0, table
    return caught.value


async def test_every_member_of_a_list_gets_a_message_of_its_own(workshop: Workshop) -> None:
    ids = await people(workshop, [{}] * 5)
    list_id = await a_list(workshop, ids[1:4])
    made = await workshop.made(workshop.draft(0, recipients=(), list_id=list_id, metadata={"n": 1}))
    assert (made.status, made.requested, workshop.hints) == ("building", 3, 1)
    batch = await workshop.now(made)
    assert (batch.status, batch.requested, batch.accepted) == ("building", 3, 0)
    await workshop.batches.work()
    batch = await workshop.now(made)
    assert (batch.status, batch.requested, batch.accepted, batch.skipped) == ("running", 3, 3, 0)
    rows = await workshop.db.fetch("select * from messages order by id")
    assert [(row["contact_id"], row["recipient"]) for row in rows] == [(ids[n], phone(n + 1)) for n in (1, 2, 3)]
    assert {row["recipient_hash"] for row in rows} == {
        recipient_hash(workshop.organization.id, phone(n)) for n in (2, 3, 4)
    }
    assert {(row["template_vars"], row["metadata"], row["price_coins"]) for row in rows} == {
        ('["Ana"]', '{"n":1}', PRICE)
    }
    assert [row["id"] for row in await workshop.queue(made)] == [row["id"] for row in rows]
    assert len(workshop.told[-1][1].rows) == 3
    assert await workshop.db.fetchval("select count(*) from batch_audiences") == 0


async def test_who_matches_a_segment_when_it_is_read_gets_a_message(workshop: Workshop) -> None:
    ids = await people(workshop, [{"tags": ["VIP"]}, {}, {"tags": ["vip", "x"]}])
    segment_id = await a_segment(workshop, "Vip")
    made = await workshop.made(workshop.draft(0, recipients=(), segment_id=segment_id))
    await workshop.db.execute("delete from segments")  # the batch goes by the filter as it was
    await workshop.batches.work()
    batch = await workshop.now(made)
    assert (batch.status, batch.accepted) == ("running", 2)
    assert await reached(workshop) == [ids[0], ids[2]]


async def test_a_large_audience_is_read_in_parts_and_each_contact_once(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_audience, "READ_AT_ONCE", 2_000)
    ids = await people(workshop, [{"tags": ["all"]}] * 4_500)
    available, _ = await workshop.wallet()
    batch = await built(workshop, segment_id=await a_segment(workshop, "all"))
    assert (batch.status, batch.requested, batch.accepted) == ("running", 4_500, 4_500)
    assert await reached(workshop) == ids
    assert await workshop.wallet() == (available - 4_500 * PRICE, 4_500 * PRICE)
    assert await workshop.db.fetchval("select count(*) from batch_blocks") == 0


async def test_an_audience_that_ends_with_a_full_part_is_through(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_audience, "READ_AT_ONCE", 1_000)
    await people(workshop, [{"tags": ["all"]}] * 2_000)
    batch = await built(workshop, segment_id=await a_segment(workshop, "all"))
    assert (batch.status, batch.requested, batch.accepted) == ("running", 2_000, 2_000)


async def test_contacts_that_came_later_are_not_in_the_audience(workshop: Workshop) -> None:
    await people(workshop, [{"tags": ["all"]}])
    segment_id = await a_segment(workshop, "all")
    made = await workshop.made(workshop.draft(0, recipients=(), segment_id=segment_id))
    new = workshop.ids.new("cnt_")
    await people(workshop, [{"tags": ["all"], "id": new}], first=2)
    await workshop.batches.work()
    assert await reached(workshop) == [contact_id(1)]
    assert (await workshop.now(made)).requested == 1


async def test_who_left_before_the_reading_is_not_sent_to(workshop: Workshop) -> None:
    ids = await people(workshop, [{}] * 3)
    list_id = await a_list(workshop, ids)
    made = await workshop.made(workshop.draft(0, recipients=(), list_id=list_id))
    await workshop.db.execute("delete from static_list_members where contact_id = $1", ids[0])
    await workshop.batches.work()
    batch = await workshop.now(made)
    assert (batch.requested, batch.accepted) == (2, 2)  # what was asked for is what there was to read
    assert await reached(workshop) == ids[1:]


# Consent ------------------------------------------------------------------------------------------------------------


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
    assert await workshop.maker.make_next(made.key) == 1  # read into a block, and no message made yet
    assert await workshop.batches.pause(await workshop.now(made))
    await workshop.db.execute("update contacts set opt_in_status = 'denied' where id = $1", ids[0])
    await workshop.db.execute("delete from contacts where id = $1", ids[1])
    assert await workshop.batches.resume(await workshop.now(made))
    await workshop.batches.work()
    batch = await workshop.now(made)
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
    async with workshop.db.transaction() as connection:
        assert len(await withdrawals.opted_out(connection, [refused], workshop.clock.now())) == 1
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


# What is refused, repeated, canceled --------------------------------------------------------------------------------


async def test_an_audience_that_is_not_there_or_empty_is_refused(workshop: Workshop) -> None:
    empty = await a_list(workshop, [])
    for to, field in (({"list_id": "lst_0"}, "listId"), ({"segment_id": "seg_0"}, "segmentId")):
        problem = await refusal(workshop, **to)
        assert (problem.code, problem.meta) == ("REFERENCE_NOT_FOUND", {"field": field})
    for to in ({"list_id": empty}, {"segment_id": await a_segment(workshop, "nobody has it")}):
        problem = await refusal(workshop, **to)
        assert (problem.code, problem.status) == ("EMPTY_AUDIENCE", 422)


async def test_what_every_message_lacks_refuses_the_whole(workshop: Workshop) -> None:
    list_id = await a_list(workshop, await people(workshop, [{}]))
    problem = await refusal(workshop, list_id=list_id, template_vars=[])
    assert (problem.code, [error.path for error in problem.errors]) == ("TEMPLATE_VARS_MISMATCH", ["/templateVars"])


async def test_an_audience_of_others_is_not_there(workshop: Workshop) -> None:
    await workshop.db.execute("insert into static_lists values ('org_2', 'test', 'lst_9', 'x', 'x', null, 1, 1, now())")
    await workshop.db.execute(
        "insert into static_lists values ($1, 'live', 'lst_8', 'x', 'x', null, 1, 1, now())", workshop.organization.id
    )
    for list_id in ("lst_9", "lst_8"):
        assert (await refusal(workshop, list_id=list_id)).code == "REFERENCE_NOT_FOUND"


async def test_the_estimate_of_all_must_be_covered_and_nothing_is_held_for_it(workshop: Workshop) -> None:
    list_id = await a_list(workshop, await people(workshop, [{}, {"phone": "+5511987654321"}, {}]))
    before = await workshop.wallet()
    made = await workshop.made(workshop.draft(0, recipients=(), list_id=list_id))
    assert 2 * PRICE < made.estimate < 3 * PRICE  # one of them lives in Brazil
    assert await workshop.wallet() == before
    await workshop.batches.cancel(await workshop.now(made))
    await workshop.db.execute("truncate batches, totals")
    await workshop.set_coins(made.estimate - 1)
    problem = await refusal(workshop, list_id=list_id)
    assert (problem.status, problem.meta) == (
        402,
        {"requiredCoins": made.estimate, "availableCoins": made.estimate - 1},
    )


async def test_a_repeat_shows_the_batch_that_its_key_made(workshop: Workshop) -> None:
    list_id = await a_list(workshop, await people(workshop, [{}] * 2))
    keyed = {"list_id": list_id, "key_hash": b"k" * 32, "fingerprint": b"f" * 32}
    first = await workshop.made(workshop.draft(0, recipients=(), **keyed))
    again = await asyncio.gather(
        *(workshop.acceptance.accept(workshop.draft(0, recipients=(), **keyed)) for _ in range(4))
    )
    assert {outcome.batch.id for outcome in again} == {first.id}
    assert all(isinstance(outcome, ReplayedBatch) for outcome in again)
    assert await workshop.db.fetchval("select count(*) from batch_audiences") == 1


async def test_a_canceled_batch_reads_no_further(workshop: Workshop) -> None:
    list_id = await a_list(workshop, await people(workshop, [{}] * 3))
    made = await workshop.made(workshop.draft(0, recipients=(), list_id=list_id))
    assert await workshop.batches.cancel(await workshop.now(made))
    await workshop.batches.work()
    assert (await workshop.now(made)).status == "canceled"
    assert await reached(workshop) == []
    assert await workshop.db.fetchval("select count(*) from batch_audiences") == 0


async def test_an_audience_that_cannot_be_read_now_is_read_at_the_next_look(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = await people(workshop, [{}] * 2)
    made = await workshop.made(workshop.draft(0, recipients=(), list_id=await a_list(workshop, ids)))

    async def busy(*_: Any, **__: Any) -> Any:
        raise Unavailable

    with monkeypatch.context() as patched:
        patched.setattr("recado.storage.segment_evaluation.Evaluation.next_of", busy)
        await workshop.batches.work()
    assert (await workshop.now(made)).status == "building"
    await workshop.batches.work()
    assert (await workshop.now(made)).accepted == 2
