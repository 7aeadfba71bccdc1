"""What makes an RCS message acceptable: its content, the SMS that may take its place, and the dearer price (C17)."""

from collections.abc import Callable, Collection

from recado.domain.billing.prices import Price, region_of
from recado.domain.channels.rcs import POLICY, RCS, asks_grant, category_in, dearer, other_kind, priced
from recado.domain.channels.sms import SMS
from recado.domain.core.clock import Clock
from recado.domain.core.ids import MESSAGE, IdSource
from recado.domain.core.json_text import json_or_none
from recado.domain.links.tracked import MessageLinks
from recado.domain.senders.sender import route_sender
from recado.services.messages.acceptance_rules import due_time, new_message
from recado.services.messages.draft import MessageDraft
from recado.services.messages.rcs_content import RcsForm, RcsMessageContent
from recado.storage.access.organizations import Organization, OrganizationDirectory
from recado.storage.billing.prices import PriceDirectory
from recado.storage.messages.messages import NewMessage

Prices = tuple[Price, Price | None]
"""Of the message, and of a segment of its SMS."""


class RcsRules:
    """Makes the row of an RCS draft, or refuses it. The `details` of a draft are those of `RcsForm.asked`."""

    channel = RCS

    def __init__(
        self,
        *,
        organizations: OrganizationDirectory,
        ids: IdSource,
        clock: Clock,
        sends_in: Collection[str],
        sms_in: Collection[str],
        prices: PriceDirectory | None,
        links: Callable[[], MessageLinks],
    ) -> None:
        """`sms_in`: the environments in which somebody sends SMS. `prices` None: nothing is billed (C25.2.4)."""
        self._organizations = organizations
        self._ids = ids
        self._clock = clock
        self.sends_in = frozenset(sends_in)
        self._sms_in = frozenset(sms_in)
        self._prices = prices
        self._links = links

    def at_once(self, draft: MessageDraft) -> NewMessage | None:
        organization = self._organizations.peek(draft.organization_id)
        if organization is None:
            return None
        links = self._links()
        content = _content(draft, links)
        if self._prices is None:
            return self._row(draft, organization, content, links, None)
        now = self._clock.now()
        found = [
            self._prices.peek(draft.organization_id, draft.env, kind, region_of(draft.to), now)
            for kind in _kinds(content)
        ]
        own, sms = found[0], found[-1] if len(found) > 1 else None
        if own is None or (len(found) > 1 and sms is None):
            return None
        return self._row(draft, organization, content, links, (own, sms))

    async def read(self, draft: MessageDraft) -> NewMessage:
        organization = await self._organizations.of_caller(draft.organization_id)
        links = self._links()
        content = _content(draft, links)
        if self._prices is None:
            return self._row(draft, organization, content, links, None)
        now = self._clock.now()
        own, *more = [
            await self._prices.price_of(draft.organization_id, draft.env, kind, region_of(draft.to), now)
            for kind in _kinds(content)
        ]
        return self._row(draft, organization, content, links, (own, more[0] if more else None))

    async def check_window(self, new: NewMessage) -> None:
        """No RCS message needs one."""

    def _row(
        self,
        draft: MessageDraft,
        organization: Organization,
        content: RcsMessageContent,
        links: MessageLinks,
        prices: Prices | None,
    ) -> NewMessage:
        form, category = RcsForm.of(draft.details), category_in(content.details)
        message_id = self._ids.new(MESSAGE)
        now = self._ids.moment_of(message_id)
        new = new_message(
            draft,
            organization,
            route_sender(RCS, draft.env, form.route),
            POLICY.obeys(draft.type, category, draft.priority),
            message_id=message_id,
            due_at=due_time(draft, now),
            now=now,
            ttl=POLICY.ttl(category, draft.priority),
            held_ms=organization.held_ms,
            price=None if prices is None else prices[0],
            asks_grant=asks_grant(form.route),
        )
        details = content.details if prices is None else priced(content.details, *prices)
        if prices is not None:
            new.coins = dearer(details)
        new.payload, new.details = json_or_none(content.payload), json_or_none(details)
        new.links = links.rows
        if content.segments is not None and draft.env not in self._sms_in:
            new.lacks = SMS
        return new


def _content(draft: MessageDraft, links: MessageLinks) -> RcsMessageContent:
    return RcsForm.of(draft.details).content(draft.payload or {}, links)


def _kinds(content: RcsMessageContent) -> list[str]:
    """What its prices are asked by: its own, and that of its SMS."""
    own, other = POLICY.price_kind(category_in(content.details), False), other_kind(content.details)
    return [own] if other is None else [own, other]
