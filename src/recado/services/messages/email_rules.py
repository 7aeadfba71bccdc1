"""What makes an e-mail acceptable: its sender, its content from a template or as given, and its address (C10.2)."""

import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from recado.domain.billing.prices import INTL, Price
from recado.domain.channels.email import EMAIL, POLICY, ROUTE, TRANSACTIONAL, EmailReason
from recado.domain.core.clock import Clock
from recado.domain.core.errors import field_refused
from recado.domain.core.ids import EMAIL_TEMPLATE, MESSAGE, IdSource
from recado.domain.core.json_text import json_or_none
from recado.domain.core.references import reference_not_found
from recado.domain.email.content import EmailContent
from recado.domain.email.mailbox import NamedAddress
from recado.domain.email.public_tokens import EmailKey
from recado.domain.email.rendering import Value
from recado.domain.email.suppression import always_suppressed
from recado.domain.email.template_text import TextSource
from recado.domain.messages.message import Cause
from recado.domain.senders.sender import route_sender
from recado.engine.turns import turns
from recado.services.email.departing import VARIABLES
from recado.services.email.sendable import SendableMailboxes, SendableTemplates
from recado.services.email.tracking import EmailTracking
from recado.services.messages.acceptance_rules import due_time, new_message
from recado.services.messages.draft import MessageDraft
from recado.storage.access.organizations import Organization, OrganizationDirectory
from recado.storage.billing.prices import PriceDirectory
from recado.storage.core.connections.postgres import Database
from recado.storage.core.shares.fair_memory import Held
from recado.storage.email.suppressions import suppressed_among
from recado.storage.messages.messages import ConsentCheck, NewMessage

TEXTS, TRAVELLING = 2, 3
"""How often a content is in memory: as text, without and with its links; in bytes, as it is made, told and written."""

_SUPPRESSED: Final = Cause(EmailReason.SUPPRESSED, "the address is suppressed")
_NO_SENDER: Final = Cause(EmailReason.NO_VERIFIED_SENDER, "no verified sender covers `from`")


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedEmail:
    """What a caller gave, besides what every message has. With a template it has neither `html` nor `text`.

    `tracking` None: links and opens are tracked unless it is transactional (C10.2.9). `held`: the memory of the send.
    """

    from_mailbox: NamedAddress | None = None
    subject: str | None = field(default=None, repr=False)
    html: str | None = field(default=None, repr=False)
    text: str | None = field(default=None, repr=False)
    variables: Mapping[str, Value] = field(default_factory=dict, repr=False)
    transactional: bool = False
    tracking: bool | None = None
    held: Held | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class QueuedEmailContent:
    """What a journey gives: the template is the draft's, and it is rendered when the message leaves (C10.2.5).

    From the default sender; not transactional, so that it is tracked and can be unsubscribed from (C9.10).
    """

    variables: Mapping[str, str] = field(repr=False)


class _Texts(NamedTuple):
    subject: str
    html: str | None
    text: str | None
    source: TextSource | None = None


class EmailRules:
    """Makes the row of an e-mail's draft, whose `content` is an `AskedEmail`, or refuses it.

    What has no verified sender, or goes to a suppressed address, is a row as well: one that failed (C1.12).
    """

    channel = EMAIL

    def __init__(
        self,
        *,
        database: Database,
        organizations: OrganizationDirectory,
        ids: IdSource,
        clock: Clock,
        sends_in: Collection[str],
        prices: PriceDirectory | None,
        simulator_domain: str,
        tracking: EmailTracking,
        templates: SendableTemplates,
        mailboxes: SendableMailboxes,
    ) -> None:
        """`prices` None: nothing is billed (C25.2.4). `tracking`: adds links, the image and the way to unsubscribe."""
        self._database = database
        self._organizations = organizations
        self._ids = ids
        self._clock = clock
        self.sends_in = frozenset(sends_in)
        self._prices = prices
        self._simulator_domain = simulator_domain
        self._tracking = tracking
        self._templates = templates
        self._mailboxes = mailboxes

    def at_once(self, draft: MessageDraft) -> NewMessage | None:
        """None: its sender and its address are looked up in any case."""
        return None

    async def read(self, draft: MessageDraft) -> NewMessage:
        """Raises `Problem` REFERENCE_NOT_FOUND for the template, TEXT_TOO_LONG for what it becomes.

        `Unavailable` where there is no memory for that.
        """
        asked = draft.content
        if isinstance(asked, QueuedEmailContent):
            return await self._queued(draft, asked)
        assert isinstance(asked, AskedEmail)  # noqa: S101 - the draft of this channel
        organization = await self._organizations.of_caller(draft.organization_id)
        texts = await self._texts(draft, asked)
        body_bytes = _bytes_of(texts.html) + _bytes_of(texts.text)
        if asked.held is not None:
            asked.held.take(TEXTS * (_memory_of(texts.html) + _memory_of(texts.text)) + TRAVELLING * body_bytes)
        mailbox = await self._mailbox(draft, asked.from_mailbox)
        refused = _NO_SENDER if mailbox is None else await self._suppressed(draft)
        price = None if refused is not None else await self._price(draft)
        new = self._new(draft, organization, price, TRANSACTIONAL if asked.transactional else None)
        shown = mailbox or asked.from_mailbox
        details = {"subject": texts.subject, "bodyBytes": body_bytes}
        new.details = json_or_none(details if shown is None else {**details, "from": shown.text})
        new.refused = refused
        if refused is _NO_SENDER:
            new.consent = ConsentCheck.EXEMPT  # a precondition comes before consent (C2.6)
        if refused is None and mailbox is not None:
            rendered = EmailContent(
                from_address=mailbox.address,
                from_name=mailbox.name,
                subject=texts.subject,
                html=texts.html,
                text=texts.text,
                transactional=asked.transactional,
                text_source=texts.source,
            )
            new.content, new.links = await self._tracking.prepare(
                rendered,
                EmailKey(draft.organization_id, draft.env, new.id),
                to=draft.to,
                contact_id=draft.contact_id,
                transactional=asked.transactional,
                tracking=asked.tracking,
            )
        return new

    async def _queued(self, draft: MessageDraft, given: QueuedEmailContent) -> NewMessage:
        """A message that waits for its turn. Its record shows the subject and the size that it would have now.

        Raises `Problem` REFERENCE_NOT_FOUND, SENDER_NOT_VERIFIED, TEXT_TOO_LONG, and RECIPIENT_SUPPRESSED for what
        needs no look at the suppressions.
        """
        if always_suppressed(draft.to, self._simulator_domain):
            raise field_refused("RECIPIENT_SUPPRESSED", "/to", "The address is suppressed.")
        where = (draft.organization_id, draft.env)
        template_id = draft.template_id or ""
        template = await self._templates.get((*where, template_id))
        if template is None:
            raise reference_not_found("templateId", EMAIL_TEMPLATE, template_id, draft.env)
        mailbox = await self._mailboxes.get((*where, None))
        if mailbox is None:
            raise field_refused("SENDER_NOT_VERIFIED", "/from", "No verified sender is the default.")
        measured = template.parts.measure(given.variables)
        organization = await self._organizations.of_caller(draft.organization_id)
        draft.payload = {VARIABLES: dict(given.variables)}
        new = self._new(draft, organization, await self._price(draft), None)
        details = {"subject": measured.subject, "bodyBytes": measured.body_bytes, "from": mailbox.text}
        new.details = json_or_none(details)
        return new

    async def _price(self, draft: MessageDraft) -> Price | None:
        if self._prices is None:
            return None
        kind = POLICY.price_kind(None, False)
        return await self._prices.price_of(draft.organization_id, draft.env, kind, INTL, self._clock.now())

    def _new(
        self, draft: MessageDraft, organization: Organization, price: Price | None, category: str | None
    ) -> NewMessage:
        message_id = self._ids.new(MESSAGE)
        now = self._ids.moment_of(message_id)
        return new_message(
            draft,
            organization,
            route_sender(EMAIL, draft.env, ROUTE),
            POLICY.obeys(draft.type, category, draft.priority),
            message_id=message_id,
            due_at=due_time(draft, now),
            now=now,
            ttl=POLICY.ttl(category, draft.priority),
            held_ms=organization.held_ms,
            price=price,
        )

    async def check_window(self, new: NewMessage) -> None:
        """No e-mail needs one."""

    async def _texts(self, draft: MessageDraft, asked: AskedEmail) -> _Texts:
        """What it says: of its template with values, or as it was given (C10.2.6)."""
        if draft.template_id is None:
            return _Texts(asked.subject or "", asked.html, asked.text)
        template = await self._templates.get((draft.organization_id, draft.env, draft.template_id))
        if template is None:
            raise reference_not_found("templateId", EMAIL_TEMPLATE, draft.template_id, draft.env)
        parts = template.parts if asked.subject is None else template.parts.with_subject(asked.subject)
        if template.long:
            await turns.next()
        rendered = parts.render(asked.variables)
        return _Texts(rendered.subject, rendered.html, rendered.text, template.text_source(asked.variables))

    async def _mailbox(self, draft: MessageDraft, given: NamedAddress | None) -> NamedAddress | None:
        """Whom it is from; None without a verified sender for it (C10.2.2)."""
        address = None if given is None else given.address
        mailbox = await self._mailboxes.get((draft.organization_id, draft.env, address))
        if mailbox is None or given is None or given.name is None:
            return mailbox
        return given

    async def _suppressed(self, draft: MessageDraft) -> Cause | None:
        found = await suppressed_among(
            self._database, draft.organization_id, draft.env, [draft.to], simulator_domain=self._simulator_domain
        )
        return _SUPPRESSED if found else None


def _bytes_of(text: str | None) -> int:
    return 0 if text is None else len(text.encode())


def _memory_of(text: str | None) -> int:
    return 0 if text is None else sys.getsizeof(text)
