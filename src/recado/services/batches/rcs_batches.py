"""What makes batches of RCS acceptable: route, each recipient's texts, and the SMS in their place (C15.5, C17)."""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
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
    category_of,
)
from recado.domain.channels.sms import SMS
from recado.domain.core.errors import Problem, field_refused, no_provider
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
from recado.services.messages.rcs_content import RcsForm, check_content
from recado.storage.access.organizations import OrganizationDirectory
from recado.storage.batches.batch_rows import MessageKind, Recipients
from recado.storage.messages.resends import Old

STEP: Final = 100
"""Messages that get their links in one step of the event loop: some milliseconds."""
LONGEST_FALLBACK: Final = 5_000
"""Characters of the SMS, before it is filled: what is longer is read no further."""
_FILLED: Final = ("text", FALLBACK)
"""What may have placeholders."""
_BETWEEN: Final = "\0"
"""Between text and SMS where both are filled as one: no body holds it."""


class RcsBatches:
    """`sends_in`, `sms_in`: the environments that have a provider. `links`: makes those of one message (C27.1).

    A recipient has no more than its own texts until its block is made: then it gets what the batch says, and its links.
    """

    channel = RCS
    no_such_message = "There is no such RCS message."

    def __init__(
        self,
        organizations: OrganizationDirectory,
        *,
        sends_in: Collection[str],
        sms_in: Collection[str],
        links: Callable[[], MessageLinks],
    ) -> None:
        self._organizations = organizations
        self.sends_in = frozenset(sends_in)
        self._sms_in = frozenset(sms_in)
        self._links = links

    async def terms(self, draft: BatchDraft, now: datetime) -> BatchTerms:
        organization = await self._organizations.of_caller(draft.organization_id)
        form, given = RcsForm.of(draft.details), draft.payload or {}
        check_content(form.route, given)
        _check_priority(form.route, draft.priority)
        fallback = given.get(FALLBACK)
        if fallback is not None and draft.env not in self._sms_in:
            raise no_provider(SMS)
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
        category = category_of(form.route, rich=False, transactional=form.transactional)
        return BatchTerms(
            sender_id=route_sender(RCS, draft.env, form.route),
            due_at=due_time(draft.message(), now),
            ttl=POLICY.ttl(category, draft.priority),
            held_ms=organization.held_ms,
            obeys=POLICY.obeys(draft.type, category, draft.priority),
            granted_only=asks_grant(form.route) and organization.require_granted_for_marketing,
            **told,
        )

    async def kind(self, where: Where, priority: Priority, sort: Sort) -> MessageKind:
        return _kind(sort.type, object_of(sort.details), priority)

    def tracked(self, payload: str | None, recipients: Recipients, replaced: Replaced) -> Steps[Tracked | None]:
        """All of them: also what has no address in it is stored as a single message is."""
        places: list[int] = []
        payloads: list[str | None] = []
        details: list[str | None] = []
        links: list[Sequence[TrackedLink]] = []
        left_out: Counter[str] = Counter()
        shared = object_of(payload)
        for place in range(len(recipients)):
            if place and not place % STEP:
                yield
            own = None if recipients.payloads is None else recipients.payloads[place]
            asked = object_of(None if recipients.details is None else recipients.details[place])
            of_message = self._links()
            if recipients.replaces is not None:  # it says what the old one did, with links of its own
                old_links = replaced.get(recipients.replaces[place], ())
                payloads.append(None if own is None else of_message.in_place_of(own, old_links))
                details.append(json_text(_renewed(asked)))
            else:
                try:
                    content = RcsForm.stored(asked).content({**shared, **object_of(own)}, of_message)
                except Problem as problem:  # short links were shorter when the batch was accepted
                    left_out[problem.code] += 1
                    continue
                payloads.append(json_text(content.payload))
                details.append(json_text(content.details))
            places.append(place)
            links.append(of_message.rows)
        told = recipients.only(places) if left_out else recipients
        told = replace(told, payloads=payloads, details=details, units=None)
        return Tracked(told, links, left_out)

    async def suppressed(self, where: Where, addresses: Sequence[str]) -> Collection[str]:
        return ()

    async def check_sender(self, where: Where, sender_id: str, *, field: str, sends: bool) -> None:
        """Nobody names what an RCS message leaves from."""

    async def copies(
        self, where: Where, olds: Sequence[Old], sender_id: str | None, now: datetime
    ) -> Mapping[str, MessageCopy | Misfit]:
        organization = await self._organizations.of_caller(where[0])
        found: dict[str, MessageCopy | Misfit] = {}
        for old in olds:
            details = object_of(old.details)
            found[old.id] = MessageCopy(
                route_sender(RCS, where[1], RcsForm.stored(details).route),
                None,
                _kind(old.type, details, Priority.BULK),
                POLICY.ttl(category_in(details), Priority.BULK),
                organization.held_ms,
            )
        return found


def _check_priority(route: RcsRoute, priority: Priority) -> None:
    if priority is Priority.CRITICAL and route is not RcsRoute.OTP:
        detail = "Priority critical is only for one-time codes: route easy_otp_rcs."
        raise field_refused("PRIORITY_NOT_ALLOWED", "/priority", detail)


def _kind(message_type: str, details: Mapping[str, Any], priority: Priority) -> MessageKind:
    category = category_in(details)
    obeys = POLICY.obeys(message_type, category, priority)
    return MessageKind(obeys, POLICY.price_kind(category, False), asks_grant(RcsForm.stored(details).route))


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
