"""What is sent while its caller waits: claimed when it is stored, called for at once, settled as all are (C10.2)."""

import asyncio
import gc
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from tests.acme import acme
from tests.captured import capture_logs

from recado.actors.dispatch.direct_sends import ANSWER_WITHIN, CALL_NEEDS, DirectSends
from recado.actors.dispatch.shared_gateway import GatewayPlan, GatewayShare
from recado.channels.core.provider import (
    Accepted,
    Account,
    Down,
    OutboundMessage,
    Outcome,
    Refused,
    Retry,
    SlowDown,
    Unknown,
)
from recado.domain.contacts.consent import OptOutEntry
from recado.domain.core.errors import Unavailable
from recado.domain.core.ids import MESSAGE
from recado.domain.dispatch.leases import RENEWED_EVERY, Lease
from recado.domain.messages.message import Cause
from recado.services.effects.consequences import Consequences
from recado.services.messages.admission import Admission
from recado.storage.contacts import opt_outs
from recado.storage.contacts.opt_outs import Registrant
from recado.storage.dispatch import dispatch
from recado.storage.messages.messages import STORED, AcceptResult, Bound, ConsentCheck, NewMessage, NoConsent

if TYPE_CHECKING:
    from tests.actors.dispatch.number.conftest import Line

CONTENT = {"text": "for their eyes only"}


def of_another(line: "Line") -> GatewayShare:
    """The gateway in force, as another organization has it."""
    return line.context.shared_gateways("chatapp", "test", "org_another").current


async def filled(direct: "Direct") -> None:
    """Until the gateway's pace lets a message leave at once."""
    of_another(direct.line).pacer.ready_at(direct.line.clock.monotonic())  # it begins when it is asked first
    await direct.line.goes_on(0.2, step=0.1)


@dataclass
class Direct:
    """A gateway of ten a second that all organizations share, and whoever sends directly through it."""

    line: "Line"
    sends: DirectSends
    contents: list[Any]

    def new(self, **changes: Any) -> NewMessage:
        line, now = self.line, self.line.clock.now()
        fields: dict[str, Any] = {
            "organization_id": line.organization.id, "env": "test", "channel": "chatapp", "id": line.ids.new(MESSAGE),
            "sender_id": "chatapp:test:direct", "type": "text", "recipient": "+5511987654321", "recipient_hash": 1,
            "klass": 1, "force": False, "template_id": None, "payload": None, "template_vars": None, "metadata": None,
            "campaign_id": None, "scheduled_at": None, "due_at": now, "ttl": timedelta(hours=1), "held_base_ms": 0,
            "accepted_at": now, "content": CONTENT,
        }  # fmt: skip
        return NewMessage(**{**fields, **changes})

    def send(self, new: NewMessage) -> "asyncio.Task[tuple[Any, Outcome | None]]":
        return asyncio.get_running_loop().create_task(self.sends.send(new))

    async def answer(self, *outcomes: Outcome, within: float = 3.0) -> tuple[NewMessage, Any, Outcome | None]:
        """Send one message to a provider that answers so, the last answer again and again."""
        left = list(outcomes)

        def answer(message: OutboundMessage) -> Outcome:
            self.contents.append((message.details or {})["content"])
            return left.pop(0) if len(left) > 1 else left[0]

        self.line.provider.answer = answer
        new = self.new()
        sending = self.send(new)
        await self.line.goes_on(within, step=0.1)
        result, outcome = await sending
        return new, result, outcome

    async def row(self, message_id: str) -> Any:
        return await self.line.db.fetchrow(
            "select m.status, m.last_error, m.payload, m.attempts, d.direct, d.claimed_epoch is not null as claimed,"
            " d.reason from messages m left join dispatch d using (organization_id, id) where m.id = $1",
            message_id,
        )


@pytest.fixture
async def direct(line: "Line") -> AsyncIterator[Direct]:
    context, db = line.context, line.context.records.db
    account = Account(sender_id="gateway", organization_id="", env="test", provider_id="gateway", owner="gateway")
    provider: Any = line.provider
    plan = GatewayPlan(channel="chatapp", env="test", name="a", per_second=10, provider=provider, account=account)
    context.share([plan])
    context.sending._admission = Admission(db, clock=line.clock, ids=line.ids, consequences=Consequences())
    sends = DirectSends(context)
    await sends.start()
    await line.goes_on(1.1, step=0.1)  # a new owner waits for a second
    yield Direct(line, sends, [])
    await sends.stop()


async def test_the_caller_gets_the_provider_s_answer_and_the_content_is_not_stored(direct: Direct) -> None:
    new, result, outcome = await direct.answer(Accepted("p-1"))
    assert (result, outcome) == (STORED, Accepted("p-1"))
    assert direct.contents == [CONTENT]
    row = await direct.row(new.id)
    assert (row["status"], row["payload"], row["attempts"], row["direct"]) == ("sent", None, 1, None)


async def test_a_refusal_is_told_and_stored(direct: Direct) -> None:
    new, _, outcome = await direct.answer(Refused("policy_blocked", "no"))
    assert outcome == Refused("policy_blocked", "no")
    row = await direct.row(new.id)
    assert (row["status"], row["last_error"]) == ("failed", "policy_blocked: no")


@pytest.mark.parametrize("for_now", [Retry(), Down("connect_failed")])
async def test_what_is_refused_for_now_is_called_for_again_while_its_caller_waits(
    direct: Direct, for_now: Outcome
) -> None:
    new, _, outcome = await direct.answer(for_now, for_now, Accepted("p-1"), within=5.0)
    assert outcome == Accepted("p-1")
    assert len(direct.contents) == 3
    assert (await direct.row(new.id))["status"] == "sent"


@pytest.mark.parametrize(
    ("for_now", "attempts"), [(Retry(), [1, 2, 3]), (Down("x"), [1, 1, 1]), (SlowDown(1.0), [1, 1, 1])]
)
async def test_only_a_refusal_of_the_message_itself_spends_an_attempt(
    direct: Direct, for_now: Outcome, attempts: list[int]
) -> None:
    calls: list[int] = []
    left = [for_now, for_now, Accepted("p-1")]

    async def send(message: OutboundMessage, account: Account, attempt: int) -> Outcome:
        calls.append(attempt)
        return left.pop(0)

    direct.line.provider.send = send  # type: ignore[method-assign]
    sending = direct.send(direct.new())
    await direct.line.goes_on(6.0, step=0.1)
    assert sending.done()
    assert calls == attempts


async def test_while_the_lease_is_over_nothing_is_called_for(direct: Direct) -> None:
    line = direct.line
    lease = line.context.sending.lease = Lease(line.clock.monotonic)
    sending = direct.send(direct.new())
    await line.goes_on(3.0, step=0.1)
    assert (line.provider.sent, sending.done()) == ([], False)
    lease.renewed(lease.asked())
    await line.goes_on(RENEWED_EVERY + 0.5, step=0.1)
    assert sending.done()
    assert len(line.provider.sent) == 1


async def test_what_nobody_takes_in_fifteen_seconds_has_failed(direct: Direct) -> None:
    new, _, outcome = await direct.answer(Retry(), within=ANSWER_WITHIN + 0.5)
    assert outcome == Retry()
    row = await direct.row(new.id)
    assert (row["status"], row["last_error"].partition(":")[0]) == ("failed", "provider_error")
    assert row["direct"] is None  # it left the queue


async def test_an_unknown_outcome_stays_uncertain_and_is_not_called_for_again(direct: Direct) -> None:
    direct.line.provider.idempotent = True  # its content is gone: nothing repeats it
    new, _, outcome = await direct.answer(Unknown())
    assert outcome == Unknown()
    row = await direct.row(new.id)
    assert (row["claimed"], row["reason"], len(direct.contents)) == (True, "uncertain", 1)


async def test_an_answer_that_comes_too_late_is_recorded_though_its_caller_is_gone(direct: Direct) -> None:
    answers = asyncio.Event()
    accepted = Accepted("p-1")

    async def slow(*_: Any) -> Outcome:
        await answers.wait()
        return accepted

    direct.line.provider.send = slow  # type: ignore[method-assign]
    new = direct.new()
    sending = direct.send(new)
    await direct.line.goes_on(ANSWER_WITHIN + 0.5, step=0.1)
    assert await sending == (STORED, None)
    assert (await direct.row(new.id))["claimed"]
    answers.set()
    await direct.line.goes_on(0.5, step=0.1)
    assert (await direct.row(new.id))["status"] == "sent"


async def test_a_caller_who_goes_away_breaks_nothing_off(direct: Direct) -> None:
    new = direct.new()
    sending = direct.send(new)
    await asyncio.sleep(0)
    sending.cancel()
    await direct.line.goes_on(1.0, step=0.1)
    row = await direct.row(new.id)
    assert row is None or row["status"] == "sent"
    gateway = of_another(direct.line)
    assert gateway.gateway.permits == 0  # whatever came first, its permit is others' again


@pytest.mark.parametrize(("failure", "logged"), [(Unavailable("away"), []), (LookupError(), ["direct_send_failed"])])
async def test_a_failure_whose_caller_is_gone_is_logged_where_it_is_a_fault_of_ours(
    direct: Direct, monkeypatch: pytest.MonkeyPatch, failure: Exception, logged: list[str]
) -> None:
    away, told = asyncio.Event(), list[object]()

    async def store(_: NewMessage) -> AcceptResult:
        await away.wait()
        raise failure

    monkeypatch.setattr(direct.line.context.sending, "store", store)
    asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context["message"]))
    sending = direct.send(direct.new())
    await direct.line.goes_on(0.5, step=0.1)
    sending.cancel()
    await asyncio.wait([sending])
    with capture_logs() as logs:
        away.set()
        await direct.sends.stop()
    del sending
    gc.collect()
    assert told == []
    assert [entry["event"] for entry in logs] == logged


async def test_whoever_has_a_turn_is_sent_by_it(direct: Direct) -> None:
    gateway, new = of_another(direct.line), direct.new()
    await filled(direct)
    assert direct.sends.has_turn(new)
    assert gateway.gateway.permits == 1
    sending = direct.send(new)
    await direct.line.goes_on(1.0, step=0.1)
    assert (await sending)[0] is STORED
    assert (len(direct.line.provider.calls), gateway.gateway.permits) == (1, 0)


async def test_what_is_not_stored_hands_the_turn_that_it_had_back(direct: Direct) -> None:
    gateway = of_another(direct.line)
    first, again = (direct.new(key_hash=b"k" * 32, fingerprint=b"f" * 32) for _ in range(2))
    sending = direct.send(first)
    await direct.line.goes_on(1.0, step=0.1)
    await sending
    await filled(direct)
    assert direct.sends.has_turn(again)
    result, _ = await direct.sends.send(again)
    assert isinstance(result, Bound)
    assert (result.message_id, gateway.gateway.permits) == (first.id, 0)


async def test_whoever_would_have_to_wait_has_no_turn(direct: Direct) -> None:
    gateway = of_another(direct.line)
    first, second, third = direct.new(), direct.new(), direct.new()
    await filled(direct)
    assert direct.sends.has_turn(first)
    assert not direct.sends.has_turn(second)  # the pace lets one be claimed ahead
    assert gateway.gateway.permits == 1
    waiting = direct.send(second)
    await asyncio.sleep(0)
    gateway.gateway.pacer.set_rate(1_000)
    assert not direct.sends.has_turn(third)  # nor before one that came first
    sending = direct.send(first)
    await direct.line.goes_on(1.0, step=0.1)
    await asyncio.gather(sending, waiting)
    assert (len(direct.line.provider.calls), gateway.gateway.permits) == (2, 0)
    assert not direct.sends.has_turn(direct.new(refused=Cause("suppressed", "no")))  # it needs none


async def test_whoever_gets_no_turn_in_time_has_stored_nothing(direct: Direct) -> None:
    gateway = of_another(direct.line)
    for _ in range(5):
        gateway.take(direct.line.clock.monotonic(), forced=True)
        gateway.ended(Down("connect_failed"), 0)
    for _ in range(4):  # its pauses double: the next is longer than anybody waits
        await direct.line.goes_on(gateway.breaker.ready_at() - direct.line.clock.monotonic() + 0.1, step=1.0)
        gateway.take(direct.line.clock.monotonic(), forced=True)
        gateway.ended(Down("connect_failed"), 0)
    new = direct.new()
    sending = direct.send(new)
    await direct.line.goes_on(ANSWER_WITHIN + 0.5, step=0.5)
    with pytest.raises(Unavailable):
        await sending
    assert await direct.row(new.id) is None


@pytest.mark.parametrize("opens_in", [ANSWER_WITHIN - CALL_NEEDS + 0.2, ANSWER_WITHIN - 0.05])
async def test_whoever_gets_a_turn_too_late_for_a_call_has_stored_nothing(direct: Direct, opens_in: float) -> None:
    gateway = of_another(direct.line)
    gateway.take(direct.line.clock.monotonic(), forced=True)
    gateway.ended(SlowDown(opens_in), gateway.breaker.pauses)
    new = direct.new()
    sending = direct.send(new)
    await direct.line.goes_on(ANSWER_WITHIN + 1.0, step=0.1)
    with pytest.raises(Unavailable):
        await sending
    assert await direct.row(new.id) is None
    assert (direct.line.provider.calls, gateway.gateway.permits) == ([], 0)


async def test_whoever_gets_a_turn_just_in_time_hears_the_answer_of_a_slow_provider(direct: Direct) -> None:
    clock, gateway = direct.line.clock, of_another(direct.line)
    gateway.take(clock.monotonic(), forced=True)
    gateway.ended(SlowDown(ANSWER_WITHIN - CALL_NEEDS - 0.2), gateway.breaker.pauses)

    async def slow(*_: Any) -> Outcome:
        await clock.sleep(CALL_NEEDS - 0.5)
        return Accepted("p-1")

    direct.line.provider.send = slow  # type: ignore[method-assign]
    sending = direct.send(direct.new())
    await direct.line.goes_on(ANSWER_WITHIN, step=0.1)
    assert sending.done()
    assert await sending == (STORED, Accepted("p-1"))


async def test_whoever_came_during_a_pause_of_the_provider_is_sent_after_it(direct: Direct) -> None:
    gateway = of_another(direct.line)
    gateway.take(direct.line.clock.monotonic(), forced=True)
    gateway.ended(SlowDown(3.0), gateway.breaker.pauses)
    new = direct.new()
    sending = direct.send(new)
    await direct.line.goes_on(4.0, step=0.1)
    assert sending.done()
    assert (await direct.row(new.id))["status"] == "sent"


async def test_whoever_waits_alone_is_called_for_when_the_pause_of_the_gateway_ends(direct: Direct) -> None:
    gateway = of_another(direct.line)
    gateway.take(direct.line.clock.monotonic(), forced=True)
    gateway.ended(SlowDown(3.0), 0)
    sending = direct.send(direct.new())
    await direct.line.goes_on(4.0, step=0.1)
    assert sending.done()
    assert type((await sending)[1]) is Accepted


async def test_whoever_waits_alone_is_the_probe_of_an_open_circuit(direct: Direct) -> None:
    gateway = of_another(direct.line)
    for _ in range(5):
        gateway.take(direct.line.clock.monotonic(), forced=True)
        gateway.ended(Down("connect_failed"), 0)
    sending = direct.send(direct.new())
    await direct.line.goes_on(6.0, step=0.1)
    assert sending.done()
    assert type((await sending)[1]) is Accepted


@pytest.fixture
def first_is_away(direct: Direct) -> list[str]:
    """There are two gateways, and nobody answers at the first one; the calls, by their gateway."""
    line, called = direct.line, list[str]()

    async def send(message: OutboundMessage, account: Account, attempt: int) -> Outcome:
        called.append(account.provider_id)
        return Down("connect_failed") if account.provider_id == "first" else Accepted("p-1")

    line.provider.send = send  # type: ignore[method-assign]
    provider: Any = line.provider
    line.context.share(
        GatewayPlan(
            channel="chatapp", env="test", name=name, per_second=10, provider=provider,
            account=Account(sender_id=name, organization_id="", env="test", provider_id=name, owner=name),
        )
        for name in ("first", "second")
    )  # fmt: skip
    return called


async def test_a_message_that_the_first_gateway_does_not_take_goes_through_the_second_one(
    direct: Direct, first_is_away: list[str]
) -> None:
    sending = direct.send(direct.new())
    await direct.line.goes_on(ANSWER_WITHIN, step=0.1)
    assert (await sending)[1] == Accepted("p-1")
    assert first_is_away == ["first"] * 3 + ["second"]


async def test_whoever_waits_at_a_gateway_that_fails_moves_on_to_the_other_one(
    direct: Direct, first_is_away: list[str]
) -> None:
    first = of_another(direct.line)
    first.take(direct.line.clock.monotonic(), forced=True)
    first.ended(SlowDown(60.0), 0)
    sending = [direct.send(direct.new()) for _ in range(3)]
    await direct.line.goes_on(0.5, step=0.1)
    assert first_is_away == []
    for _ in range(2):
        first.take(direct.line.clock.monotonic(), forced=True)
        first.ended(SlowDown(60.0), 0)
    await direct.line.goes_on(1.0, step=0.1)
    assert [outcome for _, outcome in await asyncio.gather(*sending)] == [Accepted("p-1")] * 3
    assert first_is_away == ["second"] * 3
    assert (first.gateway.permits, of_another(direct.line).gateway.permits) == (0, 0)


async def test_they_leave_at_the_pace_of_their_gateway(direct: Direct) -> None:
    sending = [direct.send(direct.new()) for _ in range(30)]
    await direct.line.goes_on(4.0)
    assert all(type(outcome) is Accepted for _, outcome in await asyncio.gather(*sending))
    moments = direct.line.provider.moments
    for first, eleventh in zip(moments, moments[10:], strict=False):
        assert eleventh - first >= 1.0


async def test_whoever_sends_one_by_one_has_its_turn_beside_an_organization_that_sends_all_it_can(
    direct: Direct,
) -> None:
    """The pace is shared among organizations, each of which has as many turns as any other while it waits (C31)."""
    line = direct.line
    other = (await acme(line.db, line.clock, line.ids)).organization
    theirs = [direct.send(direct.new()) for _ in range(60)]  # for six seconds at the gateway's pace
    await line.goes_on(1.0, step=0.1)
    waited = []
    for _ in range(3):
        began, sending = line.clock.monotonic(), direct.send(direct.new(organization_id=other.id))
        while not sending.done():
            await line.goes_on(0.1, step=0.1)
        assert type((await sending)[1]) is Accepted
        waited.append(line.clock.monotonic() - began)
    assert max(waited) <= 0.5  # its turn is among the next: two permits are given already
    assert not all(each.done() for each in theirs)
    await line.goes_on(6.0, step=0.1)
    await asyncio.gather(*theirs, return_exceptions=True)


async def test_what_one_sends_again_and_again_keeps_nobody_else_waiting(direct: Direct) -> None:
    line = direct.line
    other = (await acme(line.db, line.clock, line.ids)).organization
    line.provider.answer = lambda message: (
        Retry() if message.organization_id == line.organization.id else Accepted(message.id)
    )
    theirs = [direct.send(direct.new()) for _ in range(150)]  # each is called for once, and up to three times more
    await line.goes_on(7.0, step=0.1)
    news = direct.new(organization_id=other.id)
    sending = direct.send(news)
    await line.goes_on(1.0, step=0.1)
    assert sending.done()
    assert type(sending.result()[1]) is Accepted
    await line.goes_on(ANSWER_WITHIN, step=0.1)
    await asyncio.gather(*theirs, return_exceptions=True)
    assert of_another(line).gateway.permits == 0


async def test_whose_sends_get_no_answer_waits_alone(direct: Direct) -> None:
    line = direct.line
    other = (await acme(line.db, line.clock, line.ids)).organization
    line.provider.answer = lambda message: (
        Unknown() if message.organization_id == line.organization.id else Accepted(message.id)
    )
    for _ in range(5):
        sending = direct.send(direct.new())
        await line.goes_on(0.5, step=0.1)
        assert (await sending)[1] == Unknown()
    new = direct.new()
    theirs, others = direct.send(new), direct.send(direct.new(organization_id=other.id))
    await line.goes_on(1.0, step=0.1)
    assert type((await others)[1]) is Accepted
    assert (theirs.done(), await direct.row(new.id)) == (False, None)
    await line.goes_on(4.5, step=0.1)
    assert (await theirs)[1] == Unknown()  # it was the probe


async def test_nobody_else_is_given_what_is_sent_directly(direct: Direct) -> None:
    answers = asyncio.Event()

    async def slow(*_: Any) -> Outcome:
        await answers.wait()
        return Accepted("p-1")

    direct.line.provider.send = slow  # type: ignore[method-assign]
    new = direct.new()
    sending = direct.send(new)
    await direct.line.goes_on(1.0, step=0.1)
    assert (await direct.row(new.id))["direct"]
    assert await dispatch.ready_senders(direct.line.db) == []
    answers.set()
    await direct.line.goes_on(1.0, step=0.1)
    assert await sending == (STORED, Accepted("p-1"))


async def test_a_refusal_stops_what_waits_to_be_called_for_again(direct: Direct) -> None:
    line = direct.line
    gateway = of_another(line)
    direct.line.provider.answer = lambda message: SlowDown(4.0)
    new = direct.new(consent=ConsentCheck.DONE)
    sending = direct.send(new)
    await line.goes_on(2.0, step=0.1)
    assert len(line.provider.calls) == 1
    line.context.consents.refused([(new.organization_id, new.env, new.recipient_hash)])
    await line.goes_on(5.0, step=0.1)
    assert sending.done()
    assert len(line.provider.calls) == 1
    assert isinstance(sending.result()[1], Refused)
    row = await direct.row(new.id)
    assert (row["status"], row["last_error"].partition(":")[0], row["direct"]) == ("failed", "opted_out", None)
    assert gateway.gateway.permits == 0
    assert not line.context.consents._going


async def test_who_refused_while_a_message_waited_for_its_turn_is_not_written_to(direct: Direct) -> None:
    line = direct.line
    gateway = of_another(line)
    gateway.take(line.clock.monotonic(), forced=True)
    gateway.ended(SlowDown(3.0), gateway.breaker.pauses)
    new = direct.new(consent=ConsentCheck.DONE)  # asked, before it came here
    sending = direct.send(new)
    await line.goes_on(1.0, step=0.1)
    refusal = OptOutEntry(line.clock.now(), "test")
    await opt_outs.enter(line.db, [(Registrant(new.organization_id, new.env, new.recipient), refusal)])
    await line.goes_on(4.0, step=0.1)
    assert sending.done()
    assert isinstance(sending.result()[0], NoConsent)
    assert not line.provider.calls
    assert await direct.row(new.id) is None
    assert gateway.gateway.permits == 0


@pytest.mark.parametrize("after", [None, 0.2, 5.0, 14.0, 60.0])
async def test_what_the_provider_slows_down_to_the_end_has_failed_when_its_caller_hears(
    direct: Direct, after: float | None
) -> None:
    """No call is in doubt: the answer comes with the row that it tells of."""
    gateway = of_another(direct.line)
    new, result, outcome = await direct.answer(SlowDown(after), within=ANSWER_WITHIN + 0.5)
    assert result == STORED
    assert isinstance(outcome, Retry | SlowDown)
    row = await direct.row(new.id)
    assert (row["status"], row["last_error"].partition(":")[0], row["direct"]) == ("failed", "provider_error", None)
    assert gateway.gateway.permits == 0


async def test_what_waits_for_a_place_of_a_call_to_the_end_has_failed_when_its_caller_hears(direct: Direct) -> None:
    gateway = of_another(direct.line)
    account = Account(
        sender_id="gateway", organization_id="", env="test", provider_id="gateway", owner=direct.line.organization.id
    )
    for _ in range(gateway.room.each):  # calls that stall
        gateway.room.take(account)
    new = direct.new()
    sending = direct.send(new)
    await direct.line.goes_on(ANSWER_WITHIN + 0.5, step=0.1)
    assert sending.done()
    assert await sending == (STORED, Retry())
    row = await direct.row(new.id)
    assert (row["status"], row["last_error"].partition(":")[0]) == ("failed", "provider_error")
    assert (direct.line.provider.calls, gateway.gateway.permits) == ([], 0)
