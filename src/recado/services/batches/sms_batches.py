"""What makes batches of SMS acceptable: their route, and each recipient's text, measured for itself (C15.5, C16)."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from recado.domain.channels.sms import POLICY, SMS, asks_grant, category_in, category_of, route_in
from recado.domain.core.errors import Problem
from recado.domain.core.json_text import json_text, object_of
from recado.domain.core.steps import Steps
from recado.domain.links.tracked import MessageLinks, TrackedLink
from recado.domain.messages.message import Priority
from recado.domain.senders.sender import route_sender
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
from recado.services.messages.acceptance_rules import due_time
from recado.services.messages.sms_content import UNTRACKED, SmsContent, SmsForm, with_links
from recado.services.messages.sms_rules import check_dedicated, check_priority, region_for
from recado.storage.access.organizations import OrganizationDirectory
from recado.storage.batches.batch_rows import MessageKind, Recipients
from recado.storage.messages.resends import Old

STEP: Final = 100
"""Texts that get their links in one step of the event loop: some milliseconds."""


class SmsBatches:
    """`sends_in`: the environments that have a provider. `links`: makes those of one message (C27.1)."""

    channel = SMS
    no_such_message = "There is no such SMS."

    def __init__(
        self, organizations: OrganizationDirectory, *, sends_in: Collection[str], links: Callable[[], MessageLinks]
    ) -> None:
        self._organizations = organizations
        self.sends_in = frozenset(sends_in)
        self._links = links

    async def terms(self, draft: BatchDraft, now: datetime) -> BatchTerms:
        organization = await self._organizations.of_caller(draft.organization_id)
        form = SmsForm.of(draft.details, organization.dedicated_sender)
        check_dedicated(form.route, organization.dedicated_sender)
        check_priority(form.route, draft.priority)
        text = draft.payload["text"]["body"] if draft.payload else ""

        def render(text: str) -> RenderedContent | Misfit:
            try:
                payload, units, details = self._content(form, text)
            except Problem as problem:
                return Misfit(problem.code, problem.detail)
            return RenderedContent(json_text(payload), units, json_text(details))

        told = text_terms(text, render)
        if told["member"] is None:  # what all get is refused for all, and is the batch's own
            draft.payload = self._content(form, text).payload
        category = category_of(form.route, transactional=form.transactional)
        return BatchTerms(
            sender_id=route_sender(SMS, draft.env, form.route),
            due_at=due_time(draft.message(), now),
            ttl=POLICY.ttl(category, draft.priority),
            held_ms=organization.held_ms,
            obeys=POLICY.obeys(draft.type, category, draft.priority),
            granted_only=asks_grant(form.route) and organization.require_granted_for_marketing,
            region=region_for(form.route),
            **told,
        )

    async def kind(self, where: Where, priority: Priority, sort: Sort) -> MessageKind:
        return _kind(sort.type, object_of(sort.details), priority)

    def tracked(self, payload: str | None, recipients: Recipients, replaced: Replaced) -> Steps[Tracked | None]:
        if replaced:
            return (yield from self._renewed(payload, recipients, replaced))
        if not recipients.details or UNTRACKED not in object_of(recipients.details[0]):
            return None  # as all of the batch
        places: list[int] = []
        contents: list[SmsContent] = []
        links: list[Sequence[TrackedLink]] = []
        left_out: Counter[str] = Counter()
        for place, details in enumerate(recipients.details):
            if place and not place % STEP:
                yield
            own = payload if recipients.payloads is None else recipients.payloads[place] or payload
            of_message = self._links()
            try:
                content = with_links(object_of(own)["text"]["body"], object_of(details), of_message.shorten)
            except Problem as problem:  # short links were shorter when the batch was accepted
                left_out[problem.code] += 1
                continue
            places.append(place)
            contents.append(content)
            links.append(of_message.rows)
        told = replace(
            recipients.only(places) if left_out else recipients,
            payloads=[json_text(content.payload) for content in contents],
            units=[content.units for content in contents],
            details=[json_text(content.details) for content in contents],
        )
        return Tracked(told, links, left_out)

    def _renewed(self, payload: str | None, recipients: Recipients, replaced: Replaced) -> Steps[Tracked | None]:
        """Messages that are sent again say what the old ones did, with links of their own."""
        payloads: list[str | None] = []
        links: list[Sequence[TrackedLink]] = []
        for place, old_id in enumerate(recipients.replaces or ()):
            if place and not place % STEP:
                yield
            own = payload if recipients.payloads is None else recipients.payloads[place] or payload
            of_message = self._links()
            payloads.append(None if own is None else of_message.in_place_of(own, replaced.get(old_id, ())))
            links.append(of_message.rows)
        return Tracked(replace(recipients, payloads=payloads), links)

    async def suppressed(self, where: Where, addresses: Sequence[str]) -> Collection[str]:
        return ()

    async def check_sender(self, where: Where, sender_id: str, *, field: str, sends: bool) -> None:
        """Nobody names what an SMS leaves from."""

    async def copies(
        self, where: Where, olds: Sequence[Old], sender_id: str | None, now: datetime
    ) -> Mapping[str, MessageCopy | Misfit]:
        organization = await self._organizations.of_caller(where[0])
        found: dict[str, MessageCopy | Misfit] = {}
        for old in olds:
            details = object_of(old.details)
            route, category = route_in(details), category_in(details)
            try:
                check_dedicated(route, organization.dedicated_sender)
            except Problem as problem:
                found[old.id] = Misfit(problem.code, problem.detail)
                continue
            found[old.id] = MessageCopy(
                route_sender(SMS, where[1], route),
                None,
                _kind(old.type, details, Priority.BULK),
                POLICY.ttl(category, Priority.BULK),
                organization.held_ms,
            )
        return found

    def _content(self, form: SmsForm, text: str) -> SmsContent:
        return form.untracked(text, self._links().shorten) if form.shorten_links else form.content(text)


def _kind(message_type: str, details: Mapping[str, Any], priority: Priority) -> MessageKind:
    category = category_in(details)
    obeys = POLICY.obeys(message_type, category, priority)
    route = route_in(details)
    return MessageKind(obeys, POLICY.price_kind(category, False), asks_grant(route), region_for(route))
