"""What makes an SMS acceptable: its route, the sender that this may need, and its price by segments (C16.1)."""

from collections.abc import Callable, Collection

from recado.domain.billing.prices import BR, Price, region_of
from recado.domain.channels.sms import POLICY, SMS, SmsRoute, asks_grant, category_in, route_in
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem, field_refused
from recado.domain.core.ids import MESSAGE, IdSource
from recado.domain.core.json_text import json_or_none
from recado.domain.links.tracked import MessageLinks
from recado.domain.messages.message import Priority
from recado.domain.senders.sender import route_sender
from recado.services.messages.acceptance_rules import due_time, new_message
from recado.services.messages.draft import MessageDraft
from recado.services.messages.replacing import replacement
from recado.services.messages.sms_content import SmsForm
from recado.storage.access.organizations import Organization, OrganizationDirectory
from recado.storage.billing.prices import PriceDirectory
from recado.storage.messages.messages import NewMessage


class SmsRules:
    """Makes the row of an SMS draft, or refuses it.

    The `details` of a draft say how its text is to leave (`SmsForm.asked`). One that takes the place of another has the
    details of that one, and its text as it left, with links of its own (C27.1).
    """

    channel = SMS

    def __init__(
        self,
        *,
        organizations: OrganizationDirectory,
        ids: IdSource,
        clock: Clock,
        sends_in: Collection[str],
        prices: PriceDirectory | None,
        links: Callable[[], MessageLinks],
    ) -> None:
        """`prices` None: nothing is billed (C25.2.4). `links`: makes those of one message (C27.1)."""
        self._organizations = organizations
        self._ids = ids
        self._clock = clock
        self.sends_in = frozenset(sends_in)
        self._prices = prices
        self._links = links

    def at_once(self, draft: MessageDraft) -> NewMessage | None:
        organization = self._organizations.peek(draft.organization_id)
        if organization is None:
            return None
        price = None
        if self._prices is not None:
            unit = POLICY.price_kind(category_in(draft.details), False), region_of(draft.to)
            price = self._prices.peek(draft.organization_id, draft.env, *unit, self._clock.now())
            if price is None:
                return None
        return self._row(draft, organization, price)

    async def read(self, draft: MessageDraft) -> NewMessage:
        organization = await self._organizations.of_caller(draft.organization_id)
        check_route(route_in(draft.details), region_of(draft.to), organization.dedicated_sender)
        price = None
        if self._prices is not None:
            unit = POLICY.price_kind(category_in(draft.details), False), region_of(draft.to)
            price = await self._prices.price_of(draft.organization_id, draft.env, *unit, self._clock.now())
        return self._row(draft, organization, price)

    async def check_window(self, new: NewMessage) -> None:
        """No SMS needs one."""

    def _row(self, draft: MessageDraft, organization: Organization, price: Price | None) -> NewMessage:
        route, category = route_in(draft.details), category_in(draft.details)
        check_route(route, region_of(draft.to), organization.dedicated_sender)
        content, links = None, None
        if draft.again is None:
            form = SmsForm.of(draft.details, organization.dedicated_sender)
            links = self._links() if form.shorten_links else None
            text = draft.payload["text"]["body"] if draft.payload else ""
            content = form.content(text, None if links is None else links.shorten)
            draft.units = content.units  # the text stays as it was given: whoever draws other codes reads it again
        message_id = self._ids.new(MESSAGE)
        now = self._ids.moment_of(message_id)
        new = new_message(
            draft,
            organization,
            route_sender(SMS, draft.env, route),
            POLICY.obeys(draft.type, category, draft.priority),
            message_id=message_id,
            due_at=due_time(draft, now),
            now=now,
            ttl=POLICY.ttl(category, draft.priority),
            held_ms=organization.held_ms,
            price=price,
            asks_grant=asks_grant(route),
        )
        if content is not None:
            new.payload, new.details = json_or_none(content.payload), json_or_none(content.details)
        if draft.again is not None:
            new.replaces = replacement(draft.again, new.id, self._ids)
            if draft.again.links and new.payload is not None:
                links = self._links()
                new.payload = links.in_place_of(new.payload, draft.again.links)
        if links is not None:
            new.links = links.rows
        return new


def check_route(route: SmsRoute, region: str, dedicated_sender: str | None) -> None:
    """The dedicated route is for organizations with a sender of their own, and for phones of Brazil; Problem 422."""
    check_dedicated(route, dedicated_sender)
    if region_for(route) not in (None, region):
        raise no_route("Route la_dedicada is for phones of Brazil: use route premium.")


def region_for(route: SmsRoute) -> str | None:
    """The region of the only phones that a route leads to; None: to all."""
    return BR if route is SmsRoute.DEDICATED else None


def check_dedicated(route: SmsRoute, dedicated_sender: str | None) -> None:
    """The first half of that."""
    if route is SmsRoute.DEDICATED and dedicated_sender is None:
        raise no_route("The organization has no dedicated sender: use route premium, or ask the administrator for one.")


def check_priority(route: SmsRoute, priority: Priority) -> None:
    """One-time codes alone go before everything else (C16.3); Problem 422."""
    if priority is Priority.CRITICAL and route is not SmsRoute.OTP:
        raise field_refused("PRIORITY_NOT_ALLOWED", "/priority", "Priority critical is only for route otp.")


def no_route(detail: str) -> Problem:
    return field_refused("ROUTE_NOT_AVAILABLE", "/route", detail)
