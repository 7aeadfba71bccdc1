"""A message that is sent again, from its old row to its dispatcher (C15.4)."""

from dataclasses import replace
from typing import Any

from recado.domain.core.ids import MESSAGE
from recado.services.dispatch.hints import Arrived
from recado.services.effects.campaigns import Campaigns
from recado.services.effects.consequences import Consequences
from recado.services.effects.totals import MessageTotals
from recado.services.messages.admission import Admission
from recado.services.messages.draft import Again
from recado.services.messages.replacing import draft_again
from recado.storage.batches import campaigns
from recado.storage.core.audit import AuditPrincipal
from recado.storage.messages.messages import Stored

OPERATOR = AuditPrincipal("key", "key_000000000000000000001", ip="203.0.113.9", request_id="req_1")
BATCH = "btc_000000000000000000001"


async def test_its_dispatcher_knows_it_as_one_of_its_batch(house: Any) -> None:
    first = await house.accepted(house.draft())
    await house.fail(first.id, "expired: too late")
    await house.db.execute("update messages set batch_id = $2 where id = $1", first.id, BATCH)
    again = Again(await house.row(first.id), OPERATOR, include_uncertain=False)
    second = await house.accepted(draft_again(again, key_hash=None, fingerprint=None))
    _, arrived = house.told[-1]
    assert isinstance(arrived, Arrived)
    assert [(row.id, row.owner) for row in arrived.rows] == [(second.id, BATCH)]
    assert await house.db.fetchval("select owner from dispatch where id = $1", second.id) == BATCH
    assert (await house.row(second.id)).batch_id == BATCH


async def test_alone_it_belongs_to_nobody(house: Any) -> None:
    first = await house.accepted(house.draft())
    await house.fail(first.id, "expired: too late")
    again = Again(await house.row(first.id), OPERATOR, include_uncertain=False)
    await house.accepted(draft_again(again, key_hash=None, fingerprint=None))
    assert [row.owner for _, arrived in house.told for row in arrived.rows] == ["single", "single"]


async def test_a_commit_that_runs_again_counts_nothing_twice(house: Any) -> None:
    counting = Consequences(MessageTotals(clock=house.clock, emptied=lambda keys: None), Campaigns())
    admission = Admission(house.db, clock=house.clock, ids=house.ids, consequences=counting)
    first = await house.accepted(house.draft())
    new = replace(first, id=house.ids.new(MESSAGE), campaign_id="spring", coins=None, price_kind=None)
    results = [(await admission.store([new]))[0] for _ in range(2)]
    assert results == [Stored(), Stored(earlier=True)]
    found = await campaigns.get(house.db, house.organization.id, "test", "spring")
    assert found is not None
    assert (found.accepted, found.queued) == (1, 1)
