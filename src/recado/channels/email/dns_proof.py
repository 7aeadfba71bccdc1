"""Proof by a TXT record at the name server of a domain, which only its owner can enter (C10.4)."""

from dataclasses import replace
from typing import Final

from recado.channels.email.txt_records import TxtRecords
from recado.domain.email.sender import DnsRecord

_LABEL: Final = "_svc"
_WORD: Final = "svc-verify="


class DnsProof:
    """The `SenderVerifier` of all who send in live, the sandbox aside: what they send through need know no senders."""

    at_once = False

    def __init__(self, records: TxtRecords) -> None:
        self._records = records

    def proofs(self, domain: str, token: str) -> tuple[DnsRecord, ...]:
        return (DnsRecord("TXT", f"{_LABEL}.{domain}", f"{_WORD}{token}"),)

    async def sender_status(self, records: tuple[DnsRecord, ...], owner: str) -> tuple[DnsRecord, ...]:
        """Raises `ProviderError` when no name server answers."""
        return tuple(
            [replace(record, found=record.value in await self._records.texts(record.name, owner)) for record in records]
        )
