"""What is under way of one number: claims, claimed messages that wait for their token, calls, and the bounds on them.

A row is claimed at most 50 ms before its departure, and its token is taken at the call: a token taken before the claim
commits would let a late commit push two seconds' sends into one.
"""

import asyncio
from datetime import datetime, timedelta
from functools import partial

from recado.actors.calls import Departure
from recado.actors.consent_watch import subject_to_consent
from recado.actors.desk import Desk
from recado.actors.errands import Errands
from recado.actors.number_messages import CameBack, NotClaimed
from recado.actors.number_view import NumberView
from recado.actors.ready_rows import ReadyRows
from recado.actors.row import Row
from recado.channels.provider import Accepted, Down, Outcome, SlowDown, SlowPair, Unknown
from recado.domain.breaker import Breaker
from recado.domain.clock import TimerHandle
from recado.domain.day_usage import DayUsage
from recado.domain.errors import Unavailable
from recado.domain.gates import Hold
from recado.domain.message import WaitReason
from recado.domain.pacing import Pacer
from recado.storage.dispatch import CLAIMED, LOST
from recado.storage.settlements import Returned
from recado.storage.templates import Template

CLAIM_AHEAD = 0.05  # seconds
CALLS_IN_FLIGHT = 2_000  # C31


class Departures:
    """The pace of one number. `rows` is told of each message that departs.

    Answers of claims and calls are taken in as they come, without a turn of the actor: it decides what is claimed, and
    is woken only for that. It opens and closes the gate: while `view` is None nothing departs.
    """

    __slots__ = (
        "_alarm",
        "_alarm_at",
        "_claimed",
        "_claiming",
        "_clock",
        "_closed",
        "_day",
        "_desk",
        "_errands",
        "_pacer",
        "_rows",
        "breaker",
        "in_flight",
        "view",
        "wanted",
    )

    def __init__(self, desk: Desk, *, pacer: Pacer, day: DayUsage, errands: Errands, rows: ReadyRows) -> None:
        self._desk = desk
        self._clock = desk.records.clock
        self._pacer = pacer
        self._day = day
        self._errands = errands
        self._rows = rows
        self._claiming: dict[str, asyncio.Future[str]] = {}
        self._claimed: list[tuple[Row, Template | None]] = []  # at most 50 ms of rate; light when idle
        self.in_flight = 0  # calls whose outcome is not committed yet
        self._alarm: TimerHandle | None = None
        self._alarm_at = 0.0
        self._closed = False
        self.breaker = Breaker()
        self.view: NumberView | None = None
        self.wanted = False  # the actor has rows that it could not claim: it is woken when there is room

    @property
    def under_way(self) -> set[str]:
        """Being claimed, or claimed and not departed."""
        return self._claiming.keys() | {row.id for row, _ in self._claimed}

    @property
    def idle(self) -> bool:
        """Nothing under way, and no trouble with the provider to remember."""
        return not (self._claiming or self._claimed or self.in_flight) and self.breaker.untroubled

    def ready_at(self, now: float) -> float:
        """The moment of the next token."""
        return max(self._pacer.ready_at(now), self._desk.opens_at)

    def holding(self, per_day: int) -> Hold | None:
        """What holds everything here: the provider asked for a pause, no connection, the day is used up."""
        now = self._clock.monotonic()
        wait = self.breaker.ready_at() - now
        if wait > 0:
            paused = self.breaker.paused_until > now
            reason = WaitReason.NUMBER_PAUSED if paused else WaitReason.NO_CONNECTION
            return Hold(reason, self._clock.now() + timedelta(seconds=wait))
        today = self._clock.now()
        used = self._day.used(today)
        if used >= per_day:
            return Hold(WaitReason.DAILY_LIMIT, self._day.frees_at(today, used - per_day + 1))
        return None

    # Claims ---------------------------------------------------------------------------------------------------------

    def may_claim(self, view: NumberView, *, forced: bool) -> bool | float:
        """Whether one more row would leave within 50 ms and every bound; where only time is missing, the seconds."""
        waiting = len(self._claiming) + len(self._claimed)
        if waiting + self.in_flight >= CALLS_IN_FLIGHT:
            return False
        now = self._clock.monotonic()
        allowed = self.breaker.calls_allowed(now, waiting + self.in_flight)
        if allowed is not None and allowed == 0:
            return False
        if self._day.used(self._clock.now()) + waiting >= view.per_day:
            return False
        if forced:
            return True
        if waiting >= max(1, int(view.per_second * CLAIM_AHEAD)):
            return False
        # As moments: so the difference is exact, and whoever waits for it is not woken a rounding error too early.
        opens_at = self.ready_at(now) - CLAIM_AHEAD
        return True if opens_at <= now else opens_at - now

    def claim(self, row: Row, template: Template | None) -> bool:
        """Begin to claim the row; False when the queue of claims is full."""
        if row.id in self._claiming:  # read once more while the answer is on its way, as when the database was away
            return True
        watched = subject_to_consent(template)
        try:
            answer = self._desk.sending.claim(row, with_consent=watched)
        except Unavailable:
            return False
        if watched:
            self._desk.consents.begin(row)
        self._claiming[row.id] = answer
        answer.add_done_callback(partial(self._answered, row, template))
        return True

    def _answered(self, row: Row, template: Template | None, answer: "asyncio.Future[str]") -> None:
        error = None if answer.cancelled() else answer.exception()
        verdict = None if answer.cancelled() or error is not None else answer.result()
        del self._claiming[row.id]
        if verdict != CLAIMED:
            if subject_to_consent(template):
                self._desk.consents.end(row)
            self._errands.tell(NotClaimed(row, verdict, error))
            return
        if row.force:
            self._claimed.insert(0, (row, template))
        else:
            self._claimed.append((row, template))
        self.depart()

    # Calls ----------------------------------------------------------------------------------------------------------

    def depart(self) -> None:
        """Call the provider for every claimed message whose token is there, and come back when the next one is."""
        view = self.view
        if view is None or view.provider is None:
            return
        while self._claimed and self.in_flight < CALLS_IN_FLIGHT:
            row, template = self._claimed[0]
            now = self._clock.monotonic()
            if not row.force:
                ready_at = self.ready_at(now)
                if ready_at > now:
                    self._come_back(ready_at)
                    break
            del self._claimed[0]
            if subject_to_consent(template) and self._desk.consents.end(row):
                self._errands.begin(self._call_off(row))
                continue
            self._pacer.take(now, forced=row.force)
            sent_at = self._desk.moments.at(now)
            self._rows.gone(row.id)
            self.in_flight += 1
            self.breaker.began()
            self._day.add(sent_at)
            self._desk.calls.begin(Departure(row, sent_at, view.provider, view.account, template), self._ended)
        self._room()

    def _come_back(self, at: float) -> None:
        if self._alarm is not None:
            if self._alarm_at <= at:
                return
            self._alarm.cancel()
        self._alarm, self._alarm_at = self._clock.call_at(at, self._ring), at

    def _ring(self) -> None:
        self._alarm = None
        self.depart()

    def _ended(self, departure: Departure, outcome: Outcome) -> None:
        """Learn from an outcome that is committed now."""
        row = departure.row
        self.in_flight -= 1
        if not isinstance(outcome, Accepted | Unknown):
            self._day.take_back(departure.sent_at)
            self._tell_pair(departure, outcome)
        match outcome:
            case Accepted():
                self.breaker.answered()
            case SlowDown():
                self.breaker.slow_down(self._clock.monotonic(), outcome.after)
            case Down():
                self.breaker.down(self._clock.monotonic())
            case Unknown():
                pass  # says nothing of the provider's health
            case _:
                self.breaker.answered()
        if self._closed:
            return
        if isinstance(outcome, SlowDown | Down):
            self._errands.tell(CameBack(row))
        elif self._claimed:
            self.depart()
        else:
            self._room()
        if not self.in_flight and not self._claiming and not self._claimed:
            self._claiming.clear()  # an emptied dict keeps its size, and thousands of numbers rest here
            self._rows.rest()

    def _tell_pair(self, departure: Departure, outcome: Outcome) -> None:
        """What an outcome says of the pace towards its recipient (C14.5, pair)."""
        pairs = None if self.view is None else self.view.pairs
        if pairs is None:
            return
        recipient = departure.row.recipient_hash
        if isinstance(outcome, SlowPair):  # the others to the same recipient need not be refused one by one
            pairs.exhaust(recipient, departure.sent_at, timedelta(seconds=outcome.after))
        elif isinstance(outcome, SlowDown | Down):
            pairs.take_back(recipient)

    def _room(self) -> None:
        """Wake the actor once when it waits for room."""
        if self.wanted:
            self.wanted = False
            self._errands.wake()

    # The end --------------------------------------------------------------------------------------------------------

    async def give_back(self) -> list[Row]:
        """Return to the queue what was claimed and has not left."""
        if not self._claimed:
            return []
        rows = [row for row, _ in self._claimed]
        for row, template in self._claimed:
            if subject_to_consent(template):
                self._desk.consents.end(row)
        self._claimed.clear()
        await asyncio.gather(*(self._put_back(row) for row in rows))
        return rows

    async def close(self) -> None:
        """Nothing departs any more, and what was claimed goes back; calls that are under way end by themselves."""
        self.view = None
        if self._alarm is not None:
            self._alarm.cancel()
        if self._claiming:
            await asyncio.wait(self._claiming.values())
        await self.give_back()
        self._closed = True

    async def _call_off(self, row: Row) -> None:
        """Its recipient refused after it was claimed: back in the queue, its next claim fails it."""
        await self._put_back(row)
        self._errands.tell(NotClaimed(row, LOST))

    async def _put_back(self, row: Row) -> None:
        """sending → queued: the call never began."""
        now: datetime = self._clock.now()
        await self._desk.sending.settle(
            Returned(row.organization_id, row.env, row.channel, row.id, None, None, None, True, now)
        )
