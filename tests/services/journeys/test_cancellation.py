"""A caller ends an execution, and what it has queued does not leave (C9.12)."""

import pytest
from tests.services.journeys.conftest import END, HOUR, Way, sms, wait

from recado.domain.core.errors import Problem
from recado.domain.journeys.execution import EndReason, ExecutionStatus
from recado.services.effects.consequences import Consequences
from recado.services.effects.wallet import Wallet
from recado.services.journeys.cancellation import ExecutionCancellation
from recado.storage.billing import ledger
from recado.storage.core.audit import SYSTEM, AuditEntry, entry_of


async def test_a_canceled_execution_goes_no_further_and_withdraws_its_queued_messages(way: Way) -> None:
    wallet = Wallet(way.directories.prices, clock=way.clock, ids=way.ids, queued=lambda keys: None)
    cancellation = ExecutionCancellation(
        way.db, clock=way.clock, effects=Consequences(wallet), recalled=way.recalled.extend
    )

    def entry() -> AuditEntry:
        where = {"organization_id": way.organization.id, "env": "test"}
        return entry_of(way.ids, SYSTEM, "journey.execution_cancel", target_id=None, **where)

    journey = await way.journey(sms("hello", "wait"), wait("wait", "end"), END)
    execution, other = await way.begin(journey), await way.begin(journey)
    await way.work()
    held = (await ledger.get(way.db, way.organization.id, "test")).held_coins  # type: ignore[union-attr]
    canceled = await cancellation.cancel(execution.key, entry())
    assert canceled == await way.read(execution.key)
    assert (canceled.status, canceled.motivo, canceled.ended_at) == (
        ExecutionStatus.CANCELADA, EndReason.CANCELED_BY_CALLER, way.clock.now(),
    )  # fmt: skip
    assert await way.db.fetchval("select array_agg(contact_id::text) from messages where status = 'queued'") == [
        other.contact_id
    ]
    assert (await ledger.get(way.db, way.organization.id, "test")).held_coins == held / 2  # type: ignore[union-attr]
    assert await way.db.fetchval("select count(*) from audit where action = 'journey.execution_cancel'") == 1
    with pytest.raises(Problem) as caught:
        await cancellation.cancel(execution.key, entry())
    assert (caught.value.code, caught.value.meta) == ("INVALID_STATE", {"status": "cancelada"})
    assert await cancellation.cancel((*execution.key[:3], "exe_" + "0" * 21), entry()) is None
    await way.work(HOUR)
    assert (await way.read(execution.key)).motivo is EndReason.CANCELED_BY_CALLER
    assert (await way.read(other.key)).motivo is EndReason.FINISHED
