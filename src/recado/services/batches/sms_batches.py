"""What makes batches of SMS acceptable: their route, and each recipient's text, measured for itself (C15.5, C16)."""

from datetime import datetime

from recado.domain.channels.sms import POLICY, TRANSACTIONAL, SmsRoute, asks_grant, category_in, route_in
from recado.domain.core.errors import Problem
from recado.domain.core.json_text import json_text, object_of
from recado.domain.core.steps import Steps
from recado.domain.links.tracked import MessageLinks
from recado.services.batches.batch_draft import BatchDraft
from recado.services.batches.channel_batches import BatchTerms, Misfit, RenderedContent, Replaced, Tracked
from recado.services.batches.placeholder_text import text_terms
from recado.services.batches.text_batches import RoutedTexts, Said, Say, TextBatches
from recado.services.messages.sms_content import UNTRACKED, SmsContent, SmsForm, with_links
from recado.services.messages.sms_rules import check_dedicated, check_priority, region_for
from recado.storage.batches.batch_rows import Recipients


class SmsBatches(TextBatches[SmsRoute]):
    """Batches of SMS."""

    texts = RoutedTexts(
        policy=POLICY,
        no_such_message="There is no such SMS.",
        route_in=route_in,
        category_in=category_in,
        asks_grant=asks_grant,
        region=region_for,
        check=lambda route, organization: check_dedicated(route, organization.dedicated_sender),
    )

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
        return self._terms(draft, organization, {"route": form.route, TRANSACTIONAL: form.transactional}, told, now)

    def tracked(self, payload: str | None, recipients: Recipients, replaced: Replaced) -> Steps[Tracked | None]:
        if not replaced and (not recipients.details or UNTRACKED not in object_of(recipients.details[0])):
            return None  # as all of the batch
        return (yield from super().tracked(payload, recipients, replaced))

    def _saying(self, payload: str | None) -> Say:
        def say(own: str | None, details: str | None, links: MessageLinks) -> Said:
            content = with_links(object_of(own or payload)["text"]["body"], object_of(details), links.shorten)
            return Said(json_text(content.payload), content.units, json_text(content.details))

        return say

    def _content(self, form: SmsForm, text: str) -> SmsContent:
        return form.untracked(text, self._links().shorten) if form.shorten_links else form.content(text)
