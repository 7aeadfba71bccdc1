"""Batches to lists and segments: who is read into blocks, what is counted, and what is refused (C15.5)."""

import asyncio
from datetime import timedelta

import pytest
from tests.people import contact_id, phone
from tests.services.batches.audiences import a_list, a_segment, built, people, reached, refusal
from tests.services.batches.conftest import PRICE, Workshop

from recado.domain.channels.policy import Obeys
from recado.domain.core.errors import Problem
from recado.domain.core.phones import recipient_hash
from recado.services.batches import batch_audience
from recado.services.batches.batch_acceptance import ReplayedBatch
from recado.services.batches.channel_batches import BatchTerms

pytestmark = pytest.mark.usefixtures("nobody")


async def test_every_member_of_a_list_gets_a_message_of_its_own(workshop: Workshop) -> None:
    ids = await people(workshop, [{}] * 5)
    list_id = await a_list(workshop, ids[1:4])
    made = await workshop.made(workshop.draft(0, recipients=(), list_id=list_id, metadata={"n": 1}))
    assert (made.status, made.requested, workshop.hints) == ("building", 3, 1)
    batch = await workshop.now(made)
    assert (batch.status, batch.requested, batch.accepted) == ("building", 3, 0)
    batch = await workshop.built(made)
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
    batch = await workshop.built(made)
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
    batch = await workshop.built(made)
    assert await reached(workshop) == [contact_id(1)]
    assert batch.requested == 1


async def test_who_left_before_the_reading_is_not_sent_to(workshop: Workshop) -> None:
    ids = await people(workshop, [{}] * 3)
    list_id = await a_list(workshop, ids)
    made = await workshop.made(workshop.draft(0, recipients=(), list_id=list_id))
    await workshop.db.execute("delete from static_list_members where contact_id = $1", ids[0])
    batch = await workshop.built(made)
    assert (batch.requested, batch.accepted) == (2, 2)  # what was asked for is what there was to read
    assert await reached(workshop) == ids[1:]


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


async def test_a_channel_whose_addresses_no_contact_has_takes_no_audience(workshop: Workshop) -> None:
    terms = BatchTerms(
        sender_id="soc_1",
        due_at=workshop.clock.now(),
        ttl=timedelta(days=1),
        held_ms=0,
        obeys=Obeys(window=True, consent=False, quiet_hours=False),
        granted_only=False,
    )
    for to, path in (({"list_id": "lst_1"}, "/listId"), ({"segment_id": "seg_1"}, "/segmentId")):
        with pytest.raises(Problem) as refused:
            await workshop.audiences.of(workshop.draft(0, channel="social", recipients=(), **to), terms)
        assert (refused.value.code, [error.path for error in refused.value.errors]) == ("AUDIENCE_INVALID", [path])


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
    assert await workshop.audiences.read(made.key) is None
    assert (await workshop.built(made)).status == "canceled"
    assert await reached(workshop) == []
    assert await workshop.db.fetchval("select count(*) from batch_audiences") == 0
