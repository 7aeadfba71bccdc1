"""Proof by a TXT record at the name server of a domain, which only its owner can enter (C10.4)."""

from dataclasses import replace
from typing import Final, Protocol

from recado.channels.email.txt_records import TxtRecords
from recado.domain.email.sender import DnsRecord, SenderLook

_LABEL: Final = "_svc"
_WORD: Final = "svc-verify="


class SenderIdentities(Protocol):
    """A provider that knows from which domains it sends."""

    async def identity(self, domain: str, owner: str) -> SenderLook | None:
        """How it stands there, and what it wants at the name server; None: it does not tell.

        Asked of a domain whose owner is proven. Raises `ProviderError` when it cannot be asked now.
        """


class DnsProof:
    """The `SenderVerifier` of all who send in live, the sandbox aside.

    The record says whose the domain is: organizations share the account at the provider. `identities`: is asked then
    whether it sends from the domain; None: what e-mail leaves through knows no senders.
    """

    at_once = False

    def __init__(self, records: TxtRecords, identities: SenderIdentities | None = None) -> None:
        self._records = records
        self._identities = identities

    def proofs(self, domain: str, token: str) -> tuple[DnsRecord, ...]:
        return (DnsRecord("TXT", f"{_LABEL}.{domain}", f"{_WORD}{token}"),)

    async def sender_status(self, domain: str, records: tuple[DnsRecord, ...], owner: str) -> SenderLook:
        """Raises `ProviderError` when no name server answers, or the provider does not."""
        own = tuple(
            [replace(record, found=record.value in await self._records.texts(record.name, owner)) for record in records]
        )
        if self._identities is None or not all(record.found for record in own):
            return SenderLook(own, all(record.found for record in own))
        there = await self._identities.identity(domain, owner)
        return SenderLook(own, True) if there is None else SenderLook((*own, *there.records), there.proven)
