"""Messages whose callers wait for the provider's answer: claimed in the commit that stores them, called for at once.

Their content is in memory only, so that no lane can send them (C10.2). The permits of their gateway, the calls and the
settlements are those of all messages; only the waiting is the request's.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

import structlog

from recado.actors.dispatch.calls import Departure, planned
from recado.actors.dispatch.failover import OrganizationGateways
from recado.actors.dispatch.lane_context import LaneContext
from recado.actors.dispatch.shared_gateway import Borrower, GatewayShare
from recado.channels.core.provider import Accepted, Outcome, Refused, Retry, SlowDown, Unknown
from recado.domain.contacts.consent import refusal_to_send
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.domain.dispatch.leases import RENEWED_EVERY
from recado.domain.messages.message import Cause, FailureCode
from recado.services.dispatch.row import Row, row_of
from recado.services.dispatch.sending import Settled
from recado.services.dispatch.withdrawing import REFUSED
from recado.storage.dispatch.settlements import Failed, Uncertain
from recado.storage.messages.messages import STORED, AcceptResult, ConsentCheck, NewMessage, NoConsent, Stored
from recado.storage.messages.recipients import RecipientKey, find

ANSWER_WITHIN = 15.0  # seconds
CALL_NEEDS = 5.0  # seconds of them: whoever has no permit before waits for none, for its call would end unheard
FIRST_PAUSE = 1.0  # seconds before what was refused for now is called for again; each next one is twice as long
PROBE_AGAIN_AFTER = 0.1  # seconds: while the probe of an open circuit is under way
Answered = tuple[AcceptResult, Outcome | None]
"""What became of storing a message, and the provider's answer; None where there is none."""
NOT_TAKEN = Cause(FailureCode.PROVIDER_ERROR.value, "the provider did not take it in time")

log = structlog.get_logger(__name__)


class _Line:
    """The requests of an organization that wait for permits of a gateway, by class in the order of their coming."""

    def __init__(self, gateway: GatewayShare, clock: Clock, among: OrganizationGateways) -> None:
        """`among`: it and the one that may take over."""
        self._gateway = gateway
        self._clock = clock
        self._among = among
        self._borrower = Borrower(gateway, self._give)
        self._waiting: dict[int, deque[asyncio.Future[bool]]] = {}

    async def permit(self, klass: int, give_up_at: float, *, again: bool) -> bool:
        """Wait for a permit; False: another gateway took over. Raises `Unavailable` when there is none by then.

        `again`: it had its turn before, and so it came before all that wait.
        """
        place: asyncio.Future[bool] = asyncio.get_running_loop().create_future()

        def too_late() -> None:
            if not place.done():
                place.set_exception(Unavailable("The provider takes no more at the moment: try again shortly."))

        timer = self._clock.call_at(give_up_at, too_late)
        places = self._waiting.setdefault(klass, deque())
        if again:
            places.appendleft(place)
        else:
            places.append(place)
        self._want()
        try:
            return await place
        except BaseException:
            if place in places:
                places.remove(place)
                self._want()
            elif not place.cancelled() and place.exception() is None and place.result():  # its caller goes away
                self._gateway.hand_back()
            raise
        finally:
            timer.cancel()

    @property
    def idle(self) -> bool:
        """Nobody waits here."""
        return not any(self._waiting.values())

    def leave(self) -> None:
        """Nobody will wait here any more."""
        self._gateway.forget(self._borrower)

    def _want(self) -> None:
        self._gateway.want(self._borrower, {klass: len(places) for klass, places in self._waiting.items()})
        self._give()

    def _give(self) -> None:
        if self._among.current is not self._gateway:
            self._move_on()
            return
        permits = self._borrower.permits
        while permits:
            places = self._waiting.get(permits.popleft(), deque())
            while places and places[0].done():
                places.popleft()
            if places:
                places.popleft().set_result(True)
            else:
                self._gateway.hand_back()

    def _move_on(self) -> None:
        """All who wait here ask the gateway that has taken over; what they were given meanwhile is others' again."""
        waiting, self._waiting = self._waiting, {}
        self.leave()
        for places in waiting.values():
            for place in places:
                if not place.done():
                    place.set_result(False)


class DirectSends:
    """A service (`start`, `stop`): what it has begun ends with the provider's word, or after `ANSWER_WITHIN`."""

    def __init__(self, context: LaneContext) -> None:
        self._context = context
        self._clock = context.records.clock
        self._lines: dict[GatewayShare, _Line] = {}
        self._turns: dict[str, GatewayShare] = {}  # permits of messages that are about to be sent
        self._under_way: dict[asyncio.Task[Answered], bool] = {}  # is it waited for?
        self._in_doubt: set[str] = set()  # messages whose calls have begun, and have no outcome yet

    async def start(self) -> None:
        """Nothing runs until somebody sends."""

    async def stop(self) -> None:
        """Waits for what is under way."""
        while self._under_way:
            await asyncio.wait(self._under_way)

    def has_turn(self, new: NewMessage) -> bool:
        """Whether a gateway permits the message now: then `send` has to follow at once, and waits for none."""
        gateway = self._gateways_of(new).current
        if new.refused is not None or gateway in self._lines:  # others of its organization came before it
            return False
        borrower = Borrower(gateway, _nothing)
        gateway.want(borrower, {new.klass: 1})
        if permitted := bool(borrower.permits):
            borrower.permits.clear()
            self._turns[new.id] = gateway
        gateway.forget(borrower)
        return permitted

    async def send(self, new: NewMessage) -> Answered:
        """Store the message and give it to the provider; with its answer, None where none came within 15 seconds.

        Only a call that is under way then is left to end behind its caller's back: whatever else is known of the
        message by then is waited for until it is committed.

        Where the message was not stored, the result says why. Raises `Unavailable` when its gateway has no turn for it
        while `CALL_NEEDS` seconds of that time are left: nothing is stored then. With less, a message would be stored
        whose call ends behind its caller's back, or does not begin and fails at once. What is refused already
        (`refused`) is stored as failed, and needs no turn.
        """
        if new.consent is ConsentCheck.DONE:
            new.consent = ConsentCheck.NOT_REFUSED  # it may wait for its permit, and no claim asks later
        if new.refused is not None:
            refusing = self._begun(self._store_refused(new, new.refused))
            with self._waited_for(refusing):
                return await asyncio.shield(refusing)
        give_up_at = self._clock.monotonic() + ANSWER_WITHIN
        gateway = self._turns.pop(new.id, None) or await self._permitted(new, give_up_at - CALL_NEEDS)
        sending = self._begun(self._store_and_send(new, gateway, give_up_at))
        with self._waited_for(sending):
            await self._answered(sending, give_up_at)
            if not sending.done() and new.id in self._in_doubt:
                return STORED, None
            return await asyncio.shield(sending)

    def _begun(self, work: Coroutine[Any, Any, Answered]) -> "asyncio.Task[Answered]":
        """Work that ends also when its caller goes away."""
        task = asyncio.get_running_loop().create_task(work)
        self._under_way[task] = True
        task.add_done_callback(self._ended)
        return task

    @contextmanager
    def _waited_for(self, task: "asyncio.Task[Answered]") -> Iterator[None]:
        """Until its caller has its answer, or goes away."""
        try:
            yield
        finally:
            if task in self._under_way:
                self._under_way[task] = False

    def _ended(self, task: "asyncio.Task[Answered]") -> None:
        waited_for = self._under_way.pop(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not waited_for and not isinstance(error, Unavailable):
            log.error("direct_send_failed", error=type(error).__name__)

    def _gateways_of(self, message: NewMessage | Row) -> OrganizationGateways:
        return self._context.shared_gateways(message.channel, message.env, message.organization_id)

    async def _permitted(self, message: NewMessage | Row, give_up_at: float, *, again: bool = False) -> GatewayShare:
        """The gateway that is in force, once it gives a permit; `Unavailable` when none comes by then."""
        among = self._gateways_of(message)
        while not await self._permit(gateway := among.current, among, message.klass, give_up_at, again=again):
            pass
        return gateway

    async def _permit(
        self, gateway: GatewayShare, among: OrganizationGateways, klass: int, give_up_at: float, *, again: bool
    ) -> bool:
        line = self._lines.get(gateway)
        if line is None:
            line = self._lines[gateway] = _Line(gateway, self._clock, among)
        try:
            return await line.permit(klass, give_up_at, again=again)
        finally:
            if line.idle and self._lines.get(gateway) is line:
                line.leave()
                del self._lines[gateway]

    async def _store_and_send(self, new: NewMessage, gateway: GatewayShare, give_up_at: float) -> Answered:
        result: AcceptResult | None = None
        self._context.sending.claim_new(new)
        row = row_of(new)
        if row.subject_to_consent:
            self._context.consents.begin(row)  # a refusal after its commit stops it (C12.5.3)
        try:
            try:
                result = await self._store(new)
            finally:
                if type(result) is not Stored:
                    gateway.hand_back()
            if type(result) is not Stored:
                return result, None
            return result, await self._send(new, row, gateway, give_up_at)
        finally:
            if row.subject_to_consent:
                self._context.consents.end(row)

    async def _store_refused(self, new: NewMessage, cause: Cause) -> Answered:
        """Claimed, so that nobody else takes it; a process that dies in between leaves it to the rescuer."""
        self._context.sending.claim_new(new)
        result = await self._store(new)
        if type(result) is not Stored:
            return result, None
        await self._context.sending.settle(self._failed(row_of(new), cause), hurries=True)
        return result, Refused(cause.code, cause.text)

    async def _store(self, new: NewMessage) -> AcceptResult:
        """Its commit asks about the address; here its contact is asked once more, who may have another one."""
        if new.contact_hash is not None and new.consent.asks:
            asked = RecipientKey(new.organization_id, new.env, contact_id=new.contact_id)
            (known,) = await find(self._context.records.db.hot, [asked])
            code = refusal_to_send(known.status, registered=known.registered, granted_only=False)
            if code is not None:
                return NoConsent(code)
        return await self._context.sending.store(new)

    async def _answered(self, sending: "asyncio.Task[Answered]", give_up_at: float) -> None:
        """Until it is sent, or its time is over. A caller who goes away breaks off the waiting, and not the send."""
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def end(_: object = None) -> None:
            if not over.done():
                over.set_result(None)

        timer = self._clock.call_at(give_up_at, end)
        sending.add_done_callback(end)
        try:
            await over
        finally:
            timer.cancel()

    async def _send(self, new: NewMessage, row: Row, permitted: GatewayShare, give_up_at: float) -> Outcome | None:
        """Call for the message until the provider has said what becomes of it; None: another process decides that.

        Each call goes through the gateway that is in force, with a permit of its own: what an organization sends again
        and again takes none of the others' turns. `permitted`: who gave the one of the first call. What left knows when
        (`sent_at`).
        """
        pause, permit = FIRST_PAUSE, True
        while (gateway := await self._may_call(row, give_up_at)) is not None:
            if self._refused(row):
                permitted.hand_back()
                await self._context.sending.settle(self._failed(row, REFUSED), hurries=True)
                return Refused(REFUSED.code, REFUSED.text)
            provider, account = gateway.provider, gateway.account
            assert provider is not None and account is not None  # noqa: S101, PT018 - a shared gateway has both
            now = self._clock.monotonic()
            sent_at, pauses = self._context.moments.at(now), gateway.breaker.pauses
            departure = Departure(row, sent_at, gateway, provider, account, None, pauses)
            again_at: float | None = None

            def settlement_of(departure: Departure, outcome: Outcome) -> Settled | None:
                nonlocal again_at
                again_at = None
                self._in_doubt.discard(row.id)
                if isinstance(outcome, Accepted | Refused):
                    return self._context.calls.settlement_of(departure, outcome)
                at = self._clock.now()
                if isinstance(outcome, Unknown):
                    reports = planned(outcome.followups, at)
                    return Uncertain(row.organization_id, row.id, row.sender_id, departure.sent_at, reports)
                wait = max(pause, (outcome.after or 0.0) if isinstance(outcome, Retry | SlowDown) else 0.0)  # noqa: B023
                again_at = self._clock.monotonic() + wait
                return None if again_at < give_up_at else self._failed(row, NOT_TAKEN)

            ended: asyncio.Future[Outcome | None] = asyncio.get_running_loop().create_future()
            gateway.take(now, forced=False)
            self._in_doubt.add(row.id)
            if not self._context.calls.begin(departure, _into(ended), settlement_of):
                self._in_doubt.discard(row.id)
                gateway.ended(None, pauses)
                if not self._context.sending.lease.holds():  # it may be renewed yet
                    continue
                permitted.hand_back()
                return None
            permitted.used()
            permit = False
            outcome = await ended
            gateway.ended(outcome, pauses)
            if isinstance(outcome, Accepted):
                new.sent_at = sent_at
            if again_at is None or again_at >= give_up_at:
                return outcome
            if isinstance(outcome, Retry):  # nothing else spends an attempt (C29.2)
                row.attempts += 1
            pause *= 2
            await self._clock.sleep(max(0.0, again_at - self._clock.monotonic()))
            try:
                permitted = await self._permitted(row, give_up_at, again=True)
            except Unavailable:
                break
            permit = True
        if permit:
            permitted.hand_back()
        if not self._context.sending.lease.holds():
            return None
        await self._context.sending.settle(self._failed(row, NOT_TAKEN), hurries=True)
        return Retry()

    def _refused(self, row: Row) -> bool:
        """Whether its recipient refused since it was stored, or last called for."""
        if not row.subject_to_consent:
            return False
        stopped = self._context.consents.end(row)
        self._context.consents.begin(row)
        return stopped

    def _failed(self, row: Row, cause: Cause) -> Failed:
        now = self._clock.now()
        return Failed(row.organization_id, row.env, row.channel, row.id, cause, now, False, sender_id=row.sender_id)

    async def _may_call(self, row: Row, give_up_at: float) -> GatewayShare | None:
        """Wait until circuit, pace and calls at once leave room for a call; through which gateway, None: too late."""
        while (now := self._clock.monotonic()) < give_up_at:
            gateway = self._gateways_of(row).current
            account = gateway.account
            assert account is not None  # noqa: S101 - a shared gateway has one
            if not self._context.sending.lease.holds():
                await self._clock.sleep(min(RENEWED_EVERY, give_up_at - now))
                continue
            if not gateway.may_call(now):
                opens_at = max(gateway.breaker.ready_at(), now + PROBE_AGAIN_AFTER)
                await self._clock.sleep(min(opens_at, give_up_at) - now)
                continue
            woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            ready_at = max(gateway.pacer.ready_at(now), self._context.opens_at)
            if ready_at > now:
                gateway.come_back(_wake(woken), ready_at)
            elif gateway.room.has_place(account, _wake(woken)):
                return gateway
            timer = self._clock.call_at(give_up_at, _wake(woken))
            try:
                await woken
            finally:
                timer.cancel()
        return None


def _nothing() -> None:
    """Whoever looks at once need not be woken."""


def _wake(waiting: "asyncio.Future[None]") -> Callable[[], None]:
    def wake() -> None:
        if not waiting.done():
            waiting.set_result(None)

    return wake


def _into(ended: "asyncio.Future[Outcome | None]") -> Callable[[Departure, Outcome | None], None]:
    return lambda _, outcome: ended.set_result(outcome)
