"""Accepting a message: every rule of C15.2, then one durable commit, and what a repeat with the same key gets (C6.2).

The hot path of the service: with number, organization and template at hand, a template message waits for nothing but
the commit, in which a marketing one is also asked for consent; a free-form one also for the look-up of its window.
"""

import asyncio
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Protocol

from recado.channels.core.provider import Outcome
from recado.domain.channels.policies import POLICIES, TRACKED, sender_field
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem, Unavailable, no_provider
from recado.domain.core.ids import IdSource
from recado.domain.core.phones import recipient_hash
from recado.domain.messages.message import MessageStatus
from recado.services.messages.acceptance_rules import (
    check_consent,
    check_contact,
    is_own_address,
    no_channel,
    no_consent,
)
from recado.services.messages.admission import not_covered
from recado.services.messages.draft import MessageDraft
from recado.services.messages.replacing import check_replaceable
from recado.services.messages.request_keys import still_bound
from recado.storage.access.organizations import OrganizationDirectory
from recado.storage.billing import wallet
from recado.storage.core import audit
from recado.storage.core.connections.postgres import Database
from recado.storage.links import tracked_links
from recado.storage.links.tracked_links import CodeTaken
from recado.storage.messages import message_reads, messages
from recado.storage.messages.message_reads import Message
from recado.storage.messages.messages import (
    AcceptResult,
    Bound,
    ConsentCheck,
    NewMessage,
    NoConsent,
    Stored,
    asked_of,
)
from recado.storage.messages.recipients import Recipient, RecipientKey, RecipientLookup

_DRAWS = 2  # more of the codes of links
_REBINDS = 3  # a key that is taken again this often while we look is left to the caller's next try


class Store(Protocol):
    """Where accepted messages go (`sending.py`)."""

    def store(self, new: NewMessage) -> "asyncio.Future[AcceptResult]": ...

    async def rebind(self, new: NewMessage, old_message_id: str) -> AcceptResult: ...


class Direct(Protocol):
    """Where messages go whose callers wait for the provider's answer (`direct_sends.py`)."""

    def has_turn(self, new: NewMessage) -> bool: ...

    async def send(self, new: NewMessage) -> tuple[AcceptResult, Outcome | None]: ...


@dataclass(frozen=True, slots=True)
class AcceptedMessage:
    """Committed by this request. `outcome`: the provider's answer to what is sent directly, if it came in time."""

    message: NewMessage
    outcome: Outcome | None = None


@dataclass(frozen=True, slots=True)
class Replayed:
    """The key had made this message before; it is shown as it is now."""

    message: Message


class ChannelRules(Protocol):
    """What only one channel asks of a draft. Whatever forbids it is a `Problem`."""

    @property
    def channel(self) -> str: ...

    @property
    def sends_in(self) -> Collection[str]:
        """The environments that have a provider; a send in another answers 502 (C33)."""

    def at_once(self, draft: MessageDraft) -> NewMessage | None:
        """The row, from records at hand; None when one must be read first."""

    async def read(self, draft: MessageDraft) -> NewMessage:
        """The row, from records that are read first where they are not at hand."""

    async def check_window(self, new: NewMessage) -> None:
        """Refuse what needs the open window of its recipient, and has none (C15.2.2)."""


class Acceptance:
    """Accepts messages of the channels that it has the rules of."""

    def __init__(
        self,
        db: Database,
        *,
        rules: Iterable[ChannelRules],
        organizations: OrganizationDirectory,
        recipients: RecipientLookup,
        sending: Store,
        direct: Direct,
        ids: IdSource,
        clock: Clock,
    ) -> None:
        self._db = db
        self._rules = {each.channel: each for each in rules}
        self._organizations = organizations
        self._recipients = recipients
        self._sending = sending
        self._direct = direct
        self._ids = ids
        self._clock = clock

    async def examine(self, draft: MessageDraft) -> None:
        """Raise what `accept` refuses in the message itself; nothing is stored, and nobody's consent is asked for."""
        await self._read(self._rules_of(draft), draft)

    async def accept(self, draft: MessageDraft) -> AcceptedMessage | Replayed:
        """Store the message, or find the one that its key made. Raises `Problem` for whatever forbids it."""
        try:
            if draft.again is not None:
                check_replaceable(draft.again, self._clock.now())
                if draft.channel in TRACKED:
                    found = await tracked_links.of_messages(self._db, [draft.again.old.id])
                    draft.again = replace(draft.again, links=found.get(draft.again.old.id, ()))
            rules = self._rules_of(draft)
            known, new = await self._read(rules, draft)
            lacks = new.lacks if draft.env in rules.sends_in else new.channel
            if new.needs_window:
                await rules.check_window(new)
            elif new.consent is ConsentCheck.DONE or (new.consent.asks and lacks is not None):
                # Others are asked in the commit, which never comes where nothing is sent: a refusal goes before that.
                await self._check_consent(new, known)
                if known is not None and POLICIES[new.channel].direct and not is_own_address(new, known):
                    await self._ask_of_address(new)
            if lacks is not None:
                raise await self._without_provider(new, lacks)
        except Problem as refusal:
            # A repeat gets the answer of its first request, whatever has changed since (C2.6: replay before rules).
            replayed = await self._replay(draft)
            if replayed is None:
                raise refusal from None
            return replayed
        direct = POLICIES[new.channel].direct
        forced = draft.forced_by is not None
        if forced or (direct and not self._direct.has_turn(new)):  # a repeat waits for no turn
            replayed = await self._replay(draft)
            if replayed is not None:
                return replayed
        if draft.forced_by is not None:
            new.forced = self._force_of(draft.forced_by, new)
        try:
            if direct:
                result, outcome = await self._direct.send(new)
            else:
                result, outcome = await self._sending.store(new), None
        except CodeTaken:
            result, outcome = await self._store_again(rules, draft, new)
        except Problem:
            # Another was faster to replace the same message: perhaps the first request of this key.
            replayed = None if draft.again is None else await self._replay(draft)
            if replayed is None:
                raise
            return replayed
        if type(result) is Stored:
            return AcceptedMessage(new, outcome)
        return await self._bound(new, result)

    async def _store_again(
        self, rules: ChannelRules, draft: MessageDraft, new: NewMessage
    ) -> tuple[AcceptResult, Outcome | None]:
        """Another message has the code of a link, which hardly ever happens: others are drawn.

        With an id of their own, which e-mails name in their addresses.
        """
        for _ in range(_DRAWS):
            drawn = await rules.read(draft)
            new.id, new.payload, new.content, new.links = drawn.id, drawn.payload, drawn.content, drawn.links
            if draft.forced_by is not None:
                new.forced = self._force_of(draft.forced_by, new)
            with suppress(CodeTaken):
                if POLICIES[new.channel].direct:
                    new.id = drawn.id  # the content may name it, as an e-mail's does (C27.2)
                    return await self._direct.send(new)
                return await self._sending.store(new), None
        raise Unavailable("The links of the message could not be stored: send it again.")

    async def _rebind(self, new: NewMessage, old_message_id: str) -> tuple[AcceptResult, Outcome | None]:
        if POLICIES[new.channel].direct:
            await messages.unbind(self._db, new, old_message_id)
            return await self._direct.send(new)
        try:
            return await self._sending.rebind(new, old_message_id), None
        except CodeTaken:
            raise Unavailable from None

    # The rules -----------------------------------------------------------------------------------------------------

    def _rules_of(self, draft: MessageDraft) -> ChannelRules:
        rules = self._rules.get(draft.channel)
        if rules is None:
            raise no_channel(draft.channel, [each for each in self._rules if sender_field(each) is not None])
        return rules

    async def _read(self, rules: ChannelRules, draft: MessageDraft) -> tuple[Recipient | None, NewMessage]:
        """The contact that the draft names, and the message."""
        known = None if draft.contact_id is None else await self._contact_of(draft)
        new = rules.at_once(draft) or await rules.read(draft)
        if known is not None and known.phone is not None and known.phone != new.recipient:
            new.contact_hash = recipient_hash(new.organization_id, known.phone)
        return known, new

    async def _contact_of(self, draft: MessageDraft) -> Recipient:
        """Whom the draft names; its phone is the recipient."""
        known = await self._recipients.find(RecipientKey(draft.organization_id, draft.env, contact_id=draft.contact_id))
        check_contact(draft, known)
        return known

    async def _check_consent(self, new: NewMessage, known: Recipient | None) -> None:
        field = "to" if known is None else "contactId"
        if known is None:
            known = await self._recipients.find(asked_of(new))
        organization = await self._organizations.of_caller(new.organization_id)
        granted_only = new.asks_grant and organization.require_granted_for_marketing
        check_consent(known, granted_only=granted_only, field=field)

    async def _ask_of_address(self, new: NewMessage) -> None:
        """The consent of a contact is none of whoever has another address: it is asked about in the commit."""
        organization = await self._organizations.of_caller(new.organization_id)
        if new.asks_grant and organization.require_granted_for_marketing:
            new.consent = ConsentCheck.GRANTED

    async def _without_provider(self, new: NewMessage, channel: str) -> Problem:
        """502, or the 402 that comes before it (C2.6): the wallet is asked by the commit, which never comes here."""
        if new.coins:
            key = (new.organization_id, new.env)
            available = (await wallet.available(self._db, [key])).get(key, 0)
            if available < new.coins:
                return not_covered(new.coins, available)
        return no_provider(channel)

    def _force_of(self, actor: audit.AuditPrincipal, new: NewMessage) -> audit.AuditEntry:
        """What the audit is told in the commit of the message, and not when there is none (C24.5)."""
        return audit.entry_of(
            self._ids,
            actor,
            "message.force",
            organization_id=new.organization_id,
            env=new.env,
            target_id=new.id,
            details={sender_field(new.channel) or "senderId": new.sender_id, "at": "create"},
        )

    # Repeats -------------------------------------------------------------------------------------------------------

    async def _replay(self, draft: MessageDraft) -> Replayed | None:
        """What the draft's key made before, unless it is free to be used again."""
        if draft.key_hash is None:
            return None
        bound = await messages.binding(self._db, draft.organization_id, draft.env, draft.key_hash)
        if bound is None:
            return None
        assert draft.fingerprint is not None  # noqa: S101 - key and fingerprint come together
        return await self._made_by(bound, draft.organization_id, draft.env, draft.fingerprint)

    async def _bound(self, new: NewMessage, result: AcceptResult) -> AcceptedMessage | Replayed:
        outcome: Outcome | None = None
        for _ in range(_REBINDS):
            if isinstance(result, NoConsent):
                raise no_consent(result.code)
            if not isinstance(result, Bound):
                return AcceptedMessage(new, outcome)
            assert new.fingerprint is not None  # noqa: S101 - key and fingerprint come together
            replayed = await self._made_by(result, new.organization_id, new.env, new.fingerprint)
            if replayed is not None:
                return replayed
            result, outcome = await self._rebind(new, result.message_id)
        raise Unavailable("Several requests use this Idempotency-Key at once: try again shortly.")

    async def _made_by(self, bound: Bound, organization_id: str, env: str, fingerprint: bytes) -> Replayed | None:
        """The message that holds the key; None when the key is free: too old, or its message was refused for good."""
        if not still_bound(bound, fingerprint, self._clock.now()):
            return None
        message = await message_reads.get(
            self._db, organization_id, env, bound.message_id, tuple(POLICIES), months=self._db.months
        )
        if message is None or refused_for_good(message):
            return None
        return Replayed(message)


def refused_for_good(message: Message) -> bool:
    """Whether a message certainly never left and never will (C6.2): a repeat of its request may send a new one.

    A failure that was reported after the send, or an unknown outcome, is none: a second message could arrive twice. Nor
    is what a repeat gets the same answer for.
    """
    return (
        message.status == MessageStatus.FAILED
        and message.sent_at is None
        and message.replaced_by is None  # sent again already
        and not message.uncertain
        and message.failure_code not in POLICIES[message.channel].answered
    )
