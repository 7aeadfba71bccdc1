"""Departures of push messages: looks what is due, runs a lane for each app and platform, and sorts out what was left.

What a process before had claimed and not settled is called for once more only where its call had certainly not begun
(C32); of the rest nobody knows the outcome, and after a day it is given up.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import groupby
from operator import itemgetter
from typing import Final

import orjson
import structlog

from recado.actors.push.push_lane import CLAIMED_AT_ONCE, PushLane
from recado.channels.push.notification import PushCredential, PushSender
from recado.domain.core.clock import Clock
from recado.domain.core.ids import IdSource
from recado.domain.dispatch.breaker import Breaker
from recado.domain.messages.message import FailureCode
from recado.domain.push.dispatch_ids import dispatch_id
from recado.domain.push.message import LIFETIME, PUSH, DispatchStatus
from recado.domain.push.recent_refusals import RecentRefusals, Refuser
from recado.domain.webhooks.webhook import SubscriptionKey
from recado.engine.periodic import Periodic
from recado.services.ops.activity import Activity, ConnectionKey
from recado.storage.billing import wallet
from recado.storage.billing.wallet import Charge, Settlement, WalletKey
from recado.storage.core.connections.batch import Batcher
from recado.storage.core.connections.postgres import Database
from recado.storage.core.crypto import KeyRing, Tampered
from recado.storage.dispatch.begun_calls import BegunCalls, FormerCalls
from recado.storage.push import departures, messages
from recado.storage.push.apps import CREDENTIALS_FIELD, PUSH_APPS, VAPID_FIELD
from recado.storage.push.departures import LeftBlock, LeftDevice, PushClaim, PushLaneKey, PushOutcome, PushTarget
from recado.storage.push.messages import UNKNOWN, PushMessage

log = structlog.get_logger()

EVERY: Final = 1.0  # seconds
MOST_LANES: Final = 50
MOST_LANES_OF_ORGANIZATION: Final = 12
IN_FLIGHT: Final = 4_000  # devices of all lanes, where there are descriptors for a connection of each (C31)
IN_FLIGHT_OF_ORGANIZATION: Final = 1_000  # or a quarter of what all have
TURN: Final = 30.0  # seconds that a lane has when others wait for its place
MOST_RESTING: Final = 1_000  # lanes that ended, of which it is kept in mind what troubles them
MOST_RESTING_OF_ORGANIZATION: Final = 100
TROUBLE_KEPT_FOR: Final = 600.0  # seconds after the last pause: a lane ends whenever its devices wait for a circuit
TROUBLE_KEPT_OF_LANE: Final = 100  # gateways
REFUSALS_KEPT_FOR: Final = 120.0  # seconds for which it is remembered who opted out: lanes look at devices again before
MOST_REFUSALS: Final = 100_000  # who opted out and is remembered; beyond, lanes look at devices again sooner
MOST_REFUSALS_OF_ORGANIZATION: Final = 10_000
AT_STOP: Final = 10.0  # seconds that a stop gives calls under way
MOST_OUTCOMES: Final = 40_000  # that wait to be written

SenderOf = Callable[[str, str, PushCredential], PushSender | None]
"""By environment, platform and what the app has."""


class PushDepartures:
    """A service (`start`, `stop`); `hint` says that something may leave."""

    def __init__(
        self,
        db: Database,
        *,
        clock: Clock,
        ids: IdSource,
        keys: KeyRing,
        sender_of: SenderOf,
        begun: BegunCalls,
        epoch: Callable[[], int],
        former: Callable[[], FormerCalls | None],
        queued: Callable[[Iterable[SubscriptionKey]], None],
        activity: Activity,
        retry_after: tuple[float, ...] | None = None,
        most_in_flight: int = IN_FLIGHT,
    ) -> None:
        """`former`: what the process before had begun, where that is known; `queued`: told whose events are new.

        `activity`: is told what becomes of devices and of calls.
        """
        self.clock = clock
        self._db = db
        self._ids = ids
        self._keys = keys
        self._sender_of = sender_of
        self._begun = begun
        self._epoch = epoch
        self._former = former
        self._queued = queued
        self._activity = activity
        self._retry = {} if retry_after is None else {"retry_after": retry_after}
        self._most_in_flight = most_in_flight
        self._lanes: dict[PushLaneKey, tuple[PushLane, asyncio.Task[None]]] = {}
        self._opened_at: dict[str, float] = {}  # by organization: when its last lane was
        self._failed: dict[PushLaneKey, dict[str, PushOutcome | None]] = {}  # with the calls that they had begun
        self._resting: dict[PushLaneKey, PushLane] = {}
        self._troubled: dict[PushLaneKey, tuple[float, Mapping[str, Breaker]]] = {}  # until when, of lanes that ended
        self._refusals = RecentRefusals(
            seconds=REFUSALS_KEPT_FOR, most=MOST_REFUSALS, most_of_organization=MOST_REFUSALS_OF_ORGANIZATION
        )
        self._sorted_out = False
        self._stopping = False
        self._outcomes: Batcher[PushOutcome, None] = Batcher(
            "push outcomes", self._settle_all, clock=clock, max_rows=1_000, max_queue=MOST_OUTCOMES, concurrency=1,
            owner=lambda outcome: outcome.lane.organization_id,
        )  # fmt: skip
        self._worker = Periodic("push departures", EVERY, self.work, clock, at_once=True)

    async def start(self) -> None:
        self._stopping = self._sorted_out = False
        await self._outcomes.start()
        await self._worker.start()

    async def stop(self) -> None:
        """What has not begun goes back to the queue; calls under way have ten seconds."""
        self._stopping = True
        await self._worker.stop()
        for lane, _ in self._lanes.values():
            lane.stopping = True
        tasks = [task for _, task in self._lanes.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=AT_STOP)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        await self._outcomes.stop()

    def hint(self) -> None:
        """Something may leave that could not."""
        self._worker.hint()

    def opted_out(self, organization_id: str, device_id: str) -> None:
        """Nothing may begin to leave for this device any more."""
        self._refusals.add(organization_id, (device_id,), self.clock.monotonic())

    def refused(self, recipients: Iterable[tuple[str, str, int]]) -> None:
        """Nothing may begin to leave for these people any more (C12.5.3)."""
        now = self.clock.monotonic()
        for organization_id, of_it in groupby(recipients, key=itemgetter(0)):
            self._refusals.add(organization_id, of_it, now)

    @property
    def in_flight(self) -> int:
        """Devices whose outcome is not written yet."""
        return sum(lane.in_flight for lane, _ in self._lanes.values())

    @property
    def lanes(self) -> list[PushLane]:
        """Those that run, and those that ended while nothing may leave through some circuit of theirs."""
        return [*(lane for lane, _ in self._lanes.values()), *self._resting.values()]

    async def work(self) -> None:
        """Look once at all that is due."""
        now = self.clock.now()
        self._refusals.tidy(self.clock.monotonic())
        self._resting = {key: lane for key, lane in self._resting.items() if lane.rests_until > self.clock.monotonic()}
        self._troubled = {key: kept for key, kept in self._troubled.items() if kept[0] > self.clock.monotonic()}
        if not self._sorted_out:
            await self._sort_out()
        await self._sort_out_failed()
        while await departures.due(self._db.hot, now):
            pass
        for message in await departures.expired(self._db.hot, now - LIFETIME):
            await self._expire(message)
        await self._stand_still()
        ready = await departures.lanes(self._db.hot, now)
        waiting = {key.organization_id for key in ready} | {key.organization_id for key in self._lanes}
        self._opened_at = {who: at for who, at in self._opened_at.items() if who in waiting}
        resting = {key for key, lane in self._resting.items() if lane.rests}
        left = [key for key in ready if key not in self._lanes and key not in self._failed and key not in resting]
        while left and not self._stopping:
            of = Counter(key.organization_id for key in self._lanes)
            key = min(left, key=lambda each: self._turn(each, of))
            left.remove(key)
            if of[key.organization_id] >= MOST_LANES_OF_ORGANIZATION:
                break  # nobody who waits has fewer
            if len(self._lanes) >= MOST_LANES:
                self._make_way(key, of)
                break
            await self._open(key)

    # What lanes ask for ---------------------------------------------------------------------------------------------

    async def claim(self, lane: PushLaneKey, most: int) -> PushClaim:
        async with self._db.hot.transaction() as connection:
            return await departures.claim(connection, lane, self._epoch(), self.clock.now(), most)

    async def refreshed(self, lane: PushLaneKey, targets: list[PushTarget]) -> list[PushTarget]:
        found = [(each.message_id, each.place, each.device_id, each.attempts) for each in targets]
        return await departures.targets(self._db.hot, lane, found)

    def room(self, lane: PushLaneKey) -> int:
        own = sum(each.organization_id == lane.organization_id for each in self._lanes)
        most = min(IN_FLIGHT_OF_ORGANIZATION, self._most_in_flight // 4)
        return max(1, min(most // max(own, 1), self._most_in_flight // max(len(self._lanes), 1)))

    async def settle(self, outcome: PushOutcome) -> None:
        await self._outcomes.put(outcome)

    async def over(self, lane: PushLaneKey, blocks: list[tuple[str, int]]) -> None:
        await departures.over(self._db.hot, lane, blocks)

    def may_begin(self) -> bool:
        return self._begun.lease.holds()

    def began(self, lane: PushLaneKey, told: str, message: PushMessage) -> bool:
        now = self.clock.now()
        return self._begun.began(lane.organization_id, told, now, now)

    def ended(self, told: str) -> None:
        self._begun.ended(told)

    def called(self, lane: PushLaneKey, provider: str, seconds: float, *, ok: bool) -> None:
        self._activity.called(ConnectionKey(lane.organization_id, lane.env, PUSH, provider), seconds, ok=ok)

    def has_refused(self, lane: PushLaneKey, refusers: Iterable[Refuser], known_at: float) -> bool:
        return self._refusals.since(lane.organization_id, refusers, known_at)

    def outdated(self, lane: PushLaneKey, known_at: float) -> bool:
        return self._refusals.forgotten(lane.organization_id) >= known_at

    # ----------------------------------------------------------------------------------------------------------------

    def _turn(self, key: PushLaneKey, of: Counter[str]) -> tuple[int, float]:
        """Whose lane opens next, the lowest first: of who has the fewest, and has waited longest."""
        return of[key.organization_id], self._opened_at.get(key.organization_id, 0.0)

    async def _stand_still(self) -> None:
        """Lanes of organizations that were suspended end: what has not begun goes back (C24.1)."""
        running = {key.organization_id for key in self._lanes}
        suspended = await departures.suspended(self._db.hot, sorted(running)) if running else frozenset[str]()
        for key, (lane, _) in self._lanes.items():
            if key.organization_id in suspended:
                lane.stopping = True

    def _make_way(self, key: PushLaneKey, of: Counter[str]) -> None:
        """One lane of who has more than the one who waits ends, when it has had its turn."""
        if any(lane.stopping for lane, _ in self._lanes.values()):
            return
        before = self.clock.monotonic() - TURN
        others = [
            (of[each.organization_id], -lane.opened_at, lane)
            for each, (lane, _) in self._lanes.items()
            if of[each.organization_id] > of[key.organization_id] and lane.opened_at <= before
        ]
        if others:
            max(others, key=lambda found: found[:2])[2].stopping = True

    async def _open(self, key: PushLaneKey) -> None:
        credential = await self._credential(key)
        sender = None if credential is None else self._sender_of(key.env, key.platform, credential)
        if credential is None or sender is None:
            await self._refuse(key)
            return
        _, troubled = self._troubled.pop(key, (0.0, {}))
        lane = PushLane(key, self, sender, credential, troubled=troubled, **self._retry)
        task = asyncio.create_task(lane.run(), name="push lane")
        self._lanes[key] = (lane, task)
        self._opened_at[key.organization_id] = lane.opened_at
        self._resting.pop(key, None)
        task.add_done_callback(partial(self._closed, key))

    def _closed(self, key: PushLaneKey, task: asyncio.Task[None]) -> None:
        lane, _ = self._lanes.pop(key)
        now = self.clock.monotonic()
        if lane.rests_until > now and self._may_keep(self._resting, key.organization_id):
            self._resting[key] = lane
        troubled = lane.troubled(TROUBLE_KEPT_OF_LANE)
        if troubled and self._may_keep(self._troubled, key.organization_id):
            ready_at = max(breaker.ready_at() for breaker in troubled.values())
            self._troubled[key] = (max(now, ready_at) + TROUBLE_KEPT_FOR, troubled)
        if lane.stopping and not self._stopping:
            self.hint()  # somebody waits for its place
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("push_lane_failed", app_id=key.app_id, platform=key.platform, error=type(error).__name__)
            self._failed[key] = lane.begun

    def _may_keep(self, kept: Mapping[PushLaneKey, object], organization_id: str) -> bool:
        """Whether one more lane that ended may be kept in mind there."""
        own = sum(key.organization_id == organization_id for key in kept)
        return own < MOST_RESTING_OF_ORGANIZATION and len(kept) < MOST_RESTING

    async def _credential(self, key: PushLaneKey) -> PushCredential | None:
        app = await PUSH_APPS.get(self._db.hot, key.organization_id, key.env, key.app_id)
        if app is None:
            return None
        place = {"organization_id": app.organization_id, "record_id": app.id}
        try:
            private = self._keys.decrypt(app.vapid_cipher, field=VAPID_FIELD, **place)
            given: Mapping[str, Mapping[str, object]] = {}
            if app.credentials_cipher is not None:
                given = orjson.loads(self._keys.decrypt(app.credentials_cipher, field=CREDENTIALS_FIELD, **place))
        except Tampered:
            log.error("push_credentials_tampered", app_id=app.id)
            return None
        return PushCredential(
            app_id=app.id, organization_id=app.organization_id, env=app.env, vapid_private=private,
            vapid_public=app.vapid_public_key, service_account=given.get("service_account"), apns=given.get("apns"),
        )  # fmt: skip

    async def _refuse(self, key: PushLaneKey) -> None:
        """Nobody sends for this app there: what it has ready fails."""
        self._failed[key] = {}
        claim = await self.claim(key, CLAIMED_AT_ONCE)
        for target in claim.targets:
            await self.settle(
                PushOutcome(
                    key, target.message_id, target.place, target.device_id, DispatchStatus.FAILED, "no_credentials"
                )
            )
        if claim.blocks:
            await self.over(key, claim.blocks)
            self.hint()
        del self._failed[key]

    async def _settle_all(self, outcomes: Sequence[PushOutcome]) -> list[Exception | None]:
        now = self.clock.now()
        async with self._db.hot.transaction() as connection:
            moved = await departures.settle(connection, outcomes, self._epoch(), now)
            settlements: dict[WalletKey, Settlement] = {}
            for each in moved:
                message = each.message
                if not message.billed:
                    continue
                settlement = settlements.setdefault(message.key[:2], Settlement())
                settlement.released += each.others * message.unit_coins
                if each.delivered and message.unit_coins:
                    coins = each.delivered * message.unit_coins
                    settlement.charges.append(Charge(None, PUSH, message.id, coins))
            settled = None
            if settlements:
                settled = await wallet.settle(connection, self._ids, settlements, {}, now=now)
        if settled is not None and settled.queued:
            self._queued(settled.queued)
        for each in moved:
            self._activity.counted(PUSH, each.delivered, each.codes)
        return [None for _ in outcomes]

    async def _expire(self, key: messages.PushKey) -> None:
        now = self.clock.now()
        async with self._db.hot.transaction() as connection:
            message = await messages.get_locked(connection, key)
            if message is None or not message.open:
                return
            left = await departures.expire(connection, key, now)
            if message.billed and left:
                released = {key[:2]: Settlement(released=left * message.unit_coins)}
                await wallet.settle(connection, self._ids, released, {}, now=now)
        self._activity.counted(PUSH, 0, {FailureCode.EXPIRED.value: left})

    async def _sort_out(self) -> None:
        """What processes before had claimed."""
        former = self._former()
        await self._hand_back(None, None, lambda told, at: former is None or not former.never_began(told, at), {})
        self._sorted_out = True

    async def _sort_out_failed(self) -> None:
        """What lanes of this process had claimed when they failed: each opens again when this is done."""
        for key, begun in list(self._failed.items()):
            try:
                await self._hand_back(self._epoch(), key, partial(_among, begun), begun)
            except Exception as error:  # noqa: BLE001 - the next round tries again, and other lanes go on
                log.error("push_lane_not_sorted_out", app_id=key.app_id, error=type(error).__name__)
                continue
            for told in begun:
                self._begun.ended(told)
            del self._failed[key]

    async def _hand_back(
        self,
        own: int | None,
        lane: PushLaneKey | None,
        may_have_begun: Callable[[str, datetime], bool],
        known: Mapping[str, PushOutcome | None],
    ) -> None:
        """What was claimed in dead epochs, and in `own`, and is not settled, by this lane or any. `known`: outcomes."""

        def left(each: LeftBlock | LeftDevice, device_id: str, place: int, attempts: int) -> Awaitable[None]:
            told = dispatch_id(each.message_id, place, each.dispatch_key)
            outcome = known.get(told)
            if outcome is None:
                began = may_have_begun(told, each.claimed_at)
                outcome = PushOutcome(
                    each.lane, each.message_id, place, device_id, DispatchStatus.QUEUED, UNKNOWN if began else None,
                    attempts + 1 if began else attempts, None if began else self.clock.now(),
                )  # fmt: skip
            return self.settle(outcome)

        while blocks := await departures.left_claimed(self._db.hot, own, lane):
            for block in blocks:
                await asyncio.gather(*(left(block, device, place, 0) for device, place in block.unknown))
                await departures.over(self._db.hot, block.lane, [(block.message_id, block.number)])
        while found := await departures.left_claimed_again(self._db.hot, own, lane):
            await asyncio.gather(*(left(each, each.device_id, each.place, each.attempts) for each in found))


def _among(begun: Mapping[str, PushOutcome | None], told: str, claimed_at: datetime) -> bool:
    return told in begun
