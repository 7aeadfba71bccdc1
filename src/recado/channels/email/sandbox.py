"""The sandbox of e-mail: five addresses whose local parts say what happens; every sender is verified (C29.4)."""

from collections.abc import Mapping
from typing import Final

from recado.channels.core.provider import OutboundMessage, Refused
from recado.channels.core.sandbox import ChannelSandbox, ReplyStep, ReportStep, Story
from recado.domain.channels.email import EmailReason
from recado.domain.core.clock import Clock
from recado.domain.email.sender import DnsRecord, SenderLook
from recado.domain.email.suppression import SUPPRESSED, simulated

_DELIVERED: Final = ReportStep(1.0, "delivered")
_USUAL: Final = Story(steps=(_DELIVERED,))

_STORIES: Final[Mapping[str, Story]] = {
    "success": _USUAL,
    "bounce": Story(steps=(ReportStep(1.0, "bounced", EmailReason.INVALID_ADDRESS),)),
    "complaint": Story(steps=(ReportStep(1.0, "complained"),)),
    "ooto": Story(steps=(_DELIVERED, ReplyStep("out of office"))),
    SUPPRESSED: Story(refused=Refused(EmailReason.SUPPRESSED, "the address is suppressed")),
}


class EmailSandbox(ChannelSandbox):
    """`simulator_domain`: of the addresses that have a story. `time_scale` multiplies every time; 0: no send waits.

    As a `SenderVerifier` it asks nobody.
    """

    at_once = True
    identities = None

    def __init__(self, clock: Clock, time_scale: float = 1.0, *, simulator_domain: str) -> None:
        super().__init__(clock, time_scale, usual=_USUAL, stories=_STORIES)
        self._domain = simulator_domain

    def story_of(self, message: OutboundMessage) -> str:
        return simulated(message.to, self._domain) or ""

    def proofs(self, domain: str, token: str) -> tuple[DnsRecord, ...]:
        return ()

    async def sender_status(
        self, domain: str, records: tuple[DnsRecord, ...], owner: str, *, address: str | None = None
    ) -> SenderLook:
        return SenderLook(records, True)
