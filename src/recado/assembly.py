"""What the service is made of: every part, made from the settings and an open installation."""

import os
import random
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from recado.actors.elsewhere import Elsewhere
from recado.actors.jobs.clock_confirmation import ClockConfirmation
from recado.actors.jobs.email_sender_checks import EmailSenderChecks
from recado.actors.jobs.segment_sizes import SegmentSizes
from recado.actors.journeys.step_call_shares import MOST_STEP_CALLS
from recado.actors.ops.process_figures import BatchFigures
from recado.actors.ops.push_states import PushStates
from recado.actors.push.departures import PushDepartures
from recado.actors.system import ActorSystem, Follow
from recado.actors.webhooks.webhooks import Webhooks
from recado.channel_table import CHANNELS, RuleParts
from recado.channels.core.adapters import Adapters
from recado.channels.http.guarded_http import GuardedHttp
from recado.channels.http.outbound_guard import LOOKUPS_AT_ONCE, OutboundGuard
from recado.channels.payments.payments import PAYMENTS
from recado.config.limits import ceilings
from recado.config.settings import Settings
from recado.descriptors import Descriptors
from recado.domain.channels.chatapp import CHATAPP
from recado.domain.channels.email import EMAIL
from recado.domain.channels.policies import ACCOUNTS_CHANNEL, NUMBERS_CHANNEL
from recado.domain.channels.sms import SMS
from recado.domain.channels.social import SOCIAL
from recado.domain.core.clock import Clock
from recado.domain.email.public_tokens import PublicTokens
from recado.domain.links.tracked import MessageLinks
from recado.domain.messages.changes import Change, ConsentRefused, OnChange
from recado.domain.push.message import PUSH
from recado.domain.senders.sender import SenderKey
from recado.domain.webhooks.webhook import SubscriptionKey
from recado.engine.process.loop_watch import LoopWatch
from recado.engine.runtime import Runtime
from recado.engine.service import Service
from recado.http.api.request_figures import RequestFigures
from recado.http.bodies.body_workers import BodyWorkers
from recado.http.routes.email import html_document, mjml_document
from recado.http.routes.ops.metrics import FrontCounts, no_fronts
from recado.http.routes.ops.samples import Samples
from recado.http.routes.ops.stream import OperatorStream
from recado.installation import Installation
from recado.providers import blobs_of
from recado.push_providers import PushProviders
from recado.services.batches.batch_acceptance import BatchAcceptance
from recado.services.batches.resend import Resends
from recado.services.billing.payments import Payments
from recado.services.dispatch.departing_media import DepartingMedia, may_name_media
from recado.services.dispatch.records import Records
from recado.services.effects.outbox import Outbox
from recado.services.email.departing import DepartingEmails
from recado.services.email.opens import EmailOpens
from recado.services.email.sendable import SendableMailboxes, SendableTemplates
from recado.services.email.sender_verification import SenderVerification
from recado.services.email.tracking import EmailTracking
from recado.services.email.unsubscriptions import Unsubscriptions
from recado.services.events.customer_events import CustomerEvents
from recado.services.imports.contact_system import ContactSystem
from recado.services.journeys.cancellation import ExecutionCancellation
from recado.services.journeys.entries import JourneyEntries
from recado.services.journeys.simulations import JourneySimulations, SimulationParts
from recado.services.journeys.step_messages import StepMessages
from recado.services.journeys.test_runs import JourneyTests
from recado.services.links.origin_clicks import OriginClicks
from recado.services.links.tracked_clicks import TrackedClicks
from recado.services.media.blob_sweep import BlobSweep
from recado.services.media.file_work import FileWork
from recado.services.media.inbound_copies import InboundCopies
from recado.services.media.media_senders import MediaSenders
from recado.services.media.media_use import MediaUse
from recado.services.media.new_blobs import NewBlobs
from recado.services.media.provider_media import ProviderMedia
from recado.services.media.uploads import Uploads
from recado.services.messages.acceptance import Acceptance
from recado.services.messages.opt_out_replies import OptOutReplies
from recado.services.push.app_removals import PushAppRemovals
from recado.services.push.opens import PushOpens
from recado.services.push.registrations import DeviceRegistrations
from recado.services.push.sends import PushSends
from recado.services.senders.number_refresh import NumberRefresh
from recado.services.templates.template_review import TemplateReview
from recado.services.templates.template_sync import TemplateSync
from recado.storage.access.directories import Directories
from recado.storage.blobs.signed_links import SignedLinks
from recado.storage.contacts.documents import DocumentCipher
from recado.storage.core.shares.fair_places import FairPlaces
from recado.storage.core.shares.fair_threads import FairThreads
from recado.storage.dispatch.begun_calls import BegunCalls, boot_id
from recado.storage.messages.chat_windows import ChatWindows
from recado.storage.messages.recipients import RecipientLookup

LOOKUPS_EACH, MOST_LOOKUPS_WAITING = 4, 50  # names that are resolved for one organization at a time


class Assembly:
    """The parts, made for an open installation, and not started.

    `parts`: the services, in the order of their start; `accepting`: those of them that accept and follow links, for a
    process that does nothing else. `also_told`: whoever hears of a change besides, last; `fronts`: counts processes
    beside this one.
    """

    def __init__(
        self,
        settings: Settings,
        installation: Installation,
        adapters: Adapters,
        clock: Clock,
        descriptors: Descriptors,
        *,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        """`elsewhere`: the process that has the actors, where that is another: of the parts none is started then."""
        self.settings = settings
        self.installation = installation
        self.admin_for = partial(adapters.admin, NUMBERS_CHANNEL)
        self.reviewer_for = partial(adapters.reviewer, NUMBERS_CHANNEL)
        self.flow_admin_for = partial(adapters.flow_admin, NUMBERS_CHANNEL)
        self.opener_for = partial(adapters.opener, NUMBERS_CHANNEL)
        self.connector_for = partial(adapters.connector, ACCOUNTS_CHANNEL)
        self.clock = clock
        self.loop_watch = LoopWatch(clock)
        self.also_told: OnChange | None = None
        self.fronts: Callable[[], FrontCounts] = no_fronts
        self.figures = RequestFigures()
        self.batches = BatchFigures()
        self.ceilings = ceilings(settings.request_limits, settings.request_ceilings)
        db, ids, keys = installation.database, installation.ids, installation.key_ring
        directories = self.directories = Directories(db, clock=clock)
        replies: OptOutReplies
        clicks: TrackedClicks

        self.refresh = NumberRefresh(
            db, clock=clock, ids=ids, keys=keys, provider_for=self.admin_for, changed=self.changed
        )
        review = TemplateReview(
            db, clock=clock, ids=ids, keys=keys, provider_for=self.reviewer_for, changed=self.changed
        )
        self.sync = TemplateSync(
            db, clock=clock, ids=ids, keys=keys, provider_for=self.reviewer_for, changed=self.changed
        )
        records = self.records = Records(
            db,
            directories.numbers,
            directories.social_accounts,
            directories.organizations,
            directories.templates,
            keys,
            adapters.sender,
            clock,
        )
        self.callback_providers = adapters.callback_sources()
        paying = adapters.find(PAYMENTS, "live").callbacks is not None
        payments = Payments(db, clock=clock, ids=ids, changed=self.changed) if paying else None
        runtime = self.runtime = Runtime(clock, random.Random(os.urandom(32)))  # noqa: S311 - spreads restarts; guards nothing
        lookups = FairPlaces(LOOKUPS_AT_ONCE, each=LOOKUPS_EACH, most_waiting=MOST_LOOKUPS_WAITING)
        self.guard = OutboundGuard(clock=clock, allowed=settings.ssrf_allow_cidrs, turn=lookups.place)
        calls_of_steps = min(MOST_STEP_CALLS, descriptors.webhooks // 8)
        self.webhooks = Webhooks(
            db, clock=clock, ids=ids, keys=keys, http=GuardedHttp(self.guard, clock=clock), runtime=runtime,
            calls=descriptors.webhooks - calls_of_steps,
        )  # fmt: skip
        prices = directories.prices if settings.billing_enabled else None
        windows = ChatWindows(db, clock=clock)
        recipients = RecipientLookup(db, clock=clock)
        tokens = PublicTokens(*installation.keys.links)
        links = partial(MessageLinks, settings.link_address, installation.random_bytes)
        self.html_workers = BodyWorkers(clock, processes=html_document.PROCESSES)
        self.callback_workers = BodyWorkers(clock, processes=1)
        self.callback_threads = FairThreads("callbacks")
        tracking = EmailTracking(
            link_base=settings.link_address, tokens=tokens, links=links,
            elsewhere=html_document.places_by(self.html_workers),
        )  # fmt: skip

        self.links = SignedLinks(settings.address(), installation.keys.cursor)
        self.blobs = blobs_of(settings, self.links)
        self.files = FileWork()
        senders = MediaSenders(numbers=directories.numbers, social_accounts=directories.social_accounts, keys=keys)
        self.media_use = MediaUse(
            db, blobs=self.blobs, senders=senders, directory=directories.media, media_for=adapters.media, clock=clock
        )
        self.new_blobs = NewBlobs(db, blobs=self.blobs, clock=clock, random_bytes=installation.random_bytes)
        self.uploads = Uploads(db, blobs=self.new_blobs, use=self.media_use, files=self.files, clock=clock, ids=ids)
        self.provider_media = ProviderMedia(senders=senders, media_for=adapters.media)
        self.media_for = adapters.media
        self.sender_for = adapters.sender
        self.email_templates = email_templates = SendableTemplates(db, clock=clock)
        mailboxes = SendableMailboxes(db, clock=clock)
        self.departing_emails = DepartingEmails(
            db, clock=clock, templates=email_templates, mailboxes=mailboxes, tracking=tracking,
            simulator_domain=settings.email_simulator_domain,
        )  # fmt: skip

        def rule_parts(channel: str) -> RuleParts:
            sends_in = adapters.sends_in(channel)
            return RuleParts(
                database=db, directories=directories, windows=windows, ids=ids, clock=clock, sends_in=sends_in,
                sms_in=adapters.sends_in(SMS), prices=prices, links=links, tracking=tracking,
                simulator_domain=settings.email_simulator_domain,
                email_templates=email_templates, mailboxes=mailboxes, media=self.media_use,
            )  # fmt: skip

        with_media = DepartingMedia(self.media_use).content_of
        begun = self.begun = BegunCalls(settings.data_dir, boot=boot_id())
        batch_rules = {each.channel: each.batches(rule_parts(each.channel)) for each in CHANNELS if each.batches}
        rules = [each.rules(rule_parts(each.channel)) for each in CHANNELS]
        step_messages = StepMessages(
            rules, numbers=directories.numbers, templates=directories.templates,
            organizations=directories.organizations, emails=email_templates,
        )  # fmt: skip
        system = self.system = ActorSystem(
            records,
            batch_rules=batch_rules,
            runtime=runtime,
            ids=ids,
            follow=Follow(self.refresh, review),
            callback_providers=self.callback_providers,
            session_providers=adapters.session_sources(),
            callbacks_apart=self.callback_workers,
            webhooks=self.webhooks,
            subscriptions=directories.subscriptions,
            changed=self.changed,
            owing=lambda: replies.hint(),
            opens=lambda code: clicks.open(code, counted=True),
            begun=begun,
            step_messages=step_messages,
            contents={EMAIL: self.departing_emails.content_of, CHATAPP: with_media, SOCIAL: with_media},
            with_content={CHATAPP: may_name_media, SOCIAL: may_name_media},
            calls_of_steps=calls_of_steps,
            simulator_domain=settings.email_simulator_domain,
            payments=payments,
            prices=prices,
            connections=adapters.connections(),
            gateways=[plan for each in CHANNELS for plan in each.gateways(settings, adapters)],
            elsewhere=elsewhere,
        )
        self.acceptance = Acceptance(
            db,
            rules=rules,
            organizations=directories.organizations,
            recipients=recipients,
            sending=system.sending,
            direct=system.direct,
            ids=ids,
            clock=clock,
        )
        replies = OptOutReplies(db, self.acceptance, organizations=directories.organizations, clock=clock)
        self.batch_acceptance = BatchAcceptance(
            db, channels=batch_rules, maker=system.batch_maker, audiences=system.audiences, ids=ids, clock=clock,
            unfinished=system.batches.hint,
        )  # fmt: skip
        self.resends = Resends(
            db, channels=batch_rules, organizations=directories.organizations, acceptance=self.batch_acceptance,
            maker=system.batch_maker, ids=ids,
        )  # fmt: skip
        self.people = ContactSystem(
            db, ids=ids, documents=DocumentCipher(keys, installation.keys.index),
            subscriptions=directories.subscriptions, effects=system.consequences, changed=self.changed, clock=clock,
        )  # fmt: skip
        self.samples = Samples(
            numbers=system.number_states,
            actors=system.actor_tree,
            webhooks=system.webhook_states,
            providers=system.provider_states,
            clock=clock,
        )
        self.stream = OperatorStream(self.samples, clock=clock, random_bytes=installation.random_bytes)
        sizes = SegmentSizes(db, system.evaluation, clock=clock)
        self.origin_clicks = OriginClicks(
            db, numbers=directories.numbers, opener_for=self.opener_for, clock=clock,
            random_bytes=installation.random_bytes,
        )  # fmt: skip
        self.mjml_workers = BodyWorkers(clock, processes=mjml_document.PROCESSES)
        self.sender_verification = SenderVerification(
            db, clock=clock, verifier_for=partial(adapters.verifier, EMAIL), changed=mailboxes.clear
        )
        queued = self.webhooks.queued if elsewhere is None else elsewhere.queued
        outbox = Outbox(directories.subscriptions, ids=ids, queued=queued)
        clicks = self.tracked_clicks = TrackedClicks(db, outbox=outbox, clock=clock)
        self.accepting: tuple[Service, ...] = (windows, recipients, system.sending.accepting, clicks)
        self.email_opens = EmailOpens(db, tokens=tokens, outbox=outbox, clock=clock)
        self.unsubscriptions = Unsubscriptions(db, tokens=tokens, changes=self.people.changes)
        self.customer_events = CustomerEvents(db, clock=clock)
        self.journey_entries = JourneyEntries(
            db, clock=clock, ids=ids, entered=system.executions.hint, journeys=system.running_journeys
        )
        self.journey_tests = JourneyTests(clock=clock, ids=ids, begun=system.executions.hint)
        self.simulations = JourneySimulations(
            SimulationParts(
                db=db, evaluation=system.evaluation, step_messages=step_messages, directories=directories, clock=clock,
                link_base=settings.link_address, billed=settings.billing_enabled,
            )
        )  # fmt: skip
        self.cancellation = ExecutionCancellation(
            db, clock=clock, effects=system.consequences, recalled=system.withdrawals.left
        )
        self.push = PushProviders(settings, self.guard, clock, installation.random_bytes)
        self.push_departures = PushDepartures(
            db, clock=clock, ids=ids, keys=keys, sender_of=self.push.sender_of, begun=begun,
            epoch=lambda: system.sending.epoch, former=lambda: system.rescuer.former, queued=self.webhooks.queued,
            activity=system.activity, retry_after=self.push.retry_after, most_in_flight=descriptors.push,
        )  # fmt: skip
        self.push_states = PushStates(
            db, clock=clock, lanes=lambda: self.push_departures.lanes, services=self.push.services
        )
        system.provider_states.add(self.push_states.of)
        system.root.add_service("push departures", self.push_departures)
        self.registrations = DeviceRegistrations(db, ids=ids, clock=clock)
        self.push_opens = PushOpens(db, clock=clock)
        self.push_removals = PushAppRemovals(db, clock=clock)
        self.push_sends = PushSends(
            db, ids=ids, clock=clock, organizations=directories.organizations, prices=prices,
            random_bytes=installation.random_bytes, queued=lambda: self.push_departures.hint(),
            sends_in=self.push.sends_in, accepted=partial(system.activity.taken_on, PUSH),
        )  # fmt: skip
        self.parts: tuple[Service, ...] = (
            windows,
            self.push,
            self.registrations,
            self.push_opens,
            self.push_removals,
            recipients,
            self.customer_events,
            self.journey_entries,
            self.departing_emails,
            self.blobs,
            self.files,
            self.media_use,
            self.callback_threads,
            self.callback_workers,
            system.root,
            self.batch_acceptance,
            replies,
            self.people,
            sizes,
            self.mjml_workers,
            self.html_workers,
            EmailSenderChecks(self.sender_verification, clock=clock),
            self.sync,
            self.origin_clicks,
            self.tracked_clicks,
            self.stream,
            self.email_opens,
            InboundCopies(db, blobs=self.new_blobs, provider=self.provider_media, clock=clock),
            BlobSweep(
                db, blobs=self.blobs, clock=clock, confirmed_until=ClockConfirmation(db, clock=clock).confirmed_until
            ),
        )

    def tell(self, sender: SenderKey, message: object) -> None:
        """What another process accepted for a sender."""
        self.system.tell(sender, message)

    def queued(self, deliveries: Sequence[SubscriptionKey]) -> None:
        """Deliveries to these subscriptions, of another process."""
        self.webhooks.queued(deliveries)

    def emptied(self, totals: Sequence[Sequence[str]]) -> None:
        """Another process let the last message of these batches and campaigns leave."""
        self.system.batches.emptied([(organization, env, kind, key) for organization, env, kind, key in totals])

    def expected(self, due_at: datetime) -> None:
        """A message of another process has a report of the sandbox that is due then."""
        self.system.sandbox_reports.expect(due_at)

    def counted(
        self,
        accepted: Mapping[str, int],
        refused: int,
        requests: Sequence[Sequence[Any]],
        sent: Mapping[str, int],
        failed: Sequence[tuple[str, str, int]],
        batches: Sequence[Sequence[Any]],
        restarts: Mapping[str, int],
    ) -> None:
        """What another process accepted by channel, what wallets refused there, the figures of its requests, and what
        it sent, and what failed there, by channel, of the second by code; what its batches committed, and what was
        restarted there, by kind.
        """
        for channel, count in sent.items():
            self.system.activity.counted(channel, count, {})
        for channel, code, count in failed:
            self.system.activity.counted(channel, 0, {code: count})
        self.system.admission.refused += refused
        for channel, count in accepted.items():
            self.system.activity.taken_on(channel, count)
        self.figures.add(requests)
        self.batches.add(batches)
        self.runtime.restarts.update(restarts)

    def changed(self, change: Change) -> None:
        """Tell anyone who holds a copy of the record, or acts by it."""
        self.directories.forget(change)
        if isinstance(change, ConsentRefused):
            self.push_departures.refused(change.recipients)
        self.system.changed(change)
        if self.also_told is not None:
            self.also_told(change)
