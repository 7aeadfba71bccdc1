"""Dry runs of journeys (C9.17): reads whom one would take along, what their messages would cost, and walks it.

Nothing is written. It is long work of the event loop: it takes turns there, gives way to requests, and has a time after
which it answers what it has by then.
"""

import asyncio
from collections.abc import AsyncIterator, Hashable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from heapq import nlargest
from typing import Final
from zoneinfo import ZoneInfo

from recado.domain.billing.prices import region_of
from recado.domain.channels.chatapp import CHATAPP
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.domain.core.ids import BODY_LENGTH, EXECUTION
from recado.domain.journeys.execution import ExecutionOrigin, SkipReason
from recado.domain.journeys.field_values import Entry
from recado.domain.journeys.outcomes import SendMessage
from recado.domain.journeys.runnable import runnable
from recado.domain.journeys.sends import QuietWindow, SendFacts, counts_after, decide_send
from recado.domain.journeys.simulation.assumptions import Assumptions
from recado.domain.journeys.simulation.departure_times import DAY, SenderLimits
from recado.domain.journeys.simulation.fields import fields_of
from recado.domain.journeys.simulation.tallies import Tallies
from recado.domain.journeys.simulation.walk import ContactKind, Offer, Trail, Walk
from recado.domain.journeys.steps import EmailSend, SendStep
from recado.domain.links.text_links import short_link
from recado.domain.messages.message import CRITICAL
from recado.domain.senders.number import TIER_LIMITS, NumberStatus, effective_per_second
from recado.engine.turns import in_pieces, turns
from recado.services.journeys.facts import quiet_windows
from recado.services.journeys.running import RunningJourney
from recado.services.journeys.simulation_kinds import GatheredKind, Gathering
from recado.services.journeys.standing import Hindered, PendingSend, Standing
from recado.services.journeys.step_messages import StepMessages, watched_for_clicks
from recado.storage.access.directories import Directories
from recado.storage.audience.segment_evaluation import Evaluation
from recado.storage.batches.audiences import Audience
from recado.storage.core.connections.postgres import Database
from recado.storage.core.shares.fair_places import FairPlaces
from recado.storage.dispatch import dispatch
from recado.storage.email import suppressions
from recado.storage.journeys import execution_facts, simulation_facts
from recado.storage.journeys.execution_facts import ContactKey
from recado.storage.journeys.executions import Execution
from recado.storage.journeys.journeys import Journey
from recado.storage.journeys.simulation_facts import AudienceFacts, FoundKind, LookedAt

AT_ONCE: Final = 2  # dry runs, one of an organization
MOST_WAITING: Final = 1  # of an organization
WAIT_SECONDS: Final = 16.0  # for its turn: longer than one run
READ_SECONDS: Final = 7.0  # after which nobody more is read
MAKE_SECONDS: Final = 9.0  # after which no more messages are made, and those who lack theirs are left out
RUN_SECONDS: Final = 11.0  # after which the walk stands still: a request has 30, with its wait
MOST_COHORTS: Final = 100_000  # on their way at one moment, some 500 bytes each
STEP_SECONDS: Final = 0.002  # of one step of the loop, which an item more may lengthen
ASKED_AT_ONCE: Final = 50  # rows of contacts that are unpacked in one step
DECIDE_AT_ONCE: Final = 1_000  # cohorts of one step, however fast it goes

_NOBODYS: Final = EXECUTION + "0" * BODY_LENGTH
"""The execution of messages that nobody sends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WantedRun:
    """What is to be tried: an audience, or contacts by their ids. `shown`: of how many the way is told.

    `start`: the moment of all entries. `entry`: what they enter with.
    """

    start: datetime
    assumptions: Assumptions
    people: Audience | Sequence[str]
    shown: int
    entry: Entry = field(default_factory=dict)
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """What came of it. `under_way`: how many have not come to an end.

    `partial`: there was no time, or no room, for more. `lanes`: by sender, a message of it. `hindered`: for what the
    journey would pause itself.
    """

    under_way: int
    partial: bool
    tallies: Tallies
    trails: Sequence[Trail]
    lanes: Mapping[str, Offer]
    hindered: Sequence[Hindered]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationParts:
    """What dry runs are made with. `link_base`: the address of short links, whose length counts; `billed`: C25.2.4."""

    db: Database
    evaluation: Evaluation
    step_messages: StepMessages
    directories: Directories
    clock: Clock
    link_base: str
    billed: bool


class JourneySimulations:
    """Some at a time, one of an organization. `billed`: whether messages cost anything here."""

    def __init__(self, parts: SimulationParts) -> None:
        self.billed = parts.billed
        self._parts = parts
        self._places = FairPlaces(AT_ONCE, most_waiting=MOST_WAITING)

    async def run(self, journey: Journey, wanted: WantedRun) -> Simulated:
        """Try a journey without problems. Raises `Unavailable` while too much of its organization is tried."""
        async with self._place(journey.organization_id):
            return await _Run(self._parts, journey, wanted).simulated()

    @asynccontextmanager
    async def _place(self, organization_id: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(WAIT_SECONDS) as limit, self._places.place(organization_id):
                limit.reschedule(None)
                yield
        except TimeoutError:
            raise Unavailable("Other dry runs are under way: try again shortly.", retry_after=10) from None


class _Run:
    """One dry run."""

    def __init__(self, parts: SimulationParts, journey: Journey, wanted: WantedRun) -> None:
        self._parts = parts
        self._journey = journey
        self._wanted = wanted
        self._began = parts.clock.monotonic()
        self._step_ends = self._began
        self._plan = runnable(journey.definition())
        self._zone = ZoneInfo(journey.fuso_horario)
        self._sends = [step for step in self._plan.steps.values() if isinstance(step, SendStep)]
        self._made: dict[Hashable, Offer | SkipReason] = {}
        self._lanes: dict[str, Offer] = {}
        self._hindered: dict[str, Hindered] = {}
        self._partial = False

    async def simulated(self) -> Simulated:
        """Read, price, walk."""
        organization = await self._parts.directories.organizations.of_caller(self._journey.organization_id)
        quiet = tuple(quiet_windows(organization))
        silence = self._plan.silence
        kinds = await self._kinds(quiet)
        walk = Walk(
            self._plan,
            kinds,
            self._wanted.assumptions,
            zone=self._zone,
            start=self._wanted.start,
            silences=quiet if silence is None else (*quiet, QuietWindow(silence, self._zone)),
            limits={lane: await self._limits(lane) for lane, offer in self._lanes.items() if offer.channel == CHATAPP},
            entry=self._wanted.entry,
            seed=self._wanted.seed,
        )
        more = True
        while more:
            await self._next_step()
            more = walk.advance(DECIDE_AT_ONCE, self._enough)
            if more and (self._seconds > RUN_SECONDS or walk.cohorts > MOST_COHORTS):
                self._partial = True
                break
        return Simulated(
            under_way=walk.under_way,
            partial=self._partial or walk.endless,
            tallies=walk.tallies,
            trails=list(walk.trails.values()),
            lanes=self._lanes,
            hindered=list(self._hindered.values()),
        )

    @property
    def _seconds(self) -> float:
        return self._parts.clock.monotonic() - self._began

    async def _next_step(self) -> None:
        """Wait for a turn of the loop."""
        await turns.next()
        self._step_ends = self._parts.clock.monotonic() + STEP_SECONDS

    def _enough(self) -> bool:
        """Whether the step has had its time."""
        return self._parts.clock.monotonic() >= self._step_ends

    # Whom it takes along ----------------------------------------------------------------------------------------------

    async def _gathered(self) -> Sequence[GatheredKind]:
        parts, wanted = self._parts, self._wanted
        tracked = frozenset(watched_for_clicks(self._plan))
        link = short_link(parts.link_base)
        gathering = Gathering(self._plan, self._zone, wanted.entry, tracked=tracked, shorten=lambda _: link)
        cap = self._plan.cap
        recent = None if cap is None else (counts_after(cap.dias, wanted.start), cap.mensagens)
        facts = AudienceFacts(
            parts.db,
            parts.evaluation,
            organization_id=self._journey.organization_id,
            env=self._journey.env,
            people=wanted.people,
            looked=LookedAt(fields_of(self._plan.steps), recent),
            now=wanted.start,
        )
        while rows := await facts.rows():
            async for some in in_pieces(rows, ASKED_AT_ONCE):
                kinds = await facts.kinds(some)
                suppressed = await self._suppressed(kinds)
                for place, found in enumerate(kinds):
                    if self._enough():
                        await self._next_step()
                    gathering.add(found, suppressed=place in suppressed)
            if self._seconds > READ_SECONDS or gathering.full:
                self._partial = True
                break
        return gathering.kinds

    async def _suppressed(self, kinds: Sequence[FoundKind]) -> set[int]:
        """The places of those whose address gets no e-mail, if the journey sends some."""
        if not any(isinstance(step.content, EmailSend) for step in self._sends):
            return set()
        where = (self._journey.organization_id, self._journey.env)
        asked = [(place, each.contact.email) for place, each in enumerate(kinds) if each.contact.email]
        found = await suppressions.suppressed_of(self._parts.db.searches, [(*where, email) for _, email in asked])
        return {asked[n][0] for n in found}

    async def _shown(self, gathered: Sequence[GatheredKind]) -> list[GatheredKind]:
        """Some contacts, read whole and taken out of their kinds: of each kind one, the largest first, then others."""
        by_size = nlargest(self._wanted.shown, gathered, key=lambda kind: kind.count)
        rounds = max((len(kind.ids) for kind in by_size), default=0)
        chosen = [(kind.ids[turn], kind) for turn in range(rounds) for kind in by_size if turn < len(kind.ids)]
        kind_of = dict(chosen[: self._wanted.shown])
        keys = [ContactKey(self._journey.organization_id, self._journey.env, each) for each in kind_of]
        found = []
        for key, (contact, registered) in (await execution_facts.contacts_of(self._parts.db, keys)).items():
            kind = kind_of[key.contact_id]
            kind.count -= 1
            found.append(GatheredKind(contact, registered, kind.recent, 1, [contact.id], suppressed=kind.suppressed))
        return found

    # What their messages would be -------------------------------------------------------------------------------------

    async def _kinds(self, quiet: tuple[QuietWindow, ...]) -> list[ContactKind]:
        gathered = await self._gathered()
        shown = await self._shown(gathered)
        kinds = []
        for group in (shown, [each for each in gathered if each.count]):
            for each in group:
                if self._seconds > MAKE_SECONDS:
                    self._partial = True
                    break
                offers = {}
                for step in self._sends:
                    if self._enough():
                        await self._next_step()
                    offers[step.id] = await self._offer(step, each, quiet)
                kinds.append(
                    ContactKind(each.contact, each.registered, each.count, offers, each.recent, shown=group is shown)
                )
        return kinds

    async def _offer(self, step: SendStep, kind: GatheredKind, quiet: tuple[QuietWindow, ...]) -> Offer | SkipReason:
        """What they would get, or why not; made once for all kinds for whom it is the same."""
        if kind.suppressed and isinstance(step.content, EmailSend):
            return SkipReason.EMAIL_SUPPRESSED
        if kind.answers is None:
            return await self._make(step, kind, quiet)
        contact = kind.contact
        key = (step.id, contact.opt_in_status, kind.registered, region_of(contact.phone), kind.answers.get(step.id))
        if key not in self._made:
            self._made[key] = await self._make(step, kind, quiet)
        return self._made[key]

    async def _make(self, step: SendStep, kind: GatheredKind, quiet: tuple[QuietWindow, ...]) -> Offer | SkipReason:
        decision = decide_send(
            step, SendFacts(), kind.contact, self._wanted.entry, self._zone, self._wanted.start, test=False
        )
        if not isinstance(decision, SendMessage):
            return SkipReason.VARIABLE_EMPTY  # as the walk will find
        made = await self._parts.step_messages.make(self._standing(step, kind), decision)
        match made:
            case Hindered(hindrance):
                self._hindered.setdefault(step.id, made)
                return SkipReason(hindrance)
            case PendingSend(message):
                offer = Offer(
                    message.channel,
                    message.sender_id,
                    message.coins or 0,
                    message.units,
                    message.ttl,
                    critical=message.klass == CRITICAL,
                    quiet=quiet if message.obeys_quiet_hours else (),
                )
                self._lanes.setdefault(offer.lane, offer)
                return offer
        return made

    def _standing(self, step: SendStep, kind: GatheredKind) -> Standing:
        """An execution at a step, which is no row."""
        journey, now = self._journey, self._wanted.start
        execution = Execution(
            organization_id=journey.organization_id,
            env=journey.env,
            journey_id=journey.id,
            id=_NOBODYS,
            chain_id=journey.chain_id,
            versao=journey.versao,
            contact_id=kind.contact.id,
            origem=ExecutionOrigin.API,
            teste=False,
            hurried=False,
            entrada=self._wanted.entry,
            step_id=step.id,
            arrived_at=now,
            wake_at=None,
            started_at=now,
        )
        running = RunningJourney(journey.revision, journey.chain_id, journey.versao, self._zone, self._plan)
        return Standing(execution, running, journey.status, kind.contact)

    async def _limits(self, number_id: str) -> SenderLimits:
        """Of a number as it is now, with what it has used of its day."""
        organization_id, env, now = self._journey.organization_id, self._journey.env, self._parts.clock.now()
        number = await self._parts.directories.numbers.get((organization_id, env, number_id))
        if number is None:
            return SenderLimits(held=True)
        limits = SenderLimits(
            per_second=effective_per_second(number.per_second, number.quality_rating),
            per_day=number.per_day,
            recipients=TIER_LIMITS[number.messaging_tier],
            held=number.status is not NumberStatus.CONNECTED,
            sent=await dispatch.day_minutes(self._parts.db, organization_id, number_id, now),
        )
        if limits.recipients is None:
            return limits
        addressed = await simulation_facts.addressed(self._parts.db, organization_id, number_id, now - DAY)
        return replace(limits, addressed=addressed)
