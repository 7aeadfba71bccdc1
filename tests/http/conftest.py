"""The resources behind a real server on a free port and a real database, for two organizations in both environments."""

import asyncio
import io
import os
import random
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_network
from typing import Any

import aiohttp
import orjson
import pytest
from tests.emptied import POOL_SIZE, Emptied
from tests.http.contract import Contract
from tests.http.scripted_provider import ScriptedProvider, ShiftedClock
from tests.http.scripted_verifier import ScriptedVerifier
from tests.http.settled import Settled
from tests.journey_emails import email_rules

from recado.actors.dispatch.lane_context import LaneContext
from recado.actors.ops.actor_tree import ActorTree
from recado.actors.ops.number_states import NumberStates
from recado.actors.ops.provider_states import ProviderStates
from recado.actors.ops.webhook_states import WebhookStates
from recado.actors.webhooks.webhooks import Webhooks
from recado.channels.chatapp.chat_address import ChatAddress
from recado.channels.chatapp.sandbox import Sandbox
from recado.channels.email.sandbox import EmailSandbox
from recado.channels.http.guarded_http import GuardedHttp
from recado.channels.http.outbound_guard import OutboundGuard
from recado.config.limits import CLASSES_OF_CREDENTIALS, DEFAULT_LIMITS
from recado.domain.core.ids import IdSource
from recado.domain.core.moments import Moments
from recado.domain.core.page import CursorSigner
from recado.domain.dispatch.gates import Hold
from recado.domain.email.public_tokens import PublicTokens
from recado.domain.links.tracked import MessageLinks
from recado.domain.messages.changes import Change
from recado.domain.senders.sender import SenderKey
from recado.engine.clock import SystemClock
from recado.engine.runtime import Runtime
from recado.engine.supervisor import Supervisor
from recado.http.api.paging import Cursors
from recado.http.api.route import Route
from recado.http.bodies.body_workers import BodyWorkers
from recado.http.callers.token_authenticator import TokenAuthenticator
from recado.http.routes.access.api_keys import api_key_routes
from recado.http.routes.access.audit import audit_routes
from recado.http.routes.access.organization import organization_routes
from recado.http.routes.access.people import people_routes
from recado.http.routes.audience.segments import segment_routes
from recado.http.routes.audience.static_lists import static_list_routes
from recado.http.routes.billing.billing import billing_routes
from recado.http.routes.contacts.companies import company_routes
from recado.http.routes.contacts.contact_imports import contact_import_routes
from recado.http.routes.contacts.contacts import contact_routes
from recado.http.routes.contacts.document_reveal import document_reveal_routes
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.email.senders import email_sender_routes
from recado.http.routes.email.suppressions import suppression_routes
from recado.http.routes.email.templates import email_template_routes
from recado.http.routes.events.customer_events import customer_event_routes
from recado.http.routes.flows.flows import flow_routes
from recado.http.routes.inbound.sandbox_records import sandbox_record_routes
from recado.http.routes.journeys.journeys import journey_routes
from recado.http.routes.links.opened_emails import opened_email_routes
from recado.http.routes.links.opened_links import opened_link_routes
from recado.http.routes.links.origin_links import origin_link_routes
from recado.http.routes.media.media import media_routes
from recado.http.routes.messages.exports import export_routes
from recado.http.routes.ops.ops import ops_routes
from recado.http.routes.ops.samples import Samples
from recado.http.routes.ops.stream import OperatorStream
from recado.http.routes.push.apps import push_app_routes
from recado.http.routes.push.devices import device_routes
from recado.http.routes.push.messages import push_message_routes
from recado.http.routes.senders.number_administration import number_administration_routes
from recado.http.routes.senders.number_health import HealthReader, number_health_routes
from recado.http.routes.senders.number_usage import number_usage_routes
from recado.http.routes.senders.numbers import number_routes
from recado.http.routes.social.social_accounts import social_account_routes
from recado.http.routes.templates.templates import template_routes
from recado.http.routes.webhooks.webhook_deliveries import webhook_delivery_routes
from recado.http.routes.webhooks.webhooks import webhook_routes
from recado.http.server import HttpServer
from recado.services.dispatch.records import Records
from recado.services.effects.consequences import Consequences
from recado.services.effects.outbox import Outbox
from recado.services.email.opens import EmailOpens
from recado.services.email.sendable import SendableTemplates
from recado.services.email.sender_verification import SenderVerification
from recado.services.email.unsubscriptions import Unsubscriptions
from recado.services.events.customer_events import CustomerEvents
from recado.services.imports.contact_system import ContactSystem
from recado.services.journeys.cancellation import ExecutionCancellation
from recado.services.journeys.entries import JourneyEntries
from recado.services.journeys.running import RunningJourneys
from recado.services.journeys.simulations import JourneySimulations, SimulationParts
from recado.services.journeys.step_messages import StepMessages
from recado.services.journeys.test_runs import JourneyTests
from recado.services.links.origin_clicks import OriginClicks
from recado.services.links.tracked_clicks import TrackedClicks
from recado.services.media.file_work import FileWork
from recado.services.media.media_senders import MediaSenders
from recado.services.messages.chatapp_rules import ChatAppRules
from recado.services.messages.sms_rules import SmsRules
from recado.services.ops.activity import Activity
from recado.services.push.opens import PushOpens
from recado.services.push.registrations import DeviceRegistrations
from recado.services.push.sends import PushSends
from recado.services.senders.number_refresh import NumberRefresh
from recado.services.templates.template_review import TemplateReview
from recado.services.templates.template_sync import TemplateSync
from recado.storage.access import api_keys, passwords
from recado.storage.access.directories import Directories
from recado.storage.access.organizations import NewOrganization
from recado.storage.audience.segment_evaluation import Evaluation
from recado.storage.contacts.documents import DocumentCipher
from recado.storage.core.connections.postgres import Database
from recado.storage.core.crypto import KeyRing
from recado.storage.core.idempotency import IdempotencyKeys
from recado.storage.messages.chat_windows import ChatWindows

ADMIN_TOKEN = "the administrator of the tests"
_LIMIT = (10_000.0, 10_000)
LIMITS = dict.fromkeys(DEFAULT_LIMITS, _LIMIT)
CEILINGS = dict.fromkeys(CLASSES_OF_CREDENTIALS, _LIMIT)


@dataclass
class Answer:
    """One answer: the parsed body, or None without one."""

    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def code(self) -> str:
        return str(self.body["code"])

    @property
    def etag(self) -> str:
        return self.headers["ETag"]


@dataclass(repr=False)  # tasks that make it would show all of it
class Api:
    """A started service and its callers. `organizations`: two, each with a key of every scope in live and in test."""

    base: str
    session: aiohttp.ClientSession
    database: Database
    clock: ShiftedClock
    ids: IdSource
    organizations: list[NewOrganization]
    directories: Directories
    providers: dict[str, ScriptedProvider | None]
    refresh: NumberRefresh
    review: TemplateReview
    sync: TemplateSync
    key_ring: KeyRing
    routes: tuple[Route, ...]
    contract: Contract
    changes: list[Change]
    webhooks: Webhooks
    troubles: dict[str, Hold]  # what keeps numbers from reaching their provider, by their ids
    chats: dict[str, ChatAddress | None]
    origin_clicks: OriginClicks
    tracked_clicks: TrackedClicks
    email_tokens: PublicTokens
    email_opens: EmailOpens
    verifiers: dict[str, ScriptedVerifier | EmailSandbox | None]
    sender_verification: SenderVerification
    lanes: Supervisor  # of no numbers: tests put something there
    activity: Activity
    samples: Samples
    states: NumberStates

    def token(self, organization: int = 0, env: str = "test") -> str:
        return self.organizations[organization].keys[env][1]

    @property
    def provider(self) -> ScriptedProvider:
        """That of live."""
        provider = self.providers["live"]
        assert provider is not None
        return provider

    async def key(self, *scopes: str, organization: int = 0, env: str = "test", **fields: Any) -> str:
        """The token of a new key with these scopes."""
        async with self.database.transaction() as connection:
            _, token = await api_keys.issue_key(
                connection,
                self.ids,
                organization_id=self.organizations[organization].organization.id,
                env=env,
                name="a key of this test",
                scopes=scopes,
                random_bytes=os.urandom,
                **fields,
            )
        return token

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = None,
        organization: int = 0,
        env: str = "test",
        headers: Mapping[str, str] | None = None,
        raw: bytes | None = None,
    ) -> Answer:
        """One request with the key of all scopes of an organization and environment, or with `token` ("" = none)."""
        sent = {"Authorization": f"Bearer {token or self.token(organization, env)}"} if token != "" else {}
        if body is not None:
            raw = orjson.dumps(body)
        data = None
        if raw is not None:
            data = io.BytesIO(raw)
            sent["Content-Type"] = "application/json"
        async with self.session.request(
            method,
            self.base + path,
            data=data,
            headers={**sent, **(headers or {})},
        ) as answer:
            text = await answer.read()
            found = orjson.loads(text) if text else None
            self.contract.check(method, path, answer.status, found)
            return Answer(answer.status, found, answer.headers)

    async def speak(self, method: str, path: str, lines: bytes, content: bytes, *, token: str) -> Answer:
        """One request whose header `lines` (each with its end) go as they are: a client would refuse to send some."""
        reader, writer = await asyncio.open_connection("127.0.0.1", int(self.base.rpartition(":")[2]))
        head = f"{method} {path} HTTP/1.1\r\nHost: recado\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n"
        writer.write(head.encode() + lines + f"Content-Length: {len(content)}\r\n\r\n".encode() + content)
        try:
            first, _, body = (await reader.read()).partition(b"\r\n\r\n")
        finally:
            writer.close()
            await writer.wait_closed()
        return Answer(int(first.split()[1]), orjson.loads(body) if body else None, {})

    async def get(self, path: str, **how: Any) -> Answer:
        return await self.call("GET", path, **how)

    async def post(self, path: str, body: Any = None, **how: Any) -> Answer:
        return await self.call("POST", path, body, **how)

    async def patch(self, path: str, body: Any = None, **how: Any) -> Answer:
        return await self.call("PATCH", path, body, **how)

    async def delete(self, path: str, **how: Any) -> Answer:
        return await self.call("DELETE", path, **how)


@pytest.fixture(autouse=True)
def _cheap_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a derivation costs is the matter of its own tests: here it would be most of the time of accounts."""
    monkeypatch.setattr(passwords, "_LOG_N", 4)


@pytest.fixture(scope="session")
async def mjml_workers() -> AsyncIterator[BodyWorkers]:
    """For all of them: the start of a process takes longer than a test that needs one."""
    workers = BodyWorkers(SystemClock(), processes=1)
    await workers.start()
    yield workers
    await workers.stop()


@pytest.fixture(scope="session")
async def settled(emptied_database: Emptied) -> Settled:
    """The same organizations for all tests of the process, of which each writes them anew."""
    await emptied_database.empty()
    database = Database(emptied_database.arguments, clock=SystemClock(), pool_size=POOL_SIZE, hot_size=4)
    await database.start()
    try:
        return await Settled.settle(database, SystemClock())
    finally:
        await database.stop()


@pytest.fixture
async def api(database: Database, mjml_workers: BodyWorkers, settled: Settled) -> AsyncIterator[Api]:
    clock = ShiftedClock()
    ids = IdSource(clock, random.Random(7))
    key_ring = KeyRing.parse("test:" + "QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=")
    directories = Directories(database, clock=clock)
    media_senders = MediaSenders(
        numbers=directories.numbers, social_accounts=directories.social_accounts, keys=key_ring
    )
    providers: dict[str, ScriptedProvider | None] = {"test": ScriptedProvider(clock), "live": ScriptedProvider(clock)}
    providers["test"].submit_template = Sandbox(clock).submit_template  # type: ignore[method-assign, union-attr]
    changes: list[Change] = []
    troubles: dict[str, Hold] = {}

    async def trouble(sender: SenderKey) -> Hold | None:
        return troubles.get(sender.sender_id)

    def changed(change: Change) -> None:
        directories.forget(change)
        changes.append(change)

    runtime = Runtime(clock, random.Random(3))
    guard = OutboundGuard(clock=clock, allowed=(ip_network("127.0.0.0/8"),), lookup=names)
    http = GuardedHttp(guard, clock=clock, connect_limit=2.0, call_limit=2.0)
    webhooks = Webhooks(database, clock=clock, ids=ids, keys=key_ring, http=http, runtime=runtime)
    root = Supervisor("recado", runtime=runtime)
    lanes = Supervisor("lanes", runtime=runtime)
    root.add_supervisor(lanes)
    webhooks.join(root)

    shared: dict[str, Any] = {
        "clock": clock, "ids": ids, "keys": key_ring, "provider_for": lambda env: providers[env], "changed": changed,
    }  # fmt: skip
    refresh, review = NumberRefresh(database, **shared), TemplateReview(database, **shared)
    sync = TemplateSync(database, **shared)
    dependencies = Dependencies(
        database=database, ids=ids, clock=clock, keys=key_ring, cursors=Cursors(CursorSigner(b"c" * 32)),
        random_bytes=os.urandom, directories=directories, changed=changed,
    )  # fmt: skip
    people = ContactSystem(
        database, ids=ids, documents=DocumentCipher(key_ring, b"i" * 32), subscriptions=directories.subscriptions,
        effects=Consequences(), changed=changed, clock=clock,
    )  # fmt: skip
    chats: dict[str, ChatAddress | None] = {env: ChatAddress(f"https://{env}.example.com") for env in ("test", "live")}
    origin_clicks = OriginClicks(
        database, numbers=directories.numbers, opener_for=chats.get, clock=clock, random_bytes=os.urandom
    )
    outbox = Outbox(directories.subscriptions, ids=ids, queued=webhooks.queued)
    tracked_clicks = TrackedClicks(database, outbox=outbox, clock=clock)
    email_tokens = PublicTokens(b"k" * 32)
    email_opens = EmailOpens(database, tokens=email_tokens, outbox=outbox, clock=clock)
    events = CustomerEvents(database, clock=clock)
    entries = JourneyEntries(database, clock=clock, ids=ids, entered=lambda: None, journeys=RunningJourneys())
    verifiers: dict[str, ScriptedVerifier | EmailSandbox | None] = {
        "test": EmailSandbox(clock, 0, simulator_domain="simulator.test"),
        "live": ScriptedVerifier(),
    }
    registrations, push_opens = DeviceRegistrations(database, ids=ids, clock=clock), PushOpens(database, clock=clock)
    push_sends = PushSends(
        database, ids=ids, clock=clock, organizations=directories.organizations, prices=directories.prices,
        random_bytes=os.urandom, queued=lambda: None,
    )  # fmt: skip
    sender_verification = SenderVerification(database, clock=clock, verifier_for=verifiers.get, changed=lambda: None)
    records = Records(
        database, directories.numbers, directories.social_accounts, directories.organizations, directories.templates,
        key_ring, lambda channel, env, route=None: providers[env], clock,
    )  # fmt: skip
    nobody: Any = None  # these numbers send nothing
    context = LaneContext(records, nobody, nobody, Moments(clock), 0.0)
    activity = Activity(clock)
    states = NumberStates(database, clock=clock, context=context, lanes=lanes, activity=activity)
    tree = ActorTree(database, root=root, lanes=lanes, webhooks=webhooks.supervisor)
    samples = Samples(
        numbers=states,
        actors=tree,
        webhooks=WebhookStates(
            database, clock=clock, in_flight=webhooks.in_flight, calls=webhooks.dispatcher.calls.get
        ),
        providers=ProviderStates(records, context=context, lanes=lanes, activity=activity, queues=states.queues),
        clock=clock,
    )
    stream = OperatorStream(samples, clock=clock, random_bytes=os.urandom)
    routes = (
        *organization_routes(dependencies),
        *ops_routes(dependencies, samples=samples, states=states, tree=tree, stream=stream),
        *api_key_routes(dependencies, ceilings=CEILINGS),
        *people_routes(dependencies),
        *audit_routes(dependencies),
        *number_routes(dependencies, provider_for=lambda env: providers[env]),
        *number_administration_routes(dependencies),
        *contact_routes(database=database, ids=ids, people=people, cursors=dependencies.cursors),
        *contact_import_routes(database=database, ids=ids, imports=people.imports),
        *document_reveal_routes(database=database, ids=ids, documents=people.documents),
        *company_routes(dependencies),
        *customer_event_routes(dependencies, events=events),
        *export_routes(dependencies),
        *number_health_routes(
            dependencies, health=HealthReader(database, clock=clock, refresh=refresh, trouble=trouble)
        ),
        *number_usage_routes(dependencies),
        *media_routes(database=database, senders=media_senders, uploads=nobody, files=FileWork(), folder=None),
        *social_account_routes(dependencies, provider_for=lambda env: providers[env]),
        *flow_routes(dependencies, provider_for=lambda env: providers[env]),
        *template_routes(dependencies, provider_for=lambda env: providers[env], sync=sync),
        *static_list_routes(dependencies),
        *segment_routes(dependencies, evaluation=Evaluation(database)),
        *suppression_routes(dependencies),
        *email_template_routes(dependencies, workers=mjml_workers, changed=lambda _: None),
        *push_app_routes(dependencies, tell=lambda _: None, devices_left=lambda: None),
        *device_routes(dependencies, registrations=registrations, opted_out=lambda *_: None),
        *push_message_routes(dependencies, sends=push_sends, opens=push_opens),
        *email_sender_routes(dependencies, verification=sender_verification),
        *sandbox_record_routes(database=database, ids=ids, keys=key_ring, changed=changed),
        *billing_routes(dependencies),
        *webhook_routes(dependencies, guard=guard, actors=webhooks),
        *webhook_delivery_routes(dependencies),
        *journey_routes(
            dependencies,
            entries=entries,
            cancellation=ExecutionCancellation(
                database, clock=clock, effects=Consequences(), recalled=lambda left: None
            ),
            tests=JourneyTests(clock=clock, ids=ids, begun=lambda: None),
            simulations=simulations(database, directories, clock, ids),
        ),
        *origin_link_routes(
            dependencies, opener_for=chats.get, clicks=origin_clicks, link_base="https://l.recado.test"
        ),
        *opened_link_routes(
            tracked=tracked_clicks, origin=origin_clicks, scanners=("looker",), monotonic=clock.monotonic
        ),
        *opened_email_routes(
            opens=email_opens,
            unsubscriptions=Unsubscriptions(database, tokens=email_tokens, changes=people.changes),
            scanners=("looker",),
            monotonic=clock.monotonic,
        ),
    )
    server = HttpServer(
        routes,
        authenticator=TokenAuthenticator(directories.keys, directories.sessions),
        idempotency_store=IdempotencyKeys(database),
        limits=LIMITS,
        ceilings=CEILINGS,
        clock=clock,
        ids=ids,
        base_url="http://recado.test",
        admin_token=ADMIN_TOKEN,
    )
    organizations = await settled.write(database)
    await people.start()
    await origin_clicks.start()
    await tracked_clicks.start()
    await email_opens.start()
    await events.start()
    await entries.start()
    await registrations.start()
    await push_opens.start()
    await server.start()
    await root.start()
    try:
        async with aiohttp.ClientSession() as session:
            yield Api(
                f"http://127.0.0.1:{server.port}", session, database, clock, ids, organizations, directories,
                providers, refresh, review, sync, key_ring, routes, Contract(routes), changes, webhooks, troubles,
                chats, origin_clicks, tracked_clicks, email_tokens, email_opens, verifiers, sender_verification,
                lanes, activity, samples, states,
            )  # fmt: skip
    finally:
        await server.stop()
        await stream.stop()
        await sync.stop()
        await root.stop()
        await people.stop()
        await tracked_clicks.stop()
        await email_opens.stop()
        await events.stop()
        await registrations.stop()
        await push_opens.stop()
        await entries.stop()
        await origin_clicks.stop()


async def names(host: str, port: int) -> list[str]:
    """The name server of the tests: every name of example.com is public, and a few are not."""
    if host.endswith("example.com"):
        return ["10.0.0.1"] if host.startswith("private.") else ["93.184.216.34"]
    raise OSError("no such name")


def simulations(database: Database, directories: Directories, clock: ShiftedClock, ids: IdSource) -> JourneySimulations:
    """By the rules of both channels, in test."""
    shared: dict[str, Any] = {
        "organizations": directories.organizations,
        "ids": ids,
        "clock": clock,
        "sends_in": {"test"},
        "prices": directories.prices,
    }
    numbers, templates = directories.numbers, directories.templates
    windows = ChatWindows(database, clock=clock)
    emails = SendableTemplates(database, clock=clock)
    rules = [
        ChatAppRules(numbers=numbers, templates=templates, flows=directories.flows, windows=windows, **shared),
        SmsRules(links=partial(MessageLinks, "https://l.recado.test", os.urandom), **shared),
        email_rules(database, emails, **shared),
    ]
    return JourneySimulations(
        SimulationParts(
            db=database,
            evaluation=Evaluation(database),
            step_messages=StepMessages(
                rules, numbers=numbers, templates=templates, organizations=directories.organizations, emails=emails
            ),
            directories=directories,
            clock=clock,
            link_base="https://l.recado.test",
            billed=True,
        )
    )
