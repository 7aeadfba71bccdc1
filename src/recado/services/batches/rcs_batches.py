"""What makes batches of RCS acceptable: route, each recipient's texts, and the SMS in their place (C15.5, C17)."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from recado.domain.channels.rcs import (
    DELIVERED_VIA,
    FALLBACK,
    POLICY,
    RCS,
    REVOKED,
    RcsRoute,
    asks_grant,
    category_in,
)
from recado.domain.channels.sms import SMS, TRANSACTIONAL
from recado.domain.core.errors import Problem, field_refused
from recado.domain.core.json_text import json_text, object_of
from recado.domain.links.tracked import MessageLinks
from recado.domain.messages.message import Priority
from recado.services.batches.batch_draft import BatchDraft
from recado.services.batches.channel_batches import BatchTerms, Misfit, RenderedContent
from recado.services.batches.placeholder_text import text_terms
from recado.services.batches.text_batches import RoutedTexts, Said, Say, TextBatches
from recado.services.messages.rcs_content import RcsForm, check_content
from recado.storage.access.organizations import OrganizationDirectory

LONGEST_FALLBACK: Final = 5_000
"""Characters of the SMS, before it is filled: what is longer is read no further."""
_FILLED: Final = ("text", FALLBACK)
"""What may have placeholders."""
_BETWEEN: Final = "\0"
"""Between text and SMS where both are filled as one: no body holds it."""


class RcsBatches(TextBatches[RcsRoute]):
    """Batches of RCS. `sms_in`: the environments that have a provider of SMS.

    A recipient has no more than its own texts until its block is made: then it gets what the batch says, and its links.
    """

    texts = RoutedTexts(
        policy=POLICY,
        no_such_message="There is no such RCS message.",
        route_in=lambda details: RcsForm.stored(details).route,
        category_in=category_in,
        asks_grant=asks_grant,
    )

    def __init__(
        self,
        organizations: OrganizationDirectory,
        *,
        sends_in: Collection[str],
        sms_in: Collection[str],
        links: Callable[[], MessageLinks],
    ) -> None:
        super().__init__(organizations, sends_in=sends_in, links=links)
        self._sms_in = frozenset(sms_in)

    async def terms(self, draft: BatchDraft, now: datetime) -> BatchTerms:
        organization = await self._organizations.of_caller(draft.organization_id)
        form, given = RcsForm.of(draft.details), draft.payload or {}
        check_content(form.route, given)
        _check_priority(form.route, draft.priority)
        fallback = given.get(FALLBACK)
        if fallback is not None and len(fallback["text"]) > LONGEST_FALLBACK:
            detail = f"The text must have at most {LONGEST_FALLBACK:,} characters."
            raise field_refused("TEXT_TOO_LONG", "/fallback/text", detail)

        def render(texts: str) -> RenderedContent | Misfit:
            told = _with_texts(given, texts)
            try:
                content = form.content(told, self._links())
            except Problem as problem:
                return Misfit(problem.code, problem.detail)
            # Cards and suggestions are the batch's: ten thousand copies of them would take much memory.
            own = {name: told[name] for name in _FILLED if name in told}
            return RenderedContent(json_text(own), 1, json_text(content.details))

        told = text_terms(_texts(given), render)
        if told["member"] is None:
            form.content(given, self._links())  # what all get is refused for all
        terms = self._terms(draft, organization, {"route": form.route, TRANSACTIONAL: form.transactional}, told, now)
        return replace(terms, lacks=SMS) if fallback is not None and draft.env not in self._sms_in else terms

    def _saying(self, payload: str | None) -> Say:
        """Also what has no address in it is stored as a single message is."""
        shared = object_of(payload)

        def say(own: str | None, details: str | None, links: MessageLinks) -> Said:
            content = RcsForm.stored(object_of(details)).content({**shared, **object_of(own)}, links)
            return Said(json_text(content.payload), 1, json_text(content.details))

        return say

    def _again(self, said: Said) -> Said:
        return Said(said.payload, 1, json_text(_renewed(object_of(said.details))))


def _check_priority(route: RcsRoute, priority: Priority) -> None:
    if priority is Priority.CRITICAL and route is not RcsRoute.OTP:
        detail = "Priority critical is only for one-time codes: route easy_otp_rcs."
        raise field_refused("PRIORITY_NOT_ALLOWED", "/priority", detail)


def _renewed(details: Mapping[str, Any]) -> dict[str, Any]:
    """Without what became of the old message: it begins by RCS, and its prices are those of now."""
    told = {name: value for name, value in details.items() if name not in (REVOKED, "price")}
    if FALLBACK in told:
        told[FALLBACK] = {name: value for name, value in told[FALLBACK].items() if name != "price"}
    return {**told, DELIVERED_VIA: RCS}


def _texts(given: Mapping[str, Any]) -> str:
    return _BETWEEN.join(((given.get("text") or {}).get("body", ""), given.get(FALLBACK, {}).get("text", "")))


def _with_texts(given: Mapping[str, Any], texts: str) -> dict[str, Any]:
    text, _, fallback = texts.partition(_BETWEEN)
    told = dict(given)
    if "text" in told:
        told["text"] = {"body": text}
    if FALLBACK in told:
        told[FALLBACK] = {"text": fallback}
    return told
