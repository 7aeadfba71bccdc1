"""Records who wants no more e-mail, by the token of the message that they had enough of (C27.3, C12.5)."""

from datetime import datetime
from typing import Final

from recado.domain.contacts.consent import MOST_USER_AGENT, ConsentChange, ConsentStatus
from recado.domain.contacts.contact import email_hash
from recado.domain.contacts.keywords import UNSUBSCRIBE_SOURCE
from recado.domain.email.public_tokens import PublicTokens, Unsubscription
from recado.services.contacts.contacts import Contacts
from recado.storage.access import organizations
from recado.storage.contacts import contacts
from recado.storage.contacts.opt_outs import Registrant
from recado.storage.core.audit import SYSTEM
from recado.storage.core.connections.postgres import Database
from recado.storage.email import opens

REASON: Final = "email: unsubscribe"


class Unsubscriptions:
    """Reads tokens, and records refusals. `changes`: of contacts."""

    def __init__(self, db: Database, *, tokens: PublicTokens, changes: Contacts) -> None:
        self._db = db
        self._changes = changes
        self._tokens = tokens

    async def find(self, token: str) -> Unsubscription | None:
        """Whose token it is, where this database has the organization: what is recorded elsewhere binds nobody.

        Raises `Unavailable` while that is moved to another one.
        """
        who = self._tokens.unsubscribed(token)
        if who is None:
            return None
        organization = await organizations.get(self._db, who.message.organization_id)
        organizations.refuse_on_the_move(organization)
        return None if organization is None else who

    async def record(self, who: Unsubscription, *, ip: str, user_agent: str | None, now: datetime) -> None:
        """Opt out the contact that the message named, every contact with its address, and the address.

        A repeat changes nothing.
        """
        organization_id, env, _ = who.message
        change = ConsentChange(
            ConsentStatus.DENIED,
            source=UNSUBSCRIBE_SOURCE,
            ip=ip,
            user_agent=user_agent[:MOST_USER_AGENT] if user_agent else None,
            revoked_reason=REASON,
        )
        address = Registrant(organization_id, env, email_hash=who.address_hash)
        await self._changes.opt_out(await self._contacts(who), address, change, by=SYSTEM, now=now)

    async def _contacts(self, who: Unsubscription) -> list[str]:
        named = [] if who.contact_id is None else [who.contact_id]
        organization_id, env, _ = who.message
        recipient = await opens.recipient(self._db, who.message)
        if recipient is None or email_hash(organization_id, recipient) != who.address_hash:  # past its time, or erased
            return named
        return list({*named, *await contacts.ids_by_email(self._db, organization_id, env, recipient)})
