"""Claims that are answered when the number or the message may not send any more: their rows go back at once (C14.5).

The claim is committed and its answer is on its way, as when the database or the way to it is slow.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from datetime import time, timedelta
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock

import pytest

from recado.actors.dispatch.departures import LATE
from recado.actors.dispatch.lane import Lane
from recado.actors.dispatch.lane_messages import AskSituation, Changed, Look, TemplateMoved
from recado.channels.core.provider import Accepted, Account, Down, OutboundMessage, Outcome, SlowDown, Unknown
from recado.domain.core.ids import BATCH
from recado.domain.dispatch.leases import RENEWED_EVERY, Lease
from recado.domain.dispatch.pair_pacing import BURST
from recado.domain.messages.message import BULK, NORMAL
from recado.domain.senders.number import NumberStatus, QualityRating
from recado.domain.templates.template import TemplateStatus
from recado.services.dispatch.hints import OwnerMoved
from recado.storage.access import organizations
from recado.storage.dispatch import dispatch
from recado.storage.templates import templates

if TYPE_CHECKING:
    from tests.actors.dispatch.number.conftest import Line

Step = Callable[["Line"], Awaitable[None]]


class Answers:
    """Whether answers of the database to claims come in."""

    def __init__(self) -> None:
        self.come = asyncio.Event()
        self.come.set()
        self.held = 0  # rows whose claim is committed and not answered


@pytest.fixture
async def answers(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Answers]:
    answers, claim = Answers(), dispatch.claim

    async def claim_slowly(*arguments: Any) -> list[str]:
        verdicts = await claim(*arguments)
        answers.held += len(verdicts)
        await answers.come.wait()
        answers.held -= len(verdicts)
        return verdicts

    monkeypatch.setattr(dispatch, "claim", claim_slowly)
    yield answers
    answers.come.set()


async def suspend(line: "Line", *, suspended: bool) -> None:
    after = replace(line.organization, status="suspended" if suspended else "active")
    line.organization = await organizations.save(line.db, line.organization, after, line.clock.now())
    line.directories.organizations.clear()
    await line.set_number()


async def pause_number(line: "Line", *, paused: bool) -> None:
    at = line.clock.now() if paused else None
    await line.db.execute("update numbers set operator_paused_at = $2 where id = $1", line.number.id, at)
    line.directories.numbers.clear()
    line.tell(Changed())


async def move_template(line: "Line", status: TemplateStatus) -> None:
    line.template = await templates.save(
        line.db, line.template, replace(line.template, status=status), line.clock.now()
    )
    line.directories.templates.clear()
    line.tell(TemplateMoved(line.template.id))


async def owner_of_all(line: "Line") -> str:
    return str(await line.db.fetchval("select min(owner) from dispatch"))


async def pause_owner(line: "Line") -> None:
    line.context.records.owners.paused(await owner_of_all(line), line.clock.now())


async def resume_owner(line: "Line") -> None:
    owner = await owner_of_all(line)
    line.context.records.owners.resumed(owner, held_ms=20_000)
    line.tell(OwnerMoved(owner))


def set_number(**changes: Any) -> Step:
    return lambda line: line.set_number(**changes)


async def quiet_from_noon(line: "Line") -> None:
    await line.quiet_hours(time(11, 0, 10), time(12))


async def noisy(line: "Line") -> None:
    await line.quiet_hours(time(20), time(21))
    await line.set_number()


HOLDS: dict[str, tuple[int, Step, Step]] = {
    "disconnected": (
        NORMAL,
        set_number(status=NumberStatus.DISCONNECTED),
        set_number(status=NumberStatus.CONNECTED),
    ),
    "flagged": (NORMAL, set_number(status=NumberStatus.FLAGGED), set_number(status=NumberStatus.CONNECTED)),
    "quality": (
        BULK,
        set_number(quality_rating=QualityRating.RED),
        set_number(quality_rating=QualityRating.GREEN),
    ),
    "operator paused": (
        NORMAL,
        lambda line: pause_number(line, paused=True),
        lambda line: pause_number(line, paused=False),
    ),
    "organization suspended": (
        NORMAL,
        lambda line: suspend(line, suspended=True),
        lambda line: suspend(line, suspended=False),
    ),
    "owner paused": (BULK, pause_owner, resume_owner),
    "template withdrawn": (
        NORMAL,
        lambda line: move_template(line, TemplateStatus.PAUSED),
        lambda line: move_template(line, TemplateStatus.APPROVED),
    ),
    "quiet hours": (BULK, quiet_from_noon, noisy),
}


@pytest.mark.parametrize("name", HOLDS)
async def test_a_row_whose_claim_is_answered_while_it_may_not_leave_goes_back_and_leaves_once_it_may(
    name: str, line: "Line", answers: Answers
) -> None:
    klass, hold, resume = HOLDS[name]
    if name == "quiet hours":  # they begin while the claim is on its way
        await hold(line)
    ids = await line.queue(3, klass=klass, tell=False)
    await line.db.execute("update dispatch set owner = $1", line.ids.new(BATCH))
    answers.come.clear()
    line.tell(Look())
    await line.goes_on(2.0)
    assert answers.held == 3  # nothing else is ready: nobody will wake the number
    if name != "quiet hours":
        await hold(line)
    await line.goes_on(20.0, step=0.1)
    answers.come.set()
    await line.goes_on(2.0, step=0.1)
    assert line.provider.sent == []
    assert await line.counts() == {"queued": 3}
    assert await line.most_attempts() == 0
    assert await line.db.fetchval("select count(*) from dispatch where claimed_epoch is not null") == 0
    await resume(line)
    await line.goes_on(4.0, step=0.1)
    assert sorted(line.provider.sent) == sorted(ids)
    assert await line.counts() == {"sent": 3}
    assert await line.most_attempts() == 1


@pytest.mark.parametrize("trouble", [SlowDown(30.0), Down("connect_failed"), Unknown()])
async def test_a_row_whose_claim_is_answered_while_the_provider_is_not_to_be_called_goes_back(
    trouble: Outcome, line: "Line", answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls_end, send = asyncio.Event(), line.provider.send

    async def slow(message: OutboundMessage, account: Account, attempt: int) -> Outcome:
        outcome = await send(message, account, attempt)
        await calls_end.wait()
        return outcome

    monkeypatch.setattr(line.provider, "send", slow)
    line.provider.answer = lambda message: trouble
    await line.queue(5)
    await line.goes_on(2.0)
    assert len(line.provider.calls) == 5
    answers.come.clear()
    late = await line.queue(3)
    await line.goes_on(1.0)
    assert answers.held == 3
    calls_end.set()
    await line.goes_on(0.5)
    answers.come.set()
    await line.goes_on(1.0)
    assert not set(late) & set(line.provider.sent)
    back = await line.db.fetchval(
        "select count(*) from messages where id = any($1) and status = 'queued' and attempts = 0", late
    )
    assert back == 3
    line.provider.answer = lambda message: Accepted(f"provider-{message.id}")
    await line.goes_on(35.0, step=0.1)
    assert [line.provider.sent.count(each) for each in late] == [1, 1, 1]


async def fail(line: "Line", monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault in a turn of the number's actor: it is restarted."""

    def faulty(_: Lane) -> None:
        raise RuntimeError("a fault of ours")

    with monkeypatch.context() as patch:
        patch.setattr(Lane, "_situation", faulty)
        line.tell(AskSituation())
        await line.goes_on(0.1)


@pytest.mark.parametrize("why", ["held", "failed"])
async def test_rows_that_go_back_do_not_count_towards_their_recipient(
    why: str, line: "Line", answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    line.provider.paces_pairs = True
    await line.set_number(per_second=BURST * 20)  # all are claimed at once
    ids = await line.queue(BURST, tell=False)
    await line.db.execute("update messages set recipient_hash = 7")
    answers.come.clear()
    line.tell(Look())
    await line.goes_on(2.0)
    assert answers.held == BURST
    await (pause_number(line, paused=True) if why == "held" else fail(line, monkeypatch))
    await line.goes_on(0.5)
    answers.come.set()
    await line.goes_on(1.0)
    if why == "held":
        assert line.provider.sent == []
        await pause_number(line, paused=False)
    await line.goes_on(3.0)
    assert sorted(line.provider.sent) == sorted(ids)
    assert await line.counts() == {"sent": BURST}


async def test_calls_that_the_provider_did_not_take_do_not_count_towards_their_recipient_while_the_number_rests(
    line: "Line", monkeypatch: pytest.MonkeyPatch
) -> None:
    calls_end, send = asyncio.Event(), line.provider.send

    async def slow(message: OutboundMessage, account: Account, attempt: int) -> Outcome:
        outcome = await send(message, account, attempt)
        if len(line.provider.calls) > 1:
            await calls_end.wait()
        return outcome

    monkeypatch.setattr(line.provider, "send", slow)
    line.provider.answer = lambda message: SlowDown(5.0)
    line.provider.paces_pairs = True
    await line.set_number(per_second=BURST * 20)
    ids = await line.queue(BURST, tell=False)
    await line.db.execute("update messages set recipient_hash = 7")
    line.tell(Look())
    await line.goes_on(2.0)
    assert len(line.provider.calls) > BURST / 2  # one has told that the number is to rest
    calls_end.set()
    line.provider.answer = lambda message: Accepted(f"provider-{message.id}")
    await line.goes_on(10.0)
    assert set(line.provider.sent) == set(ids)
    assert await line.counts() == {"sent": BURST}


async def test_a_row_whose_life_ended_while_it_was_being_claimed_fails(line: "Line", answers: Answers) -> None:
    await line.queue(1, tell=False)
    await line.db.execute("update dispatch set ttl_ms = 5000, expires_at = due_at + $1", timedelta(seconds=5))
    answers.come.clear()
    line.tell(Look())
    await line.goes_on(2.0)
    assert answers.held == 1
    await line.goes_on(10.0, step=0.1)
    answers.come.set()
    await line.goes_on(1.0)
    assert line.provider.sent == []
    assert await line.counts() == {"failed": 1}


async def test_a_claim_from_before_the_process_stood_still_is_made_once_more(line: "Line", answers: Answers) -> None:
    """Another process may have the numbers by now: nothing is claimed before the lease is renewed, which shows it."""
    answers.come.clear()
    [message] = await line.queue(1)
    await line.goes_on(2.0 + LATE)
    assert answers.held == 1
    lease = line.context.sending.lease = Lease(line.clock.monotonic)
    answers.come.set()
    answers.come.clear()
    await line.goes_on(0.5)
    assert (line.provider.sent, answers.held) == ([], 0)
    lease.renewed(lease.asked())
    await line.goes_on(RENEWED_EVERY)
    assert (line.provider.sent, answers.held) == ([], 1)
    answers.come.set()
    await line.goes_on(0.5)
    assert line.provider.sent == [message]
    assert (await line.counts(), await line.most_attempts()) == ({"sent": 1}, 1)


async def test_rows_whose_claims_are_answered_late_leave_by_them_though_their_template_is_read_again(
    line: "Line", answers: Answers
) -> None:
    answers.come.clear()
    ids = await line.queue(3)
    await line.goes_on(10.0, step=0.1)
    assert answers.held == 3
    assert line.context.records.templates.peek((line.organization.id, "test", line.template.id)) is None
    answers.come.set()
    answers.come.clear()  # another claim would not be answered
    await line.goes_on(0.5)
    assert sorted(line.provider.sent) == sorted(ids)
    assert (await line.counts(), answers.held) == ({"sent": 3}, 0)


async def test_rows_whose_claims_are_answered_when_their_template_is_gone_go_back_by_one_read(
    line: "Line", answers: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers.come.clear()
    await line.queue(3)
    await line.goes_on(10.0, step=0.1)
    assert answers.held == 3
    read = AsyncMock(return_value=None)
    monkeypatch.setattr(line.directories.templates, "_load", read)
    answers.come.set()
    answers.come.clear()
    await line.goes_on(0.5)
    assert line.provider.sent == []
    assert read.await_count == 1
    assert (await line.counts()).get("sending", 0) == answers.held
