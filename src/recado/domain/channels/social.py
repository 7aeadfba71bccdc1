"""Social: answers of people to people, in the 24 hours after somebody wrote to an account (C26, C15.4)."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final

from recado.domain.billing.prices import SOCIAL_MESSAGE
from recado.domain.channels import chatapp
from recado.domain.channels.address import AddressKind
from recado.domain.channels.policy import Policy, SenderKind
from recado.domain.core.machine import Machine
from recado.domain.dispatch import gates
from recado.domain.dispatch.gates import GateTable, Hold, Release, SenderGate, SenderState
from recado.domain.media.media_types import AUDIO, IMAGE, MIB, VIDEO
from recado.domain.messages.message import FailureCode, MessageEvent, MessageStatus, WaitReason
from recado.domain.senders.number import NumberStatus

SOCIAL: Final = "social"
LONGEST_TEXT: Final = 1_000  # characters
TYPES: Final = ("text", "media")
MEDIA_LIMITS: Final[Mapping[str, int]] = MappingProxyType({IMAGE: 8 * MIB, AUDIO: 16 * MIB, VIDEO: 25 * MIB})
"""Bytes by kind, of those that platforms take (C8.2.4)."""
MEDIA_KINDS: Final = tuple(MEDIA_LIMITS)

_S = MessageStatus

MACHINE: Final[Machine[MessageStatus, MessageEvent]] = Machine(
    "social message",
    {
        (state, event): to
        for state, event, to in chatapp.MACHINE.transitions()
        if event is not MessageEvent.TEMPLATE_UNAVAILABLE
    },
    initial=chatapp.MACHINE.initial,
)
"""That of chat-app (C15.4), without templates."""


def _out_of_service(state: SenderState, now: datetime) -> Hold | None:
    return None if state.status is NumberStatus.CONNECTED else Hold(WaitReason.NUMBER_STATE)


GATES: Final = GateTable(
    gates.ORGANIZATION_SUSPENDED,
    gates.OWNER_PAUSED,
    SenderGate(WaitReason.NUMBER_STATE, Release.SENDER, _out_of_service),
    gates.SLOWED_DOWN,
    gates.NO_CONNECTION,
    gates.RATE,
)

POLICY: Final = Policy(
    channel=SOCIAL,
    sender=SenderKind.ACCOUNT,
    addresses=(AddressKind.SOCIAL,),
    scope="messages:send",
    machine=MACHINE,
    reports=chatapp.REPORTS,
    late_reports=chatapp.LATE_REPORTS,
    gates=GATES,
    needs_window=lambda kind: True,
    subject_to_consent=lambda category: False,
    obeys_quiet_hours=lambda kind, category, priority: False,
    ttl=lambda category, priority: chatapp.TTL[priority],
    price_kind=lambda category, byo: SOCIAL_MESSAGE,
    unanswered=chatapp.UNANSWERED,
    events={_S.SENT: "social.message.sent", _S.FAILED: "social.message.failed"},
    received="social.message.received",
    opens_window=True,
    answers_opt_outs=False,
    nobody_there=frozenset({FailureCode.RECIPIENT_UNREACHABLE}),
)
