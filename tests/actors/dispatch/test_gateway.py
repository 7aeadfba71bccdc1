"""Gateways that lanes share: their pace, whose turn it is, their circuit, and who takes over (C14.5.1, C16.3)."""

from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import cycle
from types import SimpleNamespace
from typing import Any

import pytest
from tests.captured import capture_logs

from recado.actors.dispatch import shared_gateway
from recado.actors.dispatch.call_room import CallRoom
from recado.actors.dispatch.failover import Failover
from recado.actors.dispatch.gateway import Gateway
from recado.actors.dispatch.shared_gateway import Borrower, GatewayPlan, SharedGateway, told_by
from recado.channels.core.provider import Accepted, Account, Down, NoPlace, Outcome, Refused, Retry, SlowDown, Unknown
from recado.domain.channels.source import Source
from recado.domain.core.timestamps import format_timestamp
from recado.domain.dispatch.breaker import BreakerState
from recado.domain.dispatch.gates import Hold
from recado.domain.dispatch.shared_breaker import FAIL_OVER_FOR
from recado.domain.messages.message import BULK, CRITICAL, NORMAL, WaitReason
from recado.engine.clock import VirtualClock

START = datetime(2026, 3, 10, 12, 0, tzinfo=UTC)
AHEAD = 0.05
NO_PROVIDER: Any = None
SENT, REFUSED = Accepted("p-1"), Refused("invalid_number", "no such number")


def gateway(clock: VirtualClock, *, per_second: float = 100.0, name: str = "gateway_a") -> SharedGateway:
    plan = GatewayPlan(
        channel="sms", env="live", name=name, per_second=per_second, provider=NO_PROVIDER, account=NO_PROVIDER
    )
    return SharedGateway(plan, clock, ahead=lambda: AHEAD, opens_at=lambda: 0.0)


def test_an_organization_has_half_of_the_calls_that_a_gateway_bears() -> None:
    account = Account(sender_id="gateway_a", organization_id="", env="live", provider_id="gateway_a", owner="gateway_a")
    plan = GatewayPlan(
        channel="sms", env="live", name="gateway_a", per_second=1, provider=NO_PROVIDER, account=account, connections=4
    )
    shared = SharedGateway(plan, VirtualClock(START), ahead=lambda: AHEAD, opens_at=lambda: 0.0)
    begun = []
    for organization_id in ("org_a", "org_a", "org_a", "org_b", "org_b", "org_b"):
        share = shared.share_of(organization_id)
        assert share.account is not None
        if share.room.has_place(share.account, lambda: None):
            share.room.take(share.account)
            begun.append(organization_id)
    assert begun == ["org_a", "org_a", "org_b", "org_b"]


def test_two_gateways_of_one_adapter_are_both_told_of_by_it() -> None:
    plans = [
        GatewayPlan(
            channel="sms",
            env="live",
            name=name,
            per_second=1,
            provider=SimpleNamespace(name=adapter),
            account=NO_PROVIDER,
        )
        for name, adapter in (("gateway_a", "smpp"), ("gateway_b", "smpp"), ("gateway_c", "bridge"))
    ]
    assert told_by(plans) == {
        Source("sms", "smpp", "live"): ["gateway_a", "gateway_b"],
        Source("sms", "bridge", "live"): ["gateway_c"],
    }


class LaneOfAnOrganization:
    """Sends whatever it has a permit for, when its token is there. `left`: what left of each class."""

    def __init__(self, clock: VirtualClock, at: SharedGateway, organization_id: str, **waiting: int) -> None:
        self.clock, self.gateway = clock, at.share_of(organization_id)
        self.borrower = Borrower(self.gateway, self.woken)
        self.waiting = {{"critical": CRITICAL, "normal": NORMAL, "bulk": BULK}[name]: n for name, n in waiting.items()}
        self.left: Counter[int] = Counter()
        self.claimed: list[int] = []
        self.moments: list[float] = []
        self.wakes = 0
        self.ask()

    def ask(self) -> None:
        held = Counter(self.borrower.permits)
        self.gateway.want(self.borrower, {klass: n - held[klass] for klass, n in self.waiting.items()})
        self.claim()

    def woken(self) -> None:
        self.wakes += 1
        self.claim()

    def claim(self) -> None:
        while self.borrower.permits:
            klass = self.borrower.permits.popleft()
            self.waiting[klass] -= 1
            self.claimed.append(klass)
        self.depart()

    def depart(self) -> None:
        while self.claimed:
            now = self.clock.monotonic()
            at = self.gateway.pacer.ready_at(now)
            if at > now:
                self.gateway.come_back(self.depart, at)
                return
            klass = self.claimed.pop(0)
            self.gateway.take(now, forced=False)
            self.moments.append(now)
            self.left[klass] += 1
            self.gateway.used()
            self.gateway.ended(SENT, self.gateway.breaker.pauses)


async def test_lanes_together_leave_at_the_pace_of_their_gateway_and_each_of_them_gets_its_part() -> None:
    clock = VirtualClock(START)
    at = gateway(clock, per_second=100)
    lanes = [LaneOfAnOrganization(clock, at, f"org_{place % 2}", bulk=1_000) for place in range(4)]
    await clock.advance(10.0)
    moments = sorted(moment for lane in lanes for moment in lane.moments)
    assert 980 <= len(moments) <= 1_001
    for first, later in zip(moments, moments[100:], strict=False):
        assert later - first >= 1.0  # no sliding second has more than 100
    assert max(lane.left[BULK] for lane in lanes) - min(lane.left[BULK] for lane in lanes) <= 5


@pytest.mark.parametrize(
    ("per_second", "lanes", "rows"),
    [(100, 1, 320), (2_000, 1, 500), (2_000, 2, 320), (10_000, 1, 1_280), (10_000, 5, 500)],
)
def test_lanes_of_a_fast_gateway_hold_together_what_it_lets_depart_in_a_moment(
    per_second: float, lanes: int, rows: int
) -> None:
    clock = VirtualClock(START)
    at = gateway(clock, per_second=per_second)
    borrowing = [LaneOfAnOrganization(clock, at, f"org_{place}", bulk=1_000) for place in range(lanes)]
    assert [lane.gateway.reach for lane in borrowing] == [rows] * lanes
    at.forget(borrowing[0].borrower)
    assert borrowing[0].gateway.reach >= rows


async def test_classes_share_sixteen_to_four_to_one_whoever_has_them() -> None:
    clock = VirtualClock(START)
    at = gateway(clock, per_second=210)
    urgent = LaneOfAnOrganization(clock, at, "org_1", critical=10_000)
    usual = LaneOfAnOrganization(clock, at, "org_2", normal=10_000)
    many = LaneOfAnOrganization(clock, at, "org_3", bulk=10_000)
    await clock.advance(10.0)
    assert abs(urgent.left[CRITICAL] - 1_600) < 40
    assert abs(usual.left[NORMAL] - 400) < 20
    assert abs(many.left[BULK] - 100) < 10


async def test_an_organization_of_many_lanes_gets_no_more_than_one_of_one() -> None:
    clock = VirtualClock(START)
    at = gateway(clock, per_second=100)
    crowd = [LaneOfAnOrganization(clock, at, "org_crowd", bulk=1_000) for _ in range(9)]
    alone = LaneOfAnOrganization(clock, at, "org_alone", bulk=1_000)
    await clock.advance(10.0)
    of_the_crowd = sum(lane.left[BULK] for lane in crowd)
    assert abs(of_the_crowd - alone.left[BULK]) <= 10


async def test_a_permit_that_is_not_used_goes_to_whoever_waits() -> None:
    clock = VirtualClock(START)
    at = gateway(clock, per_second=20)  # one permit at a time
    first = Borrower(at.share_of("org_1"), lambda: None)
    woken: list[str] = []
    second = Borrower(at.share_of("org_2"), lambda: woken.append("second"))
    at.want(first, {BULK: 1})
    at.want(second, {BULK: 1})
    assert (list(first.permits), list(second.permits)) == ([BULK], [])
    first.permits.clear()
    first.gateway.hand_back()
    assert list(second.permits) == [BULK]
    assert woken == ["second"]


async def test_a_lane_that_ends_leaves_its_permits_and_its_place_to_others() -> None:
    clock = VirtualClock(START)
    at = gateway(clock, per_second=20)
    ends, stays = Borrower(at.share_of("org_1"), lambda: None), Borrower(at.share_of("org_1"), lambda: None)
    at.want(ends, {BULK: 5, NORMAL: 5})
    at.want(stays, {BULK: 1})
    assert len(ends.permits) == 1
    at.forget(ends)
    assert (list(ends.permits), list(stays.permits)) == ([], [BULK])
    stays.permits.clear()
    stays.gateway.hand_back()
    assert not ends.permits  # nothing is given to who is gone


async def test_what_a_lane_no_longer_wants_is_given_to_nobody_in_its_name() -> None:
    clock = VirtualClock(START)
    at = gateway(clock, per_second=20)
    first, second = Borrower(at.share_of("org_1"), lambda: None), Borrower(at.share_of("org_2"), lambda: None)
    at.want(first, {BULK: 1})
    at.want(second, {BULK: 3, NORMAL: 2})
    at.want(second, {BULK: 1})
    first.permits.clear()
    first.gateway.hand_back()
    assert list(second.permits) == [BULK]
    assert second.wanted == {}


async def outcomes(clock: VirtualClock, at: SharedGateway, *those: Outcome, of: str = "org_1 org_2") -> None:
    """Calls of these organizations in turns, one after the other."""
    at.pacer.ready_at(clock.monotonic())  # its bucket fills from the first time that it is asked
    shares = cycle([at.share_of(each) for each in of.split()])
    for each, share in zip(those, shares, strict=False):
        await clock.advance(0.5)
        share.take(clock.monotonic(), forced=False)
        share.ended(each, share.breaker.pauses)


async def test_five_calls_that_do_not_get_through_stop_all_lanes_and_one_probe_goes_first() -> None:
    clock = VirtualClock(START)
    at = gateway(clock)
    woken: list[str] = []
    one = Borrower(at.share_of("org_1"), lambda: woken.append("one"))
    other = Borrower(at.share_of("org_2"), lambda: woken.append("other"))
    await clock.advance(1.0)
    at.want(one, {BULK: 1})
    at.want(other, {BULK: 1})
    for each in (one, other):
        each.permits.clear()
        each.gateway.used()
    woken.clear()
    await outcomes(clock, at, *[Down("connect_failed")] * 5)
    assert at.share_of("org_3").holding() == Hold(WaitReason.NO_CONNECTION, clock.now() + timedelta(seconds=5))
    assert sorted(woken) == ["one", "other"]
    at.want(one, {BULK: 3})
    assert not one.permits
    await clock.advance(5.0)
    assert at.share_of("org_3").holding() is None
    at.want(one, {BULK: 3})
    assert len(one.permits) == 1  # the probe
    at.want(other, {BULK: 3})
    assert not other.permits
    one.gateway.take(clock.monotonic(), forced=False)
    one.permits.clear()
    one.gateway.used()
    assert at.share_of("org_3").probing() == Hold(WaitReason.NO_CONNECTION)
    one.gateway.ended(SENT, at.breaker.pauses)
    assert at.share_of("org_3").probing() is None
    assert other.permits


async def test_a_provider_that_asks_to_slow_down_holds_everybody_s_messages() -> None:
    clock = VirtualClock(START)
    at = gateway(clock)
    await outcomes(clock, at, SlowDown(2.0))
    assert at.share_of("org_3").holding() == Hold(WaitReason.NUMBER_PAUSED, clock.now() + timedelta(seconds=2))
    lane = Borrower(at.share_of("org_1"), lambda: None)
    at.want(lane, {CRITICAL: 1})
    assert not lane.permits


async def test_calls_without_a_place_say_nothing_of_the_gateway() -> None:
    clock = VirtualClock(START)
    first, second = gateway(clock), gateway(clock, name="gateway_b")
    share = Failover(clock, (first, second)).of("org_1").current
    for _ in range(10):
        share.take(clock.monotonic(), forced=True)
        share.ended(NoPlace(), share.breaker.pauses)
    assert (share.holding(), first.failures.total) == (None, 0)
    assert Failover(clock, (first, second)).of("org_1").current.name == "gateway_a"


async def test_after_three_failures_in_a_row_the_other_gateway_takes_over_for_five_minutes() -> None:
    clock = VirtualClock(START)
    first, second = gateway(clock), gateway(clock, name="gateway_b")
    both = Failover(clock, (first, second)).of("org_3")
    woken: list[str] = []
    lane = Borrower(first.share_of("org_1"), lambda: woken.append("lane"))
    first.want(lane, {BULK: 100})
    await outcomes(clock, first, Retry(), Unknown(), SENT, Retry(), REFUSED, Down("connect_failed"), Retry())
    assert both.current.gateway is first  # what is refused for good, or taken, is no failure of the gateway
    await outcomes(clock, first, Retry())
    woken.clear()
    assert both.current.gateway is second
    assert woken == ["lane"]  # it borrows from the other one now
    await clock.advance(FAIL_OVER_FOR - 1)
    assert both.current.gateway is second
    await clock.advance(2.0)
    assert both.current.gateway is first


async def test_what_was_under_way_when_the_other_took_over_does_not_keep_it_longer() -> None:
    clock = VirtualClock(START)
    first, second = gateway(clock), gateway(clock, name="gateway_b")
    both = Failover(clock, (first, second)).of("org_3")
    shares = [first.share_of("org_1"), first.share_of("org_2")] * 5
    first.pacer.ready_at(clock.monotonic())
    await clock.advance(1.0)
    for share in shares:
        share.take(clock.monotonic(), forced=True)
    for share in shares[:3]:
        share.ended(Retry(), first.breaker.pauses)
    assert both.current.gateway is second
    for share in shares[3:]:  # these calls had begun before
        share.ended(Retry(), first.breaker.pauses)
    await clock.advance(FAIL_OVER_FOR + 1)
    assert both.current.gateway is first


async def test_whoever_waits_has_a_permit_when_the_pause_is_over() -> None:
    clock = VirtualClock(START)
    at = gateway(clock)
    await outcomes(clock, at, SlowDown(2.0))
    woken: list[str] = []
    waits = Borrower(at.share_of("org_1"), lambda: woken.append("waits"))
    at.want(waits, {CRITICAL: 1})
    await clock.advance(1.9)
    assert not waits.permits
    await clock.advance(0.2)
    assert list(waits.permits) == [CRITICAL]
    assert woken == ["waits"]


async def test_a_gateway_alone_stays_whatever_it_answers() -> None:
    clock = VirtualClock(START)
    only = gateway(clock)
    await outcomes(clock, only, *[Retry()] * 9)
    assert Failover(clock, (only,)).of("org_1").current.gateway is only


async def test_whoever_waited_when_the_provider_asked_for_a_pause_has_a_permit_after_it() -> None:
    clock = VirtualClock(START)
    at = gateway(clock, per_second=10)
    first, second = Borrower(at.share_of("org_1"), lambda: None), Borrower(at.share_of("org_2"), lambda: None)
    at.want(first, {CRITICAL: 1})
    at.want(second, {CRITICAL: 1})
    await clock.advance(0.1)
    first.permits.clear()
    first.gateway.take(clock.monotonic(), forced=False)
    first.gateway.used()
    assert not second.permits
    first.gateway.ended(SlowDown(2.0), at.breaker.pauses)
    await clock.advance(2.1)
    assert list(second.permits) == [CRITICAL]


async def test_what_one_organization_alone_sends_without_an_answer_holds_only_its_own() -> None:
    clock = VirtualClock(START)
    at = gateway(clock)
    woken: list[str] = []
    theirs = Borrower(at.share_of("org_1"), lambda: woken.append("theirs"))
    other = Borrower(at.share_of("org_2"), lambda: woken.append("other"))
    await clock.advance(1.0)
    at.want(theirs, {})
    at.want(other, {})
    await outcomes(clock, at, *[Unknown()] * 5, of="org_1")
    assert theirs.gateway.holding() == Hold(WaitReason.NO_CONNECTION, clock.now() + timedelta(seconds=5))
    assert other.gateway.holding() is None
    assert woken == ["theirs"]  # it gives back what is claimed
    at.want(theirs, {CRITICAL: 9})  # as requests do that wait for a permit
    at.want(other, {BULK: 2})
    assert (len(theirs.permits), len(other.permits)) == (0, 2)
    assert (theirs.gateway.lets_ahead(0), other.gateway.lets_ahead(0)) == (False, True)


async def test_its_probe_goes_by_itself_and_lets_its_messages_leave_again() -> None:
    clock = VirtualClock(START)
    at = gateway(clock)
    await outcomes(clock, at, *[Unknown()] * 5, of="org_1")
    woken: list[str] = []
    waits = Borrower(at.share_of("org_1"), lambda: woken.append("waits"))
    at.want(waits, {CRITICAL: 9})
    await clock.advance(4.9)
    assert not waits.permits
    await clock.advance(0.2)
    assert (list(waits.permits), woken) == ([CRITICAL], ["waits"])  # nobody else has anything to send
    share = waits.gateway
    share.take(clock.monotonic(), forced=False)
    waits.permits.clear()
    share.used()
    assert (share.probing(), at.share_of("org_2").probing()) == (Hold(WaitReason.NO_CONNECTION), None)
    assert not waits.permits
    share.ended(SENT, share.breaker.pauses)
    assert share.probing() is None
    assert waits.permits


@pytest.mark.parametrize("simulated", [Accepted("p-1", simulated=True), Refused("suppressed", "", simulated=True)])
async def test_what_the_service_answers_in_the_provider_s_place_neither_keeps_a_circuit_closed_nor_closes_it(
    simulated: Outcome,
) -> None:
    clock = VirtualClock(START)
    at = gateway(clock)
    for _ in range(4):
        await outcomes(clock, at, Down("connect_failed"), simulated)
    assert at.breaker.state is BreakerState.CLOSED
    await outcomes(clock, at, Down("connect_failed"))
    assert at.breaker.state is BreakerState.OPEN
    await clock.advance(5.1)
    await outcomes(clock, at, simulated)
    assert at.breaker.state is BreakerState.OPEN
    await outcomes(clock, at, SENT)
    assert at.breaker.state is BreakerState.CLOSED


async def test_the_probe_of_a_gateway_goes_to_another_when_that_of_the_first_has_no_answer() -> None:
    clock = VirtualClock(START)
    at = gateway(clock)
    await outcomes(clock, at, *[Down("connect_failed")] * 5)
    poison, other = (Borrower(at.share_of(each), lambda: None) for each in ("org_1", "org_2"))
    at.want(poison, {CRITICAL: 9})
    at.want(other, {BULK: 1})
    await clock.advance(5.0)
    assert (len(poison.permits), len(other.permits)) == (1, 0)
    poison.gateway.take(clock.monotonic(), forced=False)
    poison.permits.clear()
    poison.gateway.used()
    poison.gateway.ended(Unknown(), 0)
    assert (len(poison.permits), len(other.permits)) == (0, 1)
    other.gateway.take(clock.monotonic(), forced=False)
    other.gateway.used()
    other.gateway.ended(SENT, 0)
    assert (other.gateway.holding(), poison.gateway.holding() is not None) == (None, True)


async def test_the_second_gateway_takes_over_for_an_organization_that_alone_fails_and_for_no_other() -> None:
    clock = VirtualClock(START)
    first, second = gateway(clock), gateway(clock, name="gateway_b")
    both = Failover(clock, (first, second))
    theirs, other = both.of("org_1"), both.of("org_2")
    await outcomes(clock, first, *[Retry(), Unknown()] * 2, of="org_1")
    assert (theirs.current.gateway, other.current.gateway) == (second, first)
    await clock.advance(FAIL_OVER_FOR)
    assert theirs.current.gateway is first
    await outcomes(clock, first, Retry(), SlowDown(0.1), SlowDown(0.1), of="org_1")  # those are of the gateway
    assert (theirs.current.gateway, other.current.gateway) == (second, second)


async def test_an_organization_is_forgotten_unless_its_last_calls_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_gateway, "REMEMBERED", 3)
    clock = VirtualClock(START)
    at = gateway(clock)
    await outcomes(clock, at, SENT, of="org_fine")
    await outcomes(clock, at, *[Unknown()] * 2, of="org_1")
    await outcomes(clock, at, *[Retry()] * 2, of="org_2")
    assert list(at._shares) == ["org_1", "org_2"]
    await outcomes(clock, at, SENT, of="org_2")
    assert list(at._shares) == ["org_1"]
    await outcomes(clock, at, *[SENT] * 20, of="org_1")  # among the last 20 none has failed
    assert list(at._shares) == []
    await outcomes(clock, at, *[Retry()] * 9, of="org_1 org_2 org_3 org_4 org_5")
    assert len(at._shares) == 3


async def test_a_circuit_that_opens_and_closes_is_one_line_of_the_log_each() -> None:
    clock = VirtualClock(START)
    at = gateway(clock)
    with capture_logs() as logs:
        await outcomes(clock, at, *[Down("connect_failed")] * 5)
        next_probe = format_timestamp(clock.now() + timedelta(seconds=5))
        await clock.advance(5.0)
        await outcomes(clock, at, Down("connect_failed"))  # the probe fails
        await clock.advance(10.0)
        await outcomes(clock, at, SENT)
        await outcomes(clock, at, *[Unknown()] * 5, of="org_1")
    whose = {"channel": "sms", "env": "live", "gateway": "gateway_a"}
    opened = {"event": "circuit_opened", "log_level": "warning", **whose}
    assert logs == [
        {**opened, "reason": "connect_failed", "next_probe": next_probe},
        {"event": "circuit_closed", "log_level": "info", **whose},
        {
            **opened,
            "organization_id": "org_1",
            "reason": "unknown_outcome",
            "next_probe": format_timestamp(clock.now() + timedelta(seconds=5)),
        },
    ]


async def test_a_gateway_that_another_one_replaces_is_one_line_of_the_log() -> None:
    clock = VirtualClock(START)
    first = gateway(clock)
    second = gateway(clock, name="gateway_b")
    both = Failover(clock, (first, second))
    with capture_logs() as logs:
        await outcomes(clock, first, *[Retry()] * 3, of="org_0")
        assert [both.of(each).current.gateway for each in ("org_0", "org_1", "org_0")] == [second, first, second]
        await outcomes(clock, first, *[SlowDown(0.1)] * 3, of="org_1")
        assert [both.of(each).current.gateway for each in ("org_1", "org_2")] == [second, second]
        until = format_timestamp(clock.now() + timedelta(seconds=FAIL_OVER_FOR))
    failed = {
        "event": "gateway_failed",
        "log_level": "warning",
        "channel": "sms",
        "env": "live",
        "gateway": "gateway_a",
    }
    assert [{**line, "until": ""} for line in logs] == [
        {**failed, "organization_id": "org_0", "until": ""}, {**failed, "until": ""},
    ]  # fmt: skip
    assert logs[-1]["until"] == until


async def test_a_gateway_without_a_connection_says_what_it_waits_for() -> None:
    clock = VirtualClock(START)
    own = Gateway(clock, CallRoom(), channel="chatapp")
    own.pacer.ready_at(clock.monotonic())
    await clock.advance(1.0)
    assert own.trouble() is None
    for _ in range(5):
        own.take(clock.monotonic(), forced=True)
        own.ended(Down("connect_failed"), 0)
    until = clock.now() + timedelta(seconds=5)
    assert own.trouble() == Hold(WaitReason.NO_CONNECTION, until)
    await clock.advance(7.0)
    assert own.trouble() == Hold(WaitReason.NO_CONNECTION, clock.now())  # the next message is the probe
    own.take(clock.monotonic(), forced=True)
    assert own.trouble() == Hold(WaitReason.NO_CONNECTION)
    own.ended(SENT, 0)
    assert own.trouble() is None
