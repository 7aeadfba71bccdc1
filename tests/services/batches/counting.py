"""What tests of a batch check after every step: its totals are true, and its queued rows can be found."""

from typing import Any

from tests.services.batches.conftest import Workshop

from recado.domain.batches.batch import BatchStatus
from recado.services.batches.batches import Batches
from recado.services.dispatch.owners import Owners
from recado.storage.batches.batches import Batch

LOST = """
select d.id from dispatch d
where
    d.owner = $1 and 1 <> (
        select count(*) from batch_ranges r
        where r.organization_id = d.organization_id and r.batch_id = $1 and d.id between r.first_id and r.last_id
    )
"""
COUNTS = ("queued", "sent", "delivered", "read", "failed", "archived")


async def truth(workshop: Workshop, batch: Any) -> dict[str, int]:
    """The counts of the batch, counted in the messages themselves."""
    rows = await workshop.db.fetch(
        "select case status when 'sending' then 'queued' else status end as status, count(*) as n "
        "from messages where batch_id = $1 group by 1",
        batch.id,
    )
    return {**dict.fromkeys(COUNTS, 0), **{row["status"]: row["n"] for row in rows}}


async def checked(workshop: Workshop, batch: Any) -> Batch:
    """The batch now, whose totals are true and sum up. Until it is over each of its queued rows lies in one range."""
    now = await workshop.now(batch)
    counts = {name: getattr(now, name) for name in COUNTS}
    assert counts == await truth(workshop, batch)
    assert sum(counts.values()) == now.accepted
    if now.status in (BatchStatus.COMPLETED, BatchStatus.FAILED):
        assert await workshop.db.fetchval("select count(*) from batch_ranges where batch_id = $1", batch.id) == 0
    else:
        assert await workshop.db.fetch(LOST, batch.id) == []
    return now


def another_process(workshop: Workshop) -> Batches:
    """What a process that starts now would have: nothing in memory."""
    return Batches(
        workshop.db,
        clock=workshop.clock,
        maker=workshop.maker,
        audiences=workshop.audiences,
        owners=Owners(),
        consequences=workshop.batches.queue._consequences,
        tell=lambda number, message: workshop.told.append((number, message)),
        claims_settled=workshop.sending.claims_settled,
    )
