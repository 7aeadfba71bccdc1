"""A `SenderVerifier` that finds what a test says."""

from dataclasses import dataclass, field, replace

from recado.channels.core.adapters import IdentityMaker
from recado.channels.core.errors import ProviderError
from recado.domain.email.sender import DnsRecord, SenderLook


@dataclass
class ScriptedVerifier:
    """`entered`: the names of records that are there; None: nobody can tell. `asked`: by which organizations."""

    at_once: bool = False
    entered: set[str] | None = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    identities: IdentityMaker | None = None

    def proofs(self, domain: str, token: str) -> tuple[DnsRecord, ...]:
        return (DnsRecord("TXT", f"_svc.{domain}", f"svc-verify={token}"),)

    async def sender_status(
        self, domain: str, records: tuple[DnsRecord, ...], owner: str, *, address: str | None = None
    ) -> SenderLook:
        self.asked.append(owner)
        if self.entered is None:
            raise ProviderError("unreachable", "dns_unavailable", "nobody answers")
        found = tuple(replace(record, found=record.name in self.entered) for record in records)
        return SenderLook(found, all(each.found for each in found))
