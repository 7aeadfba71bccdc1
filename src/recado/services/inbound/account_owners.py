"""Whose it is what people send, or tell a provider: found by the account at the provider that it came to (C28.1)."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple, Protocol

from recado.domain.channels.address import Address
from recado.domain.channels.policies import POLICIES
from recado.domain.channels.policy import SenderKind
from recado.domain.channels.sms import spellings
from recado.domain.channels.source import Source
from recado.domain.core.retention import REACHED
from recado.domain.senders.sender import route_sender
from recado.storage.core.statements.rows import Executor
from recado.storage.messages import reached_recipients, receipts


class AccountOwner(NamedTuple):
    """An organization, and the sender of its that the account is."""

    organization_id: str
    sender_id: str


class AccountOwners(Protocol):
    """Finds the owners of accounts of one source, each asked for with the person who wrote, if that has an address.

    Several where organizations share a sender: a message is the first one's, and a refusal in it reaches them all.
    """

    async def __call__(
        self, executor: Executor, source: Source, asked: Sequence[tuple[str, Address | None]], now: datetime, /
    ) -> list[Sequence[AccountOwner]]: ...


async def sole_owners(
    executor: Executor, source: Source, asked: Sequence[tuple[str, Address | None]], now: datetime, /
) -> list[Sequence[AccountOwner]]:
    """Of accounts that are one organization's each, whoever writes to them."""
    found = await receipts.owners_of_accounts(executor, source, sorted({account for account, _ in asked}))
    return [[AccountOwner(*found[account])] if account in found else [] for account, _ in asked]


async def owners_of_routes(
    executor: Executor, source: Source, asked: Sequence[tuple[str, Address | None]], now: datetime, /
) -> list[Sequence[AccountOwner]]:
    """Of senders that organizations share: that of a dedicated one, else those that lately sent to whoever wrote.

    The first of these is the last that did (C28.1).
    """
    channel = source.channel
    hashes = {address.hash(channel) for _, address in asked if address is not None}
    dedicated = await _dedicated(executor, {account for account, _ in asked})
    reached = await reached_recipients.senders_to(executor, source, sorted(hashes), now - REACHED)
    sole = {account: AccountOwner(each, own_sender(source)) for account, each in dedicated.items()}
    found: list[Sequence[AccountOwner]] = []
    for account, address in asked:
        if account in sole:
            found.append([sole[account]])
        elif address is None:
            found.append([])
        else:
            found.append([AccountOwner(*each) for each in reached.get(address.hash(channel), ())])
    return found


async def _dedicated(executor: Executor, accounts: Collection[str]) -> dict[str, str]:
    """The organizations whose own sender these are, however it is spelled here and there; of two the older one."""
    forms = {account: spellings(account) for account in accounts}
    found = await reached_recipients.dedicated(executor, sorted({form for each in forms.values() for form in each}))
    owners = {account: [found[form] for form in each if form in found] for account, each in forms.items()}
    return {account: min(ids) for account, ids in owners.items() if ids}


def own_sender(source: Source) -> str:
    """The sender of what comes to one organization alone, and is an answer to nothing that is known."""
    return route_sender(source.channel, source.env, POLICIES[source.channel].default_route or "")


_OWNERS: Final[Mapping[SenderKind, AccountOwners]] = {
    SenderKind.NUMBER: sole_owners,
    SenderKind.ACCOUNT: sole_owners,
    SenderKind.ROUTE: owners_of_routes,
}


def owners_in(channel: str) -> AccountOwners:
    """How the owners of a channel's accounts are found, by what its messages leave from."""
    return _OWNERS[POLICIES[channel].sender]
