"""Departures of push messages: what becomes of each device, counts, wallet, crashes, stops (C22.3, C25.2)."""

import asyncio
import math
import os
import random
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest
from tests.acme import acme
from tests.waiting import until, until_locked_out

from recado.actors.ops.push_states import PushStates
from recado.actors.push import departures, push_lane
from recado.actors.push.departures import IN_FLIGHT, PushDepartures
from recado.channels.core.provider import Accepted, Down, Outcome, Refused, Retry, SlowDown, SlowPair, Unknown
from recado.channels.push.notification import PushCredential, PushNotification
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem
from recado.domain.core.ids import PUSH_DEVICE, IdSource
from recado.domain.dispatch import breaker
from recado.domain.dispatch.leases import Lease
from recado.domain.push.message import PushContent
from recado.engine.clock import SystemClock
from recado.services.contacts.contact_erasure import ContactErasure
from recado.services.effects.consequences import Consequences
from recado.services.ops.activity import Activity, ConnectionKey
from recado.services.push.opens import OpenReport, PushOpens
from recado.services.push.registrations import DeviceRegistrations, Registration
from recado.services.push.sends import PushDraft, PushSends
from recado.storage.access.directories import Directories
from recado.storage.contacts import contact_erasures
from recado.storage.core.connections.postgres import Database
from recado.storage.core.crypto import KeyRing
from recado.storage.dispatch import epochs
from recado.storage.dispatch.begun_calls import BegunCalls, FormerCalls
from recado.storage.ops.scope import INSTALLATION, Scope
from recado.storage.push import departures as stored
from recado.storage.push import devices, messages
from recado.storage.push.apps import PUSH_APPS, sandbox_app
from recado.storage.push.departures import PushClaim, PushLaneKey
from recado.storage.push.messages import PushMessage


class ScriptedPush:
    """Takes notifications, and answers what the test says for a token: one outcome after the other, then `Accepted`."""

    name = "scripted"
    has_one_gateway = False

    def __init__(self) -> None:
        self.got: list[PushNotification] = []
        self.script: dict[str, list[Outcome | Exception]] = {}
        self.hold: asyncio.Event | None = None
        self.gateways: Callable[[str], str] = lambda token: "one"

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    def gateway_of(self, credential: PushCredential, token: str) -> str:
        return self.gateways(token)

    async def send(self, notification: PushNotification, credential: PushCredential, attempt: int) -> Outcome:
        self.got.append(notification)
        if self.hold is not None:
            await self.hold.wait()
        outcomes = self.script.get(notification.token)
        outcome = outcomes.pop(0) if outcomes else Accepted(notification.dispatch_id)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    def calls_for(self, token: str) -> int:
        return sum(each.token == token for each in self.got)


@dataclass
class Push:
    """One organization with an app, whose notifications a scripted sender takes."""

    db: Database
    clock: Clock
    ids: IdSource
    keys: KeyRing
    organization_id: str
    app_id: str
    sends: PushSends
    registrations: DeviceRegistrations
    opens: PushOpens
    sender: ScriptedPush = field(default_factory=ScriptedPush)
    begun: BegunCalls = field(default_factory=lambda: BegunCalls(None))
    activity: Activity = field(default_factory=lambda: Activity(SystemClock()))
    epoch: int = 1
    former: FormerCalls | None = None
    running: PushDepartures | None = None

    async def departs(self, *, former: FormerCalls | None = None, most_in_flight: int = IN_FLIGHT) -> PushDepartures:
        """A new process takes over."""
        self.epoch = await epochs.take_epoch(self.db, self.clock.now())
        epoch = self.epoch
        self.running = PushDepartures(
            self.db, clock=self.clock, ids=self.ids, keys=self.keys, sender_of=lambda *_: self.sender,
            begun=self.begun, epoch=lambda: epoch, former=lambda: former, queued=lambda _: None,
            activity=self.activity, retry_after=(0.0, 0.0), most_in_flight=most_in_flight,
        )  # fmt: skip
        await self.running.start()
        return self.running

    async def register(self, *tokens: str, **more: Any) -> list[str]:
        made = [
            await self.registrations.register(
                Registration(
                    organization_id=self.organization_id,
                    env="test",
                    app_id=self.app_id,
                    token=token,
                    platform="android",
                    **more,
                )
            )
            for token in tokens
        ]
        return [each.device.id for each in made]

    async def send(self, **more: Any) -> PushMessage:
        draft = PushDraft(
            organization_id=self.organization_id, env="test", origin="api", platforms=("android", "ios", "web"),
            content=PushContent(title="Hello", body="News"), segment="all_opt_in", tokens=None, **more,
        )  # fmt: skip
        return (await self.sends.accept(draft)).message

    async def read(self, message: PushMessage) -> PushMessage:
        found = await messages.get(self.db, *message.key)
        assert found is not None
        return found

    async def ends(self, message: PushMessage) -> PushMessage:
        """The message when it is over."""

        async def over() -> bool:
            assert self.running is not None
            self.running.hint()
            return not (await self.read(message)).open

        await until(over, "the message is over")
        return await self.read(message)

    async def counts(self, message: PushMessage) -> tuple[int, int, int]:
        """Delivered, failed, unregistered."""
        (found,) = (await messages.counts(self.db, [message]))[message.id]
        return found.delivered, found.failed, found.unregistered

    async def wallet(self) -> tuple[int, int]:
        row = await self.db.fetchrow("select balance_coins, held_coins from wallets where env = 'test'")
        return row["balance_coins"], row["held_coins"]

    async def codes(self, message: PushMessage) -> dict[str, str | None]:
        rows = await self.db.fetch(
            "select v.token, d.code from push_dispatches d join push_devices v on v.id = d.device_id "
            "where d.message_id = $1", message.id,
        )  # fmt: skip
        return {row["token"]: row["code"] for row in rows}


@pytest.fixture
async def push(database: Database) -> AsyncIterator[Push]:
    clock = SystemClock()
    ids = IdSource(clock, random.Random(7))
    keys = KeyRing({"k1": b"k" * 32})
    organization = (await acme(database, clock, ids)).organization
    async with database.transaction() as connection:
        app = await PUSH_APPS.insert(
            connection, sandbox_app(ids, organization_id=organization.id, keys=keys, random_bytes=os.urandom)
        )
    directories = Directories(database, clock=clock)
    sends = PushSends(
        database, ids=ids, clock=clock, organizations=directories.organizations, prices=directories.prices,
        random_bytes=os.urandom, queued=lambda: None,
    )  # fmt: skip
    made = Push(
        database, clock, ids, keys, organization.id, app.id, sends, DeviceRegistrations(database, ids=ids, clock=clock),
        PushOpens(database, clock=clock),
    )  # fmt: skip
    await made.registrations.start()
    await made.opens.start()
    try:
        yield made
    finally:
        if made.running is not None:
            await made.running.stop()
        await made.registrations.stop()
        await made.opens.stop()


async def test_each_device_gets_it_once_and_is_charged_once(push: Push) -> None:
    await push.register(*(f"token {n}" for n in range(7)))
    balance, held = await push.wallet()
    message = await push.send()
    assert await push.wallet() == (balance, held + 28)
    await push.departs()
    over = await push.ends(message)
    assert over.status == "completed"
    assert over.started_at is not None
    assert over.finished_at is not None
    assert sorted(each.token for each in push.sender.got) == [f"token {n}" for n in range(7)]
    assert await push.counts(message) == (7, 0, 0)
    assert await push.wallet() == (balance - 28, held)
    charged = await push.db.fetchval("select -sum(coins) from ledger where batch_id = $1", message.id)
    assert charged == 28

    async def blocks_are_over() -> bool:
        return not await push.db.fetchval("select count(*) from push_blocks where not over")

    await until(blocks_are_over, "the block is over")


async def test_what_a_provider_says_is_what_becomes_of_a_device(push: Push) -> None:
    unregistered, _, _, _ = await push.register("gone", "refused", "tries", "gives up")
    push.sender.script = {
        "gone": [Refused("unregistered", "")],
        "refused": [Refused("too_long", "")],
        "tries": [Retry(), Retry()],
        "gives up": [Retry(), Retry(), Retry(), Retry()],
    }
    balance, held = await push.wallet()
    message = await push.send()
    await push.departs()
    assert (await push.ends(message)).status == "completed"
    assert await push.counts(message) == (1, 2, 1)
    assert await push.wallet() == (balance - 4, held)
    assert [push.sender.calls_for(each) for each in ("gone", "refused", "tries", "gives up")] == [1, 1, 3, 3]
    status = await push.db.fetchval("select status from push_devices where id = $1", unregistered)
    assert status == "invalid"
    assert (await push.codes(message))["gives up"] == "provider_error"


async def test_operators_see_what_becomes_of_devices_and_which_service_is_in_trouble(push: Push) -> None:
    push.sender.gateways = lambda token: token.partition(" ")[0]
    await push.register("good 1", "gone 1", "odd 1", "bad 1", "bad 2", "bad 3", "bad 4", "bad 5")
    push.sender.script = {
        "gone 1": [Refused("unregistered", "")], "odd 1": [Refused("too_long", "")],
        **{f"bad {n}": [Down("connect_failed")] * 50 for n in range(1, 6)},
    }  # fmt: skip
    services = {"android": "scripted", "web": "other"}
    states = PushStates(
        push.db, clock=push.clock, lanes=lambda: [] if push.running is None else push.running.lanes,
        services=lambda env: services if env == "test" else {},
    )  # fmt: skip
    mine, theirs = Scope(push.organization_id, "test"), Scope("org_other", "test")
    push.sender.hold = asyncio.Event()
    message = await push.send()
    await push.departs()
    await until(lambda: len(push.sender.got) == 8, "all calls are under way")
    for scope, calls, waiting in ((INSTALLATION, 8, 8), (mine, 8, 8), (theirs, 0, 0)):
        first, second = await states.of(scope)
        assert (first.env, first.channel, first.provider, first.gateway) == ("test", "push", "scripted", "scripted")
        assert (first.in_flight, first.backlog, second.provider, second.backlog) == (calls, waiting, "other", 0)
        assert first.oldest_at == (message.due_at if waiting else None)
    push.sender.hold.set()

    async def settled() -> bool:
        return await push.counts(message) == (1, 1, 1)

    await until(settled, "three are settled")
    await until(lambda: push.activity.sent["push"] == 1, "they are counted")
    assert push.activity.failed == {("push", "unregistered"): 1, ("push", "too_long"): 1}
    calls = push.activity.connections[ConnectionKey(push.organization_id, "test", "push", "scripted")]
    assert (len(calls), calls.success_rate()) == (8, 1 / 8)
    for scope, troubled in ((INSTALLATION, 1), (mine, 1), (theirs, 0)):
        state = states.now(scope)[0]
        assert (state.troubled, state.circuit.value) == (troubled, "open" if troubled else "closed")


@pytest.mark.parametrize("share", [1, 2])
async def test_of_lanes_that_wait_for_a_circuit_an_organization_has_a_share(
    push: Push, monkeypatch: pytest.MonkeyPatch, share: int
) -> None:
    monkeypatch.setattr(departures, "MOST_RESTING_OF_ORGANIZATION", share)
    tokens = [f"{platform} {n}" for platform in ("android", "ios") for n in range(5)]
    await push.register(*tokens)
    await push.db.execute("update push_devices set platform = 'ios' where token like 'ios%'")
    push.sender.script = {token: [Down("connect_failed")] * 50 for token in tokens}
    await push.send()
    running = await push.departs()

    def both_ended() -> bool:
        return {each.token for each in push.sender.got} == {*tokens} and not running._lanes

    await until(both_ended, "both lanes have ended")
    assert len(running.lanes) == share


async def test_where_nobody_sends_a_message_is_looked_at_before_that_is_said(push: Push) -> None:
    nobody = PushSends(
        push.db, ids=push.ids, clock=push.clock, organizations=Directories(push.db, clock=push.clock).organizations,
        prices=None, random_bytes=os.urandom, queued=lambda: None, sends_in=(),
    )  # fmt: skip
    draft = PushDraft(
        organization_id=push.organization_id, env="test", origin="api", platforms=("android",),
        content=PushContent(title="Hello", body="News"), segment="all_opt_in", tokens=None,
    )  # fmt: skip
    for code in ("EMPTY_AUDIENCE", "DEPENDENCY_FAILED"):
        with pytest.raises(Problem) as refused:
            await nobody.accept(draft)
        assert refused.value.code == code
        await push.register("token")
    assert await push.db.fetchval("select count(*) from push_messages") == 0


async def test_a_message_that_reaches_nobody_has_failed(push: Push) -> None:
    await push.register("refused")
    push.sender.script = {"refused": [Refused("too_long", "")]}
    message = await push.send()
    await push.departs()
    assert (await push.ends(message)).status == "failed"


async def test_who_opts_out_after_the_send_is_skipped(push: Push) -> None:
    await push.register("leaves", "stays")
    message = await push.send()
    await push.register("leaves", opted_in=False)
    await push.departs()
    await push.ends(message)
    assert [each.token for each in push.sender.got] == ["stays"]
    assert await push.counts(message) == (1, 1, 0)
    assert (await push.codes(message))["leaves"] == "opted_out"


async def test_who_opts_out_while_another_call_is_awaited_gets_nothing(push: Push) -> None:
    """C12.5.3: what the claim read is older than the opt-out."""
    device = dict(zip(("first", "second"), await push.register("first", "second"), strict=True))
    push.sender.hold = asyncio.Event()
    message = await push.send()
    departures = await push.departs(most_in_flight=1)
    await until(lambda: len(push.sender.got) == 1, "one call is under way")
    token = push.sender.got[0].token
    leaves = "second" if token == "first" else "first"
    await push.register(leaves, opted_in=False)
    departures.opted_out(push.organization_id, device[leaves])
    push.sender.hold.set()
    await push.ends(message)
    assert [each.token for each in push.sender.got] == [token]
    assert (await push.codes(message))[leaves] == "opted_out"


async def test_who_opts_out_before_so_many_others_that_it_is_forgotten_gets_nothing(
    push: Push, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C31: beyond the organization's share the devices are looked at again, and nobody else's are."""
    monkeypatch.setattr(departures, "MOST_REFUSALS_OF_ORGANIZATION", 10)
    device = dict(zip(("first", "second"), await push.register("first", "second"), strict=True))
    push.sender.hold = asyncio.Event()
    message = await push.send()
    running = await push.departs(most_in_flight=1)
    await until(lambda: len(push.sender.got) == 1, "one call is under way")
    token = push.sender.got[0].token
    leaves = "second" if token == "first" else "first"
    await push.register(leaves, opted_in=False)
    running.opted_out(push.organization_id, device[leaves])
    running.refused((push.organization_id, "test", n) for n in range(100))
    mine = stored.PushLaneKey(push.organization_id, "test", push.app_id, "android")
    now = push.clock.monotonic()
    looked_at_again = running.outdated(mine, now - 1.0), running.outdated(replace(mine, organization_id="org_2"), now)
    push.sender.hold.set()
    assert looked_at_again == (True, False)
    await push.ends(message)
    assert [each.token for each in push.sender.got] == [token]
    assert (await push.codes(message))[leaves] == "opted_out"


async def test_a_call_that_refusals_overtook_waits_until_its_device_is_looked_at_again(
    push: Push, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(departures, "MOST_REFUSALS_OF_ORGANIZATION", 10)
    (device,) = await push.register("leaves")
    claimed = PushDepartures.claim
    others = iter(range(100))

    async def claims(self: PushDepartures, *given: Any) -> stored.PushClaim:
        claim = await claimed(self, *given)
        await push.register("leaves", opted_in=False)
        return claim

    def refusals_come(token: str) -> str:
        """Between the look at the device and its call."""
        assert push.running is not None
        push.running.opted_out(push.organization_id, device)
        push.running.refused((push.organization_id, "test", n) for n in others)
        return token

    monkeypatch.setattr(PushDepartures, "claim", claims)
    push.sender.gateways = refusals_come
    message = await push.send()
    await push.departs()
    await push.ends(message)
    assert push.sender.got == []
    assert await push.codes(message) == {"leaves": "opted_out"}


async def test_who_opts_in_again_gets_what_is_sent_from_then_on(push: Push) -> None:
    (device,) = await push.register("returns")
    departures = await push.departs()
    await push.register("returns", opted_in=False)
    departures.opted_out(push.organization_id, device)
    await push.register("returns", opted_in=True)
    message = await push.send()
    assert (await push.ends(message)).status == "completed"
    assert await push.counts(message) == (1, 0, 0)


async def test_devices_are_looked_at_again_after_a_long_wait_for_a_call(
    push: Push, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An opt-out is remembered for two minutes alone, and calls may take longer."""
    monkeypatch.setattr(push_lane, "KNOWN_FOR", 0.0)
    await push.register("first", "second")
    push.sender.hold = asyncio.Event()
    message = await push.send()
    await push.departs(most_in_flight=1)
    await until(lambda: len(push.sender.got) == 1, "one call is under way")
    token = push.sender.got[0].token
    await push.register("second" if token == "first" else "first", opted_in=False)
    push.sender.hold.set()
    await push.ends(message)
    assert [each.token for each in push.sender.got] == [token]


async def test_a_slow_down_and_no_connection_spend_no_attempt(push: Push) -> None:
    await push.register("token")
    push.sender.script = {"token": [SlowDown(0.1), Down("connect_failed"), SlowDown(0.1), SlowDown(0.1)]}
    message = await push.send()
    await push.departs()
    assert (await push.ends(message)).status == "completed"
    assert push.sender.calls_for("token") == 5


async def test_a_host_in_trouble_holds_up_no_other(push: Push) -> None:
    push.sender.gateways = lambda token: token.partition(" ")[0]
    await push.register(*(f"bad {n}" for n in range(20)), *(f"good {n}" for n in range(20)))
    push.sender.script = {f"bad {n}": [Down("connect_failed")] * 50 for n in range(20)}
    message = await push.send()
    await push.departs()

    async def good() -> bool:
        return (await push.counts(message))[0] == 20

    await until(good, "the good host has all")
    assert sum(push.sender.calls_for(f"bad {n}") for n in range(20)) <= 20


async def test_what_waits_for_a_circuit_is_not_claimed_and_can_be_canceled(
    push: Push, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(breaker, "FIRST_PAUSE", 300.0)
    tokens = [f"token {n}" for n in range(5)]
    await push.register(*tokens)
    push.sender.script = {token: [Down("connect_failed")] for token in tokens}
    push.sender.has_one_gateway = True
    begun = await push.send()
    running = await push.departs()
    await until(lambda: len(push.sender.got) == 5 and not running._lanes, "the lane has ended")
    waits = await push.send()
    await running.work()
    assert (running._lanes, [each.provider for each in running.lanes]) == ({}, ["scripted"])
    assert [(await push.read(each)).status for each in (begun, waits)] == ["sending", "queued"]
    canceled = await push.sends.cancel(waits.key)
    assert canceled is not None
    assert canceled.status == "canceled"


async def test_a_device_that_gets_nothing_tells_nothing_of_its_gateway(
    push: Push, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody was called for it: the next one is the probe."""
    monkeypatch.setattr(breaker, "FIRST_PAUSE", 300.0)
    circuit = breaker.Breaker()
    circuit.open(push.clock.monotonic() - 301)
    tokens = [f"leaves {n}" for n in range(3)]
    await push.register(*tokens, "stays")
    push.sender.has_one_gateway = True
    message = await push.send()
    for token in tokens:
        await push.register(token, opted_in=False)
    running = await push.departs()
    running._troubled[PushLaneKey(push.organization_id, "test", push.app_id, "android")] = (math.inf, {"one": circuit})
    assert (await push.ends(message)).status == "completed"
    assert [each.token for each in push.sender.got] == ["stays"]


async def test_a_circuit_stays_open_for_what_is_sent_next(push: Push, monkeypatch: pytest.MonkeyPatch) -> None:
    """C29.2: a lane ends when its devices wait, and the next one may begin at once."""
    monkeypatch.setattr(breaker, "FIRST_PAUSE", 2.0)
    tokens = [f"token {n}" for n in range(5)]
    await push.register(*tokens)
    push.sender.script = {token: [Down("connect_failed")] for token in tokens}
    called_at: list[float] = []
    monkeypatch.setattr(push.sender, "gateway_of", lambda *_: "one")
    push.sender.has_one_gateway = True
    send = push.sender.send

    async def timed(*given: Any) -> Outcome:
        called_at.append(push.clock.monotonic())
        return await send(*given)

    monkeypatch.setattr(push.sender, "send", timed)
    await push.send()
    running = await push.departs()
    await until(lambda: len(called_at) == 5 and not running._lanes, "the lane has ended")
    message = await push.send()
    assert (await push.ends(message)).status == "completed"
    assert called_at[5] - called_at[4] >= 1.9


async def test_what_is_remembered_of_hosts_in_trouble_is_bounded(push: Push, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each browser may be registered at a host of its own."""
    monkeypatch.setattr(push_lane, "MOST_BREAKERS", 6)
    monkeypatch.setattr(push_lane, "AT_ONCE", 2)
    remembered: list[int] = []

    def gateway(token: str) -> str:
        remembered.extend(len(lane.circuits) for lane in running.lanes)
        return token

    push.sender.gateways = gateway
    tokens = [f"bad {n}" for n in range(30)]
    await push.register(*tokens)
    push.sender.script = {token: [Down("connect_failed")] for token in tokens}
    message = await push.send()
    running = await push.departs()
    assert (await push.ends(message)).status == "completed"
    assert 4 <= max(remembered) <= 6


async def test_an_unknown_outcome_is_never_sent_again_and_fails_after_a_day(push: Push) -> None:
    await push.register("lost", "there")
    push.sender.script = {"lost": [Unknown()]}
    balance, held = await push.wallet()
    message = await push.send()
    departures = await push.departs()

    async def settled() -> bool:
        return (await push.codes(message)).get("lost") == "outcome_unknown" and (await push.counts(message))[0] == 1

    await until(settled, "both are settled")
    assert (await push.read(message)).status == "sending"
    await departures.work()
    assert push.sender.calls_for("lost") == 1
    await push.db.execute("update push_messages set due_at = due_at - $1::interval", timedelta(hours=24))
    await departures.work()
    over = await push.read(message)
    assert (over.status, over.open) == ("completed", False)
    assert await push.counts(message) == (1, 1, 0)
    assert await push.wallet() == (balance - 4, held)


async def test_what_never_left_in_a_day_fails_and_is_released(push: Push) -> None:
    await push.register("token")
    balance, held = await push.wallet()
    message = await push.send()
    await push.db.execute("update push_messages set due_at = due_at - $1::interval", timedelta(hours=24))
    await push.departs()
    assert (await push.ends(message)).status == "failed"
    assert push.sender.got == []
    await until(lambda: push.activity.failed == {("push", "expired"): 1}, "it is counted")
    assert await push.counts(message) == (0, 1, 0)
    assert await push.wallet() == (balance, held)


async def test_a_suspended_organization_sends_nothing_until_that_is_over_and_loses_no_time(push: Push) -> None:
    """C24.1: calls under way end, and the next ones do not begin."""
    await push.register("first", "second")
    push.sender.hold = asyncio.Event()
    message = await push.send()
    departures = await push.departs(most_in_flight=1)
    await until(lambda: len(push.sender.got) == 1, "one call is under way")
    await push.db.execute("update organizations set status = 'suspended'")
    await departures.work()
    push.sender.hold.set()
    await until(lambda: not departures.lanes, "its lane has ended")
    day = timedelta(hours=25)
    await push.db.execute("update push_messages set due_at = due_at - $1::interval", day)
    await departures.work()
    assert (len(push.sender.got), (await push.read(message)).open) == (1, True)
    lane = PushLaneKey(push.organization_id, "test", push.app_id, "android")
    assert await departures.claim(lane, 10) == PushClaim([], {}, [])

    now = push.clock.now()
    async with push.db.transaction() as connection:
        await messages.make_up(connection, push.organization_id, now - day, now, None)
        await connection.execute("update organizations set status = 'active'")
    assert now - (await push.read(message)).due_at < timedelta(hours=1)
    assert (await push.ends(message)).status == "completed"
    assert sorted(each.token for each in push.sender.got) == ["first", "second"]


async def test_a_scheduled_message_leaves_when_its_time_has_come(push: Push) -> None:
    await push.register("token")
    message = await push.send(scheduled_at=push.clock.now() + timedelta(hours=1))
    departures = await push.departs()
    await departures.work()
    assert ((await push.read(message)).status, push.sender.got) == ("scheduled", [])
    await push.db.execute("update push_messages set due_at = now()")
    assert (await push.ends(message)).status == "completed"


async def test_after_a_crash_nobody_gets_it_twice(push: Push) -> None:
    """Without notes of the process before, all that it had in hand is of unknown outcome (C32)."""
    await push.register("one", "two")
    push.sender.hold = asyncio.Event()
    message = await push.send()
    dead = await push.departs()
    await until(lambda: len(push.sender.got) == 2, "both calls are under way")
    for lane, task in dead._lanes.values():  # killed: nothing of it is written
        lane._work = None  # type: ignore[assignment]
        task.cancel()
    of_it = [task for task in asyncio.all_tasks() if task.get_name() in ("push", "periodic push departures")]
    of_it += [task for task in asyncio.all_tasks() if "push outcomes" in task.get_name()]
    for task in of_it:
        task.cancel()
    await asyncio.gather(*of_it, return_exceptions=True)
    push.sender = ScriptedPush()
    departures = await push.departs()
    await departures.work()
    assert push.sender.got == []
    assert set((await push.codes(message)).values()) == {"outcome_unknown"}
    assert (await push.read(message)).status == "sending"


async def test_while_the_lease_is_over_nothing_begins_to_leave(push: Push) -> None:
    await push.register("one", "two")
    message = await push.send()
    lease = push.begun.lease = Lease(push.clock.monotonic)
    await push.departs()

    async def claimed() -> bool:
        return bool(await push.db.fetchval("select exists (select from push_blocks where claimed_at is not null)"))

    await until(claimed, "the lane has claimed what it would send")
    assert push.sender.got == []
    lease.renewed(lease.asked())
    assert (await push.ends(message)).status == "completed"
    assert sorted(each.token for each in push.sender.got) == ["one", "two"]


async def test_what_had_certainly_not_begun_leaves_after_a_crash(push: Push) -> None:
    await push.register("one", "two")
    message = await push.send()
    epoch = await epochs.take_epoch(push.db, push.clock.now())
    async with push.db.transaction() as connection:
        (lane,) = await stored.lanes(connection, push.clock.now())
        claim = await stored.claim(connection, lane, epoch, push.clock.now(), 500)
    assert len(claim.targets) == 2
    nothing_began = FormerCalls(epoch, {}, push.clock.now() - timedelta(minutes=1))
    await push.departs(former=nothing_began)
    assert (await push.ends(message)).status == "completed"
    assert sorted(each.token for each in push.sender.got) == ["one", "two"]


async def test_a_lane_that_fails_leaves_in_doubt_only_whom_it_was_calling(
    push: Push, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(departures, "IN_FLIGHT_OF_ORGANIZATION", 1)
    await push.register("breaks", *(f"token {n}" for n in range(4)))
    push.sender.script["breaks"] = [RuntimeError()]
    message = await push.send()
    running = await push.departs()

    async def sorted_out() -> bool:
        running.hint()
        return (await push.counts(message))[0] == 4 and bool(
            await push.db.fetchval("select bool_and(over) from push_blocks")
        )

    await until(sorted_out, "the others have it, and the block is over")
    assert len(push.sender.got) == 5
    assert (await push.codes(message))["breaks"] == "outcome_unknown"


async def test_what_a_lane_knows_when_it_fails_is_written_later_and_nobody_is_called_twice(
    push: Push, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was claimed once more is among it."""
    await push.register("again", *(f"token {n}" for n in range(600)))
    push.sender.script["again"] = [Retry(0.0)]
    written = PushDepartures.settle
    failures = iter(range(700))

    async def fails(self: PushDepartures, outcome: stored.PushOutcome) -> None:
        if (outcome.attempts == 2 or outcome.device_id != again) and next(failures, None) is not None:
            raise RuntimeError
        await written(self, outcome)

    again = await push.db.fetchval("select id from push_devices where token = 'again'")
    monkeypatch.setattr(PushDepartures, "settle", fails)
    message = await push.send()
    await push.departs()
    assert (await push.ends(message)).status == "completed"
    assert push.sender.calls_for("again") == 2
    assert len(push.sender.got) == 602
    assert await push.counts(message) == (601, 0, 0)


async def claimed_again(push: Push) -> PushMessage:
    """A message of which one device was refused for now, claimed once more, and called no more: its process is gone."""
    await push.register("token")
    push.sender.script["token"] = [Retry(3_600.0)]
    message = await push.send()
    running = await push.departs()

    async def tried() -> bool:
        return bool(await push.db.fetchval("select attempts = 1 and due_at is not null from push_dispatches"))

    await until(tried, "the device waits for its next call")
    await running.stop()
    await push.db.execute("update push_dispatches set due_at = now()")
    lane = stored.PushLaneKey(push.organization_id, "test", push.app_id, "android")
    async with push.db.transaction() as connection:
        claim = await stored.claim(connection, lane, push.epoch, push.clock.now(), 10)
    assert [target.attempts for target in claim.targets] == [1]
    return message


async def test_a_device_that_was_claimed_again_and_not_called_is_called_after_a_crash(push: Push) -> None:
    message = await claimed_again(push)
    nothing_began = FormerCalls(push.epoch, {}, push.clock.now() - timedelta(days=1))
    await push.departs(former=nothing_began)
    assert (await push.ends(message)).status == "completed"
    assert push.sender.calls_for("token") == 2
    assert await push.db.fetchval("select attempts from push_dispatches") == 2


async def test_a_device_that_was_claimed_again_and_maybe_called_stays_in_doubt_after_a_crash(push: Push) -> None:
    message = await claimed_again(push)
    await push.departs()

    async def sorted_out() -> bool:
        return bool(await push.db.fetchval("select claimed_at is null and attempts = 2 from push_dispatches"))

    await until(sorted_out, "the claim is sorted out")
    assert (await push.codes(message), push.sender.calls_for("token")) == ({"token": "outcome_unknown"}, 1)
    await push.db.execute("update push_messages set due_at = due_at - interval '25 hours'")
    assert (await push.ends(message)).status == "failed"
    assert await push.counts(message) == (0, 1, 0)


async def test_a_process_that_was_overtaken_claims_nothing(push: Push) -> None:
    await push.register("token")
    await push.send()
    departures = await push.departs()
    await departures.stop()
    await push.send()
    old = push.epoch
    await epochs.take_epoch(push.db, push.clock.now())
    async with push.db.transaction() as connection:
        (lane,) = await stored.lanes(connection, push.clock.now())
        assert (await stored.claim(connection, lane, old, push.clock.now(), 500)).targets == []


async def test_a_process_that_was_overtaken_puts_nothing_back(push: Push) -> None:
    """Its successor may be calling for it at this moment."""
    await push.register("token")
    message = await push.send()
    push.sender.script["token"] = [Retry(0.0)]
    push.sender.hold = asyncio.Event()
    overtaken = await push.departs()
    await until(lambda: push.sender.got, "its call is under way")
    await push.departs()

    async def sorted_out() -> bool:
        return (await push.codes(message)) == {"token": "outcome_unknown"}

    await until(sorted_out, "its successor knows nothing of the call")
    push.sender.hold.set()
    await overtaken.stop()
    assert await push.db.fetchval("select due_at from push_dispatches") is None
    assert push.sender.calls_for("token") == 1


async def test_what_an_overtaken_process_had_not_begun_is_left_to_its_successor(push: Push) -> None:
    await push.register(*(f"token {n}" for n in range(300)))
    push.sender.hold = asyncio.Event()
    await push.send()
    overtaken = await push.departs(most_in_flight=100)
    await until(lambda: len(push.sender.got) == 25, "as many calls as an organization may have")
    old = push.epoch
    await epochs.take_epoch(push.db, push.clock.now())
    push.begun.lease = Lease(push.clock.monotonic)  # it is over
    push.sender.hold.set()
    await overtaken.stop()
    assert await push.db.fetchval("select count(*) from push_blocks where epoch = $1 and not over", old) > 0


async def test_a_stop_puts_back_what_has_not_begun(push: Push) -> None:
    await push.register(*(f"token {n}" for n in range(900)))
    push.sender.hold = asyncio.Event()
    message = await push.send()
    departures = await push.departs()
    await until(lambda: len(push.sender.got) == 500, "as many calls as a lane may have")
    stopping = asyncio.create_task(departures.stop())
    push.sender.hold.set()
    await stopping
    await push.departs()
    assert (await push.ends(message)).status == "completed"
    assert len({each.token for each in push.sender.got}) == len(push.sender.got) == 900
    assert await push.counts(message) == (900, 0, 0)


async def test_a_small_message_passes_a_large_one(push: Push) -> None:
    small = (await push.register("small"))[0]
    await push.db.execute(
        "insert into push_devices (organization_id, env, id, app_id, token, token_hash, platform, status, topics, "
        "updated_at) select $1, 'test', 'dev_' || lpad(n::text, 21, '0'), $2, 'token ' || n, sha256(n::text::bytea), "
        "'android', 'registered', '{}', now() from generate_series(1, 3000) n", push.organization_id, push.app_id,
    )  # fmt: skip
    large = await push.send()
    draft_tokens = (small,)
    message = (
        await push.sends.accept(
            PushDraft(
                organization_id=push.organization_id,
                env="test",
                origin="api",
                platforms=("android",),
                content=PushContent(title="Hello", body="News"),
                segment=None,
                tokens=draft_tokens,
            )
        )
    ).message
    await push.departs()
    await push.ends(message)
    await push.ends(large)
    place = next(n for n, each in enumerate(push.sender.got) if each.message_id == message.id)
    assert place <= 1_001
    assert await push.counts(large) == (3_001, 0, 0)


async def test_an_open_counts_once_and_only_of_what_was_delivered(push: Push) -> None:
    device = (await push.register("token"))[0]
    assert device.startswith(PUSH_DEVICE)
    message = await push.send()
    await push.departs()
    await push.ends(message)
    told = push.sender.got[0].dispatch_id
    reports = [OpenReport(push.organization_id, "test", told) for _ in range(3)]
    found = await asyncio.gather(*map(push.opens.opened, reports))
    assert sorted(each.counted for each in found) == [False, False, True]
    assert (await push.opens.opened(reports[0])).counted is False
    (counts,) = (await messages.counts(push.db, [message]))[message.id]
    assert counts.opened == 1


async def contacts_with_devices(push: Push, count: int, *, devices_each: int = 1) -> list[str]:
    """Contacts, each with as many registered devices."""
    made = await push.db.fetch(
        "insert into contacts (organization_id, env, id, phone, phone_hash, source, opt_in_status, search, updated_at) "
        "select $1, 'test', 'cnt_' || lpad(i::text, 21, '0'), '+55119' || lpad(i::text, 8, '0'), "
        "sha256(i::text::bytea), 'api', 'granted', '', now() from generate_series(1, $2::integer) i returning id",
        push.organization_id, count,
    )  # fmt: skip
    ids = sorted(row["id"] for row in made)
    for each in ids:
        await push.register(
            *(f"{each} {n}" for n in range(devices_each)), contact_id=each, user_name="Ana", device_name="Ana's"
        )
    return ids


async def test_who_opened_is_touched_in_the_order_of_ids_as_everybody_locks_contacts(push: Push) -> None:
    first, second = await contacts_with_devices(push, 2)
    message = await push.send()
    await push.departs()
    await push.ends(message)
    # Places are in the order of the devices' ids. The contact of the earlier place gets the higher id.
    rows = await push.db.fetch("select id from push_devices where contact_id is not null order by id")
    for row, contact in zip(rows, (second, first), strict=True):
        await push.db.execute("update push_devices set contact_id = $2 where id = $1", row["id"], contact)
    asked = [(*message.key, place) for place in (0, 1)]
    lock = "select id from contacts where id = $1 for no key update"

    async def opened() -> None:
        async with push.db.hot.transaction() as connection:
            await messages.open_dispatches(connection, asked, push.clock.now())

    async with push.db.transaction() as other:
        await other.fetch(lock, first)
        opening = asyncio.create_task(opened())

        await until_locked_out(push.db)  # the opens wait for the first contact
        await other.fetch(lock, second)  # in a circle one of the two would be ended here
    await opening
    left = await push.db.fetchval("select count(*) from contacts where last_interaction_at is null")
    assert left == 0


async def test_a_deleted_contact_leaves_no_device_of_its_own_however_many_it_has(
    push: Push, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone, stays = await contacts_with_devices(push, 2, devices_each=5)
    monkeypatch.setattr(devices, "UNLINKED_AT_ONCE", 2)
    more = [await devices.unlink(push.db, push.organization_id, "test", gone, push.clock.now()) for _ in range(3)]
    assert more == [True, True, False]
    rows = await push.db.fetch(
        "select contact_id, user_name, device_name from push_devices order by contact_id nulls last"
    )
    assert [tuple(row) for row in rows] == [(stays, "Ana", "Ana's")] * 5 + [(None, None, None)] * 5


async def test_a_device_that_was_registered_while_its_contact_was_deleted_is_unlinked_soon_after(push: Push) -> None:
    (gone,) = await contacts_with_devices(push, 1)
    await push.db.execute("delete from contacts")
    key = (push.organization_id, "test", gone)
    async with push.db.transaction() as connection:
        await contact_erasures.begin(connection, key, push.clock.now(), refused=False)
    await ContactErasure(push.db, effects=Consequences(), clock=push.clock).work()
    assert await push.db.fetchval("select count(*) from push_devices where contact_id is not null") == 0
    assert await push.db.fetchval("select user_name from push_devices") is None


@pytest.mark.parametrize("refused", [False, True])
async def test_the_refusal_of_a_deleted_contact_holds_for_all_of_its_devices_however_many_are_left(
    push: Push, refused: bool
) -> None:
    (gone,) = await contacts_with_devices(push, 1, devices_each=3)
    await push.db.execute("delete from contacts")
    async with push.db.transaction() as connection:
        await contact_erasures.begin(
            connection, (push.organization_id, "test", gone), push.clock.now(), refused=refused
        )
    message = await push.send()  # before they are unlinked
    await push.departs()
    await push.ends(message)
    assert len(push.sender.got) == (0 if refused else 3)
    await ContactErasure(push.db, effects=Consequences(), clock=push.clock).work()
    rows = await push.db.fetch("select status, opted_out_at is not null, contact_id, user_name from push_devices")
    assert {tuple(row) for row in rows} == {("opted_out" if refused else "registered", refused, None, None)}


async def test_a_lane_that_never_ends_makes_way_for_another_organization(
    push: Push, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(departures, "MOST_LANES", 1)
    monkeypatch.setattr(departures, "TURN", 0.5)
    push.sender.script["endless"] = [SlowPair(0.0)] * 100_000
    await push.register("endless")
    endless = await push.send()
    await push.departs()

    async def goes_on() -> bool:
        return push.sender.calls_for("endless") > 3

    await until(goes_on, "its lane is at work")
    other = replace(push, organization_id=(await acme(push.db, push.clock, push.ids)).organization.id)
    async with push.db.transaction() as connection:
        app = await PUSH_APPS.insert(
            connection,
            sandbox_app(push.ids, organization_id=other.organization_id, keys=push.keys, random_bytes=os.urandom),
        )
    other.app_id = app.id
    await other.register("short")
    assert (await other.ends(await other.send())).status == "completed"
    assert (await push.read(endless)).open


async def test_what_is_in_flight_is_shared_by_organization(push: Push, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(departures, "IN_FLIGHT_OF_ORGANIZATION", 3)
    push.sender.hold = asyncio.Event()
    await push.register(*(f"token {n}" for n in range(8)))
    message = await push.send()
    running = await push.departs()

    async def full() -> bool:
        return running.in_flight >= 3

    await until(full, "as many are in flight as may be")
    seen = (running.in_flight, len(push.sender.got))
    push.sender.hold.set()
    assert seen == (3, 3)
    assert (await push.ends(message)).status == "completed"
