"""Messages of a batch that are sent again one by one count in it, and follow it unless it was canceled (C15.4)."""

from datetime import timedelta

import pytest
from tests.services.batches.conftest import PRICE, Workshop
from tests.services.batches.counting import another_process, checked

from recado.domain.core.ids import BATCH, MESSAGE, created_at
from recado.http.routes.messages.batch_view import batch_view
from recado.services.batches.batch_acceptance import AcceptedBatch
from recado.services.dispatch.hints import Arrived
from recado.storage.batches.batch_making import NewBatch
from recado.storage.batches.batch_rows import Recipients
from recado.storage.messages.messages import NewMessage, Stored
from recado.storage.messages.replacements import Replacement


async def again(workshop: Workshop, old_id: str, batch_id: str) -> NewMessage:
    """A new message in the place of an archived one of the batch, stored."""
    key = (workshop.organization.id, "test", "chatapp")
    new_id = workshop.ids.new(MESSAGE)
    now = created_at(new_id)
    new = NewMessage(
        *key, new_id, workshop.number.id, "template", "+4915000000001", 1, 2, False, workshop.template.id, None,
        '["Ana"]', None, None, None, now, timedelta(hours=1), 0, now, coins=PRICE, price_kind=None,
    )  # fmt: skip
    new.replaces = Replacement(*key, old_id, new_id, False, batch_id=batch_id)
    assert type(await workshop.sending.store(new)) is Stored
    return new


async def test_what_is_sent_again_after_the_cancel_is_not_withdrawn_with_the_rest(workshop: Workshop) -> None:
    made = await workshop.made(workshop.draft(3))
    uncertain, archived, _ = [row["id"] for row in await workshop.queue(made)]
    await workshop.claim([uncertain])  # its outcome may be unknown for a day, and the batch open
    await workshop.batches.cancel(await workshop.now(made))
    new = await again(workshop, archived, made.id)
    await another_process(workshop).work()
    _, arrived = workshop.told[-1]
    assert isinstance(arrived, Arrived)
    assert not any(workshop.records.owners.holds(row.owner) for row in arrived.rows)
    assert await workshop.db.fetchval("select status from messages where id = $1", new.id) == "queued"
    assert await workshop.db.fetchval("select source_kind from dispatch where id = $1", new.id) == "single"
    canceled = await checked(workshop, made)
    assert (canceled.accepted, canceled.archived, canceled.queued) == (4, 2, 2)
    await workshop.depart([uncertain, new.id])
    await workshop.batches.work()
    over = await checked(workshop, made)
    assert (over.status, over.sent, over.charged_coins, over.held_coins) == ("canceled", 2, 2 * PRICE, 0)
    totals = batch_view(over)["totals"]
    assert (totals["requested"], totals["accepted"], totals["skipped"]) == (4, 4, 0)
    assert await workshop.db.fetchval("select open from batches") is False


@pytest.mark.parametrize("move", ["pause", "cancel"])
async def test_what_is_sent_again_before_follows_its_batch(workshop: Workshop, move: str) -> None:
    made = await workshop.made(workshop.draft(2))
    old = (await workshop.queue(made))[0]["id"]
    await workshop.db.execute("delete from dispatch where id = $1", old)
    await workshop.db.execute("update messages set status = 'archived' where id = $1", old)
    new = await again(workshop, old, made.id)
    assert await workshop.db.fetchval("select source_kind from dispatch where id = $1", new.id) == "batch"
    await getattr(workshop.batches, move)(await workshop.now(made))
    reason = await workshop.db.fetchval("select reason from dispatch where id = $1", new.id)
    status = await workshop.db.fetchval("select status from messages where id = $1", new.id)
    assert (status, reason) == {"pause": ("queued", "owner_paused"), "cancel": ("archived", None)}[move]


async def test_a_resend_pays_only_for_what_nobody_else_sent_again_meanwhile(workshop: Workshop) -> None:
    made = await workshop.made(workshop.draft(2))
    first, second = [row["id"] for row in await workshop.queue(made)]
    await workshop.db.execute("delete from dispatch")
    await workshop.db.execute("update messages set status = 'failed'")
    batch_id = workshop.ids.new(BATCH)
    planned = NewBatch(
        organization_id=workshop.organization.id,
        env="test",
        id=batch_id,
        channel="chatapp",
        sender_id=workshop.number.id,
        type="template",
        template_id=workshop.template.id,
        klass=2,
        ttl_ms=60_000,
        held_base_ms=0,
        accepted_at=created_at(batch_id),
        requested=2,
        recipients=Recipients(
            ["+4915000000000", "+4915000000001"], [1, 2], ['["Ana"]'] * 2, [None] * 2, replaces=[first, second]
        ),
    )
    await workshop.db.execute("update messages set replaced_by = 'msg_another' where id = $1", first)
    await workshop.set_coins(PRICE)
    assert isinstance(await workshop.acceptance.store(planned), AcceptedBatch)
    sent_again = await checked(workshop, planned)
    assert (sent_again.accepted, sent_again.skipped_reasons) == (1, {"ALREADY_REPLACED": 1})
    assert (await workshop.wallet())[0] == 0
