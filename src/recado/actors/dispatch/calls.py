"""The call to the provider and what its outcome means: one place where each outcome is matched (C29.2).

A call belongs to no actor: when the sender's lane fails, its calls go on and are settled all the same.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import orjson
import structlog

from recado.actors.dispatch.gateway import Gateway
from recado.channels.core.adapters import MessageSender
from recado.channels.core.event_json import event_to_json
from recado.channels.core.events import Followup, Preference
from recado.channels.core.provider import (
    ACCOUNT_BLOCKED,
    Accepted,
    Account,
    Down,
    NoPlace,
    OutboundMessage,
    Outcome,
    Refused,
    Retry,
    SlowDown,
    SlowPair,
    TemplateContent,
    Unknown,
)
from recado.channels.core.references import NamedBy
from recado.domain.channels.policies import POLICIES, carrier_of
from recado.domain.channels.source import Source
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.domain.dispatch.leases import MARGIN
from recado.domain.dispatch.pair_pacing import PairPacing
from recado.domain.dispatch.retry import MAX_ATTEMPTS, RETRY_DELAYS, retry_delay
from recado.domain.messages.message import Cause, FailureCode, WaitReason, last_error
from recado.domain.senders.sender import route_sender
from recado.services.dispatch.row import CONTENT, NewPayload, Row
from recado.services.dispatch.sending import Sending, Settled
from recado.services.ops.activity import ConnectionKey
from recado.storage.dispatch.begun_calls import BegunCalls
from recado.storage.dispatch.settlements import (
    Capture,
    Departed,
    Failed,
    LookUps,
    Onward,
    PlannedReport,
    Returned,
    Uncertain,
)
from recado.storage.templates.templates import Template

log = structlog.get_logger()

_WITH_REPORTS = (Departed, Uncertain)  # a tuple: a union would be put together anew for each call that ends


@dataclass(slots=True, eq=False)
class Departure:
    """One claimed message on its way: to whom it is given, and the moment its token was taken.

    `pauses`: how many its gateway had made by then; `pairs`: where it counts towards its recipient, if anywhere.
    `waits`: what it waited for until now, as it is stored. `returned`: how it went back to the queue, once it did.
    """

    row: Row
    sent_at: datetime
    gateway: Gateway
    provider: MessageSender
    account: Account
    template: Template | None
    pauses: int
    pairs: PairPacing | None = None
    waits: str | None = None
    returned: Returned | None = None


Done = Callable[[Departure, Outcome | None], None]
SettlementOf = Callable[[Departure, Outcome], Settled | None]
ContentOf = Callable[[Row], AbstractAsyncContextManager[object]]
"""Makes what a message says, which is in memory for the time of its call; a `Cause` where nothing can be made.

Raises `Unavailable` where that is so only now.
"""
OutcomeOf = Callable[[OutboundMessage, Account, int], Outcome | None]
"""As `AnswersAtOnce` tells it."""


class Calls:
    """The provider calls in flight of all lanes."""

    def __init__(
        self,
        sending: Sending,
        *,
        clock: Clock,
        expect: Callable[[datetime], None],
        stopped: Callable[[Source, Preference], Awaitable[None]] | None = None,
        begun: BegunCalls | None = None,
        contents: Mapping[str, ContentOf] | None = None,
        with_content: Mapping[str, Callable[[Row], bool]] | None = None,
    ) -> None:
        """`expect` is told when a report of the sandbox will be due; `stopped`, with its source, who stopped marketing
        at the provider and was therefore refused (C28.4); `begun` notes the calls, for anyone who comes after us.
        `contents`: by channel, what makes the content of messages whose rows hold none, or not as it is sent;
        `with_content`: which messages of a channel these are, where not all.
        """
        self._begun = begun or BegunCalls(None)
        self._contents: Mapping[str, ContentOf] = {} if contents is None else contents
        self._with_content: Mapping[str, Callable[[Row], bool]] = {} if with_content is None else with_content
        self._sending = sending
        self._clock = clock
        self._expect = expect
        self._stopped = stopped
        self._running: dict[str, tuple[Row, asyncio.Future[None]]] = {}  # by message

    def __len__(self) -> int:
        """Calls whose outcomes are not recorded yet."""
        return len(self._running)

    async def start(self) -> None:
        """Nothing runs until a sender has its turn."""

    async def settled(self, concerned: Callable[[Row], bool]) -> None:
        """Until no call for rows that are concerned waits for its record: each ends within the provider's limit."""
        while waiting := [future for row, future in self._running.values() if concerned(row)]:
            await asyncio.wait(waiting)

    async def stop(self) -> None:
        """Waits for the calls in flight: each ends within the provider's time limit."""
        while self._running:
            await asyncio.wait([future for _, future in self._running.values()])
        self._begun.close()

    def begin(
        self,
        departure: Departure,
        done: Done,
        settlement_of: SettlementOf | None = None,
    ) -> bool:
        """Make the call; `done` is told when its outcome is committed, None when it could not be recorded.

        `settlement_of`: what becomes of the message, None when it is called for once more; where it is not given, what
        becomes of all that were queued.

        False: no call may begin, as another process owns the numbers, or this one's renewal is late (C14.5.6).
        """
        row = departure.row
        # What has content to make is noted when that is at hand: until then it has surely not left.
        if not (self._noted(departure) if self._content_of(row) is None else self._begun.may_begin()):
            return False
        departure.gateway.room.take(departure.account)
        self._running[row.id] = row, self._under_way(departure, done, settlement_of)
        return True

    def _under_way(
        self, departure: Departure, done: Done, settlement_of: SettlementOf | None
    ) -> "asyncio.Future[None]":
        """The call and its record; without a task where the outcome is known already, and is the usual one."""
        outcome = self._known(departure)
        settle = settlement_of or self.settlement_of
        if outcome is None:
            return asyncio.get_running_loop().create_task(self._run(departure, done, settle))
        if settlement_of is None and isinstance(outcome, Accepted):
            with suppress(Exception):  # the other way waits for room, or tells what is wrong
                settled = self.settlement_of(departure, outcome)
                recorded = self._sending.put(settled)
                recorded.add_done_callback(partial(self._recorded, departure, outcome, settled, done))
                return recorded
        return asyncio.get_running_loop().create_task(self._conclude(departure, outcome, done, settle))

    def _noted(self, departure: Departure) -> bool:
        """Note that the call begins; False where it must not."""
        row = departure.row
        assert row.claimed_at is not None  # noqa: S101 - what departs is claimed
        return self._begun.began(row.organization_id, row.id, row.claimed_at, departure.sent_at)

    def _known(self, departure: Departure) -> Outcome | None:
        """What the provider says at once; None when it must be waited for."""
        outcome_of: OutcomeOf | None = getattr(departure.provider, "outcome_of", None)
        row = departure.row
        if outcome_of is None or self._content_of(row) is not None:
            return None
        try:
            return outcome_of(_message(row, departure.template), departure.account, row.attempts + 1)
        except Exception as error:  # noqa: BLE001 - as in `_call`
            return _raised(departure, error)

    def _recorded(
        self, departure: Departure, outcome: Outcome, settled: Settled, done: Done, recorded: "asyncio.Future[None]"
    ) -> None:
        """The usual outcome of a call without a task is committed, or could not be: then a task sees to it."""
        if recorded.cancelled() or recorded.exception() is not None:
            again = self._conclude(departure, outcome, done, self.settlement_of)
            self._running[departure.row.id] = departure.row, asyncio.get_running_loop().create_task(again)
            return
        self._leave(departure)
        try:
            self._tell(departure, outcome, settled, done)
        finally:
            del self._running[departure.row.id]

    async def _run(self, departure: Departure, done: Done, settlement_of: SettlementOf) -> None:
        await self._conclude(departure, await self._call(departure), done, settlement_of)

    async def _conclude(self, departure: Departure, outcome: Outcome, done: Done, settlement_of: SettlementOf) -> None:
        """Record the outcome, then tell of it."""
        try:
            try:
                settled = settlement_of(departure, outcome)
                if settled is not None:
                    # Who settles it in a way of its own has a caller that waits.
                    await self._sending.settle(settled, hurries=settlement_of != self.settlement_of)
            except Exception as error:  # noqa: BLE001 - its claim stands, so that it is uncertain; its place is free again
                log.error("outcome_not_recorded", message_id=departure.row.id, error=type(error).__name__)
                done(departure, None)
                return
            finally:
                self._leave(departure)
            self._tell(departure, outcome, settled, done)
            if isinstance(outcome, Refused) and outcome.code == FailureCode.OPTED_OUT:
                await self._tell_stopped(departure)
        finally:
            del self._running[departure.row.id]

    def _leave(self, departure: Departure) -> None:
        """The call is over: its place is another's."""
        self._begun.ended(departure.row.id)
        departure.gateway.room.leave(departure.account)

    def _tell(self, departure: Departure, outcome: Outcome, settled: Settled | None, done: Done) -> None:
        if isinstance(settled, _WITH_REPORTS) and settled.planned:
            self._expect(settled.planned[0].due_at)
        if not isinstance(outcome, Accepted):  # those are counted with their commit
            row = departure.row
            connection = ConnectionKey(row.organization_id, row.env, row.channel, departure.gateway.name)
            self._sending.activity.call_failed(connection, departure.sent_at)
            if isinstance(settled, Returned):
                departure.returned = settled
        done(departure, outcome)

    async def _tell_stopped(self, departure: Departure) -> None:
        if self._stopped is None:
            return
        row = departure.row
        event = Preference(departure.account.provider_id, row.recipient, True, self._clock.now())
        try:
            await self._stopped(Source(row.channel, departure.provider.name, row.env), event)
        except Exception as error:  # noqa: BLE001 - the next message to that person is refused, and tells it again
            log.warning("refusal_not_noted", message_id=row.id, error=type(error).__name__)

    async def _call(self, departure: Departure) -> Outcome:
        row = departure.row
        content_of = self._content_of(row)
        if content_of is None:
            return await _sent(departure, _message(row, departure.template))
        message = _message(row, departure.template)
        begun = self._clock.monotonic()
        try:
            async with content_of(row) as content:
                if isinstance(content, Cause):
                    return Refused(content.code, content.text)
                if not self._sending.lease.holds():
                    return NoPlace()
                if isinstance(content, NewPayload):
                    if self._clock.monotonic() - begun > MARGIN:
                        return NoPlace()  # its turn is over: it comes again at its pace, with its media at hand
                    message.payload = content.payload
                else:
                    message.details = {**(row.details or {}), CONTENT: content}
                return await _sent(departure, message) if self._noted(departure) else NoPlace()
        except Unavailable:
            return NoPlace()
        except Exception as error:  # noqa: BLE001 - its provider was not called: it is tried again, some times
            log.error("content_not_made", message_id=row.id, error=type(error).__name__)
            return Retry()

    def _content_of(self, row: Row) -> ContentOf | None:
        """What makes its content; None where that is in its row, or came with it."""
        content_of = self._contents.get(row.channel)
        needed = self._with_content.get(row.channel)
        if needed is not None and not needed(row):
            return None
        return None if content_of is None or (row.details is not None and CONTENT in row.details) else content_of

    def settlement_of(self, departure: Departure, outcome: Outcome) -> Settled:
        """What becomes of a message that was queued."""
        row, now = departure.row, self._clock.now()
        match outcome:
            case Accepted():
                policy = POLICIES[row.channel]
                taken = None if policy.taken is None else policy.taken(row.details or {})
                return Departed(
                    row.organization_id,
                    row.env,
                    row.channel,
                    row.id,
                    row.sender_id,
                    outcome.provider_message_id,
                    departure.sent_at,
                    departure.template.category if departure.template else None,
                    _look_ups(departure),
                    now,
                    planned(outcome.followups, now),
                    policy.deadlines(row.details, departure.sent_at),
                    None if taken is None else Capture(taken.coins, taken.units, taken.price_kind),
                    gateway=departure.gateway.name,
                    waits=departure.waits,
                    adjusted=None if taken is None else taken.adjusted,
                    totaled=row.totaled,
                )
            case Refused():
                return _refused(row, outcome.code, outcome.text, now)
            case Retry():
                return self._try_again(departure, outcome.after, now)
            case SlowDown() | NoPlace():
                return _unspent(row, now)
            case SlowPair():
                return _unspent(row, now, now + timedelta(seconds=outcome.after))
            case Down():
                if outcome.code == ACCOUNT_BLOCKED:  # nothing but a person's appeal ends it
                    log.error("provider_blocks_account", provider=departure.provider.name, number=row.sender_id)
                return _unspent(row, now)
            case Unknown():
                if departure.provider.idempotent and row.attempts + 1 < MAX_ATTEMPTS:
                    return _repeated(departure, now)
                return Uncertain(
                    row.organization_id, row.id, row.sender_id, departure.sent_at, planned(outcome.followups, now)
                )

    def _try_again(self, departure: Departure, after: float | None, now: datetime) -> Settled:
        row = departure.row
        delay = retry_delay(row.attempts + 1)
        if (
            delay is None and row.repeat_of is not None
        ):  # refused now, but one of the calls before may have gone through
            return Uncertain(row.organization_id, row.id, row.sender_id, row.repeat_of)
        if delay is None:
            return _refused(row, FailureCode.PROVIDER_ERROR, f"refused for now {MAX_ATTEMPTS} times", now)
        wait = timedelta(seconds=max(delay, after or 0.0))
        return Returned(
            row.organization_id,
            row.env,
            row.channel,
            row.id,
            row.claimed_at,
            now + wait,
            WaitReason.RETRY,
            last_error(FailureCode.PROVIDER_ERROR, "refused for now"),
            False,
            now,
        )


async def _sent(departure: Departure, message: OutboundMessage) -> Outcome:
    try:
        return await departure.provider.send(message, departure.account, departure.row.attempts + 1)
    except Exception as error:  # noqa: BLE001 - an adapter never raises
        return _raised(departure, error)


def _raised(departure: Departure, error: Exception) -> Outcome:
    """What an adapter that raised makes of its message, which may have left."""
    log.error("provider_raised", provider=departure.provider.name, error=type(error).__name__)
    return Unknown()


def _look_ups(departure: Departure) -> LookUps | None:
    by = departure.provider.looked_up_by
    if not by:
        return None
    account = departure.account.provider_id
    return LookUps(account, departure.provider.name, NamedBy.THEIR_ID in by, NamedBy.OUR_ID in by)


def planned(followups: tuple[Followup, ...], now: datetime) -> tuple[PlannedReport, ...]:
    """The sandbox's reports as rows that wait for their moment."""
    return tuple(
        PlannedReport(
            step, now + timedelta(seconds=followup.after_seconds), orjson.dumps(event_to_json(followup.event)).decode()
        )
        for step, followup in enumerate(followups)
    )


def _message(row: Row, template: Template | None) -> OutboundMessage:
    payload: Mapping[str, Any] | None = orjson.loads(row.payload) if row.payload else None
    content: TemplateContent | None = None
    if template is not None:
        variables = orjson.loads(row.template_vars) if row.template_vars else ()
        content = TemplateContent(
            template.name, template.category.value, template.language, template.components, variables
        )
    channel, details = row.channel, row.details
    carrier = carrier_of(channel, row.sender_id)
    if carrier != channel and (carried := POLICIES[channel].carried) is not None:
        channel, (payload, details) = carrier, carried(payload or {}, details or {})
    return OutboundMessage(
        id=row.id,
        organization_id=row.organization_id,
        env=row.env,
        channel=channel,
        sender_id=row.sender_id,
        to=row.recipient,
        type=row.type,
        payload=payload,
        template=content,
        details=details,
    )


def _refused(row: Row, code: str, text: str, now: datetime) -> Failed | Onward:
    """For good: it has failed, unless its channel has another way for it."""
    policy = POLICIES[row.channel]
    way = None if policy.onward is None else policy.onward(row.details or {}, code)
    if way is None:
        return _failed(row, policy.failure_code(code), text, now)
    sender_id = route_sender(row.channel, row.env, way.route)
    details = orjson.dumps(way.details).decode()
    return Onward(row.organization_id, row.env, row.channel, row.id, row.claimed_at, sender_id, details, way.units, now)


def _failed(row: Row, code: str, text: str, now: datetime) -> Failed:
    cause = Cause(code, text)
    return Failed(row.organization_id, row.env, row.channel, row.id, cause, now, False, sender_id=row.sender_id)


def _repeated(departure: Departure, now: datetime) -> Returned:
    """In the queue for its repeat, and `sending` until an answer or a report decides: nothing refused it (C29.2)."""
    row = departure.row
    wait = timedelta(seconds=RETRY_DELAYS[row.attempts])
    message = (row.organization_id, row.env, row.channel, row.id)
    return Returned(
        *message, row.claimed_at, now + wait, WaitReason.RETRY, None, False, now, repeat_of=departure.sent_at
    )


def _unspent(row: Row, now: datetime, pair_waits_until: datetime | None = None) -> Returned:
    """Back to the head of its lane: the gateway waits, not the message. Only a pair of its own holds a message."""
    reason = None if pair_waits_until is None else WaitReason.PAIR_LIMIT
    message = (row.organization_id, row.env, row.channel, row.id)
    return Returned(*message, row.claimed_at, pair_waits_until, reason, None, True, now)
