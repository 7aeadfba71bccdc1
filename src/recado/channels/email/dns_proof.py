"""Proof by a TXT record at the name server of a domain, which only its owner can enter (C10.4)."""

from dataclasses import replace
from typing import Final, Protocol

from recado.channels.core.adapters import IdentityMaker
from recado.channels.email.txt_records import TxtRecords
from recado.domain.email.sender import DnsRecord, SenderLook

_LABEL: Final = "_svc"
_WORD: Final = "svc-verify="


class SenderIdentities(Protocol):
    """A provider that knows from which domains it sends. `only_looks`: to be asked of a domain makes nothing there."""

    @property
    def only_looks(self) -> bool: ...

    async def identity(self, domain: str, owner: str, *, address: str | None = None) -> SenderLook | None:
        """How it stands there, and what it wants at the name server; None: it does not tell.

        Asked of a domain whose owner is proven, unless it only looks. `address`: of a sender that is a single one.
        Raises `ProviderError` when it cannot be asked now.
        """


class DnsProof:
    """The `SenderVerifier` of all who send in live, the sandbox aside.

    The record says whose the domain is: organizations share the account at the provider.
    """

    at_once = False

    def __init__(
        self, records: TxtRecords, provider: SenderIdentities | None = None, identities: IdentityMaker | None = None
    ) -> None:
        """`provider`: is asked whether it sends from the domain; None: what e-mail leaves through knows no senders.

        `identities`: tells it of domains.
        """
        self.identities = identities
        self._records = records
        self._provider = provider

    def proofs(self, domain: str, token: str) -> tuple[DnsRecord, ...]:
        return (DnsRecord("TXT", f"{_LABEL}.{domain}", f"{_WORD}{token}"),)

    async def sender_status(
        self, domain: str, records: tuple[DnsRecord, ...], owner: str, *, address: str | None = None
    ) -> SenderLook:
        """Raises `ProviderError` when no name server answers, or the provider does not."""
        own = tuple(
            [replace(record, found=record.value in await self._records.texts(record.name, owner)) for record in records]
        )
        theirs = all(record.found for record in own)
        provider = self._provider
        if provider is None or not (theirs or provider.only_looks):
            return SenderLook(own, theirs)
        there = await provider.identity(domain, owner, address=address)
        if there is None:
            return SenderLook(own, theirs)
        return replace(there, records=(*own, *there.records), proven=there.proven if theirs else False)
