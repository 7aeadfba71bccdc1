"""A lane of push: lets the claimed devices of one app and platform leave, as many at once as its gateway bears.

A claim is committed before any of its calls. A call is noted before it begins, and settled with many others; what is
left when the process stops goes back to the queue.
"""

import asyncio
from collections import deque
from collections.abc import Coroutine, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, Protocol

import structlog

from recado.channels.core.provider import Accepted, Down, NoPlace, Outcome, Refused, Retry, SlowDown, SlowPair
from recado.channels.push.notification import UNREGISTERED, PushCredential, PushNotification, PushSender
from recado.domain.core.clock import Clock
from recado.domain.core.phones import recipient_hash
from recado.domain.dispatch.breaker import Breaker, BreakerState
from recado.domain.dispatch.leases import RENEWED_EVERY
from recado.domain.push.dispatch_ids import dispatch_id
from recado.domain.push.message import LIFETIME, MOST_ATTEMPTS, DispatchStatus
from recado.domain.push.recent_refusals import Refuser
from recado.storage.push.departures import PushClaim, PushLaneKey, PushOutcome, PushTarget
from recado.storage.push.messages import UNKNOWN, PushMessage

log = structlog.get_logger()

AT_ONCE: Final = 500  # devices of a lane whose outcome is not written yet
CLAIMED_AT_ONCE: Final = 500  # devices
KNOWN_FOR: Final = 20.0  # seconds for which it is believed how a claimed device stood
RETRY_AFTER: Final = (5.0, 30.0)  # seconds, after the first and the second transient refusal
MOST_BREAKERS: Final = 1_000
OPTED_OUT: Final = "opted_out"


class PushWork(Protocol):
    """What a lane is given by the service that runs it."""

    clock: Clock

    async def claim(self, lane: PushLaneKey, most: int) -> PushClaim: ...

    async def refreshed(self, lane: PushLaneKey, targets: list[PushTarget]) -> list[PushTarget]: ...

    def room(self, lane: PushLaneKey) -> int:
        """How many devices of the lane may be in flight: its part of its organization's, and of all."""

    async def settle(self, outcome: PushOutcome) -> None: ...

    async def over(self, lane: PushLaneKey, blocks: list[tuple[str, int]]) -> None: ...

    def may_begin(self) -> bool:
        """Whether a call may begin now: not while a renewal of the ownership is late (C14.5.6)."""

    def began(self, lane: PushLaneKey, told: str, message: PushMessage) -> bool:
        """Note that a call is about to begin; False when it must not."""

    def ended(self, told: str) -> None: ...

    def called(self, lane: PushLaneKey, provider: str, seconds: float, *, ok: bool) -> None:
        """A call took so long; `ok`: the provider took it."""

    def has_refused(self, lane: PushLaneKey, refusers: Iterable[Refuser], known_at: float) -> bool:
        """Whether the device or its contact opted out since it was looked at (a moment of the monotonic clock)."""

    def outdated(self, lane: PushLaneKey, known_at: float) -> bool:
        """Whether refusals since then are forgotten: so many came that the devices have to be looked at again."""


class PushLane:
    """One run: until nothing is left to claim. `retry_after`: seconds, as `RETRY_AFTER`; `troubled`: breakers by
    gateway, as the run before left them.
    """

    def __init__(
        self, key: PushLaneKey, work: PushWork, sender: PushSender, credential: PushCredential,
        *, retry_after: tuple[float, ...] = RETRY_AFTER, troubled: Mapping[str, Breaker] | None = None,
    ) -> None:  # fmt: skip
        self.key = key
        self._work = work
        self._sender = sender
        self._credential = credential
        self._retry_after = retry_after
        self._clock = work.clock
        self._targets: deque[PushTarget] = deque()
        self._messages: dict[str, PushMessage] = {}
        self._blocks: list[tuple[str, int]] = []
        self._known_at = 0.0
        self._under_way: set[asyncio.Task[None]] = set()
        # With the calls under way.
        self._breakers: dict[str, tuple[Breaker, list[int]]] = {
            name: (breaker, [0]) for name, breaker in (troubled or {}).items()
        }
        self._failed: BaseException | None = None
        self.begun: dict[str, PushOutcome | None] = {}
        """Calls that are not settled, with what they came to where that is known."""
        self.stopping = False
        self.opened_at = self._clock.monotonic()

    @property
    def in_flight(self) -> int:
        """Devices whose outcome is not written yet."""
        return len(self._under_way)

    @property
    def provider(self) -> str:
        """Who takes the notifications."""
        return self._sender.name

    @property
    def calls(self) -> int:
        """Calls under way."""
        return sum(begun[0] for _, begun in self._breakers.values())

    @property
    def circuits(self) -> list[BreakerState]:
        """Of each host or account that it calls."""
        return [breaker.state for breaker, _ in self._breakers.values()]

    @property
    def rests(self) -> bool:
        """Whether it could claim nothing now, if it ran."""
        return not self._may_claim()

    @property
    def rests_until(self) -> float:
        """When the last of its circuits that are open lets a call through."""
        return max(
            (b.ready_at() for b, _ in self._breakers.values() if b.state is not BreakerState.CLOSED), default=0.0
        )

    def troubled(self, most: int) -> dict[str, Breaker]:
        """The breakers that the next run has to know, of at most so many gateways: the latest."""
        found = [(name, breaker) for name, (breaker, _) in self._breakers.items() if not _is_quiet(breaker)]
        return dict(found[-most:])

    async def run(self) -> None:
        """Claim and send until there is nothing."""
        try:
            while not self.stopping and self._failed is None:
                if not self._targets and not await self._claim():
                    break
                if self._outdated():
                    known_at = self._clock.monotonic()
                    self._targets = deque(await self._work.refreshed(self.key, list(self._targets)))
                    self._known_at = known_at
                pause = await self._begin_some()
                if pause:
                    await self._wait(pause)
        finally:
            await self._end()
        if self._failed is not None:
            raise self._failed

    def _outdated(self) -> bool:
        """Whether the devices have to be looked at again before any is called."""
        return self._clock.monotonic() - self._known_at > KNOWN_FOR or self._work.outdated(self.key, self._known_at)

    async def _claim(self) -> bool:
        """More devices, when at most half a lane's are in flight; False: nothing is left, or may be claimed, nor in
        flight.
        """
        if self._under_way and len(self._under_way) > AT_ONCE // 2:
            await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)
            return True
        most = self._may_claim()
        if most == 0:
            if not self._under_way:
                return False
            await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)
            return True
        self._known_at = self._clock.monotonic()
        claim = await self._work.claim(self.key, most)
        if not claim.targets:
            if not self._under_way:
                return False
            await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)
            return True
        self._messages = {**claim.messages, **self._in_use()}
        self._targets.extend(claim.targets)
        self._blocks += claim.blocks
        return True

    def _may_claim(self) -> int:
        """How many devices. What is not claimed can still be canceled: so nothing is while no call may begin, and no
        more than a probe needs where that is next (C22.3).
        """
        troubled = [b for b, _ in self._breakers.values() if b.state is not BreakerState.CLOSED]
        if not troubled or not self._sender.has_one_gateway:
            return CLAIMED_AT_ONCE
        return 0 if self._clock.monotonic() < self.rests_until or self.calls else 1

    def _in_use(self) -> dict[str, PushMessage]:
        wanted = {target.message_id for target in self._targets}
        return {each: message for each, message in self._messages.items() if each in wanted}

    async def _begin_some(self) -> float:
        """Begin calls until one must wait; answers seconds for which none may.

        0 after a wait for another call, which may be long: how the devices stand may have to be read again.
        """
        while self._targets and not self.stopping:
            if len(self._under_way) >= min(AT_ONCE, self._work.room(self.key)):
                await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)
                return 0.0
            if not self._work.may_begin():
                return RENEWED_EVERY
            target = self._targets[0]
            message = self._messages.get(target.message_id)
            if message is None:  # it is over: what is left of it was given up
                self._targets.popleft()
                continue
            gateway = self._sender.gateway_of(self._credential, target.token)
            breaker, begun = self._breaker(gateway)
            now = self._clock.monotonic()
            allowed = breaker.calls_allowed(now, begun[0])
            if allowed == 0:
                pause = max(breaker.ready_at() - now, 0.0)
                if len(self._breakers) == 1 or pause == 0.0:
                    if begun[0]:
                        await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)
                        return 0.0
                    return pause or 0.1
                self._targets.popleft()  # others leave meanwhile: this one comes back when its gateway may
                self._spawn(self._back(target, pause))
                continue
            self._targets.popleft()
            begun[0] += 1
            breaker.began()
            self._spawn(self._send(target, message, self._known_at, breaker, begun))
        return 0.0

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name="push")
        self._under_way.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed = self._failed or error

    async def _send(
        self, target: PushTarget, message: PushMessage, known_at: float, breaker: Breaker, begun: list[int]
    ) -> None:
        """One call, and what it came to."""
        key, pauses = self.key, breaker.pauses
        told = dispatch_id(message.id, target.place, message.dispatch_key)
        refusers: list[Refuser] = [target.device_id]
        if target.phone is not None:
            refusers.append((key.organization_id, key.env, recipient_hash(key.organization_id, target.phone)))
        outcome: Outcome | None = None
        back_in: float | None = None  # seconds, of one that is not called yet
        try:
            if not self._work.may_begin():
                back_in = RENEWED_EVERY
            elif target.leaves and not self._work.has_refused(key, refusers, known_at):
                if self._work.outdated(key, known_at):
                    back_in = 0.0
                elif not self._work.began(key, told, message):
                    back_in = RENEWED_EVERY
                else:
                    self.begun[told] = None
                    since = self._clock.monotonic()
                    outcome = await self._sender.send(_notification(target, message, told, self._clock),
                                                      self._credential, target.attempts + 1)  # fmt: skip
                    took = self._clock.monotonic() - since
                    self._work.called(key, self._sender.name, took, ok=isinstance(outcome, Accepted))
        finally:
            begun[0] -= 1
        if outcome is None:
            breaker.passed_by()  # nobody was called
            if back_in is not None:
                await self._back(target, back_in)
                return
            await self._work.settle(self._as(target, DispatchStatus.FAILED, OPTED_OUT))
            return
        self._learn(breaker, outcome, pauses)
        settled = self.begun[told] = self._settled(target, outcome, breaker)
        await self._work.settle(settled)
        del self.begun[told]
        self._work.ended(told)

    async def _back(self, target: PushTarget, seconds: float) -> None:
        await self._work.settle(self._later(target, seconds, target.attempts))

    def _settled(self, target: PushTarget, outcome: Outcome, breaker: Breaker) -> PushOutcome:
        match outcome:
            case Accepted():
                return self._as(target, DispatchStatus.DELIVERED, None)
            case Refused(code) if code == UNREGISTERED:
                return self._as(target, DispatchStatus.UNREGISTERED, code)
            case Refused(code):
                return self._as(target, DispatchStatus.FAILED, code)
            case Retry(after):
                attempts = target.attempts + 1
                if attempts >= MOST_ATTEMPTS:
                    return self._as(target, DispatchStatus.FAILED, "provider_error", attempts)
                return self._later(target, after or self._retry_after[attempts - 1], attempts)
            case SlowPair(after):
                return self._later(target, after, target.attempts)
            case SlowDown() | Down() | NoPlace():
                pause = max(breaker.ready_at() - self._clock.monotonic(), 1.0)
                return self._later(target, pause, target.attempts)
        return self._as(target, DispatchStatus.QUEUED, UNKNOWN)

    def _learn(self, breaker: Breaker, outcome: Outcome, pauses: int) -> None:
        now = self._clock.monotonic()
        match outcome:
            case Accepted() | Refused() | Retry() | SlowPair():
                breaker.answered(pauses)
            case SlowDown(after):
                breaker.slow_down(now, after, pauses)
            case Down():
                breaker.down(now)
            case NoPlace():
                breaker.unrecorded(now)
            case _:
                breaker.unknown(now)

    def _as(
        self, target: PushTarget, status: DispatchStatus, code: str | None, attempts: int | None = None
    ) -> PushOutcome:
        spent = target.attempts + 1 if attempts is None else attempts
        return PushOutcome(self.key, target.message_id, target.place, target.device_id, status, code, spent)

    def _later(self, target: PushTarget, seconds: float, attempts: int) -> PushOutcome:
        at = self._clock.now() + timedelta(seconds=seconds)
        return replace(self._as(target, DispatchStatus.QUEUED, None, attempts), due_at=at)

    def _breaker(self, gateway: str) -> tuple[Breaker, list[int]]:
        found = self._breakers.get(gateway)
        if found is None:
            if len(self._breakers) >= MOST_BREAKERS:
                self._forget_breakers()
            found = self._breakers[gateway] = (Breaker(), [0])
        return found

    def _forget_breakers(self) -> None:
        """Those of hosts without calls under way: of which nothing is to be remembered, and the oldest of the others.

        Half of them, and not one: anyone who registers browsers may name a host for each.
        """
        idle = [(_is_quiet(breaker), name) for name, (breaker, begun) in self._breakers.items() if not begun[0]]
        idle.sort(key=lambda found: not found[0])
        quiet = sum(found[0] for found in idle)
        for _, name in idle[: max(quiet, MOST_BREAKERS // 2)]:
            del self._breakers[name]

    async def _wait(self, seconds: float) -> None:
        end = self._clock.monotonic() + seconds
        while not self.stopping and self._clock.monotonic() < end:
            await self._clock.sleep(min(1.0, max(end - self._clock.monotonic(), 0.0)))

    async def _end(self) -> None:
        """What has not begun goes back; what has is settled, and then the blocks are over."""
        while self._targets:
            self._spawn(self._back(self._targets.popleft(), 0.0))
        if self._under_way:
            await asyncio.gather(*self._under_way, return_exceptions=True)
        if self._failed is None and self._blocks:
            await self._work.over(self.key, self._blocks)


def _is_quiet(breaker: Breaker) -> bool:
    """Whether there is nothing to remember of it."""
    return breaker.clean and breaker.untroubled


def _notification(target: PushTarget, message: PushMessage, told: str, clock: Clock) -> PushNotification:
    content = message.content
    left = (message.due_at + LIFETIME - clock.now()).total_seconds()
    return PushNotification(
        dispatch_id=told, message_id=message.id, token=target.token, p256dh=target.p256dh, auth=target.auth,
        title=content.title, body=content.body, deep_link=content.deep_link, image_url=content.image_url,
        actions=content.actions, data=content.data, silent=content.silent, seconds=max(int(left), 60),
    )  # fmt: skip
