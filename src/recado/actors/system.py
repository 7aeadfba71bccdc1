"""The actor system: everything that sends and tracks, under one supervisor tree, started and stopped in order."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import structlog

from recado.actors.dispatch.calls import Calls, ContentOf
from recado.actors.dispatch.direct_sends import DirectSends
from recado.actors.dispatch.due_poller import DuePoller
from recado.actors.dispatch.lane_context import LaneContext
from recado.actors.dispatch.lane_messages import Changed, LaneSituation, TemplateMoved
from recado.actors.dispatch.lanes import Lanes
from recado.actors.dispatch.own_claims import LOOK_EVERY, SETTLE_EVERY, OwnClaims
from recado.actors.dispatch.places import Places
from recado.actors.dispatch.rescuer import Rescuer
from recado.actors.dispatch.shared_gateway import GatewayPlan, told_by
from recado.actors.dispatch.waiting import WaitExplainer
from recado.actors.elsewhere import Away, Elsewhere
from recado.actors.jobs.clock_confirmation import ClockConfirmation
from recado.actors.jobs.ledger_check import LedgerCheck
from recado.actors.jobs.retention import Retention
from recado.actors.jobs.upkeep import Upkeep
from recado.actors.journeys.execution_poller import ExecutionPoller
from recado.actors.journeys.segment_looks import SegmentLooks
from recado.actors.journeys.step_caller import StepCaller
from recado.actors.ops.actor_tree import ActorTree
from recado.actors.ops.number_states import NumberStates
from recado.actors.ops.process_figures import ProcessFigures
from recado.actors.ops.provider_states import ProviderStates
from recado.actors.ops.webhook_states import WebhookStates
from recado.actors.webhooks.webhooks import Webhooks
from recado.channels.core.adapters import CallbackSource, EventReader, SessionSource
from recado.domain.channels.policies import ACCOUNTS_CHANNEL, NUMBERS_CHANNEL
from recado.domain.core.ids import IdSource
from recado.domain.core.moments import Moments
from recado.domain.dispatch.gates import Hold
from recado.domain.dispatch.leases import TOLERANCE, WINDOW, Lease
from recado.domain.messages.changes import (
    Change,
    ConsentRefused,
    DeliveriesQueued,
    JourneyMoved,
    NumberChanged,
    OnChange,
    OrganizationChanged,
    SocialAccountChanged,
    SubscriptionChanged,
    TemplateChanged,
    WithdrawalsLeft,
)
from recado.domain.senders.sender import SenderKey
from recado.domain.webhooks.webhook import SubscriptionKey
from recado.engine.failure import Failure
from recado.engine.periodic import Periodic
from recado.engine.runtime import Runtime
from recado.engine.supervisor import Supervisor
from recado.services.batches.batch_audience import Audiences
from recado.services.batches.batch_maker import BatchMaker
from recado.services.batches.batch_prices import WalletTariff
from recado.services.batches.batches import Batches
from recado.services.batches.channel_batches import ChannelBatches
from recado.services.batches.tariff import FREE
from recado.services.billing.payments import Payments
from recado.services.contacts.reachability import Reachability
from recado.services.dispatch.rcs_fallbacks import RcsFallbacks, revokers_among
from recado.services.dispatch.records import Records
from recado.services.dispatch.row import Row
from recado.services.dispatch.sending import Sending
from recado.services.dispatch.withdrawals import Withdrawals
from recado.services.effects.campaigns import CampaignCompletion, Campaigns
from recado.services.effects.consequences import Consequences
from recado.services.effects.deadlines import MessageDeadlines
from recado.services.effects.outbox import Outbox
from recado.services.effects.overdue import Overdue, handlers_of_policies
from recado.services.effects.recording import Recording
from recado.services.effects.totals import MessageTotals
from recado.services.effects.wallet import Wallet
from recado.services.flows.flow_reports import FlowReports
from recado.services.inbound.callbacks import Apart, Callbacks
from recado.services.inbound.inbound import InboundMessages
from recado.services.inbound.provider_sessions import ProviderSessions
from recado.services.inbound.receipts import Receipts
from recado.services.inbound.sandbox_reports import SandboxReports
from recado.services.journeys.arrivals import JourneyArrivals
from recado.services.journeys.event_entries import EventEntries
from recado.services.journeys.execution_turns import ExecutionTurns
from recado.services.journeys.hindrances import JourneyPauses
from recado.services.journeys.journey_queues import JourneyQueues
from recado.services.journeys.running import RunningJourneys
from recado.services.journeys.step_calls import StepCalls
from recado.services.journeys.step_messages import StepMessages
from recado.services.journeys.superseded_versions import SupersededVersions
from recado.services.messages.admission import Admission
from recado.services.ops.activity import Activity
from recado.services.senders.number_refresh import NumberRefresh
from recado.services.senders.social_accounts import SocialAccountReports
from recado.services.templates.template_review import TemplateReview
from recado.storage.access.organizations import ENVIRONMENTS
from recado.storage.audience.segment_evaluation import Evaluation
from recado.storage.batches.totals import TotalsKey
from recado.storage.billing.prices import PriceDirectory
from recado.storage.core.statements.moves import AfterCommit
from recado.storage.dispatch.begun_calls import BegunCalls
from recado.storage.dispatch.epochs import TakenEpoch
from recado.storage.journeys import execution_counts, step_counts
from recado.storage.webhooks.webhooks import SubscriptionDirectory

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Follow:
    """What follows the providers' news of numbers and templates."""

    numbers: NumberRefresh
    templates: TemplateReview


class ActorSystem:
    """Numbers and their surroundings. `failed` resolves when the root supervisor gave up: the program must end."""

    def __init__(
        self,
        records: Records,
        *,
        batch_rules: Mapping[str, ChannelBatches],
        runtime: Runtime,
        ids: IdSource,
        follow: Follow,
        callback_providers: Mapping[tuple[str, str], CallbackSource],
        session_providers: Sequence[tuple[str, SessionSource]] = (),
        callbacks_apart: Apart,
        webhooks: Webhooks,
        subscriptions: SubscriptionDirectory,
        changed: OnChange,
        owing: AfterCommit,
        opens: Callable[[str], Awaitable[object]],
        begun: BegunCalls,
        contents: Mapping[str, ContentOf],
        with_content: Mapping[str, Callable[[Row], bool]],
        step_messages: StepMessages,
        calls_of_steps: int,
        simulator_domain: str,
        payments: Payments | None = None,
        prices: PriceDirectory | None = None,
        connections: Mapping[tuple[str, str], int] | None = None,
        gateways: Iterable[GatewayPlan] = (),
        elsewhere: Elsewhere | None = None,
    ) -> None:
        """`batch_rules`: of the channels that have batches. `begun`: the calls of this process, and of the one before.

        `changed` hears of changes made here; `owing`, that people who opted out are owed an answer (C28.3).
        `opens`: follows the link of a code, for people of the sandbox. `step_messages`: makes those of journeys;
        `contents`: by channel, what makes the content of those whose rows hold none, and
        `with_content` which these are, where not all. `calls_of_steps`: calls of webhook
        steps in flight at once (C31).

        `session_providers`: those who tell on connections of their own, each with its channel. `simulator_domain`: of
        the mailbox simulator.

        `prices` None: nothing is billed (C25.2.4). `connections`: by channel and environment, how many calls its
        adapter bears at once, where those are fewer than usual (C31). `gateways`: those that lanes share.

        `elsewhere`: where the actors are; this system is then never started, and hints go there. None: here.
        """
        self._records = records
        self._webhooks = webhooks
        self._begun = begun
        self._elsewhere = elsewhere
        self._away: Away | None = None
        self.others_settled: Callable[[], Awaitable[None]] | None = None  # claims of other processes, likewise
        self._runtime = runtime
        queued = webhooks.queued if elsewhere is None else elsewhere.queued
        db, clock = records.db, records.clock
        self.activity = Activity(clock)
        outbox = Outbox(subscriptions, ids=ids, queued=queued)
        totals = MessageTotals(clock=clock, emptied=self._emptied)
        wallet = None if prices is None else Wallet(prices, clock=clock, ids=ids, queued=queued)
        reachability = self._reachability = Reachability(db, clock=clock)
        self.consequences = Consequences(
            outbox, MessageDeadlines(), *([] if wallet is None else [wallet]), totals, Campaigns(), reachability
        )
        inbound = InboundMessages(
            organizations=records.organizations, clock=clock, ids=ids, keys=records.keys, changed=changed, owing=owing,
            simulator_domain=simulator_domain,
        )  # fmt: skip
        shared = tuple(gateways)
        self.receipts = Receipts(
            db,
            clock=clock,
            consequences=self.consequences,
            inbound=inbound,
            departed_at=self._called_at,
            gateways=told_by(shared),
            late=self.activity.ended_late,
        )
        self.sandbox_reports = SandboxReports(db, clock=clock, receipts_of=self.receipts, opens=opens)
        admission = self.admission = Admission(db, clock=clock, ids=ids, consequences=self.consequences)
        self.sending = Sending(
            db,
            clock=clock,
            tell=self.tell,
            admission=admission,
            consequences=self.consequences,
            recording=Recording(db, consequences=self.consequences, outbox=outbox, wallet=wallet, totals=totals),
            activity=self.activity,
        )
        self.calls = Calls(
            self.sending,
            clock=clock,
            expect=self.sandbox_reports.expect if elsewhere is None else elsewhere.expected,
            stopped=self.receipts.stopped,
            begun=begun,
            contents=contents,
            with_content=with_content,
        )
        self.lane_context = LaneContext(
            records,
            self.sending,
            self.calls,
            Moments(clock),
            clock.monotonic() + WINDOW,
            connections=connections or {},
        )
        self.lane_context.share(shared)
        self.direct = DirectSends(self.lane_context)
        self.places = Places(None if elsewhere is None else elsewhere.tell)
        self.lanes = Lanes(self.lane_context, self.places, runtime=runtime)
        readers: dict[tuple[str, str], EventReader] = {
            (channel, source.name): source for channel, source in session_providers
        }
        self.callbacks = Callbacks(
            db,
            clock=clock,
            providers={**readers, **callback_providers},
            receipts_of=self.receipts,
            numbers=follow.numbers,
            social_accounts=SocialAccountReports(db, clock, changed),
            templates=follow.templates,
            flows=FlowReports(db, clock=clock, changed=changed),
            apart=callbacks_apart,
            payments=payments,
        )
        self.explainer = WaitExplainer(records, self.ask_situation)
        self.evaluation = Evaluation(db)
        self.audiences = Audiences(db, self.evaluation, clock=clock)
        self.batch_maker = BatchMaker(
            db,
            clock=clock,
            ids=ids,
            tell=self.tell,
            consequences=self.consequences,
            tariff=FREE if prices is None else WalletTariff(prices=prices, ids=ids, clock=clock),
            audiences=self.audiences,
            channels=batch_rules,
            accepted=self.activity.accepted,
        )
        self.batches = Batches(
            db,
            clock=clock,
            maker=self.batch_maker,
            audiences=self.audiences,
            owners=records.owners,
            consequences=self.consequences,
            tell=self.tell,
            claims_settled=self._claims_settled,
        )
        self.withdrawals = Withdrawals(db, clock=clock, effects=self.consequences, withdrawing=records.withdrawing)
        self.journey_queues = JourneyQueues(db, clock=clock, owners=records.owners, tell=self.tell)
        step_calls = StepCalls(
            db,
            clock=clock,
            ids=ids,
            wanted=lambda: self.step_caller.hint(),
            due=lambda: self.executions.hint(),
        )
        self.step_caller = StepCaller(
            step_calls,
            http=webhooks.dispatcher.http,
            keys=webhooks.dispatcher.keys,
            clock=clock,
            at_once=calls_of_steps,
        )
        self.running_journeys = RunningJourneys()
        taking = ExecutionTurns(
            db,
            clock=clock,
            organizations=records.organizations,
            step_messages=step_messages,
            step_calls=step_calls,
            admission=admission,
            accepted=self.sending.arrived,
            recalled=self.withdrawals.left,
            paused=self.journey_queues.moved,
            journeys=self.running_journeys,
        )
        self.arrivals = JourneyArrivals(db, clock=clock, ids=ids, taking=taking)
        events = EventEntries(db, clock=clock, ids=ids, taking=taking)
        self.executions = ExecutionPoller(taking, events, self.arrivals, clock=clock)
        pauses = JourneyPauses(db, clock=clock, paused=self.journey_queues.moved, resumed=self.executions.hint)
        self.root = Supervisor("recado", runtime=runtime)
        lanes, context = self.lanes.supervisor, self.lane_context
        self.number_states = NumberStates(db, clock=clock, context=context, lanes=lanes, activity=self.activity)
        self.provider_states = ProviderStates(
            records, context=context, lanes=lanes, activity=self.activity, queues=self.number_states.queues
        )
        self.webhook_states = WebhookStates(
            db, clock=clock, in_flight=webhooks.in_flight, calls=webhooks.dispatcher.calls.get
        )
        self.actor_tree = ActorTree(db, root=self.root, lanes=lanes, webhooks=webhooks.supervisor)
        self.root.add_service("reachability", reachability)
        self.root.add_service("sending", self.sending)
        self.root.add_service("calls", self.calls)
        self.root.add_service("direct sends", self.direct)
        self.root.add_service("ownership", self)
        self.root.add_service("batches", self.batches)
        self.root.add_service("queues of journeys", self.journey_queues)
        self.root.add_service("withdrawals", self.withdrawals)
        self.rescuer = Rescuer(
            records, sending=self.sending, begun=begun, lost=self._ownership_lost, fenced=self._former_fenced
        )
        self.root.add_service("rescuer", self.rescuer)
        self.root.add_supervisor(lanes)
        self.root.add_service("passivation", self.lanes.registry)
        self.root.add_service("sandbox reports", self.sandbox_reports)
        self.root.add_service("callbacks", self.callbacks)
        sessions = ProviderSessions(session_providers, take=self.callbacks.take, clock=clock)
        self.root.add_service("provider sessions", sessions)
        self.root.add_service(
            "due",
            DuePoller(
                db,
                clock=clock,
                tell=self.tell,
                in_memory=self.lanes.in_memory,
                starting=lambda: self.lane_context.starting,
            ),
        )
        overdue = Overdue(db, clock=clock, consequences=self.consequences, handlers=handlers_of_policies())
        self.root.add_service("message deadlines", overdue)
        fallbacks = RcsFallbacks(
            db, clock=clock, consequences=self.consequences, tell=self.tell, revokers=revokers_among(shared)
        )
        self.root.add_service("RCS fallbacks", fallbacks)
        self.root.add_service("executions", self.executions)
        self.root.add_service("segments of journeys", SegmentLooks(db, self.evaluation, clock=clock))
        spread = partial(self.arrivals.spread, self.executions.hint)
        self.root.add_service("lists of journeys", Periodic("lists of journeys", 1.0, spread, clock))
        self.root.add_service("journey pauses", Periodic("journey pauses", 1.0, pauses.look, clock))
        superseded = SupersededVersions(db, clock=clock)
        self.root.add_service("superseded versions", Periodic("superseded versions", 1.0, superseded.look, clock))
        for name, fold in (("counts of executions", execution_counts.fold), ("counts of steps", step_counts.fold)):
            self.root.add_service(name, Periodic(name, execution_counts.FOLD_EVERY, partial(fold, db.hot), clock))
        self.root.add_service("parked reports", Periodic("parked reports", 1.0, self.receipts.retry_parked, clock))
        for env in ENVIRONMENTS:
            refresh, review = partial(follow.numbers.run, env), partial(follow.templates.run, env)
            self.root.add_service(f"numbers of {env}", Periodic(f"numbers of {env}", 1.0, refresh, clock))
            self.root.add_service(f"templates of {env}", Periodic(f"templates of {env}", 1.0, review, clock))
        self.root.add_service("campaigns", CampaignCompletion(db, clock=clock, ids=ids, changed=self.changed))
        note_queues = self.number_states.note_queues
        self.root.add_service("queues of numbers", Periodic("queues of numbers", 60.0, note_queues, clock))
        webhooks.join(self.root)
        self.root.add_service("step calls", self.step_caller)
        confirmation = ClockConfirmation(db, clock=clock)
        self.root.add_service(
            "upkeep", Upkeep(db, clock=clock, confirmation=confirmation, callbacks=self.callbacks, webhooks=webhooks)
        )
        self.root.add_service("retention", Retention(db, clock=clock, confirmation=confirmation))
        if prices is not None:
            self.root.add_service("ledger check", LedgerCheck(db, clock=clock, ids=ids))
        self._lost: asyncio.Future[BaseException] | None = None

    def sending_tree(self, lost: Callable[[BaseException], None]) -> Supervisor:
        """Of all parts those that let numbers send, for a process beside the owner; `lost`: see `OwnClaims`."""
        clock, tree = self._records.clock, Supervisor("worker", runtime=self._runtime)
        own = OwnClaims(self._records, sending=self.sending, begun=self._begun, lost=lost)

        async def look() -> None:
            await own.look()

        watch = Periodic("own claims", LOOK_EVERY, look, clock)
        self.sending.overtaken = watch.hint
        tree.add_service("reachability", self._reachability)
        tree.add_service("sending", self.sending.departing)
        tree.add_service("calls", self.calls)
        tree.add_service("own claims", watch)
        tree.add_service(
            "forgotten claims", Periodic("forgotten claims", SETTLE_EVERY, own.answer_for_forgotten, clock)
        )
        tree.add_supervisor(self.lanes.supervisor)
        tree.add_service("passivation", self.lanes.registry)
        return tree

    async def _claims_settled(self) -> None:
        await self.sending.claims_settled()
        if self.others_settled is not None:
            await self.others_settled()

    def _emptied(self, keys: Sequence[TotalsKey]) -> None:
        if self._elsewhere is None:
            self.batches.emptied(keys)
        else:
            self._elsewhere.emptied(keys)

    def own(self, taken: TakenEpoch, lease: Lease) -> None:
        """Before the start: the numbers are this process's, which begins calls for as long as the lease holds."""
        self.sending.taken = taken
        self.sending.lease = self._begun.lease = lease

    async def start(self) -> None:
        """Called by the tree when the epoch is taken: from now on this process owns the numbers."""
        if self.sending.taken is not None:
            self.lane_context.opens_at = self.sending.taken.opens_at

    async def stop(self) -> None:
        """Ownership ends with the process."""

    def _former_fenced(self) -> None:
        """The owner before begins no more calls, by its own file of them: its last second begins now at the latest."""
        opens_at = self._records.clock.monotonic() + WINDOW + TOLERANCE
        self.lane_context.opens_at = min(self.lane_context.opens_at, opens_at)

    async def wait(self) -> str:
        """Wait until the system cannot go on; answers why."""
        lost = self._lost = asyncio.get_running_loop().create_future()
        await asyncio.wait({lost, self.root.failed}, return_when=asyncio.FIRST_COMPLETED)
        if lost.done():
            return str(lost.result())
        failure: Failure = self.root.failed.result()
        return f"the root supervisor gave up: {failure.type} in {failure.where}"

    @property
    def lost(self) -> bool:
        """Whether another process has the numbers now."""
        return self._lost is not None and self._lost.done()

    @property
    def unrecorded(self) -> int:
        """Calls to providers and to endpoints whose outcomes are not written yet, in whatever process."""
        away = 0 if self._away is None else self._away.unrecorded
        return len(self.calls) + self._webhooks.unrecorded + self.step_caller.unrecorded + away

    # Hints to lanes -------------------------------------------------------------------------------------------------

    def tell(self, sender: SenderKey, message: object) -> None:
        """Tell a sender's lane, wherever it is."""
        self.lanes.tell(sender, message)

    def have_away(self, away: Away) -> None:
        """Other processes have numbers, and tell of them."""
        self._away = away
        self.number_states.have_away(away)
        self.actor_tree.have_away(away)
        self.provider_states.have_away(away)

    async def others_figures(self) -> Sequence[ProcessFigures]:
        """Of the processes beside this one that send."""
        return () if self._away is None else await self._away.figures()

    def _called_at(self, message_id: str) -> datetime | None:
        """When the call for a message began, in whatever process, while its outcome is not recorded."""
        moment = self._begun.moment_of(message_id)
        return self._away.called_at(message_id) if moment is None and self._away is not None else moment

    async def trouble(self, sender: SenderKey) -> Hold | None:
        """What keeps a number from reaching its provider, as its last calls showed; no lane is asked for it."""
        if self._away is not None and self.places.away(sender) is not None:
            return await self._away.trouble(sender)
        return self.lane_context.trouble(sender.sender_id)

    async def ask_situation(self, sender: SenderKey) -> LaneSituation | None:
        """What holds the sender now; None when its lane does not answer in time."""
        if self._away is not None and self.places.away(sender) is not None:
            return await self._away.situation(sender)
        return await self.lanes.ask_situation(sender)

    def changed(self, change: Change) -> None:
        """A record was changed, and the caches have forgotten it: the actors that it concerns read it again."""
        if self._elsewhere is not None:
            if isinstance(change, ConsentRefused):
                self.follow(change)  # at lanes that are here at once: it comes back from there later
            self._elsewhere.changed(change)
            return
        self.follow(change)

    def follow(self, change: Change) -> None:
        """As `changed`, of what was changed in whatever process: what here acts by it follows."""
        match change:
            case NumberChanged(organization_id, env, number_id):
                self.tell(SenderKey(organization_id, env, NUMBERS_CHANNEL, number_id), Changed())
            case SocialAccountChanged(organization_id, env, account_id):
                self.tell(SenderKey(organization_id, env, ACCOUNTS_CHANNEL, account_id), Changed())
            case TemplateChanged(organization_id, env, number_id, template_id):
                self.tell(SenderKey(organization_id, env, NUMBERS_CHANNEL, number_id), TemplateMoved(template_id))
            case SubscriptionChanged(organization_id, _, subscription_id):
                self._webhooks.changed(SubscriptionKey(organization_id, subscription_id))
            case ConsentRefused(recipients):
                self.lane_context.consents.refused(recipients)
            case WithdrawalsLeft(left):
                self.withdrawals.left(left)
            case JourneyMoved(stands):
                self.journey_queues.moved(stands)
            case DeliveriesQueued(subscriptions):
                self._webhooks.queued(subscriptions)
            case OrganizationChanged(organization_id):
                for sender in self.lanes.of_organization(organization_id):
                    self.tell(sender, Changed())

    def _ownership_lost(self, error: BaseException) -> None:
        if self._lost is None or self._lost.done():
            return  # the start goes on, and a later look finds the same; or it was told
        log.error("ownership_lost", reason=str(error))
        self._lost.set_result(error)
