"""The dispatcher of one number on a clock of its own: who leaves, when, and what holds everybody (C14.5)."""

import asyncio
from collections import Counter
from datetime import UTC, datetime, time, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from tests.captured import capture_logs

from recado.actors.dispatch import departures
from recado.actors.dispatch.lane_context import LaneContext
from recado.actors.dispatch.lane_messages import AskSituation, Changed, Look
from recado.actors.dispatch.ready_rows import Wanted
from recado.channels.core.provider import Accepted, Account, Down, OutboundMessage, Outcome, SlowDown, Unknown
from recado.domain.core.ids import MESSAGE
from recado.domain.core.timestamps import format_timestamp
from recado.domain.messages.message import BULK, CLASSES, CRITICAL, NORMAL, WaitReason
from recado.domain.senders.number import NumberStatus
from recado.services.dispatch.hints import Forced
from recado.services.dispatch.row import WINDOW, row_of
from recado.storage.dispatch import dispatch
from recado.storage.messages import messages
from recado.storage.messages.messages import NewMessage
from recado.storage.senders.numbers import NumberKey

if TYPE_CHECKING:
    from tests.actors.dispatch.number.conftest import Line

TURN_OF_ALL = 21  # 16 critical, 4 normal, 1 bulk


def fullest_second(moments: list[float]) -> int:
    """The most departures in any second, closed at its start and open at its end."""
    return max(sum(1 for other in moments if at <= other < at + 1.0) for at in moments)


async def test_a_number_sends_at_its_pace_and_never_more_in_a_second(line: "Line") -> None:
    await line.set_number(per_second=20)
    await line.queue(100)
    await line.goes_on(3.0)
    moments = line.provider.moments
    assert moments[0] >= 1.0  # what the owner before sent in the last second is not known
    assert fullest_second(moments) <= 20
    steady = moments[4:]  # the first four make up for a fifth of a second
    assert (len(steady) - 1) / (steady[-1] - steady[0]) == pytest.approx(20, rel=0.01)
    await line.goes_on(4.0)
    assert len(line.provider.calls) == 100
    assert await line.counts() == {"sent": 100}


async def test_a_slow_number_keeps_its_distance(line: "Line") -> None:
    await line.set_number(per_second=1, quality_rating="yellow")  # half of its rate
    await line.queue(4)
    await line.goes_on(9.0)
    moments = line.provider.moments
    assert [after - before for before, after in pairwise(moments)] == pytest.approx([2.0] * 3)


async def test_a_new_rate_holds_for_what_waits_already(line: "Line") -> None:
    await line.set_number(per_second=1)
    await line.queue(50)
    await line.goes_on(3.5)
    assert len(line.provider.calls) <= 3
    await line.set_number(per_second=40)
    await line.goes_on(2.5)
    assert len(line.provider.calls) == 50
    assert fullest_second(line.provider.moments) <= 40


async def test_the_classes_share_the_pace_sixteen_to_four_to_one(line: "Line") -> None:
    await line.set_number(per_second=20)  # slow enough that one is claimed after the other
    class_of = {}
    for klass in (BULK, NORMAL, CRITICAL):
        class_of |= dict.fromkeys(await line.queue(70, klass=klass), klass)
    await line.goes_on(5.0)
    sent = [class_of[message_id] for message_id in line.provider.sent]
    assert len(sent) >= 3 * TURN_OF_ALL
    for turn in range(3):
        shares = Counter(sent[turn * TURN_OF_ALL : (turn + 1) * TURN_OF_ALL])
        assert shares == {CRITICAL: 16, NORMAL: 4, BULK: 1}


async def test_inside_a_class_the_longest_due_goes_first(line: "Line") -> None:
    await line.set_number(per_second=20)
    ids = await line.queue(30)
    await line.goes_on(3.0)
    assert line.provider.sent == ids


async def test_quiet_hours_hold_bulk_until_they_end_and_nothing_else(line: "Line") -> None:
    await line.quiet_hours(time(10), time(12))
    [bulk] = await line.queue(1, klass=BULK)
    [normal] = await line.queue(1)
    await line.goes_on(3.0)
    assert line.provider.sent == [normal]
    await line.goes_on(3_590.0, step=5.0)
    assert line.provider.sent == [normal]
    await line.goes_on(60.0, step=1.0)
    assert line.provider.sent == [normal, bulk]
    left_at = line.context.moments.at(line.provider.moments[-1])
    noon = datetime.combine(line.clock.now().date(), time(12), UTC)
    assert 0 <= (left_at - noon).total_seconds() <= 1.0


async def test_slow_down_pauses_the_number_for_as_long_as_the_provider_says_and_spends_no_attempt(
    line: "Line",
) -> None:
    told = []

    def slow_at_first(message: OutboundMessage) -> Outcome:
        if not told:
            told.append(message.id)
            return SlowDown(7.0)
        return Accepted(f"provider-{message.id}")

    line.provider.answer = slow_at_first
    await line.set_number(per_second=1)
    ids = await line.queue(3)
    await line.goes_on(12.0)
    first, *others = line.provider.moments
    assert min(others) >= first + 7.0
    assert sorted(line.provider.sent) == sorted([ids[0], *ids])
    assert max(attempt for _, _, attempt in line.provider.calls) == 1
    assert await line.counts() == {"sent": 3}
    assert await line.most_attempts() == 1


async def test_an_answer_to_a_call_that_began_before_the_pause_does_not_shorten_the_next_one(
    line: "Line", monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes: list[Outcome] = [SlowDown(None), Accepted("provider-2"), SlowDown(None)]
    calls_end, send = asyncio.Event(), line.provider.send

    async def slow(message: OutboundMessage, account: Account, attempt: int) -> Outcome:
        outcome = await send(message, account, attempt)
        await calls_end.wait()
        return outcome

    monkeypatch.setattr(line.provider, "send", slow)
    line.provider.answer = lambda message: outcomes.pop(0) if outcomes else Accepted(f"provider-{message.id}")
    await line.set_number(per_second=10)
    await line.queue(2)
    await line.goes_on(1.0)
    assert len(line.provider.calls) == 2
    calls_end.set()
    await line.goes_on(20.0)
    _, _, third, fourth = line.provider.moments
    assert fourth - third >= 10.0


async def test_five_failures_to_connect_open_the_circuit_and_single_probes_look_whether_it_may_close(
    line: "Line",
) -> None:
    line.provider.answer = lambda message: Down("connect_failed")
    await line.set_number(per_second=10)
    await line.queue(8)
    await line.goes_on(3.0)
    opened_at = line.provider.moments[4]
    assert len(line.provider.calls) == 5
    await line.goes_on(12.0)
    probes = line.provider.moments[5:]
    assert probes == pytest.approx([opened_at + 5.0], abs=0.2)  # the next one comes after ten seconds more
    line.provider.answer = lambda message: Accepted(f"provider-{message.id}")
    await line.goes_on(5.0)
    assert line.provider.moments[6] == pytest.approx(probes[0] + 10.0, abs=0.2)
    assert await line.counts() == {"sent": 8}
    assert await line.most_attempts() == 1


async def test_a_number_without_a_connection_says_so_until_a_probe_gets_through(line: "Line") -> None:
    line.provider.answer = lambda message: Down("connect_failed")
    await line.set_number(per_second=10)
    assert line.context.trouble(line.number.id) is None
    with capture_logs() as logs:
        await line.queue(8)
        await line.goes_on(3.0)
        holding = line.context.trouble(line.number.id)
        await line.goes_on(4.0)  # the first probe fails
        line.provider.answer = lambda message: Accepted(f"provider-{message.id}")
        await line.goes_on(12.0)
    assert holding is not None
    assert line.context.trouble(line.number.id) is None
    number = {"channel": "chatapp", "env": "test", "sender_id": line.number.id}
    why = {"reason": "connect_failed", "next_probe": format_timestamp(holding.until)}
    assert (holding.reason, await line.counts()) == (WaitReason.NO_CONNECTION, {"sent": 8})
    assert [each for each in logs if each["event"].startswith("circuit")] == [
        {"event": "circuit_opened", "log_level": "warning", **number, **why},
        {"event": "circuit_closed", "log_level": "info", **number},
    ]


async def test_a_provider_whose_answers_say_nothing_is_left_alone_and_the_queue_stays(line: "Line") -> None:
    line.provider.answer = lambda message: Unknown()
    await line.set_number(per_second=10)
    await line.queue(100)
    await line.goes_on(3.0)
    assert len(line.provider.calls) == 5
    assert await line.counts() == {"sending": 5, "queued": 95}
    situation = await line.registry.get_or_spawn(line.key, line.make).ask(AskSituation())
    assert situation.holding is not None
    assert situation.holding.reason is WaitReason.NO_CONNECTION
    await line.goes_on(60.0, step=0.1)
    assert len(line.provider.calls) == 8  # a probe after 5, 10 and 20 seconds
    line.provider.answer = lambda message: Accepted(f"provider-{message.id}")
    await line.goes_on(50.0, step=0.1)
    assert await line.counts() == {"sending": 8, "sent": 92}


async def test_half_of_the_outcomes_unknown_are_too_many_though_others_come_between(line: "Line") -> None:
    def in_turns(message: OutboundMessage) -> Outcome:
        return Unknown() if len(line.provider.calls) % 2 else Accepted(f"provider-{message.id}")

    line.provider.answer = in_turns
    await line.set_number(per_second=10)
    await line.queue(100)
    await line.goes_on(5.0)
    assert await line.counts() == {"sending": 10, "sent": 9, "queued": 81}


async def test_while_a_probe_is_under_way_the_others_wait_for_the_connection(
    line: "Line", monkeypatch: pytest.MonkeyPatch
) -> None:
    line.provider.answer = lambda message: Unknown()
    await line.set_number(per_second=10)
    await line.queue(7)
    await line.goes_on(3.0)
    answered, send = asyncio.Event(), line.provider.send

    async def slow(message: OutboundMessage, account: Account, attempt: int) -> Outcome:
        await answered.wait()
        return await send(message, account, attempt)

    monkeypatch.setattr(line.provider, "send", slow)
    await line.goes_on(6.0)
    situation = await line.registry.get_or_spawn(line.key, line.make).ask(AskSituation())
    answered.set()
    assert situation.in_flight == 1
    assert situation.holding is not None
    assert situation.holding.reason is WaitReason.NO_CONNECTION
    await line.goes_on(0.1)


async def test_a_database_that_is_far_away_does_not_slow_a_number_down(
    line: "Line", monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = dispatch.claim

    async def far(*arguments: Any) -> list[str]:
        await line.clock.sleep(0.1)
        verdicts = await claim(*arguments)
        await line.clock.sleep(0.1)
        return verdicts

    monkeypatch.setattr(dispatch, "claim", far)
    await line.set_number(per_second=100)
    await line.queue(600)
    await line.goes_on(6.0)
    monkeypatch.undo()
    await line.goes_on(0.3)  # the last claims that are on their way: a number that ends waits for them
    moments = line.provider.moments
    assert sum(1 for at in moments if at >= 4.0) >= 190  # of two seconds, once it knows how far it is
    assert fullest_second(moments) <= 100


async def test_numbers_of_one_account_share_its_calls_in_flight(line: "Line", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line.context.room("chatapp", "test"), "each", 3)
    answered, send, most = asyncio.Event(), line.provider.send, []

    async def slow(message: OutboundMessage, account: Account, attempt: int) -> Outcome:
        most.append(message.id)
        await answered.wait()
        return await send(message, account, attempt)

    monkeypatch.setattr(line.provider, "send", slow)
    ids = await line.queue(10)
    await line.goes_on(3.0)
    under_way = len(most)
    answered.set()
    await line.goes_on(2.0)
    assert under_way == 3
    assert sorted(line.provider.sent) == sorted(ids)


@pytest.mark.parametrize("hold", ["quiet hours", "quality"])
async def test_what_holds_bulk_holds_no_reply_in_its_window_whatever_its_priority(line: "Line", hold: str) -> None:
    if hold == "quiet hours":
        await line.quiet_hours(time(10), time(12))
    else:
        await line.set_number(quality_rating="red")
    await line.queue(1, klass=BULK)
    await line.db.execute(
        "insert into chat_windows (organization_id, sender_id, recipient_hash, last_inbound_at) values ($1, $2, 7, $3)",
        line.organization.id, line.number.id, line.clock.now(),
    )  # fmt: skip
    now, reply = line.clock.now(), line.ids.new(MESSAGE)
    new = NewMessage(
        organization_id=line.organization.id, env="test", channel="chatapp", id=reply, sender_id=line.number.id,
        type="text", recipient="+5511987654321", recipient_hash=7, klass=BULK, force=False, template_id=None,
        payload='{"text": {"body": "yes"}}', template_vars=None, metadata=None, campaign_id=None, scheduled_at=None,
        due_at=now, ttl=timedelta(hours=72), held_base_ms=0, accepted_at=now, needs_window=True,
    )  # fmt: skip
    assert row_of(new).klass == NORMAL
    assert await messages.accept(line.db, [new]) == [messages.STORED]
    line.tell(Look())
    await line.goes_on(8.0, step=0.05)
    assert line.provider.sent == [reply]


async def test_a_forced_message_leaves_at_once_and_those_after_it_pay_for_it(line: "Line") -> None:
    await line.set_number(per_second=1)
    ids = await line.queue(10)
    await line.goes_on(3.3)
    before = list(line.provider.calls)
    forced_at = line.clock.monotonic()
    await line.force(ids[-1])
    await line.goes_on(0.1)
    assert line.provider.sent == [message_id for _, message_id, _ in before] + [ids[-1]]
    assert line.provider.moments[-1] == pytest.approx(forced_at, abs=0.05)
    await line.goes_on(4.0)
    after = line.provider.moments[len(before) + 1 :]
    assert after[0] - before[-1][0] == pytest.approx(2.0, abs=0.1)  # its own second, and that of the forced one


async def test_a_forced_message_that_low_quality_holds_goes_on_when_it_rises(line: "Line") -> None:
    await line.set_number(quality_rating="red")
    (forced,) = await line.queue(1, klass=BULK)
    await line.force(forced)
    await line.goes_on(2)
    assert line.provider.sent == []
    assert await line.reasons() == {"quality"}
    await line.set_number(quality_rating="green")
    line.tell(Changed())
    await line.goes_on(2)
    assert line.provider.sent == [forced]


async def test_more_forced_messages_than_memory_holds_leave_once_each_and_in_their_order(line: "Line") -> None:
    count = 3 * WINDOW
    ids = await line.queue(count, tell=False)
    await line.db.execute("update dispatch set force = true where sender_id = $1", line.number.id)
    line.traffic.turns = asyncio.Lock()  # two batches of claims under way have no order between them
    line.tell(Forced())
    await line.goes_on(1.5)
    assert line.provider.sent == ids
    assert await line.counts() == {"sent": count}
    assert await line.most_attempts() == 1


async def test_a_number_whose_forced_messages_find_no_room_rests_until_there_is_some(
    line: "Line", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(departures, "CALLS_IN_FLIGHT", 50)
    ids = await line.queue(2 * WINDOW, tell=False)
    await line.db.execute("update dispatch set force = true where sender_id = $1", line.number.id)
    reads, refills = [], []
    read_forced, refill = LaneContext.forced, LaneContext.rows

    async def forced(context: LaneContext, key: NumberKey, limit: int) -> Any:
        reads.append(limit)
        return await read_forced(context, key, limit)

    async def rows(context: LaneContext, key: NumberKey, wanted: Wanted) -> Any:
        refills.append(wanted.klass)
        return await refill(context, key, wanted)

    monkeypatch.setattr(LaneContext, "forced", forced)
    monkeypatch.setattr(LaneContext, "rows", rows)
    answers = asyncio.Event()
    send = line.provider.send

    async def slow(message: OutboundMessage, account: Account, attempt: int) -> Outcome:
        await answers.wait()
        return await send(message, account, attempt)

    monkeypatch.setattr(line.provider, "send", slow)
    line.tell(Forced())
    await line.goes_on(3.0)  # every call of the fifty is under way
    assert len(reads) == 1
    assert len(refills) <= 2 * len(CLASSES)
    answers.set()
    await line.goes_on(2.0)
    assert sorted(line.provider.sent) == sorted(ids)
    assert len(reads) <= 5
    assert max(reads) <= 2 * WINDOW + 50


async def test_a_number_that_is_not_connected_sends_nothing_and_goes_on_where_it_stopped(line: "Line") -> None:
    await line.set_number(per_second=10)
    ids = await line.queue(20)
    await line.goes_on(2.0)
    await line.set_number(status=NumberStatus.DISCONNECTED)
    await line.traffic.quiet(line.clock)
    left = len(line.provider.calls)
    assert 0 < left < 20
    await line.goes_on(5.0)
    assert len(line.provider.calls) == left
    assert (await line.counts())["queued"] == 20 - left
    await line.set_number(status=NumberStatus.CONNECTED)
    await line.goes_on(3.0)
    assert line.provider.sent == ids


async def test_an_idle_number_leaves_memory_and_comes_back_for_the_next_message(line: "Line") -> None:
    await line.set_number(per_second=10, per_day=3)
    first = await line.queue(2)
    await line.goes_on(2.0)
    assert line.provider.sent == first
    await line.goes_on(130.0, step=5.0)
    assert not line.in_memory
    second = await line.queue(2)
    await line.goes_on(2.0)
    assert line.in_memory
    assert line.provider.sent == [*first, second[0]]  # the day is remembered: three is all
    assert await line.counts() == {"sent": 3, "queued": 1}


async def test_a_number_with_something_to_send_stays_in_memory(line: "Line") -> None:
    await line.set_number(per_day=1)
    await line.queue(2)
    await line.goes_on(200.0, step=5.0)
    assert line.in_memory
    assert await line.counts() == {"sent": 1, "queued": 1}


async def test_a_number_that_waits_for_its_next_token_rests_meanwhile(line: "Line") -> None:
    await line.set_number(per_second=1)
    await line.queue(10)
    await line.goes_on(3.0)
    cell = line.registry.get(line.key).actor_inbox.cell
    before = cell.handled
    await line.goes_on(5.0)
    assert len(line.provider.calls) >= 7
    assert cell.handled - before <= 5 * 4  # a few turns for each message, and none while nothing can be done


async def test_a_question_between_a_hint_and_its_turn_delays_nothing(line: "Line") -> None:
    await line.queue(1)
    await line.goes_on(2.0)
    await line.queue(1)  # tells the number to look
    ref = line.registry.get(line.key)
    asked = ref.ask(AskSituation())
    await line.goes_on(1.0)
    assert (await asked).holding is None
    assert len(line.provider.calls) == 2
