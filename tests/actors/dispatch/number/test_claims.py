"""Claims of one row: each is told from every other by its moment (`dispatch.sql`), also those that nobody waits for."""

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from recado.actors.dispatch.lane_messages import Look
from recado.actors.dispatch.own_claims import LAST_CLAIMS, LOOK_EVERY
from recado.actors.dispatch.rescuer import Rescuer
from recado.services.dispatch import sending
from recado.services.dispatch.row import row_from
from recado.storage.dispatch import dispatch, epochs
from recado.storage.dispatch.begun_calls import BegunCalls
from recado.storage.dispatch.dispatch import CLAIMED, LOST

if TYPE_CHECKING:
    from tests.actors.dispatch.number.conftest import Line

_ROW = """
select d.*, d.consent_hash is not null as subject_to_consent, m.recipient,
    m.recipient_hash, m.type, m.payload, m.template_vars, m.contact_id, m.details,
    d.batch_id is not null or d.campaign_id is not null as totaled
from dispatch d join messages m using (organization_id, id)
where id = $1
"""


async def test_of_two_claims_in_one_instant_of_the_clock_one_is_lost(line: "Line") -> None:
    """A refill that was under way during the first may bring the row once more: it must not be sent twice."""
    (message_id,) = await line.queue(1, tell=False)
    row = row_from(await line.db.fetchrow(_ROW, message_id))
    verdicts = []
    for _ in range(2):
        verdicts.append(line.context.sending.claim(row))
        await line.traffic.quiet(line.clock)
    await line.goes_on(0.1)  # what they linger
    assert [await each for each in verdicts] == [CLAIMED, LOST]


async def test_a_claim_that_shows_another_owner_is_not_repeated_and_ends_this_process_at_once(
    line: "Line", monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was read and refused again and again, until the look that comes every 2 s."""
    claim, claims, lost = dispatch.claim, [], []

    async def counted(*arguments: Any) -> Any:
        claims.append(arguments)
        return await claim(*arguments)

    monkeypatch.setattr(dispatch, "claim", counted)
    rescuer = Rescuer(line.context.records, sending=line.context.sending, begun=BegunCalls(None), lost=lost.append)
    await rescuer.start()
    await line.goes_on(LOOK_EVERY + 0.1)
    await epochs.take_epoch(line.db, line.clock.now())
    await line.queue(3)
    await line.goes_on(LOOK_EVERY / 2)
    assert lost
    await line.goes_on(LOOK_EVERY)
    assert len(claims) == 1
    assert line.provider.sent == []
    await rescuer.stop()


async def test_of_claims_without_an_answer_only_so_many_are_remembered(
    line: "Line", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "MOST_UNANSWERED", 2)
    (message_id,) = await line.queue(1, tell=False)
    row = row_from(await line.db.fetchrow(_ROW, message_id))
    moments = [datetime(2026, 3, day, tzinfo=UTC) for day in (1, 2, 3)]
    for row.claimed_at in moments:
        line.context.sending.unclear(row)
    assert [at for _, at in line.context.sending.unanswered] == moments[1:]


class Outage:
    """What claims meet: their statements run only later, after everybody who waited has gone."""

    def __init__(self) -> None:
        self.lasts = True
        self.claims: list[tuple[Any, ...]] = []


@pytest.fixture
def outage(monkeypatch: pytest.MonkeyPatch) -> Outage:
    outage, claim = Outage(), dispatch.claim

    async def lost(*arguments: Any) -> Any:
        if not outage.lasts:
            return await claim(*arguments)
        outage.claims.append(arguments)
        raise ConnectionResetError

    monkeypatch.setattr(dispatch, "claim", lost)
    return outage


def rescuer_of(line: "Line") -> Rescuer:
    return Rescuer(line.context.records, sending=line.context.sending, begun=BegunCalls(None), lost=lambda error: None)


GIVEN_UP_AFTER = 32.0  # seconds: the deadline of a batch, and what its last pause takes


async def commit_late(outage: Outage) -> list[str]:
    """The statement that was given up first."""
    outage.lasts = False
    return await dispatch.claim(*outage.claims[0])


@pytest.mark.parametrize("again_for", [0.0, 200.0])
async def test_a_claim_that_is_committed_after_it_was_given_up_goes_back_and_is_sent_once(
    line: "Line", outage: Outage, again_for: float
) -> None:
    """Also when the database was away for so long that a forgotten call of that age would be uncertain."""
    rescuer = rescuer_of(line)
    ids = await line.queue(3)
    await line.goes_on(GIVEN_UP_AFTER, step=0.5)
    await line.goes_on(again_for, step=1.0)
    assert await commit_late(outage) == [CLAIMED] * 3
    await line.goes_on(GIVEN_UP_AFTER, step=0.5)
    assert await line.counts() == {"sending": 3}
    await rescuer.settle()
    assert await line.counts() == {"queued": 3}
    assert await line.most_attempts() == 0
    line.tell(Look())
    await line.goes_on(2.0)
    assert sorted(line.provider.sent) == sorted(ids)
    assert await line.counts() == {"sent": 3}
    assert await line.most_attempts() == 1


async def test_of_a_message_that_was_claimed_again_only_the_claim_that_was_given_up_goes_back(
    line: "Line", outage: Outage
) -> None:
    calls_end, send = asyncio.Event(), line.provider.send

    async def slow(*arguments: Any) -> Any:
        await calls_end.wait()
        return await send(*arguments)

    line.provider.send = slow  # type: ignore[method-assign]
    await line.queue(1)
    await line.goes_on(GIVEN_UP_AFTER, step=0.5)
    outage.lasts = False
    await line.goes_on(3.0)
    assert await line.counts() == {"sending": 1}  # its second claim, and the call of it
    await rescuer_of(line).watch()
    assert await line.counts() == {"sending": 1}
    calls_end.set()
    await line.goes_on(1.0)
    assert await line.counts() == {"sent": 1}


async def test_a_claim_that_was_given_up_is_looked_for_as_long_as_a_statement_may_take(
    line: "Line", outage: Outage
) -> None:
    rescuer, unanswered = rescuer_of(line), line.context.sending.unanswered
    await line.queue(1)
    await line.goes_on(GIVEN_UP_AFTER, step=0.5)
    outage.lasts = False
    await line.goes_on(LAST_CLAIMS - 5.0, step=1.0)
    await rescuer.watch()
    assert len(unanswered) == 1
    await line.goes_on(10.0, step=1.0)
    await rescuer.watch()
    assert unanswered == {}
