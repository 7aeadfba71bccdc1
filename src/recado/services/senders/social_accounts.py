"""Social accounts as their provider knows them, and what it reports of them by itself (C26)."""

from dataclasses import dataclass, field, replace

from recado.channels.core.events import NumberNews
from recado.channels.core.provider import Account
from recado.channels.social.account import SocialDetails
from recado.domain.core.clock import Clock
from recado.domain.messages.changes import OnChange, SocialAccountChanged
from recado.domain.senders.social_account import SOCIAL_ACCOUNT_MACHINE, SocialAccountEvent
from recado.services.senders.accounts import ACCESS_TOKEN
from recado.storage.core.connections.changing import changing
from recado.storage.core.connections.postgres import Database
from recado.storage.core.crypto import KeyRing
from recado.storage.senders import social_accounts
from recado.storage.senders.social_accounts import SOCIAL_ACCOUNTS, SocialAccount


def provider_account(account: SocialAccount, keys: KeyRing, *, token: str | None = None) -> Account:
    """`token`: a new one, which is not stored yet. Raises `Tampered` when the stored one is not what was stored."""
    if token is None and account.access_token_cipher is not None:
        token = keys.decrypt(
            account.access_token_cipher,
            organization_id=account.organization_id,
            record_id=account.id,
            field=ACCESS_TOKEN,
        )
    return Account(
        sender_id=account.id,
        organization_id=account.organization_id,
        env=account.env,
        provider_id=account.external_account_id,
        owner=f"{account.env} {account.external_account_id}",
        details=SocialDetails(platform=account.platform.value, access_token=token),
    )


@dataclass(frozen=True, slots=True)
class SocialAccountReports:
    """Takes an account out of service when its provider says that its token is refused."""

    database: Database
    clock: Clock = field(repr=False)
    changed: OnChange = field(repr=False)

    async def report(self, env: str, news: NumberNews) -> None:
        """Only the customer connects: any other state changes nothing, nor does what was told before that."""
        if news.status != "disconnected" or news.account is None:
            return
        found = await social_accounts.by_external_id(self.database, env, news.account)
        if found is None:
            return
        told = SocialAccountChanged(found.organization_id, found.env, found.id)
        async with changing(self.database, self.changed, told) as connection:
            before = await SOCIAL_ACCOUNTS.get_locked(connection, found.organization_id, found.env, found.id)
            if before is None or before.status not in SOCIAL_ACCOUNT_MACHINE.sources(SocialAccountEvent.LOST):
                return
            if before.connected_at is not None and news.at < before.connected_at:
                return
            moved = SOCIAL_ACCOUNT_MACHINE.move(before.status, SocialAccountEvent.LOST)
            await SOCIAL_ACCOUNTS.save(connection, before, replace(before, status=moved), self.clock.now())
        self.changed(told)
