"""Whose it is what people send, or tell a provider: found by the account at the provider that it came to (C28.1)."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from recado.domain.channels.address import Address
from recado.domain.channels.policies import POLICIES
from recado.domain.channels.policy import SenderKind
from recado.domain.channels.source import Source
from recado.storage.core.rows import Executor
from recado.storage.messages import receipts


class AccountOwner(NamedTuple):
    """An organization, and the sender of its that the account is."""

    organization_id: str
    sender_id: str


class AccountOwners(Protocol):
    """Finds the owners of accounts of one source, each asked for with the person who wrote, if that has an address.

    Several where organizations share a sender: a message is the first one's, and a refusal in it reaches them all.
    """

    async def __call__(
        self, executor: Executor, source: Source, asked: Sequence[tuple[str, Address | None]], /
    ) -> list[Sequence[AccountOwner]]: ...


async def sole_owners(
    executor: Executor, source: Source, asked: Sequence[tuple[str, Address | None]], /
) -> list[Sequence[AccountOwner]]:
    """Of accounts that are one organization's each, whoever writes to them."""
    found = await receipts.owners_of_accounts(executor, source, sorted({account for account, _ in asked}))
    return [[AccountOwner(*found[account])] if account in found else [] for account, _ in asked]


_OWNERS: Final[Mapping[SenderKind, AccountOwners]] = dict.fromkeys(SenderKind, sole_owners)


def owners_in(channel: str) -> AccountOwners:
    """How the owners of a channel's accounts are found, by what its messages leave from.

    An account that no organization has registered, as a route of all of them, has no owner.
    """
    return _OWNERS[POLICIES[channel].sender]
