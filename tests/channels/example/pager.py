"""The parts of an example channel: pages for the pagers of an imagined carrier. Its policy is in `policy.py`."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Annotated, Final, Literal

import orjson
from pydantic import Field
from tests.channels.example.policy import PAGE, PAGES, ROUTE, URGENT_PAGES

from recado.actors.dispatch.shared_gateway import GatewayPlan
from recado.channel_table import AdapterKey, ChannelParts, RuleParts
from recado.channels.core.adapters import Adapter, Adapters
from recado.channels.core.provider import Account, Down, OutboundMessage, Outcome, Refused
from recado.channels.core.sandbox import ChannelSandbox, ReportStep, Story
from recado.config.settings import Settings
from recado.domain.billing.prices import INTL
from recado.domain.channels.policy import Policy
from recado.domain.core.clock import Clock
from recado.domain.core.ids import MESSAGE
from recado.domain.core.steps import Steps
from recado.domain.messages.message import Priority
from recado.domain.senders.sender import route_sender
from recado.http.api.call import Call
from recado.http.api.models import ApiModel
from recado.http.api.route import Idempotency, Route
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import Group
from recado.http.routes.messages.bulk_models import BatchContent, TextBatchBody
from recado.http.routes.messages.message_view import created_view
from recado.http.wire.reply import Reply
from recado.services.batches.batch_draft import BatchDraft
from recado.services.batches.channel_batches import (
    BatchTerms,
    MessageCopy,
    Misfit,
    RenderedContent,
    Replaced,
    Sort,
    Tracked,
    Where,
)
from recado.services.batches.placeholder_text import text_terms
from recado.services.messages.acceptance import Acceptance, AcceptedMessage
from recado.services.messages.acceptance_rules import due_time, new_message
from recado.services.messages.draft import MessageDraft
from recado.storage.batches.batch_rows import MessageKind, Recipients
from recado.storage.messages import message_reads
from recado.storage.messages.messages import NewMessage
from recado.storage.messages.resends import Old

# Its carrier ----------------------------------------------------------------------------------------------------------

_DELIVERED: Final = ReportStep(1.0, "delivered")
_STORIES: Final[Mapping[str, Story]] = {
    "lost": Story(),
    "dead": Story(refused=Refused("battery_empty", "this pager is off")),
    "torn": Story(steps=(ReportStep(1.0, "failed", "provider_error"),)),
    "mute": Story(answered=False),
}
"""By the last four characters of the recipient."""


class Carrier(ChannelSandbox):
    """Takes pages at two entrances. The first one is closed for whoever `avoids` it."""

    def __init__(self, clock: Clock, time_scale: float) -> None:
        super().__init__(clock, time_scale, usual=Story(steps=(_DELIVERED,)), stories=_STORIES)

    async def send(self, message: OutboundMessage, account: Account, attempt: int) -> Outcome:
        if account.provider_id == "first" and message.to.startswith("avoids"):
            return Down("connect_failed")
        return await super().send(message, account, attempt)


def carrier(settings: Settings, clock: Clock, connections: int) -> Mapping[AdapterKey, Adapter]:
    return {("test", None): Adapter(sender=Carrier(clock, settings.sandbox_time_scale))}


def gateways(channel: str, per_second: float) -> Callable[[Settings, Adapters], Sequence[GatewayPlan]]:
    def plans(settings: Settings, adapters: Adapters) -> Sequence[GatewayPlan]:
        provider = adapters.sender(channel, "test")
        assert provider is not None
        return [
            GatewayPlan(
                channel=channel, env="test", name=name, per_second=per_second, provider=provider,
                account=Account(
                    sender_id=route_sender(channel, "test", ROUTE), organization_id="", env="test", provider_id=name,
                    owner=name,
                ),
            )
            for name in ("first", "second")
        ]  # fmt: skip

    return plans


# Its rules ------------------------------------------------------------------------------------------------------------


class PageRules:
    """A page costs by its length. What is sent at once is not stored: its text goes beside the row."""

    def __init__(self, policy: Policy, parts: RuleParts) -> None:
        self.channel = policy.channel
        self.sends_in: Collection[str] = frozenset(parts.sends_in)
        self._policy = policy
        self._parts = parts

    def at_once(self, draft: MessageDraft) -> NewMessage | None:
        return None

    async def read(self, draft: MessageDraft) -> NewMessage:
        parts, policy = self._parts, self._policy
        organization = await parts.directories.organizations.of_caller(draft.organization_id)
        message_id = parts.ids.new(MESSAGE)
        now = parts.ids.moment_of(message_id)
        price = None
        if parts.prices is not None:
            kind = policy.price_kind(None, False)
            price = await parts.prices.price_of(draft.organization_id, draft.env, kind, INTL, now)
        links = parts.links()
        assert draft.payload is not None
        draft = replace(draft, payload={"text": links.in_text(draft.payload["text"])})
        new = new_message(
            draft, organization, route_sender(self.channel, draft.env, ROUTE),
            policy.obeys(draft.type, None, draft.priority),
            message_id=message_id, due_at=due_time(draft, now), now=now, ttl=policy.ttl(None, draft.priority),
            held_ms=organization.held_ms, price=price, asks_grant=False,
        )  # fmt: skip
        new.links = links.rows
        if policy.direct:
            new.content, new.payload = new.payload, None
        return new

    async def check_window(self, new: NewMessage) -> None:
        """Pages need none."""


class PageBatches:
    """Their texts may have placeholders; each page of each recipient is paid for."""

    no_such_message = "There is no such page."

    def __init__(self, policy: Policy, parts: RuleParts) -> None:
        self.channel = policy.channel
        self.sends_in: Collection[str] = frozenset(parts.sends_in)
        self._policy = policy
        self._organizations = parts.directories.organizations

    async def terms(self, draft: BatchDraft, now: datetime) -> BatchTerms:
        organization = await self._organizations.of_caller(draft.organization_id)
        details = orjson.dumps(draft.details).decode()

        def render(text: str) -> RenderedContent | Misfit:
            if len(text) > PAGE * 10:
                return Misfit("TEXT_TOO_LONG", "A page has at most 800 characters.")
            return RenderedContent(payload=orjson.dumps({"text": text}).decode(), units=pages_of(text), details=details)

        return BatchTerms(
            sender_id=route_sender(self.channel, draft.env, ROUTE),
            due_at=due_time(draft.message(), now),
            ttl=self._policy.ttl(None, draft.priority),
            held_ms=organization.held_ms,
            obeys=self._policy.obeys(draft.type, None, draft.priority),
            granted_only=False,
            **text_terms((draft.payload or {})["text"], render),
        )

    async def kind(self, where: Where, priority: Priority, sort: Sort) -> MessageKind:
        return self._kind(sort.type, priority)

    def tracked(self, payload: str | None, recipients: Recipients, replaced: Replaced) -> Steps[Tracked | None]:
        """Links in batches of pages stay as they are."""
        yield from ()
        return None

    async def suppressed(self, where: Where, addresses: Sequence[str]) -> Collection[str]:
        return ()

    async def check_sender(self, where: Where, sender_id: str, *, field: str, sends: bool) -> None:
        """Nobody names what pages leave from."""

    async def copies(
        self, where: Where, olds: Sequence[Old], sender_id: str | None, now: datetime
    ) -> Mapping[str, MessageCopy | Misfit]:
        sender, ttl = route_sender(self.channel, where[1], ROUTE), self._policy.ttl(None, Priority.BULK)
        return {old.id: MessageCopy(sender, None, self._kind(old.type, Priority.BULK), ttl, 0) for old in olds}

    def _kind(self, message_type: str, priority: Priority) -> MessageKind:
        obeys = self._policy.obeys(message_type, None, priority)
        return MessageKind(obeys, self._policy.price_kind(None, False), asks_grant=False)


# Its routes -----------------------------------------------------------------------------------------------------------


class CreatePage(ApiModel):
    """`patience`: seconds without news after which it is undelivered."""

    to: Annotated[str, Field(min_length=3, max_length=100)]
    text: Annotated[str, Field(min_length=1, max_length=PAGE * 10)]
    patience: Annotated[int, Field(ge=0, le=86_400)] = 3_600
    priority: Priority = Priority.NORMAL
    campaign_id: Annotated[str, Field(min_length=1, max_length=64)] | None = None


class CreatePages(TextBatchBody):
    """Pages to many."""

    channel: Literal["pager"]
    text: Annotated[str, Field(min_length=1, max_length=PAGE * 10)]
    patience: Annotated[int, Field(ge=0, le=86_400)] = 3_600

    def shared(self) -> BatchContent:
        return BatchContent(sender_id="", type="text", payload={"text": self.text}, details={"patience": self.patience})


def pages_of(text: str) -> int:
    return -(-len(text) // PAGE)


def page_routes(channel: str, path: str) -> Callable[[Dependencies, Acceptance], tuple[Route, ...]]:
    def routes(dependencies: Dependencies, acceptance: Acceptance) -> tuple[Route, ...]:
        async def create(call: Call) -> Reply:
            body: CreatePage = call.body
            principal, key = call.principal, call.idempotency
            done = await acceptance.accept(
                MessageDraft(
                    organization_id=principal.organization_id, env=principal.env, channel=channel, sender_id="",
                    to=body.to.lower(), type="text", priority=body.priority, campaign_id=body.campaign_id,
                    payload={"text": body.text},
                    key_hash=None if key is None else key.key_hash,
                    fingerprint=None if key is None else key.fingerprint,
                    units=pages_of(body.text), details={"patience": body.patience},
                )
            )  # fmt: skip
            message_id = done.message.id
            message = await message_reads.get(
                dependencies.database, principal.organization_id, principal.env, message_id
            )
            assert message is not None
            return Reply(201, created_view(message, replayed=not isinstance(done, AcceptedMessage), unmasked=False))

        return (
            Group("Pages", writes="messages:send").route(
                f"POST {path}", f"send_{channel}", "Send a page", create,
                body=CreatePage, idempotency=Idempotency.BOUND, rate_class="send",
            ),
        )  # fmt: skip

    return routes


def parts(policy: Policy, path: str) -> ChannelParts:
    return ChannelParts(
        channel=policy.channel,
        adapters=carrier,
        rules=partial(PageRules, policy),
        gateways=gateways(policy.channel, per_second=50.0),
        routes=page_routes(policy.channel, path),
        batches=None if policy.direct else partial(PageBatches, policy),
        batch_body=None if policy.direct else CreatePages,
    )


PARTS: Final = (parts(PAGES, "/v2/pages"), parts(URGENT_PAGES, "/v2/urgent-pages"))
