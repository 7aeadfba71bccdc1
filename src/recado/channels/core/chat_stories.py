"""What happens to a message of the sandbox where people read what they get: chat-app and social (C29.4)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from recado.channels.core.provider import Refused
from recado.channels.core.sandbox import ReplyStep, ReportStep, Story

_DELIVERED, _READ = ReportStep(1.0, "delivered"), ReportStep(2.0, "read")
USUAL_CHAT: Final = Story(steps=(_DELIVERED, _READ))

# By the last four characters of the recipient. 9009 (opens a link; those of chats are not rewritten) and 9010 (not RCS
# capable) are as every other.
CHAT_STORIES: Final[Mapping[str, Story]] = {
    "9001": Story(refused=Refused("recipient_unreachable", "the recipient cannot be reached")),
    "9002": Story(steps=(ReportStep(1.0, "failed", "provider_error"),)),
    "9003": Story(),
    "9004": Story(steps=(_DELIVERED,)),
    "9005": replace(USUAL_CHAT, passing=2),
    "9006": Story(steps=(ReportStep(30.0, "delivered"),), answered=False),
    "9007": Story(steps=(_DELIVERED, _READ, ReplyStep("OK"))),
    "9008": Story(steps=(_DELIVERED, ReplyStep("SAIR"))),
    "9011": Story(refused=Refused("policy_blocked", "the provider's policy forbids this message")),
    "9012": Story(steps=(ReportStep(1.0, "failed", "expired"),)),
    "9013": replace(USUAL_CHAT, slow=True),
    "9014": Story(answered=False),
}
