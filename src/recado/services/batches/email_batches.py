"""What makes batches of e-mails acceptable: their template and sender, and each recipient's values (C10.2, C15.5)."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from recado.domain.channels.email import EMAIL, POLICY, ROUTE, TRANSACTIONAL, is_transactional
from recado.domain.core.errors import Problem, field_refused
from recado.domain.core.ids import EMAIL_TEMPLATE
from recado.domain.core.json_text import json_text, object_of
from recado.domain.core.references import reference_not_found
from recado.domain.core.steps import Steps
from recado.domain.email.mailbox import NamedAddress, mailbox_of
from recado.domain.email.rendering import EmailSize, Value, as_text
from recado.domain.messages.message import Priority
from recado.domain.senders.sender import route_sender
from recado.services.batches.batch_draft import BatchDraft
from recado.services.batches.batch_rules import SUPPRESSED
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
from recado.services.email.departing import EXAMPLES, SUBJECT, TRACKING, VARIABLES
from recado.services.email.sendable import SendableMailboxes, SendableTemplates
from recado.services.messages.acceptance_rules import due_time
from recado.storage.access.organizations import OrganizationDirectory
from recado.storage.batches.batch_rows import MessageKind, Recipients
from recado.storage.core.connections.postgres import Database
from recado.storage.email.suppressions import suppressed_among
from recado.storage.messages.resends import Old

IN_A_TURN: Final = 20
"""Recipients: to measure what has a hundred long values takes a fraction of a millisecond."""

_NO_TEMPLATE: Final = Misfit("REFERENCE_NOT_FOUND", "Its template is archived.")
_NO_CONTENT: Final = Misfit("INVALID_STATE", "It was sent while its caller waited: its content is stored nowhere.")
_NO_SENDER: Final = Misfit("SENDER_NOT_VERIFIED", "Its sender is not verified any more.")
_SUPPRESSED: Final = Misfit(SUPPRESSED, "The address is suppressed.")


class EmailBatches:
    """`sends_in`: the environments that have a provider. `templates`, `mailboxes`: as the e-mails leave with."""

    channel = EMAIL
    no_such_message = "There is no such e-mail."

    def __init__(
        self,
        database: Database,
        organizations: OrganizationDirectory,
        *,
        sends_in: Collection[str],
        templates: SendableTemplates,
        mailboxes: SendableMailboxes,
        simulator_domain: str,
    ) -> None:
        self._database = database
        self._organizations = organizations
        self.sends_in = frozenset(sends_in)
        self._templates = templates
        self._mailboxes = mailboxes
        self._simulator_domain = simulator_domain

    async def terms(self, draft: BatchDraft, now: datetime) -> BatchTerms:
        """As for one e-mail, but that a sender without proof refuses all, and stores nothing (C10.2.15)."""
        where, asked = (draft.organization_id, draft.env), draft.details or {}
        organization = await self._organizations.of_caller(draft.organization_id)
        template = await self._templates.get((*where, draft.template_id or ""))
        if template is None:
            raise reference_not_found("templateId", EMAIL_TEMPLATE, draft.template_id or "", draft.env)
        mailbox = await self._mailbox(where, asked.get("from"))
        category = TRANSACTIONAL if asked.get(TRANSACTIONAL) else None
        if draft.priority is Priority.CRITICAL and not is_transactional(category):
            raise field_refused(
                "PRIORITY_NOT_ALLOWED", "/priority", "Priority critical is only for e-mails that are transactional."
            )
        subject: str | None = asked.get(SUBJECT)
        shared = {name: as_text(value) for name, value in asked.get(VARIABLES, {}).items()}
        measure = (template.parts if subject is None else template.parts.with_subject(subject)).measuring(shared)
        own_subject = {} if subject is None else {SUBJECT: subject}
        details = {"from": mailbox.text, EXAMPLES: True} | {
            name: asked[name] for name in (TRANSACTIONAL, TRACKING) if name in asked
        }
        draft.payload = {**own_subject, VARIABLES: shared}

        def content(given: Mapping[str, Value]) -> RenderedContent | Misfit:
            own = {name: as_text(value) for name, value in given.items()}
            try:
                measured = measure(own)
            except Problem as problem:
                return Misfit(problem.code, problem.detail)
            payload = json_text({**own_subject, VARIABLES: {**shared, **own}}) if own else None
            return RenderedContent(payload, 1, _details(measured, details))

        return BatchTerms(
            sender_id=route_sender(EMAIL, draft.env, ROUTE),
            due_at=due_time(draft.message(), now),
            ttl=POLICY.ttl(category, draft.priority),
            held_ms=organization.held_ms,
            obeys=POLICY.obeys(draft.type, category, draft.priority),
            granted_only=organization.require_granted_for_marketing,
            usual=content({}),
            member=VARIABLES,
            in_a_turn=IN_A_TURN,
            content=content,
        )

    async def kind(self, where: Where, priority: Priority, sort: Sort) -> MessageKind:
        return _kind(sort.type, sort.details, priority)

    def tracked(self, payload: str | None, recipients: Recipients, replaced: Replaced) -> Steps[Tracked | None]:
        """None: an e-mail gets its links when it leaves (C10.2.14)."""
        yield from ()
        return None

    async def suppressed(self, where: Where, addresses: Sequence[str]) -> Collection[str]:
        return await suppressed_among(self._database.hot, *where, addresses, simulator_domain=self._simulator_domain)

    async def check_sender(self, where: Where, sender_id: str, *, field: str, sends: bool) -> None:
        """Nobody names what an e-mail leaves by."""

    async def copies(
        self, where: Where, olds: Sequence[Old], sender_id: str | None, now: datetime
    ) -> Mapping[str, MessageCopy | Misfit]:
        """Of what was queued: it is made of its template and values once more, when the copy leaves."""
        organization = await self._organizations.of_caller(where[0])
        suppressed = await self.suppressed(where, [old.recipient for old in olds])
        found: dict[str, MessageCopy | Misfit] = {}
        for old in olds:
            found[old.id] = await self._hindrance(where, old, suppressed) or MessageCopy(
                route_sender(EMAIL, where[1], ROUTE),
                old.template_id,
                _kind(old.type, old.details, Priority.BULK),
                POLICY.ttl(None, Priority.BULK),
                organization.held_ms,
            )
        return found

    async def _hindrance(self, where: Where, old: Old, suppressed: Collection[str]) -> Misfit | None:
        if old.payload is None or old.template_id is None:
            return _NO_CONTENT
        if await self._templates.get((*where, old.template_id)) is None:
            return _NO_TEMPLATE
        told = mailbox_of(object_of(old.details).get("from", ""))
        if told is None or await self._mailboxes.get((*where, told.address)) is None:
            return _NO_SENDER
        return _SUPPRESSED if old.recipient in suppressed else None

    async def _mailbox(self, where: Where, given: str | None) -> NamedAddress:
        """Whom all of them are from; Problem 412 SENDER_NOT_VERIFIED (C10.2.2)."""
        named = None if given is None else mailbox_of(given)
        mailbox = await self._mailboxes.get((*where, None if named is None else named.address))
        if mailbox is None:
            missing = "No verified sender is the default." if named is None else "No verified sender covers it."
            raise field_refused("SENDER_NOT_VERIFIED", "/from", missing)
        return mailbox if named is None or named.name is None else named


def _kind(message_type: str, details: str | None, priority: Priority) -> MessageKind:
    category = TRANSACTIONAL if object_of(details).get(TRANSACTIONAL) else None
    return MessageKind(POLICY.obeys(message_type, category, priority), POLICY.price_kind(category, False))


def _details(measured: EmailSize, shared: Mapping[str, Any]) -> str:
    return json_text({SUBJECT: measured.subject, "bodyBytes": measured.body_bytes, **shared})
