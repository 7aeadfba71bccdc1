"""What makes a social message acceptable: its account, the user that it goes to, and the window of 24 hours (C26)."""

from collections.abc import Collection
from typing import Final

from recado.domain.billing.prices import INTL, SOCIAL_MESSAGE, Price
from recado.domain.channels.social import LONGEST_TEXT, MEDIA_KINDS, POLICY, SOCIAL
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem, field_refused
from recado.domain.core.ids import MESSAGE, SOCIAL_ACCOUNT, IdSource
from recado.domain.core.references import reference_not_found
from recado.domain.senders.social_account import SocialAccountStatus, how_to_connect
from recado.services.media.media_use import MediaUse, named_media
from recado.services.messages.acceptance_rules import due_time, new_message
from recado.services.messages.draft import MessageDraft
from recado.services.messages.replacing import replacement
from recado.storage.access.organizations import Organization, OrganizationDirectory
from recado.storage.billing.prices import PriceDirectory
from recado.storage.contacts import social_identities
from recado.storage.core.connections.postgres import Database
from recado.storage.messages.chat_windows import WINDOW, ChatWindows
from recado.storage.messages.messages import NewMessage
from recado.storage.senders.social_accounts import SocialAccount, SocialAccountDirectory

_UNIT: Final = (SOCIAL_MESSAGE, INTL)  # one price everywhere


class SocialRules:
    """Makes the row of a social draft, or refuses it."""

    channel = SOCIAL

    def __init__(
        self,
        *,
        database: Database,
        accounts: SocialAccountDirectory,
        organizations: OrganizationDirectory,
        windows: ChatWindows,
        ids: IdSource,
        clock: Clock,
        sends_in: Collection[str],
        media: MediaUse,
        prices: PriceDirectory | None,
    ) -> None:
        """`prices` None: nothing is billed (C25.2.4)."""
        self._database = database
        self._accounts = accounts
        self._organizations = organizations
        self._windows = windows
        self._ids = ids
        self._clock = clock
        self.sends_in = frozenset(sends_in)
        self._media = media
        self._prices = prices

    def at_once(self, draft: MessageDraft) -> NewMessage | None:
        check_content(draft)
        if draft.contact_id is not None:
            return None
        owner = (draft.organization_id, draft.env)
        account = self._accounts.peek((*owner, draft.sender_id))
        organization = self._organizations.peek(draft.organization_id)
        if account is None or organization is None:
            return None
        price = None
        if self._prices is not None:
            price = self._prices.peek(*owner, *_UNIT, self._clock.now())
            if price is None:
                return None
        named = named_media(draft.type, draft.payload)
        found = None if named is None else self._media.at_hand(*owner, account.id, named)
        if named is not None and found is None:
            return None
        new = self._row(draft, account, organization, price)
        if named is not None and found is not None:
            self._media.check_use(SOCIAL, found, named)
        return new

    async def read(self, draft: MessageDraft) -> NewMessage:
        check_content(draft)
        owner = (draft.organization_id, draft.env)
        account = await self._accounts.get((*owner, draft.sender_id))
        if account is None:
            raise reference_not_found("socialAccountId", SOCIAL_ACCOUNT, draft.sender_id, draft.env)
        if draft.contact_id is not None and draft.again is None:
            draft.to = await self._user_of(draft, draft.contact_id)
        organization = await self._organizations.of_caller(draft.organization_id)
        price = None
        if self._prices is not None:
            price = await self._prices.price_of(*owner, *_UNIT, self._clock.now())
        new = self._row(draft, account, organization, price)
        named = named_media(draft.type, draft.payload)
        if named is not None:
            found = await self._media.check(SOCIAL, *owner, named)
            if draft.env in self.sends_in:
                self._media.check_provider(SOCIAL, draft.env, account.id, found)
        return new

    async def check_window(self, new: NewMessage) -> None:
        """Whoever is written to wrote to this account before (C15.2.2)."""
        last = await self._windows.last_inbound(new.organization_id, new.sender_id, new.recipient_hash)
        if last is None or new.accepted_at - last >= WINDOW:
            detail = "The recipient has not written to this account in the last 24 hours."
            raise field_refused("WINDOW_CLOSED", "/type", detail)

    async def _user_of(self, draft: MessageDraft, contact_id: str) -> str:
        """The user that the contact is at the account, which is taken where none was given."""
        contact = (draft.organization_id, draft.env, contact_id)
        users = await social_identities.users_of(self._database, contact, draft.sender_id)
        if draft.to:
            if draft.to not in users:
                detail = "`to` is no user of the contact `contactId` at this account: leave one of them out."
                raise field_refused("RECIPIENT_MISMATCH", "/to", detail)
            return draft.to
        if len(users) != 1:
            has = "several users" if users else "no user"
            raise field_refused("RECIPIENT_MISSING", "/to", f"The contact is {has} at this account: give `to`.")
        return users[0]

    def _row(
        self, draft: MessageDraft, account: SocialAccount, organization: Organization, price: Price | None
    ) -> NewMessage:
        if not draft.to:
            raise field_refused("RECIPIENT_MISSING", "/to", "`to` must not be empty.")
        if account.status is not SocialAccountStatus.CONNECTED:
            raise _unavailable(account)
        message_id = self._ids.new(MESSAGE)
        now = self._ids.moment_of(message_id)
        new = new_message(
            draft,
            organization,
            account.id,
            POLICY.obeys(draft.type, None, draft.priority),
            message_id=message_id,
            due_at=due_time(draft, now),
            now=now,
            ttl=POLICY.ttl(None, draft.priority),
            held_ms=organization.held_ms,
            price=price,
        )
        if draft.again is not None:
            new.replaces = replacement(draft.again, new.id, self._ids)
        return new


def check_content(draft: MessageDraft) -> None:
    """Refuse what no social platform takes: documents, stickers and long texts."""
    if draft.type == "media":
        if draft.payload and draft.payload["kind"] not in MEDIA_KINDS:
            detail = f"A social account takes media of kind {', '.join(MEDIA_KINDS)}."
            raise field_refused("VALIDATION_ERROR", "/payload/kind", detail)
        return
    text = draft.payload["text"]["body"] if draft.payload else ""
    if len(text) > LONGEST_TEXT:
        detail = f"A social message has at most {LONGEST_TEXT:,} characters."
        raise field_refused("TEXT_TOO_LONG", "/payload/text/body", detail)


def _unavailable(account: SocialAccount) -> Problem:
    what = how_to_connect(account.status, account.id)
    detail = f"The social account {account.id} is {account.status.value}: {what}, or send from another account."
    return field_refused("NUMBER_UNAVAILABLE", "/socialAccountId", detail, status=account.status.value)
