"""By what media goes to its provider, and comes from it: a number or a social account, as that provider knows it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

from recado.channels.core.provider import Account
from recado.domain.channels.policies import NUMBERS_CHANNEL
from recado.domain.channels.social import SOCIAL
from recado.services.senders.accounts import account_of
from recado.services.senders.social_accounts import provider_account
from recado.storage.core.crypto import KeyRing
from recado.storage.senders.numbers import Number
from recado.storage.senders.social_accounts import SocialAccount

Key = tuple[str, str, str]
"""Organization, environment, sender."""


class KnownNumbers(Protocol):
    """`NumberDirectory`."""

    async def get(self, key: Key) -> Number | None: ...


class KnownAccounts(Protocol):
    """`SocialAccountDirectory`."""

    async def get(self, key: Key) -> SocialAccount | None: ...


@dataclass(frozen=True, slots=True)
class MediaSender:
    """One of them. `account` has its secret in the clear; it raises `Tampered` when that is not what was stored."""

    channel: str
    organization_id: str
    env: str
    id: str
    account: Callable[[], Account] = field(repr=False)


class MediaSenders:
    """Finds them, by channel."""

    def __init__(self, *, numbers: KnownNumbers, social_accounts: KnownAccounts, keys: KeyRing) -> None:
        self._numbers = numbers
        self._social_accounts = social_accounts
        self._keys = keys
        self._by_channel: Final[dict[str, Callable[[Key], Awaitable[MediaSender | None]]]] = {
            NUMBERS_CHANNEL: self._number,
            SOCIAL: self._social_account,
        }

    async def get(self, channel: str, key: Key) -> MediaSender | None:
        """None: it is deleted, or the channel has no media."""
        find = self._by_channel.get(channel)
        return None if find is None else await find(key)

    async def _number(self, key: Key) -> MediaSender | None:
        number = await self._numbers.get(key)
        if number is None:
            return None
        where = (number.organization_id, number.env, number.id)
        return MediaSender(NUMBERS_CHANNEL, *where, partial(account_of, number, self._keys))

    async def _social_account(self, key: Key) -> MediaSender | None:
        account = await self._social_accounts.get(key)
        if account is None:
            return None
        where = (account.organization_id, account.env, account.id)
        return MediaSender(SOCIAL, *where, partial(provider_account, account, self._keys))
