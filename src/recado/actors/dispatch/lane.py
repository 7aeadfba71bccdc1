"""The lane of one sender: whose turn it is, when, and what holds it (C14.5).

Live in one process only. The rows are the truth and every message here is a hint: whatever it forgets, it reads again.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial

import structlog

from recado.actors.dispatch.actor_tasks import ActorTasks
from recado.actors.dispatch.departures import Departures
from recado.actors.dispatch.gate_check import FAILED_BY_THE_CLAIM, check_gates
from recado.actors.dispatch.gateway import Gateway
from recado.actors.dispatch.holding import Holding
from recado.actors.dispatch.lane_context import LaneContext
from recado.actors.dispatch.lane_messages import (
    AskSituation,
    CameBack,
    Changed,
    Heads,
    LaneSituation,
    LetGo,
    Look,
    NotClaimed,
    Refilled,
    TemplateMoved,
    Wake,
)
from recado.actors.dispatch.ready_rows import ReadyRows, Wanted
from recado.actors.dispatch.sender_view import SenderView
from recado.actors.dispatch.shared_gateway import GatewayShare
from recado.actors.dispatch.waits import WHOLE
from recado.domain.channels.policies import POLICIES
from recado.domain.core.errors import Unavailable
from recado.domain.dispatch.day_usage import DayUsage
from recado.domain.dispatch.gates import Fail, Hold
from recado.domain.dispatch.placement import shard_of
from recado.domain.messages.message import WaitReason
from recado.domain.senders.sender import SenderKey
from recado.engine.actor import Actor
from recado.services.dispatch.hints import Arrived, Forced, OwnerMoved, Queued
from recado.services.dispatch.row import Row
from recado.storage.dispatch.dispatch import OVERTAKEN, WINDOW_CLOSED

log = structlog.get_logger()

PUMP_AT_LEAST_EVERY = 64  # messages: a full mailbox is worked off first, but not for long
READ_AGAIN_AFTER = 1.0  # seconds after the database was away
WAKE = Wake()


class Lane(Actor):
    """The actor that lets the messages of one sender leave."""

    _departures: Departures = None  # type: ignore[assignment]  # made in `started`, before the first message

    def __init__(self, key: SenderKey, context: LaneContext) -> None:
        super().__init__()
        self._key = key
        self._context = context
        self._clock = context.records.clock
        self._view: SenderView | None = None
        self._rows = ReadyRows()
        self._holds: Holding | None = None
        self._tasks = ActorTasks(self.actor_ref, WAKE, clock=self._clock, name=key.sender_id)
        self._in_hand: Row | None = None
        self._since_pump = 0
        self._stale = False
        self._counting: datetime | None = None  # the limit for which recipients are, or were, counted

    # Its life ---------------------------------------------------------------------------------------------------------

    async def started(self) -> None:
        self._context.starting += 1
        try:
            self._view, day = await self._read_sender()
        finally:
            self._context.starting -= 1
        self._departures = Departures(
            self._context,
            day=day,
            tasks=self._tasks,
            rows=self._rows,
            shard=shard_of(self._key),
        )
        self._count_recipients()
        self._tasks.tell(Look())

    async def _read_sender(self) -> tuple[SenderView | None, DayUsage]:
        while True:
            try:
                return await self._context.sender(self._key)
            except Unavailable:  # no failure of this actor: it waits for the database
                await self._clock.sleep(READ_AGAIN_AFTER)

    async def stopping(self) -> None:
        self._tasks.quiet()
        await self._departures.close()
        self._context.waits.rest(self._key.sender_id, gone=self._view is None)
        if not self._departures.in_flight:  # else what is under way would be missing in the day
            self._context.forget(self._key.sender_id)

    async def failed(self, error: BaseException) -> None:
        self._tasks.quiet()
        try:
            if self._in_hand is not None:
                await self._holding.count_crash(self._in_hand, self._clock.now())
        finally:  # also while the database is away: what was claimed must not stay so
            if self._departures is not None:
                await self._departures.close()

    def may_passivate(self) -> bool:
        """Nothing under way, and nothing to send: no rows, or a sender out of service, which forgets nothing."""
        view = self._view
        out_of_service = view is None or view.sender_hold(self._clock.now()) is not None
        untroubled = view is None or view.gateway.current.shared or view.gateway.current.untroubled
        return (self._rows.idle or out_of_service) and untroubled and self._departures.idle and self._tasks.idle

    async def handle(self, message: object) -> LaneSituation | None:
        match message:
            case Arrived():
                self._rows.arrive(message.rows)
            case Wake():
                pass  # the time has come to look at everything again
            case NotClaimed():
                self._not_claimed(message)
            case CameBack():
                self._rows.forget(message.row)
            case Refilled():
                self._refilled(message)
            case Look() | Queued():
                self._rows.look()
            case Heads():
                if not (self._rows.missed(message.rows) or self._since_pump):
                    return None  # as mostly
            case LetGo():
                self._rows.look()
                self._rows.look_for_forced = True
            case Forced():
                self._rows.start_over(self._departures.under_way)  # it may lie in a lane as one that is not
            case Changed():
                self._stale = True
            case TemplateMoved():
                self._departures.doubt()
                self._context.waits.note(self._key, message.template_id, None, self._clock.now())
                self._tasks.begin(self._holding.let_go(WaitReason.TEMPLATE_STATE, template_id=message.template_id))
            case OwnerMoved():
                self._tasks.begin(self._holding.let_go(WaitReason.OWNER_PAUSED, owner=message.owner))
            case AskSituation():
                if self._since_pump:  # a turn was left to the message after the one before: it is due still
                    self._tasks.wake()
                return self._situation()
        self._since_pump += 1
        if self.actor_inbox.empty() or self._since_pump >= PUMP_AT_LEAST_EVERY:
            self._since_pump = 0
            try:
                await self._pump()
            except Unavailable:
                if self._in_hand is not None:
                    self._rows.forget(self._in_hand)
                    self._in_hand = None
                self._tasks.wake_in(READ_AGAIN_AFTER)
        return None

    # Its turns --------------------------------------------------------------------------------------------------------

    async def _pump(self) -> None:
        """Let claimed messages depart, claim those whose moment is near, and read on when a lane runs low."""
        if self._stale:
            await self._read_again()
        now = self._clock.now()
        departures, holding = self._departures, self._held_by(now)
        self._note_closings(holding, now)
        if holding is not None:
            departures.view = None
            for row in await departures.give_back():
                self._rows.forget(row)
            departures.stand_back()
            self._tasks.wake_at(holding.until)
            return
        view = departures.view = self._view
        assert view is not None  # noqa: S101 - a number without one is held
        gateway = view.gateway.current
        departures.wanted = False  # room for more is looked for right here
        departures.depart()
        if self._rows.wants_forced:
            await self._read_forced()
        if isinstance(gateway, GatewayShare):
            self._rows.reach(gateway.reach)
            left = await self._claim_by_permits(view, gateway)
        else:
            left = await self._claim_in_turns(view, gateway)
        if left and self._rows.wants_forced:  # read on where places became free, in a turn of its own
            self._tasks.wake()
        wanted, ask_at = self._rows.wanted(view, self._clock.now())
        if wanted:
            self._tasks.begin(self._refill(wanted))
        self._tasks.wake_at(ask_at)

    async def _claim_in_turns(self, view: SenderView, gateway: Gateway) -> bool:
        """Claim the rows whose moment is near; True when some left memory."""
        left = False
        while len(self._rows):
            now = self._clock.now()
            if not self._may_claim(view, gateway, now):
                break
            taken = self._rows.take(view, now)
            if not isinstance(taken, Row):
                if taken is not None:
                    self._tasks.wake_at(taken.until)
                break
            self._in_hand = taken
            left |= await self._pass_gates(taken, view, gateway, now)
            self._in_hand = None
        return left

    async def _claim_by_permits(self, view: SenderView, gateway: GatewayShare) -> bool:
        """Claim a row for each permit of the gateway, and forced ones without; True when some left memory.

        What is claimed leaves room for more, so permits are asked for until there are none.
        """
        departures, rows = self._departures, self._rows
        left, asked = False, False
        while True:
            now = self._clock.now()
            room = departures.has_room(view, now)
            if not (asked and room and departures.has_permit(gateway)):
                departures.borrow(gateway, rows.open_classes(view, now) if room else {})
                asked = True
            if not room or not self._may_claim(view, gateway, now):
                departures.wanted = not room
                return left
            forced = rows.has_forced
            taken = rows.take(view, now) if forced else rows.take_of(departures.next_permit(gateway))
            if not isinstance(taken, Row):
                gateway.hand_back()
                continue
            self._in_hand = taken
            left |= await self._pass_gates(taken, view, gateway, now, permit=not forced)
            self._in_hand = None

    def _held_by(self, now: datetime) -> Hold | None:
        """What holds everything of the sender now."""
        view = self._view
        if view is None or (gateway := view.gateway.current).provider is None:
            return Hold(WaitReason.NUMBER_STATE)
        return view.sender_hold(now) or gateway.holding() or self._departures.day_hold(view.per_day, now)

    def _note_closings(self, holding: Hold | None, now: datetime) -> None:
        """Remember since when the sender, or a class of it, is held, for those that wait meanwhile (C34.4)."""
        waits, view, sender_id = self._context.waits, self._view, self._key.sender_id
        if holding is None and not waits.remembers(sender_id):
            self._note_classes(now)
            return  # as mostly
        if holding is None and waits.closed_for(sender_id) is WaitReason.NO_CONNECTION and view is not None:
            holding = view.gateway.current.trouble()  # until the probe has got through
        if holding is None:
            waits.note(self._key, WHOLE, None, now)
        else:
            since = None if view is None else view.state.held_since(holding.reason)
            waits.note(self._key, WHOLE, holding.reason, now, since)
            return
        self._note_classes(now)

    def _note_classes(self, now: datetime) -> None:
        view, waits, sender_id = self._view, self._context.waits, self._key.sender_id
        if view is None:
            return
        for klass in view.gates.gated_classes:
            if self._rows.may_have(klass) or waits.closed_for(sender_id, klass) is not None:
                hold = view.gates.class_hold(view.state, klass, now)
                waits.note(self._key, klass, None if hold is None else hold.reason, now)

    def _may_claim(self, view: SenderView, gateway: Gateway, now: datetime) -> bool:
        answer = self._departures.may_claim(view, gateway, now, forced=self._rows.has_forced)
        if answer is True:
            return True
        if answer is False:
            self._departures.wanted = True
        else:
            self._tasks.wake_in(answer)
        return False

    async def _pass_gates(
        self, row: Row, view: SenderView, gateway: Gateway, now: datetime, *, permit: bool = False
    ) -> bool:
        """Claim the row, or hold it back or end it as its own gates say; False when there was no room for that.

        `permit`: it has one of its gateway, which is handed back when it is not claimed.
        """
        claimed = False
        try:
            template = None
            if row.template_id is not None and view.gates.asks_template:
                template_key = (self._key.organization_id, self._key.env, row.template_id)
                templates = self._context.records.templates
                template = templates.peek(template_key)
                if template is None:
                    template = await templates.get(template_key)
                    now = self._clock.now()
            verdict = check_gates(row, template, view, self._context.records, now)
            if self._context.waits.any_held:
                self._context.waits.passed(row, now)
            match verdict:
                case None:
                    left = claimed = self._departures.claim(row, template, view, gateway, permit=permit)
                case Hold(WaitReason.TIER_LIMIT):
                    left = claimed = self._departures.claim(row, template, view, gateway, in_window=True, permit=permit)
                case Hold():
                    left = self._hold(row, verdict)
                case Fail():
                    left = self._fail(row, verdict)
        finally:
            if permit and not claimed:
                gateway.hand_back()
        if not left:
            self._later(row)
        return left

    def _not_claimed(self, failed: NotClaimed) -> None:
        row, error = failed.row, failed.error
        if failed.verdict == WINDOW_CLOSED and not row.needs_window:
            if not self._hold_for_the_tier(row):
                self._later(row)
        elif (fail := FAILED_BY_THE_CLAIM.get(failed.verdict)) is not None:
            if not self._fail(row, fail):
                self._later(row)
        elif failed.verdict == OVERTAKEN:
            pass  # this process ends (C32): a row that it read again would only be refused again
        elif failed.verdict is not None:
            self._rows.forget(row)  # withdrawn, held or changed meanwhile: the table knows which
        else:
            if error is not None and not isinstance(error, Unavailable):
                log.error("claim_failed", message_id=row.id, error=type(error).__name__)
                self._tasks.begin(self._holding.count_crash(row, self._clock.now()))
            self._later(row)

    # Holds ------------------------------------------------------------------------------------------------------------

    @property
    def _holding(self) -> Holding:
        """Made for the first hold: most numbers hold nothing."""
        if self._holds is None:
            self._holds = Holding(self._key, self._context, released=partial(self._tasks.tell, LetGo()))
        return self._holds

    def _hold(self, row: Row, hold: Hold) -> bool:
        if not self._holding.hold(row, hold):
            return False
        self._rows.gone(row.id)
        waits, now = self._context.waits, self._clock.now()
        if hold.reason is not WaitReason.TEMPLATE_STATE and hold.reason is not WaitReason.OWNER_PAUSED:
            waits.held(row, hold.reason, now, hold.until)
        if hold.reason is WaitReason.TEMPLATE_STATE and row.template_id is not None:
            waits.note(self._key, row.template_id, hold.reason, now)
            self._tasks.begin(self._holding.hold_template(row.template_id))
        return True

    def _hold_for_the_tier(self, row: Row) -> bool:
        """The tier was full and its recipient's window is not open."""
        tier, now = None if self._view is None else self._view.tier, self._clock.now()
        if tier is None or tier.admits(row.recipient_hash, now):
            return False  # meanwhile it has room
        return self._hold(row, Hold(WaitReason.TIER_LIMIT, tier.frees_at(now)))

    def _fail(self, row: Row, verdict: Fail) -> bool:
        left = self._holding.fail(row, verdict, self._clock.now())
        if left:
            self._rows.gone(row.id)
            self._context.waits.gone(row)
        return left

    def _later(self, row: Row) -> None:
        """The database has no room or is away: read the row again in a moment."""
        self._rows.forget(row)
        self._tasks.wake_in(READ_AGAIN_AFTER)

    async def _read_again(self) -> None:
        """The number or its organization was changed: what waited for that may go on."""
        self._view = await self._context.view(self._key, self._view, self._departures.claims_answered)
        self._stale = False
        self._count_recipients()
        self._tasks.begin(self._holding.let_go(*POLICIES[self._key.channel].gates.held_by_sender))

    def _count_recipients(self) -> None:
        """Whom the number wrote to before a limit came to its tier: beside its turns, once for each limit."""
        tier = None if self._view is None else self._view.tier
        if tier is not None and tier.limited_at is not None and tier.limited_at != self._counting:
            self._counting = tier.limited_at
            self._tasks.begin(self._counted(tier.limited_at))

    async def _counted(self, limited_at: datetime) -> None:
        await self._context.count_recipients(self._key, limited_at)
        self._tasks.tell(Changed())

    # Reading ----------------------------------------------------------------------------------------------------------

    async def _read_forced(self) -> None:
        if self._holds is not None:
            await self._holds.settled()  # what is being held or ended would be read once more
        known, limit = self._rows.forced_to_read()
        self._rows.fill_forced(await self._context.forced(self._key, limit), known, limit)

    async def _refill(self, wanted: Sequence[Wanted]) -> None:
        """Class by class in one task: of thousands of numbers that start, each would else have three that wait."""
        read: dict[int, list[Row]] = {}
        try:
            for each in wanted:
                read[each.klass] = await self._context.rows(self._key, each)
        finally:
            for each in wanted:
                self._tasks.tell(Refilled(each.klass, each.limit, read.get(each.klass)))

    def _refilled(self, message: Refilled) -> None:
        if message.rows is None:
            self._rows.refill_failed(message.klass)
            self._tasks.wake_in(READ_AGAIN_AFTER)
        else:
            self._rows.fill(message.klass, list(message.rows), message.limit)

    def seen(self) -> LaneSituation | None:
        """What holds the sender now, for those who look at thousands without asking (C34.2); None while it starts."""
        return None if self._departures is None else self._situation()

    def _situation(self) -> LaneSituation:
        gateway = None if self._view is None else self._view.gateway.current
        now = self._clock.now()
        if gateway is None:
            return LaneSituation(self._view, self._held_by(now), now, 0.0, self._departures.in_flight)
        monotonic = self._clock.monotonic()
        ready_in = self._departures.ready_at(gateway, monotonic) - monotonic
        ready_at = now + timedelta(seconds=max(0.0, ready_in))
        holding = self._held_by(now) or gateway.probing()
        return LaneSituation(self._view, holding, ready_at, gateway.per_second, self._departures.in_flight)
