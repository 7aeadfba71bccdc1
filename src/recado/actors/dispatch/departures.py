"""What is under way of one sender: claims, claimed messages that wait for their token, calls, and the bounds on them.

A row is claimed at most 50 ms before its departure, earlier only by as much as the answer takes. Its token is taken at
the call: a token taken before the claim commits would let a late commit push two seconds' sends into one. What was
claimed and may not leave any more goes back.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from recado.actors.dispatch.actor_tasks import ActorTasks
from recado.actors.dispatch.calls import Departure
from recado.actors.dispatch.gate_check import may_still_leave
from recado.actors.dispatch.gateway import Gateway
from recado.actors.dispatch.lane_context import LaneContext
from recado.actors.dispatch.lane_messages import CameBack, NotClaimed
from recado.actors.dispatch.ready_rows import ReadyRows
from recado.actors.dispatch.sender_view import SenderView
from recado.actors.dispatch.shared_gateway import Borrower, GatewayShare
from recado.channels.core.provider import Accepted, Down, NoPlace, Outcome, Refused, SlowDown, SlowPair, Unknown
from recado.domain.core.clock import TimerHandle
from recado.domain.core.errors import Unavailable
from recado.domain.dispatch.day_usage import DayUsage
from recado.domain.dispatch.gates import Hold
from recado.domain.dispatch.leases import RENEWED_EVERY
from recado.domain.dispatch.placement import OWNERS_SHARD
from recado.domain.dispatch.tier_usage import TierUsage
from recado.domain.dispatch.waits import LEAST
from recado.domain.messages.message import WaitReason
from recado.services.dispatch.row import Row
from recado.storage.dispatch.dispatch import CLAIMED, IN_WINDOW, LOST
from recado.storage.dispatch.settlements import Returned
from recado.storage.templates.templates import Template, TemplateKey

CALLS_IN_FLIGHT = 2_000  # C31
LATE = 1.0  # seconds after which a claimed row meets its gates again: its claim was held up
# Outcomes after which the message has left, or may have; and those of which its provider was not given it. Tuples: a
# union would be put together anew for each call that ends.
_MAY_HAVE_LEFT = (Accepted, Unknown)
_NOT_GIVEN = (SlowDown, NoPlace, Down)


@dataclass(slots=True, eq=False)
class Claimed:
    """A row that is being claimed, or is claimed: with what it passed its gates, and the moment (monotonic)."""

    row: Row
    template: Template | None
    view: SenderView
    gateway: Gateway
    permit: bool  # of a shared gateway: handed back when it does not depart
    begun: float
    tier: TierUsage | None  # in which its recipient's place is kept


class Departures:
    """The departures of one sender. `rows` is told of each message that departs.

    Answers of claims and calls are taken in as they come, without a turn of the actor: it decides what is claimed, and
    is woken only for that. It opens and closes the gate: while `view` is None nothing departs.
    """

    __slots__ = (
        "_alarm",
        "_alarm_at",
        "_borrower",
        "_claimed",
        "_claiming",
        "_clock",
        "_closed",
        "_context",
        "_day",
        "_doubted",
        "_reading",
        "_rows",
        "_shard",
        "_tasks",
        "in_flight",
        "view",
        "wanted",
    )

    def __init__(
        self, context: LaneContext, *, day: DayUsage, tasks: ActorTasks, rows: ReadyRows, shard: int = OWNERS_SHARD
    ) -> None:
        self._context = context
        self._shard = shard
        self._clock = context.records.clock
        self._day = day
        self._tasks = tasks
        self._rows = rows
        self._claiming: dict[str, asyncio.Future[str]] = {}
        self._claimed: list[Claimed] = []  # at most 50 ms of rate; light when idle
        self._doubted = -1.0  # what was claimed up to this moment meets its gates again
        self._reading = False  # the template of the next one
        self.in_flight = 0  # calls whose outcome is not committed yet
        self._alarm: TimerHandle | None = None
        self._alarm_at = 0.0
        self._closed = False
        self._borrower: Borrower | None = None  # at the shared gateway in force, if there is one
        self.view: SenderView | None = None
        self.wanted = False  # the actor has rows that it could not claim: it is woken when there is room

    @property
    def under_way(self) -> set[str]:
        """Being claimed, or claimed and not departed."""
        return self._claiming.keys() | {each.row.id for each in self._claimed}

    @property
    def idle(self) -> bool:
        """Nothing under way."""
        return not (self._claiming or self._claimed or self.in_flight)

    def ready_at(self, gateway: Gateway, now: float) -> float:
        """The moment of the next token."""
        return max(gateway.pacer.ready_at(now), self._context.opens_at, self._context.opens[self._shard])

    def day_hold(self, per_day: int | None, today: datetime) -> Hold | None:
        """What holds everything of the sender when its day is used up."""
        if per_day is None:
            return None
        used = self._day.used(today)
        if used < per_day:
            return None
        return Hold(WaitReason.DAILY_LIMIT, self._day.frees_at(today, used - per_day + 1))

    # Claims ---------------------------------------------------------------------------------------------------------

    def may_claim(self, view: SenderView, gateway: Gateway, today: datetime, *, forced: bool) -> bool | float:
        """Whether one more row would leave within 50 ms and every bound; where only time is missing, the seconds.

        Where the gateway is shared, a permit of it is all that is asked for: it keeps the pace, and has the lane woken.
        """
        if not self.has_room(view, today):
            return False
        if not self._context.sending.lease.holds():
            return RENEWED_EVERY  # where only the renewal is late
        now = self._clock.monotonic()
        if isinstance(gateway, GatewayShare):
            if forced:
                return gateway.lets_ahead(len(self._claiming) + len(self._claimed))
            return self.has_permit(gateway)
        waiting = len(self._claiming) + len(self._claimed)
        if not gateway.may_call(now, waiting):
            return False
        if forced:
            return True
        ahead = self._context.claims_ahead()
        if waiting >= max(1, int(gateway.pacer.per_second * ahead)):
            return False
        # As moments: so the difference is exact, and anyone who waits for it is not woken a rounding error too early.
        opens_at = self.ready_at(gateway, now) - ahead
        return True if opens_at <= now else opens_at - now

    def has_room(self, view: SenderView, today: datetime) -> bool:
        """Whether the bounds of the sender itself leave room for one more row: its calls in flight, its day."""
        waiting = len(self._claiming) + len(self._claimed)
        if waiting + self.in_flight >= CALLS_IN_FLIGHT:
            return False
        return view.per_day is None or self._day.used(today) + waiting < view.per_day

    def borrow(self, gateway: GatewayShare, rows: Mapping[int, int]) -> None:
        """Ask for permits for as many rows of each class as are ready; what is beyond them goes back."""
        borrower = self._borrower_at(gateway)
        permits = borrower.permits
        held: dict[int, int] = {}
        for klass in permits:
            held[klass] = held.get(klass, 0) + 1
        unused = 0
        for klass, count in held.items():
            for _ in range(max(0, count - rows.get(klass, 0))):
                permits.remove(klass)
                unused += 1
        if unused:
            gateway.hand_back(unused)
        gateway.want(borrower, {klass: count - held.get(klass, 0) for klass, count in rows.items()})

    def stand_back(self) -> None:
        """The sender is held: the permits that it has, and its turns, are others' meanwhile."""
        if self._borrower is not None:
            self.borrow(self._borrower.gateway, {})

    def has_permit(self, gateway: GatewayShare) -> bool:
        """Whether the lane has one that it has not used."""
        return bool(self._borrower_at(gateway).permits)

    def next_permit(self, gateway: GatewayShare) -> int:
        """The class of the next permit, which is used now. Without one there is an IndexError."""
        return self._borrower_at(gateway).permits.popleft()

    def _borrower_at(self, gateway: GatewayShare) -> Borrower:
        """The lane at this gateway: what it had at another, which this one took over from, goes back there."""
        borrower = self._borrower
        if borrower is None or borrower.gateway is not gateway:
            if borrower is not None:
                borrower.gateway.forget(borrower)
            borrower = self._borrower = Borrower(gateway, self._tasks.wake)
        return borrower

    def claim(
        self,
        row: Row,
        template: Template | None,
        view: SenderView,
        gateway: Gateway,
        *,
        in_window: bool = False,
        permit: bool = False,
    ) -> bool:
        """Begin to claim the row; False when the queue of claims is full. Until it departs, what its gates counted for
        its recipient, and its `permit`, are taken back when it does not.

        `in_window`: the tier is full, and it may leave only into an open window; else a place in the tier is kept.
        """
        tier = None if row.needs_window or in_window else view.tier
        if row.id in self._claiming:  # read once more while the answer is on its way, as when the database was away
            view.take_back(row.recipient_hash)
            if tier is not None:
                tier.release(row.recipient_hash)
            if permit:
                gateway.hand_back()
            return True
        try:
            answer = self._context.sending.claim(row, in_window=in_window, counts=tier is not None)
        except Unavailable:
            view.take_back(row.recipient_hash)
            if tier is not None:
                tier.release(row.recipient_hash)
            return False
        if row.subject_to_consent:
            self._context.consents.begin(row)
        self._claiming[row.id] = answer
        claimed = Claimed(row, template, view, gateway, permit, self._clock.monotonic(), tier)
        answer.add_done_callback(partial(self._answered, claimed))
        return True

    async def claims_answered(self) -> None:
        """Until no claim is under way: what they counted is in the table then."""
        if self._claiming:
            await asyncio.wait(self._claiming.values())

    def doubt(self) -> None:
        """What a gate of the messages' own asks was changed: what is claimed meets it once more."""
        self._doubted = self._clock.monotonic()

    def _answered(self, claimed: Claimed, answer: "asyncio.Future[str]") -> None:
        row = claimed.row
        error = None if answer.cancelled() else answer.exception()
        verdict = None if answer.cancelled() or error is not None else answer.result()
        del self._claiming[row.id]
        if claimed.tier is not None:
            claimed.tier.release(row.recipient_hash)
            if verdict == CLAIMED:
                claimed.tier.count(row.recipient_hash, self._clock.now())
        if verdict != CLAIMED and verdict != IN_WINDOW:
            self._take_back(claimed)
            if row.subject_to_consent:
                self._context.consents.end(row)
            if verdict is None:
                self._context.sending.unclear(row)
            self._tasks.tell(NotClaimed(row, verdict, error))
            return
        if row.force:
            self._claimed.insert(0, claimed)
        else:
            self._claimed.append(claimed)
        if self.view is None:  # the number was held meanwhile: its actor gives the row back
            self._tasks.wake()
        else:
            self.depart()

    # Calls ----------------------------------------------------------------------------------------------------------

    def depart(self) -> None:
        """Call the provider for every claimed message whose token is there, and come back when the next one is."""
        view = self.view
        if view is None:
            return
        while self._claimed and self.in_flight < CALLS_IN_FLIGHT:
            claimed = self._claimed[0]
            row, template, gateway = claimed.row, claimed.template, claimed.gateway
            provider, account = gateway.provider, gateway.account
            if provider is None or account is None:
                break
            now = self._clock.monotonic()
            if not gateway.may_call(now):
                if gateway is view.gateway.current:
                    break  # the lane was told, and gives back what is claimed; or a probe's outcome comes first
                del self._claimed[0]  # it goes through the one that took over
                self._call_off(claimed)
                continue
            if not row.force:
                ready_at = self.ready_at(gateway, now)
                if ready_at > now:
                    self._come_back(gateway, ready_at)
                    break
            if not gateway.room.has_place(account, self.depart):
                break
            if self._awaits_template(claimed, view, now):
                break
            del self._claimed[0]
            refused = row.subject_to_consent and self._context.consents.end(row)
            if refused or not self._passes_still(claimed, view, now):
                self._call_off(claimed)
                continue
            sent_at = self._context.moments.at(now)
            self._rows.gone(row.id)
            waits = None
            if sent_at - row.due_at >= LEAST:
                waits = self._context.waits.told(row, sent_at, self._context.records.owners)
            departure = Departure(
                row, sent_at, gateway, provider, account, template, gateway.breaker.pauses, view.pairs, waits
            )
            gateway.take(now, forced=row.force)
            if not self._context.calls.begin(departure, self._ended):
                gateway.ended(None, 0)
                self._call_off(claimed)  # of a row that another process owns by now, this changes nothing
                continue
            if claimed.permit:
                gateway.used()
            self.in_flight += 1
            if row.repeat_of is not None:
                self._day.take_back(row.repeat_of)  # one message counts once, however often it is called for
            self._day.add(sent_at)
        self._room()

    def _passes_still(self, claimed: Claimed, view: SenderView, now: float) -> bool:
        """Whether the gates that it passed before its claim would let it pass: asked when something came between.

        None does once the lease is over: it is claimed once more when that was renewed (C14.5.6).
        """
        row, records = claimed.row, self._context.records
        if not self._context.sending.lease.holds():
            return False
        if not self._meets_gates_again(claimed, view, now):
            return True
        template, key = None, _template_of(row, view)
        if key is not None:
            template = records.templates.peek(key)
            if template is None:
                return False  # there is none any more, or it cannot be read
        return may_still_leave(row, template, view, records, self._clock.now())

    def _meets_gates_again(self, claimed: Claimed, view: SenderView, now: float) -> bool:
        return claimed.view is not view or claimed.begun <= max(self._doubted, now - LATE)

    def _awaits_template(self, claimed: Claimed, view: SenderView, now: float) -> bool:
        """Whether its gates ask for a template that has to be read first: that costs less than another claim."""
        if self._reading:
            return True
        if not self._meets_gates_again(claimed, view, now):
            return False
        key = _template_of(claimed.row, view)
        if key is None or self._context.records.templates.peek(key) is not None:
            return False
        self._reading = True
        self._tasks.begin(self._read_template(claimed, key))
        return True

    async def _read_template(self, claimed: Claimed, key: TemplateKey) -> None:
        try:
            found = await self._context.records.templates.get(key)
        except Unavailable:
            found = None
        finally:
            self._reading = False
        if found is None and claimed in self._claimed:
            without = [each for each in self._claimed if _is_of(each.row, key)]
            self._claimed = [each for each in self._claimed if not _is_of(each.row, key)]
            for each in without:  # of a batch all: each alone would be another read
                if each.row.subject_to_consent:
                    self._context.consents.end(each.row)
                self._call_off(each)
        self.depart()

    def _come_back(self, gateway: Gateway, at: float) -> None:
        if isinstance(gateway, GatewayShare):
            gateway.come_back(self.depart, at)
            return
        if self._alarm is not None:
            if self._alarm_at <= at:
                return
            self._alarm.cancel()
        self._alarm, self._alarm_at = self._clock.call_at(at, self._ring), at

    def _ring(self) -> None:
        self._alarm = None
        self.depart()

    def _ended(self, departure: Departure, outcome: Outcome | None) -> None:
        """Learn from an outcome that is committed now; None: it could not be recorded."""
        row = departure.row
        self.in_flight -= 1
        if outcome is not None and not isinstance(outcome, _MAY_HAVE_LEFT):
            self._day.take_back(departure.sent_at)
            if row.repeat_of is not None and not isinstance(outcome, Refused):
                self._day.add(row.repeat_of)  # it may have left then
            self._tell_pair(departure, outcome)
        if departure.returned is not None or self._context.waits.any_held:
            self._remember(departure)
        opened = departure.gateway.ended(outcome, departure.pauses)
        if self._closed:
            return
        if isinstance(outcome, _NOT_GIVEN):
            self._tasks.tell(CameBack(row))
        elif opened:
            self._tasks.wake()  # it gives back what is claimed
        elif self._claimed:
            self.depart()
        else:
            self._room()
        if not self.in_flight and not self._claiming and not self._claimed:
            self._claiming.clear()  # an emptied dict keeps its size, and thousands of numbers rest here
            self._rows.rest()

    def _remember(self, departure: Departure) -> None:
        """What its message waits for from now on, when it goes back; the call itself was no wait (C34.4)."""
        waits, row, returned = self._context.waits, departure.row, departure.returned
        if returned is None:
            waits.gone(row)
            return
        waits.held(row, None, departure.sent_at, returned.returned_at)
        if returned.reason is not None and returned.not_before is not None:
            waits.held(row, WaitReason(returned.reason), returned.returned_at, returned.not_before)

    def _tell_pair(self, departure: Departure, outcome: Outcome) -> None:
        """What an outcome says of the pace towards its recipient (C14.5, pair)."""
        pairs = departure.pairs
        if pairs is None:
            return
        recipient = departure.row.recipient_hash
        if isinstance(outcome, SlowPair):  # the others to the same recipient need not be refused one by one
            pairs.exhaust(recipient, departure.sent_at, timedelta(seconds=outcome.after))
        elif isinstance(outcome, _NOT_GIVEN):
            pairs.take_back(recipient)

    def _room(self) -> None:
        """Wake the actor once when it waits for room."""
        if self.wanted:
            self.wanted = False
            self._tasks.wake()

    # The end --------------------------------------------------------------------------------------------------------

    async def give_back(self) -> list[Row]:
        """Return to the queue what was claimed and has not left."""
        if not self._claimed:
            return []
        rows = [each.row for each in self._claimed]
        for each in self._claimed:
            self._take_back(each)
            if each.row.subject_to_consent:
                self._context.consents.end(each.row)
        self._claimed.clear()
        await asyncio.gather(*(self._put_back(row) for row in rows))
        return rows

    async def close(self) -> None:
        """Nothing departs any more, and what was claimed goes back; calls that are under way end by themselves."""
        self.view = None
        if self._alarm is not None:
            self._alarm.cancel()
        await self.claims_answered()
        await self.give_back()
        if self._borrower is not None:
            self._borrower.gateway.forget(self._borrower)
        self._closed = True

    def _take_back(self, claimed: Claimed) -> None:
        """It does not depart: its recipient has not been written to, and its permit is another's."""
        claimed.view.take_back(claimed.row.recipient_hash)
        if claimed.permit:
            claimed.gateway.hand_back()

    def _call_off(self, claimed: Claimed) -> None:
        """Its recipient refused, or a gate closed, after it was claimed: back in the queue, where its gates hold it."""
        self._take_back(claimed)
        self._tasks.begin(self._put_off(claimed.row))

    async def _put_off(self, row: Row) -> None:
        await self._put_back(row)
        self._tasks.tell(NotClaimed(row, LOST))

    async def _put_back(self, row: Row) -> None:
        """sending → queued: the call never began."""
        now: datetime = self._clock.now()
        await self._context.sending.settle(
            Returned(row.organization_id, row.env, row.channel, row.id, row.claimed_at, None, None, None, True, now)
        )


def _is_of(row: Row, key: TemplateKey) -> bool:
    return (row.organization_id, row.env, row.template_id) == key


def _template_of(row: Row, view: SenderView) -> TemplateKey | None:
    """The key of the template that the row's gates ask for, if they ask for one."""
    if row.template_id is None or not view.gates.asks_template:
        return None
    return row.organization_id, row.env, row.template_id
