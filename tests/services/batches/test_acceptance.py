"""Accepting batches: what one commit holds, who is left out, and what a repeat gets (C15.5, C6.2, C25.2.3)."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from tests.acme import add_template
from tests.services.batches.conftest import PRICE, Workshop, people

from recado.domain.core.errors import Problem
from recado.domain.core.ids import BATCH
from recado.domain.core.phones import recipient_hash
from recado.domain.messages.message import NORMAL
from recado.domain.templates.template import TemplateCategory
from recado.services.batches.batch_acceptance import AcceptedBatch, ReplayedBatch
from recado.services.batches.batch_draft import BatchDraft
from recado.services.batches.channel_batches import BatchTerms
from recado.services.dispatch.row import WINDOW
from recado.storage.batches.audiences import Audience
from recado.storage.batches.batch_making import NewBatch
from recado.storage.batches.batch_rows import Recipients
from recado.storage.billing import price_overrides
from recado.storage.billing.price_overrides import Override


async def refusal(workshop: Workshop, draft: BatchDraft) -> Problem:
    """The refusal of a batch of which nothing is stored."""
    with pytest.raises(Problem) as caught:
        await workshop.acceptance.accept(draft)
    for table in ("batches", "batch_blocks", "messages", "dispatch", "totals", "idempotency"):
        assert await workshop.db.fetchval(f"select count(*) from {table}") == 0, table
    return caught.value


async def test_messages_of_several_units_hold_so_many_times_what_one_does(workshop: Workshop) -> None:
    shop, phones = workshop, [person["to"] for person in people(3)]
    recipients = Recipients(
        phones,
        [recipient_hash(shop.organization.id, phone) for phone in phones],
        ['["Ana"]'] * 3,
        [None] * 3,
        units=[1, 2, 4],
        details=[None, None, '{"segments":4}'],
    )
    batch = NewBatch(
        organization_id=shop.organization.id, env="test", id=shop.ids.new(BATCH), channel="chatapp",
        sender_id=shop.number.id, type="template", klass=2, ttl_ms=60_000, held_base_ms=0,
        accepted_at=shop.clock.now(), requested=3, recipients=recipients, template_id=shop.template.id,
    )  # fmt: skip
    await shop.maker.prepare(batch)
    assert batch.estimate == 7 * PRICE
    async with shop.db.transaction() as connection:
        after = await shop.maker.create_batch(connection, batch)
    assert after is not None
    after()

    rows = await shop.db.fetch(
        "select m.price_coins, m.units, m.details, d.coins, d.units as queued, d.source_kind from messages m"
        " join dispatch d using (organization_id, id) order by m.id"
    )
    assert [tuple(row) for row in rows] == [
        (PRICE, 1, None, PRICE, 1, "batch"),
        (2 * PRICE, 2, None, 2 * PRICE, 2, "batch"),
        (4 * PRICE, 4, {"segments": 4}, 4 * PRICE, 4, "batch"),
    ]
    assert (await shop.now(batch)).held_coins == (await shop.wallet())[1] == 7 * PRICE


async def test_a_batch_that_is_read_later_is_estimated_by_the_units_of_its_messages(workshop: Workshop) -> None:
    batch = await workshop.made(workshop.draft(1))
    batch.audience, batch.regions = Audience(before_id="", units=3), {"INTL": 5}
    await workshop.maker.prepare(batch)
    assert batch.estimate == 15 * PRICE


async def test_one_commit_holds_the_batch_its_messages_and_their_price(workshop: Workshop) -> None:
    available, _ = await workshop.wallet()
    batch = await workshop.made(workshop.draft(3, name="Spring", metadata={"n": 1}, created_by_id="key_1"))
    rows = await workshop.db.fetch("select * from messages order by id")
    assert [(row["recipient"], row["status"], row["class"], row["batch_id"]) for row in rows] == [
        (person["to"], "queued", 2, batch.id) for person in people(3)
    ]
    assert {row["recipient_hash"] for row in rows} == {
        recipient_hash(workshop.organization.id, person["to"]) for person in people(3)
    }
    assert {(row["template_vars"], row["metadata"], row["price_coins"]) for row in rows} == {
        ('["Ana"]', '{"n":1}', PRICE)
    }
    queue = await workshop.queue(batch)
    assert [row["id"] for row in queue] == [row["id"] for row in rows]
    assert {(row["coins"], row["reason"], row["not_before"]) for row in queue} == {(PRICE, None, None)}
    stored = await workshop.now(batch)
    assert (stored.status, stored.accepted, stored.queued, stored.held_coins) == ("running", 3, 3, 3 * PRICE)
    assert await workshop.wallet() == (available - 3 * PRICE, 3 * PRICE)


async def test_the_dispatcher_is_told_of_as_much_as_it_holds(workshop: Workshop) -> None:
    batch = await workshop.made(workshop.draft(WINDOW + 50))
    [(number, arrived)] = workshop.told
    assert number == (workshop.organization.id, "test", "chatapp", workshop.number.id)
    queue = await workshop.queue(batch)
    assert [row.id for row in arrived.rows] == [row["id"] for row in queue[: WINDOW + 1]]
    first, row = arrived.rows[0], queue[0]
    assert (first.owner, first.klass, first.due_at, first.expires_at) == (
        batch.id,
        row["class"],
        row["due_at"],
        row["expires_at"],
    )
    assert (first.recipient, first.template_vars, first.ttl_ms) == (people(1)[0]["to"], '["Ana"]', row["ttl_ms"])


async def test_a_scheduled_batch_tells_nobody_and_is_out_of_the_ready_index(workshop: Workshop) -> None:
    at = workshop.clock.now() + timedelta(hours=1)
    batch = await workshop.made(workshop.draft(2, scheduled_at=at))
    assert workshop.told == []
    assert {(row["not_before"], row["reason"], row["due_at"]) for row in await workshop.queue(batch)} == {
        (at, "scheduled", at)
    }


async def test_a_recipient_has_its_own_variables_and_metadata(workshop: Workshop) -> None:
    first, second = people(2)
    recipients = [{**first, "templateVars": ["Rui"], "metadata": {"order": "a\u001f1"}}, second]
    await workshop.made(workshop.draft(recipients=recipients, metadata={"shared": True}))
    rows = await workshop.db.fetch("select template_vars, metadata from messages order by id")
    assert [tuple(row) for row in rows] == [
        ('["Rui"]', '{"order":"a\\u001f1"}'),
        ('["Ana"]', '{"shared":true}'),
    ]


async def test_who_cannot_be_sent_to_is_left_out_with_the_reason(workshop: Workshop) -> None:
    good = people(1)[0]
    recipients = [
        good,
        {"to": "+49 15-000 000 000"},
        {"to": "123"},
        {"to": "+4915000000007", "templateVars": []},
        {"to": "+4915000000007", "templateVars": [""]},
        {"to": "+4915000000008", "metadata": {"1": "x"}},
        {"to": "+4915000000008", "contactId": "cnt_1"},
        {},
    ]
    batch = await workshop.now(await workshop.made(workshop.draft(recipients=recipients)))
    assert (batch.requested, batch.accepted, batch.skipped) == (8, 1, 7)
    assert batch.skipped_reasons == {
        "DUPLICATE_RECIPIENT": 1,
        "PHONE_INVALID": 1,
        "TEMPLATE_VARS_MISMATCH": 2,
        "METADATA_INVALID": 1,
        "REFERENCE_NOT_FOUND": 1,
        "RECIPIENT_MISSING": 1,
    }
    assert [error["path"] for error in batch.errors] == [
        "/recipients/1",
        "/recipients/2/to",
        "/recipients/3/templateVars",
        "/recipients/4/templateVars",
        "/recipients/5/metadata",
        "/recipients/6/contactId",
        "/recipients/7",
    ]


async def test_only_the_first_hundred_refusals_are_told(workshop: Workshop) -> None:
    batch = await workshop.now(await workshop.made(workshop.draft(recipients=[*people(1), *([{}] * 150)])))
    assert (batch.skipped, len(batch.errors)) == (150, 100)


async def test_a_batch_of_nobody_has_failed_and_holds_nothing(workshop: Workshop) -> None:
    batch = await workshop.now(await workshop.made(workshop.draft(recipients=[{}])))
    assert (batch.status, batch.started_at, batch.held_coins) == ("failed", None, 0)
    assert batch.finished_at == workshop.clock.now()
    assert (await workshop.wallet())[1] == 0


async def test_free_form_reaches_only_who_has_written(workshop: Workshop) -> None:
    person = people(3)[1]
    await workshop.db.execute(
        "insert into chat_windows values ($1, $2, $3, $4)",
        workshop.organization.id,
        workshop.number.id,
        recipient_hash(workshop.organization.id, person["to"]),
        workshop.clock.now() - timedelta(hours=23),
    )
    free = {"type": "text", "payload": {"text": {"body": "hi"}}, "template_id": None, "template_vars": None}
    batch = await workshop.now(await workshop.made(workshop.draft(3, **free)))
    assert (batch.accepted, batch.skipped_reasons) == (1, {"WINDOW_CLOSED": 2})
    assert [error["path"] for error in batch.errors] == ["/recipients/0", "/recipients/2"]
    assert await workshop.db.fetchval("select recipient from messages") == person["to"]


@pytest.mark.parametrize(
    ("category", "obeys"),
    [(TemplateCategory.MARKETING, (False, True, True)), (TemplateCategory.UTILITY, (False, False, True))],
)
async def test_what_its_messages_obey_stands_in_the_queue_and_in_what_the_number_is_told(
    workshop: Workshop, category: TemplateCategory, obeys: tuple[bool, bool, bool]
) -> None:
    template = await add_template(
        workshop.db, workshop.clock, workshop.ids, workshop.number, name="any", category=category
    )
    made = await workshop.made(workshop.draft(2, template_id=template.id))
    queued = await workshop.db.fetch(
        "select needs_window, consent_hash is not null, obeys_quiet_hours from dispatch where owner = $1", made.id
    )
    assert {tuple(row) for row in queued} == {obeys}
    ((_, told),) = workshop.told
    assert {(row.needs_window, row.subject_to_consent, row.obeys_quiet_hours) for row in told.rows} == {obeys}


async def test_free_form_messages_of_a_batch_wait_with_those_that_nothing_holds_but_their_window(
    workshop: Workshop,
) -> None:
    """The number is told of them as the table has them (C14.5)."""
    (person,) = people(1)
    await workshop.db.execute(
        "insert into chat_windows values ($1, $2, $3, $4)",
        workshop.organization.id,
        workshop.number.id,
        recipient_hash(workshop.organization.id, person["to"]),
        workshop.clock.now(),
    )
    free = {"type": "text", "payload": {"text": {"body": "hi"}}, "template_id": None, "template_vars": None}
    await workshop.made(workshop.draft(1, **free))
    (queued,) = await workshop.db.fetch("select class, needs_window, obeys_quiet_hours from dispatch")
    ((_, told),) = workshop.told
    (row,) = told.rows
    assert tuple(queued) == (row.klass, row.needs_window, row.obeys_quiet_hours) == (NORMAL, True, False)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"sender_id": "num_0"}, "REFERENCE_NOT_FOUND"),
        ({"template_id": "tpl_0"}, "REFERENCE_NOT_FOUND"),
        ({"channel": "sms"}, "ROUTE_NOT_AVAILABLE"),
        ({"env": "live"}, "REFERENCE_NOT_FOUND"),
        ({"payload": {"header": {"text": "x"}}}, "TEMPLATE_VARS_MISMATCH"),
        ({"payload": {"header": {"media": {"id": "med_1"}}}}, "MEDIA_NOT_FOUND"),
    ],
)
async def test_what_all_messages_share_is_refused_as_for_one(
    workshop: Workshop, changes: dict[str, Any], code: str
) -> None:
    assert (await refusal(workshop, workshop.draft(**changes))).code == code


async def test_a_batch_that_is_not_covered_is_refused_whole(workshop: Workshop) -> None:
    await workshop.set_coins(3 * PRICE - 1)
    problem = await refusal(workshop, workshop.draft(3))
    assert (problem.status, problem.meta) == (402, {"requiredCoins": 3 * PRICE, "availableCoins": 3 * PRICE - 1})
    assert await workshop.wallet() == (3 * PRICE - 1, 0)


async def test_of_batches_that_come_together_each_stands_for_itself(workshop: Workshop) -> None:
    await workshop.set_coins(5 * PRICE)
    sizes = (3, 4, 2)
    outcomes = await asyncio.gather(
        *(workshop.acceptance.accept(workshop.draft(size)) for size in sizes), return_exceptions=True
    )
    assert [isinstance(outcome, AcceptedBatch) for outcome in outcomes] == [True, False, True]
    assert await workshop.wallet() == (0, 5 * PRICE)


async def test_a_large_batch_needs_its_whole_estimate_and_holds_its_first_block(workshop: Workshop) -> None:
    await workshop.set_coins(1_500 * PRICE - 1)
    problem = await refusal(workshop, workshop.draft(1_500))
    assert problem.meta == {"requiredCoins": 1_500 * PRICE, "availableCoins": 1_500 * PRICE - 1}
    await workshop.set_coins(1_500 * PRICE)
    await workshop.made(workshop.draft(1_500))
    assert await workshop.wallet() == (500 * PRICE, 1_000 * PRICE)


async def test_a_batch_that_begins_with_what_is_free_needs_its_whole_estimate_too(workshop: Workshop) -> None:
    free = Override([0, 0, 0, 0], None)
    async with workshop.db.transaction() as connection:
        await price_overrides.replace_all(
            connection, workshop.organization.id, {"chatapp_utility": free}, workshop.clock.now() - timedelta(minutes=1)
        )
    at_home = [{"to": f"+55119{line:08}"} for line in range(90_000_000, 90_001_000)]
    draft = workshop.draft(recipients=[*at_home, *people(500)])
    await workshop.set_coins(PRICE)
    assert (await refusal(workshop, draft)).meta["availableCoins"] == PRICE


# Repeats ------------------------------------------------------------------------------------------------------------


def keyed(draft: BatchDraft, fingerprint: bytes = b"f" * 32) -> BatchDraft:
    return replace(draft, key_hash=b"k" * 32, fingerprint=fingerprint)


async def test_a_repeat_shows_the_batch_as_it_is_now(workshop: Workshop) -> None:
    first = await workshop.made(keyed(workshop.draft(2)))
    await workshop.batches.pause(await workshop.now(first))
    again = await workshop.acceptance.accept(keyed(workshop.draft(2)))
    assert isinstance(again, ReplayedBatch)
    assert (again.batch.id, again.batch.status) == (first.id, "paused")
    assert await workshop.db.fetchval("select count(*) from messages") == 2


async def test_the_same_key_at_the_same_time_makes_one_batch(workshop: Workshop) -> None:
    outcomes = await asyncio.gather(*(workshop.acceptance.accept(keyed(workshop.draft(20))) for _ in range(12)))
    assert len({outcome.batch.id for outcome in outcomes}) == 1
    assert sum(isinstance(outcome, AcceptedBatch) for outcome in outcomes) == 1
    assert await workshop.db.fetchval("select count(*) from messages") == 20
    assert (await workshop.wallet())[1] == 20 * PRICE


async def test_a_key_with_another_request_is_refused(workshop: Workshop) -> None:
    await workshop.made(keyed(workshop.draft(2)))
    for draft in (workshop.draft(3), workshop.draft(sender_id="num_0")):
        with pytest.raises(Problem) as caught:
            await workshop.acceptance.accept(keyed(draft, b"g" * 32))
        assert caught.value.code == "IDEMPOTENCY_KEY_REUSED"


async def test_a_repeat_gets_its_batch_whatever_has_changed_since(workshop: Workshop) -> None:
    first = await workshop.made(keyed(workshop.draft(2)))
    await workshop.set_coins(0)
    await workshop.db.execute("update templates set status = 'paused' where id = $1", workshop.template.id)
    workshop.records.templates.clear()
    again = await workshop.acceptance.accept(keyed(workshop.draft(2)))
    assert isinstance(again, ReplayedBatch)
    assert again.batch.id == first.id


async def test_a_key_is_free_again_after_a_day(workshop: Workshop) -> None:
    first = await workshop.made(keyed(workshop.draft(2)))
    await workshop.clock.advance(24 * 3600)
    second = await workshop.made(keyed(workshop.draft(3), b"g" * 32))
    assert second.id != first.id
    again = await workshop.acceptance.accept(keyed(workshop.draft(3), b"g" * 32))
    assert again.batch.id == second.id


async def test_what_is_not_covered_is_said_before_that_nothing_can_be_sent_here(workshop: Workshop) -> None:
    workshop.acceptance._channels["chatapp"].sends_in = frozenset()  # type: ignore[index, misc]
    assert (await refusal(workshop, workshop.draft(3))).code == "DEPENDENCY_FAILED"
    await workshop.db.execute("update wallets set balance_coins = 0, held_coins = 0")
    assert (await refusal(workshop, workshop.draft(3))).code == "PAYMENT_REQUIRED"


async def test_what_nobody_sends_in_place_of_it_refuses_a_batch_that_is_fit(workshop: Workshop) -> None:
    rules = workshop.acceptance._channels["chatapp"]
    own = rules.terms

    async def lacking(*given: Any) -> BatchTerms:
        return replace(await own(*given), lacks="sms")

    rules.terms = lacking  # type: ignore[method-assign]
    assert "provider of sms" in (await refusal(workshop, workshop.draft(3))).detail
