"""What tests of a batch check after every step: that its totals are true."""

from typing import Any

from tests.services.batches.conftest import Workshop

from recado.services.batches.batches import Batches
from recado.services.dispatch.owners import Owners
from recado.storage.batches.batches import Batch

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
    """The batch now, whose totals are true and sum up."""
    now = await workshop.now(batch)
    counts = {name: getattr(now, name) for name in COUNTS}
    assert counts == await truth(workshop, batch)
    assert sum(counts.values()) == now.accepted
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
