"""The SMS gateway of the test environment: its stories (C29.4)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from recado.channels.core.provider import Refused
from recado.channels.core.sandbox import ChannelSandbox, OpenStep, ReplyStep, ReportStep, Story
from recado.domain.channels.sms import SmsReason
from recado.domain.core.clock import Clock

_DELIVERED: Final = ReportStep(1.0, "delivered")
_USUAL: Final = Story(steps=(_DELIVERED,))

# By the last four digits of the phone. Nobody reads an SMS (9004), and 9010 is of RCS: they are as every other phone.
_STORIES: Final[Mapping[str, Story]] = {
    "9001": Story(refused=Refused(SmsReason.INVALID_NUMBER, "the number does not exist")),
    "9002": Story(steps=(ReportStep(1.0, "failed", SmsReason.CARRIER_REJECTED),)),
    "9003": Story(),
    "9005": replace(_USUAL, passing=2),
    "9006": Story(steps=(ReportStep(30.0, "delivered"),), answered=False),
    "9007": Story(steps=(_DELIVERED, ReplyStep("OK"))),
    "9008": Story(steps=(_DELIVERED, ReplyStep("SAIR"))),
    "9009": Story(steps=(_DELIVERED, OpenStep())),
    "9011": Story(refused=Refused(SmsReason.BLACKLISTED, "the carrier lets nothing through to this number")),
    "9012": Story(steps=(ReportStep(1.0, "failed", SmsReason.EXPIRED),)),
    "9013": replace(_USUAL, slow=True),
    "9014": Story(answered=False),
}


class SmsSandbox(ChannelSandbox):
    """`time_scale` multiplies every time; 0: everything is due at once and no send waits."""

    def __init__(self, clock: Clock, time_scale: float = 1.0) -> None:
        super().__init__(clock, time_scale, usual=_USUAL, stories=_STORIES)
