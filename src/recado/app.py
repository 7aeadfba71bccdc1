"""The composition root: the one place that knows every part, makes them and starts them in order."""

import os
import random
import resource
from collections.abc import Mapping
from contextlib import AsyncExitStack
from importlib.metadata import version

from recado.actors.acceptance import Acceptance
from recado.actors.batch_acceptance import BatchAcceptance
from recado.actors.contact_system import ContactSystem
from recado.actors.number_refresh import NumberRefresh
from recado.actors.number_view import Records
from recado.actors.opt_out_replies import OptOutReplies
from recado.actors.payments import Payments
from recado.actors.resend import Resends
from recado.actors.segment_sizes import SegmentSizes
from recado.actors.system import ActorSystem, Follow
from recado.actors.template_review import TemplateReview
from recado.actors.template_sync import TemplateSync
from recado.actors.webhooks import Webhooks
from recado.channels.guarded_http import GuardedHttp
from recado.channels.outbound_guard import OutboundGuard
from recado.channels.payments import PAYMENTS
from recado.channels.provider import ChatAppProvider
from recado.config.settings import Settings
from recado.domain.changes import Change
from recado.domain.errors import Unavailable
from recado.domain.page import CursorSigner
from recado.engine.clock import SystemClock
from recado.engine.periodic import Periodic
from recado.engine.runtime import Runtime
from recado.http.paging import Cursors
from recado.http.route import Route
from recado.http.routes.api_keys import api_key_routes
from recado.http.routes.audit import audit_routes
from recado.http.routes.batches import batch_routes
from recado.http.routes.billing import billing_routes
from recado.http.routes.bulk import bulk_routes
from recado.http.routes.callbacks import callback_routes
from recado.http.routes.campaigns import campaign_routes
from recado.http.routes.companies import company_routes
from recado.http.routes.contact_imports import contact_import_routes
from recado.http.routes.contacts import contact_routes
from recado.http.routes.document_reveal import document_reveal_routes
from recado.http.routes.messages import message_routes
from recado.http.routes.number_health import HealthReader, number_health_routes
from recado.http.routes.number_usage import number_usage_routes
from recado.http.routes.numbers import number_routes
from recado.http.routes.organization import organization_routes
from recado.http.routes.people import people_routes
from recado.http.routes.reprocess import reprocess_routes
from recado.http.routes.resend import resend_routes
from recado.http.routes.sandbox_inbound import sandbox_inbound_routes
from recado.http.routes.sandbox_records import sandbox_record_routes
from recado.http.routes.segment_routes import segment_routes
from recado.http.routes.service import service_routes
from recado.http.routes.static_lists import static_list_routes
from recado.http.routes.templates import template_routes
from recado.http.routes.webhook_deliveries import webhook_delivery_routes
from recado.http.routes.webhooks import webhook_routes
from recado.http.server import HttpServer
from recado.http.token_authenticator import TokenAuthenticator
from recado.installation import Installation
from recado.providers import CHATAPP, chatapp_providers, payments_bridge, verify_token
from recado.storage import accounts
from recado.storage.chat_windows import ChatWindows
from recado.storage.directories import Directories
from recado.storage.documents import Documents
from recado.storage.idempotency import IdempotencyKeys
from recado.storage.migrate import pending
from recado.storage.organizations import NewOrganization
from recado.storage.partitions import ensure_partitions
from recado.storage.recipients import Recipients

OPEN_FILES = 65_536
USES_WRITTEN_EVERY = 60.0  # seconds


class Application:
    """The whole service, from its settings.

    `made`: what the first start put into an empty data folder. `routes`: the table of everything it serves.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._clock = SystemClock()
        self._installation = Installation(settings, clock=self._clock, random_bytes=os.urandom)
        self._running = AsyncExitStack()
        self._system: ActorSystem | None = None
        self._server: HttpServer | None = None
        self.made: NewOrganization | None = None
        self.owner_password: str | None = None
        self.routes: tuple[Route, ...] = ()

    @property
    def address(self) -> str:
        """Where callers reach the API."""
        return self._settings.address(self._server.port if self._server else None)

    async def start(self) -> None:
        """Start everything, or nothing."""
        _allow_open_files()
        async with AsyncExitStack() as running:
            running.push_async_callback(self._installation.stop)
            await self._installation.start()
            self.made = self._installation.made
            self.owner_password = self._installation.owner_password
            await ensure_partitions(self._installation.database, self._clock.now())
            providers = chatapp_providers(self._settings, self._clock)
            for provider in providers.values():
                running.push_async_callback(provider.stop)
                await provider.start()
            await self._assemble(running, providers)
            self._running = running.pop_all()

    async def stop(self) -> None:
        """Take nothing more, finish what is under way, close everything. Safe to call twice."""
        await self._running.aclose()

    async def wait(self) -> None:
        """Wait until the service cannot go on; raises RuntimeError that says why."""
        if self._system is None:
            raise RuntimeError("the service is not started")
        raise RuntimeError(await self._system.wait())

    async def _assemble(self, running: AsyncExitStack, providers: Mapping[str, ChatAppProvider]) -> None:
        settings, clock, installation = self._settings, self._clock, self._installation
        db, ids, keys = installation.database, installation.ids, installation.key_ring
        directories = Directories(db, clock=clock)
        system: ActorSystem
        replies: OptOutReplies

        def changed(change: Change) -> None:
            directories.forget(change)
            system.changed(change)

        refresh = NumberRefresh(db, clock=clock, ids=ids, keys=keys, provider_for=providers.get, changed=changed)
        review = TemplateReview(db, clock=clock, ids=ids, keys=keys, provider_for=providers.get, changed=changed)
        sync = TemplateSync(db, clock=clock, ids=ids, keys=keys, provider_for=providers.get, changed=changed)
        records = Records(
            db, directories.numbers, directories.organizations, directories.templates, keys, providers.get, clock
        )
        callback_providers = {
            (CHATAPP, provider.name): provider for provider in providers.values() if provider.name != "sandbox"
        }
        bank = payments_bridge(settings)
        payments = Payments(db, clock=clock, ids=ids, changed=changed) if bank else None
        runtime = Runtime(clock, random.Random(os.urandom(32)))  # noqa: S311 - spreads restarts; guards nothing
        guard = OutboundGuard(clock=clock, allowed=settings.ssrf_allow_cidrs)
        webhooks = Webhooks(db, clock=clock, ids=ids, keys=keys, http=GuardedHttp(guard, clock=clock), runtime=runtime)
        prices = directories.prices if settings.billing_enabled else None
        system = self._system = ActorSystem(
            records,
            runtime=runtime,
            ids=ids,
            follow=Follow(refresh, review),
            callback_providers=callback_providers,
            webhooks=webhooks,
            subscriptions=directories.subscriptions,
            changed=changed,
            owing=lambda: replies.hint(),
            payments=payments,
            prices=prices,
        )
        windows = ChatWindows(db, clock=clock)
        recipients = Recipients(db, clock=clock)
        acceptance = Acceptance(
            db,
            numbers=directories.numbers,
            organizations=directories.organizations,
            templates=directories.templates,
            windows=windows,
            recipients=recipients,
            sending=system.sending,
            ids=ids,
            clock=clock,
            sends_in=providers,
            prices=prices,
        )
        replies = OptOutReplies(db, acceptance, organizations=directories.organizations, clock=clock)
        batch_acceptance = BatchAcceptance(
            db,
            numbers=directories.numbers,
            organizations=directories.organizations,
            templates=directories.templates,
            maker=system.batch_maker,
            audiences=system.audiences,
            ids=ids,
            clock=clock,
            sends_in=providers,
            unfinished=system.batches.hint,
        )
        resends = Resends(
            db, numbers=directories.numbers, organizations=directories.organizations, templates=directories.templates,
            acceptance=batch_acceptance, maker=system.batch_maker, ids=ids, sends_in=providers,
        )  # fmt: skip
        people = ContactSystem(
            db, ids=ids, documents=Documents(keys, installation.keys.index), subscriptions=directories.subscriptions,
            effects=system.consequences, changed=changed, clock=clock,
        )  # fmt: skip
        sizes = SegmentSizes(db, system.evaluation, clock=clock)
        cursors = Cursors(CursorSigner(installation.keys.cursor))
        routes = (
            *message_routes(
                database=db,
                ids=ids,
                acceptance=acceptance,
                explainer=system.explainer,
                forced=system.sending.forced,
                effects=system.consequences,
                cursors=cursors,
            ),
            *bulk_routes(acceptance=batch_acceptance),
            *batch_routes(database=db, movers=system.batches),
            *resend_routes(resends=resends),
            *campaign_routes(database=db),
            *contact_routes(database=db, ids=ids, people=people, cursors=cursors),
            *contact_import_routes(database=db, ids=ids, imports=people.imports),
            *company_routes(database=db, ids=ids, find_account=accounts.get),
            *reprocess_routes(database=db, acceptance=acceptance),
            *number_routes(database=db, ids=ids, keys=keys, provider_for=providers.get, changed=changed),
            *number_health_routes(health=HealthReader(db, clock=clock, refresh=refresh)),
            *number_usage_routes(database=db, organizations=directories.organizations),
            *template_routes(database=db, ids=ids, keys=keys, provider_for=providers.get, sync=sync, changed=changed),
            *static_list_routes(database=db, ids=ids),
            *segment_routes(database=db, ids=ids, evaluation=system.evaluation, cursors=cursors),
            *sandbox_inbound_routes(database=db, numbers=directories.numbers, receiver=system.receipts),
            *sandbox_record_routes(database=db, ids=ids, changed=changed),
            *organization_routes(database=db, ids=ids, random_bytes=installation.random_bytes, changed=changed),
            *api_key_routes(
                database=db, ids=ids, keys=directories.keys, random_bytes=installation.random_bytes, changed=changed
            ),
            *document_reveal_routes(database=db, ids=ids, documents=people.documents),
            *people_routes(database=db, ids=ids, sessions=directories.sessions, random_bytes=installation.random_bytes),
            *webhook_routes(
                database=db,
                ids=ids,
                keys=keys,
                guard=guard,
                actors=webhooks,
                random_bytes=installation.random_bytes,
                changed=changed,
            ),
            *webhook_delivery_routes(database=db, ids=ids, keys=keys, cursors=cursors, changed=changed),
            *audit_routes(database=db, cursors=cursors),
            *(
                billing_routes(database=db, ids=ids, cursors=cursors, prices=directories.prices, changed=changed)
                if settings.billing_enabled
                else ()
            ),
            *callback_routes(
                providers=callback_providers | ({(PAYMENTS, bank.name): bank} if bank else {}),
                take=system.callbacks.take,
                verify_token=verify_token(settings),
            ),
        )

        async def ready() -> Mapping[str, bool]:
            try:
                missing = await pending(db)
            except Unavailable:
                return {"database": False, "migrations": False}
            return {"database": True, "migrations": not missing}

        service = service_routes(routes, ready=ready, base_url=settings.address(), version=version("recado"))
        self.routes = (*routes, *service)
        server = self._server = HttpServer(
            self.routes,
            authenticator=TokenAuthenticator(directories.keys, directories.sessions),
            idempotency_store=IdempotencyKeys(db),
            limits=settings.request_limits,
            clock=clock,
            ids=ids,
            base_url=settings.address(),
            host=settings.listen.host,
            port=settings.listen.port,
            admin_token=settings.admin_token.get_secret_value() if settings.admin_token else None,
            trusted_proxies=settings.trusted_proxies,
            spool_folder=settings.data_dir if settings.database_url is None else None,
        )
        # Before the numbers are taken over: a service that cannot serve must not end the one that does.
        running.push_async_callback(server.stop)
        await server.take_address()
        uses = Periodic("uses of credentials", USES_WRITTEN_EVERY, directories.flush_uses, clock)
        running.push_async_callback(directories.flush_uses)
        for part in (uses, windows, recipients, system.root, batch_acceptance, replies, people, sizes, server):
            running.push_async_callback(part.stop)
            await part.start()


def _allow_open_files() -> None:
    """Thousands of calls in flight are thousands of sockets (C31)."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
