"""The RCS provider of the test environment: its stories (C29.4)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from recado.channels.core.provider import Account, Refused
from recado.channels.core.sandbox import ChannelSandbox, OpenStep, ReplyStep, ReportStep, Story
from recado.domain.channels.rcs import RcsReason
from recado.domain.core.clock import Clock
from recado.domain.messages.message import FailureCode

_DELIVERED: Final = ReportStep(1.0, "delivered")
_READ: Final = ReportStep(2.0, "read")
_USUAL: Final = Story(steps=(_DELIVERED, _READ))

# By the last four digits of the phone.
_STORIES: Final[Mapping[str, Story]] = {
    "9001": Story(refused=Refused(RcsReason.INVALID_NUMBER, "the number does not exist")),
    "9002": Story(steps=(ReportStep(1.0, "failed", RcsReason.CARRIER_REJECTED),)),
    "9003": Story(),
    "9004": Story(steps=(_DELIVERED,)),
    "9005": replace(_USUAL, passing=2),
    "9006": Story(steps=(ReportStep(30.0, "delivered"),), answered=False),
    "9007": Story(steps=(_DELIVERED, _READ, ReplyStep("OK"))),
    "9008": Story(steps=(_DELIVERED, ReplyStep("SAIR"))),
    "9009": Story(steps=(_DELIVERED, OpenStep())),
    "9010": Story(refused=Refused(RcsReason.NOT_CAPABLE, "this phone has no RCS")),
    "9011": Story(refused=Refused(FailureCode.POLICY_BLOCKED, "the policy of the provider forbids it")),
    "9012": Story(steps=(ReportStep(1.0, "failed", RcsReason.EXPIRED),)),
    "9013": replace(_USUAL, slow=True),
    "9014": Story(answered=False),
}


class RcsSandbox(ChannelSandbox):
    """`time_scale` multiplies every time; 0: everything is due at once and no send waits."""

    def __init__(self, clock: Clock, time_scale: float = 1.0) -> None:
        super().__init__(clock, time_scale, usual=_USUAL, stories=_STORIES)

    async def revoke(self, message_id: str, provider_message_id: str, to: str, account: Account) -> bool:
        """Whatever was not delivered is taken back."""
        return True
