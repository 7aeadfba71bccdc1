"""A server with the operations on messages, the sandbox's people and callbacks, over the resources of `api`."""

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pytest
from tests.http.contract import Contract

from recado.channels.chatapp.bridge import Bridge
from recado.channels.chatapp.cloud import Cloud
from recado.config.limits import DEFAULT_LIMITS
from recado.domain.channels.chatapp import CHATAPP
from recado.domain.core.ids import MESSAGE, TEMPLATE, lowest_id
from recado.domain.core.page import CursorSigner
from recado.domain.templates.template import Language, TemplateCategory, TemplateStatus
from recado.http.api.paging import Cursors
from recado.http.bodies.body_workers import BodyWorkers
from recado.http.callers.token_authenticator import TokenAuthenticator
from recado.http.routes.batches.campaigns import campaign_routes
from recado.http.routes.batches.resend import resend_routes
from recado.http.routes.contacts.contacts import contact_routes
from recado.http.routes.inbound.callbacks import callback_routes
from recado.http.routes.inbound.sandbox_inbound import sandbox_inbound_routes
from recado.http.routes.messages.bulk import bulk_routes
from recado.http.routes.messages.messages import message_routes
from recado.http.routes.messages.reprocess import reprocess_routes
from recado.http.server import HttpServer
from recado.services.batches.batch_acceptance import BatchAcceptance
from recado.services.batches.batch_audience import Audiences
from recado.services.batches.batch_maker import BatchMaker
from recado.services.batches.batch_prices import WalletTariff
from recado.services.batches.chatapp_batches import ChatAppBatches
from recado.services.batches.resend import Resends
from recado.services.dispatch.sending import Sending
from recado.services.effects.campaigns import CampaignCompletion, Campaigns
from recado.services.effects.consequences import Consequences
from recado.services.effects.outbox import Outbox
from recado.services.effects.recording import Recording
from recado.services.effects.totals import MessageTotals
from recado.services.effects.wallet import Wallet
from recado.services.imports.contact_system import ContactSystem
from recado.services.inbound.inbound import InboundMessages
from recado.services.inbound.receipts import Receipts
from recado.services.messages.acceptance import Acceptance
from recado.services.messages.admission import Admission
from recado.services.messages.chatapp_rules import ChatAppRules
from recado.services.messages.opt_out_replies import OptOutReplies
from recado.storage.audience.segment_evaluation import Evaluation
from recado.storage.billing import ledger
from recado.storage.contacts.documents import DocumentCipher
from recado.storage.core.idempotency import IdempotencyKeys
from recado.storage.core.shares.fair_threads import FairThreads
from recado.storage.core.upkeep.partitions import ensure_partitions
from recado.storage.messages.chat_windows import ChatWindows
from recado.storage.messages.recipients import RecipientLookup
from recado.storage.templates import templates
from recado.storage.templates.templates import Template

PHONE = "+5511987654321"
MASKED = "+55*******4321"
SECRET = "whsec_c2VjcmV0IG9mIHRoZSBicmlkZ2U="
LIMITS = dict.fromkeys(DEFAULT_LIMITS, (100_000.0, 100_000))
BODY = ({"type": "BODY", "payload": {"text": "Hello {{1}}!"}},)
CALLBACK = "/v2/callbacks/chatapp/bridge"
VERIFY_TOKEN = "verify-me-7f"


@dataclass
class Mail:
    """A server with the operations on messages, in front of the first organization's sandbox number."""

    api: Any
    template: Template
    forced: list[Any]
    callbacks: list[tuple[str, str, bytes]]
    kept: list[Mapping[str, str]]
    waiting: dict[str, Any]
    sending: Sending
    completion: CampaignCompletion
    maker: BatchMaker
    people: ContactSystem
    replies: OptOutReplies
    audiences: Audiences

    @property
    def organization_id(self) -> str:
        return str(self.api.organizations[0].organization.id)

    @property
    def number_id(self) -> str:
        return str(self.api.organizations[0].number.id)

    def body(self, **changes: Any) -> dict[str, Any]:
        fields = {
            "numberId": self.number_id,
            "to": PHONE,
            "type": "template",
            "templateId": self.template.id,
            "templateVars": ["Ana"],
            **changes,
        }
        return {name: value for name, value in fields.items() if value is not ...}

    def text(self, **changes: Any) -> dict[str, Any]:
        plain = {"type": "text", "payload": {"text": {"body": "hi"}}, "templateId": ..., "templateVars": ...}
        return self.body(**{**plain, **changes})

    async def send(self, **changes: Any) -> dict[str, Any]:
        answer = await self.api.post("/messages", self.body(**changes))
        assert answer.status == 201, answer.body
        body: dict[str, Any] = answer.body
        return body

    async def stored(self) -> int:
        return int(await self.api.database.fetchval("select count(*) from messages"))

    async def refusal(self, body: Any, **how: Any) -> Any:
        before = await self.stored()
        answer = await self.api.post("/messages", body, **how)
        assert answer.status >= 400
        assert await self.stored() == before
        return answer

    async def age(self, message_id: str, at: datetime) -> str:
        """The message as if it had been accepted at that moment; its id of then."""
        aged = lowest_id(MESSAGE, at)
        await ensure_partitions(self.api.database, at, months_ahead=0)
        await self.api.database.execute("update messages set id = $2 where id = $1", message_id, aged)
        return aged

    async def set_status(self, message_id: str, status: str) -> None:
        database = self.api.database
        if status == "sending":
            await database.execute("update dispatch set claimed_epoch = 1 where id = $1", message_id)
        elif status != "queued":
            await database.execute("delete from dispatch where id = $1", message_id)
        await database.execute("update messages set status = $2 where id = $1", message_id, status)


NOTHING_DIRECT: Any = None  # chat-app sends nothing so


@pytest.fixture
async def mail(api: Any) -> AsyncIterator[Mail]:
    database, clock, ids, directories = api.database, api.clock, api.ids, api.directories
    forced: list[Any] = []
    callbacks: list[tuple[str, str, bytes]] = []
    kept: list[Mapping[str, str]] = []
    waiting: dict[str, Any] = {"reason": "rate"}

    class Explainer:
        async def explain(self, organization_id: str, env: str, message: Any) -> dict[str, Any]:
            return waiting

    async def take(channel: str, adapter: str, body: bytes, headers: Mapping[str, str]) -> None:
        callbacks.append((channel, adapter, body))
        kept.append(headers)

    totals = MessageTotals(clock=clock, emptied=lambda keys: None)
    outbox = Outbox(directories.subscriptions, ids=ids, queued=lambda keys: None)
    wallet = Wallet(directories.prices, clock=clock, ids=ids, queued=lambda keys: None)
    consequences = Consequences(outbox, wallet, totals, Campaigns())
    sending = Sending(
        database,
        clock=clock,
        tell=lambda number, message: None,
        admission=Admission(database, clock=clock, ids=ids, consequences=consequences),
        consequences=consequences,
        recording=Recording(database, consequences=consequences, outbox=outbox, wallet=wallet, totals=totals),
    )
    windows = ChatWindows(database, clock=clock)
    recipients = RecipientLookup(database, clock=clock)
    rules = ChatAppRules(
        numbers=directories.numbers,
        organizations=directories.organizations,
        templates=directories.templates,
        flows=directories.flows,
        windows=windows,
        ids=ids,
        clock=clock,
        sends_in={"test", "live"},
        prices=directories.prices,
    )
    acceptance = Acceptance(
        database,
        rules=[rules],
        organizations=directories.organizations,
        recipients=recipients,
        sending=sending,
        direct=NOTHING_DIRECT,
        ids=ids,
        clock=clock,
    )
    async with database.transaction() as connection:
        for made in api.organizations:
            await ledger.credit(
                connection,
                ids,
                organization_id=made.organization.id,
                env="live",
                kind=ledger.TOP_UP,
                coins=1_000_000_000,
                description="for tests",
                reference=None,
                now=clock.now(),
            )
    audiences = Audiences(database, Evaluation(database), clock=clock)
    channels = {CHATAPP: ChatAppBatches(database, directories, sends_in={"test", "live"})}
    maker = BatchMaker(
        database,
        clock=clock,
        ids=ids,
        tell=lambda number, message: None,
        consequences=consequences,
        tariff=WalletTariff(prices=directories.prices, ids=ids, clock=clock),
        audiences=audiences,
        channels=channels,
    )
    known: dict[str, Any] = {"channels": channels, "maker": maker, "ids": ids}
    batch_acceptance = BatchAcceptance(database, clock=clock, unfinished=lambda: None, audiences=audiences, **known)
    bridge = Bridge(
        url="http://127.0.0.1:1",
        token="token",
        secret=SECRET,
        callback_url="http://recado.test" + CALLBACK,
        clock=clock,
    )
    cloud = Cloud(url="http://127.0.0.1:9", app_secret="app-secret", verify_token=VERIFY_TOKEN, clock=clock)
    people = ContactSystem(
        database, ids=ids, documents=DocumentCipher(api.key_ring, b"i" * 32), subscriptions=directories.subscriptions,
        effects=consequences, changed=api.changes.append, clock=clock,
    )  # fmt: skip
    replies = OptOutReplies(database, acceptance, organizations=directories.organizations, clock=clock)
    inbound = InboundMessages(
        organizations=directories.organizations, clock=clock, ids=ids, keys=api.key_ring, changed=api.changes.append,
        owing=replies.hint, simulator_domain="simulator.test",
    )  # fmt: skip
    receipts = Receipts(database, clock=clock, consequences=consequences, inbound=inbound)
    routes = (
        *contact_routes(database=database, ids=ids, people=people, cursors=Cursors(CursorSigner(b"c" * 32))),
        *message_routes(
            database=database,
            ids=ids,
            acceptance=acceptance,
            explainer=Explainer(),
            forced=forced.append,
            effects=consequences,
            cursors=Cursors(CursorSigner(b"c" * 32)),
        ),
        *campaign_routes(database=database),
        *bulk_routes(acceptance=batch_acceptance),
        *resend_routes(
            resends=Resends(database, acceptance=batch_acceptance, organizations=directories.organizations, **known)
        ),
        *reprocess_routes(database=database, acceptance=acceptance),
        *sandbox_inbound_routes(
            database=database,
            directories=directories,
            receiver=receipts,
            media_for=lambda channel, env: None,
        ),
        *callback_routes(
            providers={("chatapp", "bridge"): bridge, ("chatapp", "cloud"): cloud},
            take=take,
            threads=FairThreads("callbacks"),
            apart=BodyWorkers(clock),
        ),
    )
    server = HttpServer(
        routes,
        authenticator=TokenAuthenticator(directories.keys, directories.sessions),
        idempotency_store=IdempotencyKeys(database),
        limits=LIMITS,
        ceilings=LIMITS,
        clock=clock,
        ids=ids,
        base_url="http://recado.test",
    )
    await database.execute("delete from messages")
    async with database.transaction() as connection:
        template = await templates.insert(
            connection,
            Template(
                organization_id=api.organizations[0].organization.id,
                id=ids.new(TEMPLATE),
                env="test",
                number_id=api.organizations[0].number.id,
                name="hello",
                language=Language.PT_BR,
                category=TemplateCategory.UTILITY,
                status=TemplateStatus.APPROVED,
                components=BODY,
                updated_at=clock.now(),
            ),
        )
    for service in (sending, windows, recipients, batch_acceptance, replies, people, server):
        await service.start()
    try:
        there = replace(api, base=f"http://127.0.0.1:{server.port}", routes=routes, contract=Contract(routes))
        completion = CampaignCompletion(database, clock=clock, ids=ids, changed=api.changes.append)
        yield Mail(
            there, template, forced, callbacks, kept, waiting, sending, completion, maker, people, replies, audiences
        )
    finally:
        for service in (server, people, replies, batch_acceptance, recipients, windows, sending):
            await service.stop()
