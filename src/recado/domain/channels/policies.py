"""The policies in force, by channel, and what follows from all of them together."""

from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Final

from recado.domain.channels.address import MASK, Address, AddressKind, canonical, given, kind_of
from recado.domain.channels.installed import INSTALLED
from recado.domain.channels.policy import SENDER_FIELD, Policy, ReportGuard, SenderKind
from recado.domain.core.masking import mask_phone
from recado.domain.dispatch.gates import GateTable
from recado.domain.messages.message import MessageEvent, MessageStatus, Report, WaitReason
from recado.domain.senders.sender import route_sender

POLICIES: Final[Mapping[str, Policy]] = {each.channel: each for each in INSTALLED}
NUMBERS_CHANNEL: Final = next(each.channel for each in INSTALLED if each.sender is SenderKind.NUMBER)
"""The channel whose messages leave from numbers: these, and templates, are its own."""
ACCOUNTS_CHANNEL: Final = next(each.channel for each in INSTALLED if each.sender is SenderKind.ACCOUNT)
"""The channel whose messages leave from accounts."""
SHARED: Final = frozenset(each.channel for each in POLICIES.values() if each.sender is SenderKind.ROUTE)
"""Those whose senders organizations share."""
CARRIED: Final[Mapping[str, str]] = {
    route_sender(each.channel, env, route): carrier
    for each in POLICIES.values()
    for route, carrier in each.carriers.items()
    for env in ("test", "live")
}
"""The senders whose messages leave through the gateways of another channel, and of which."""
TRACKED: Final = frozenset(each.channel for each in POLICIES.values() if each.clicked is not None)
"""Those whose messages have links of their own (C27.1)."""

_MASKS: Final = {each.channel: MASK[each.addresses[0]] for each in POLICIES.values()}


def carrier_of(channel: str, sender_id: str) -> str:
    """The channel whose gateways a sender's messages leave through: mostly its own."""
    return CARRIED.get(sender_id, channel)


def carried_by(carrier: str) -> list[str]:
    """The channels whose messages the gateways of one carry, itself first."""
    return [carrier, *(each.channel for each in POLICIES.values() if carrier in each.carriers.values())]


def heard_as(channel: str) -> str:
    """The channel with which what people write there is stored (C28.1)."""
    return POLICIES[channel].heard_as or channel


def heard_with(channel: str) -> list[str]:
    """The channels on which people write what is stored with this one."""
    return [each.channel for each in POLICIES.values() if heard_as(each.channel) == channel]


def masked_recipient(channel: str, recipient: str) -> str:
    """What is seen of a recipient without `pii:full` (C2.5)."""
    return _MASKS.get(channel, mask_phone)(recipient)


def address_kind(channel: str) -> AddressKind:
    """Of whom messages of a channel are sent to, mostly; a user id of the chat app counts as a phone (C28.6)."""
    return POLICIES[channel].addresses[0]


def given_recipient(channel: str, text: str) -> str:
    """A recipient that a caller gives, as it is stored; Problem 422 when it is none of the channel."""
    return given(text, POLICIES[channel].addresses)


_BY_EMAIL: Final = frozenset(each.channel for each in POLICIES.values() if each.addresses[0] is AddressKind.EMAIL)


def recipient_key(channel: str, recipient: str) -> str:
    """By what the recipients of a channel's messages compare: all but e-mail addresses by what is stored."""
    return canonical(AddressKind.EMAIL, recipient) if channel in _BY_EMAIL else recipient


def address_of(channel: str, recipient: str) -> Address:
    """The recipient of a stored message, as a value."""
    return Address.of(kind_of(recipient, POLICIES[channel].addresses), recipient)


_SENDER_FIELDS: Final = {each.channel: SENDER_FIELD[each.sender] for each in POLICIES.values()}


def sender_field(channel: str) -> str | None:
    """The field of a record that names what its message left from (C15.2); None where callers name no sender."""
    return _SENDER_FIELDS.get(channel)


GENERIC_CHANNELS: Final = tuple(each.channel for each in POLICIES.values() if each.generic)
"""Whose messages are in the generic view; the others have a view of their own (C1.11)."""


HEARD: Final = tuple(
    each.channel
    for each in POLICIES.values()
    if each.heard_as is not None or ("inbound" in each.machine.initial and each.received is not None)
)
"""On which people write to an organization that is told of it."""


def shown(channel: str, status: str) -> str:
    """The status of a message that callers see in the generic view (C15.1)."""
    policy = POLICIES.get(channel)
    if policy is None or not policy.shown:
        return status
    return policy.shown.get(MessageStatus(status), status)


def states_shown_as(channel: str, status: str) -> list[str]:
    """The states of a channel's messages that show so."""
    return [state.value for state in MessageStatus if shown(channel, state) == status]


@cache
def report_guard(channel: str, report: Report) -> ReportGuard:
    """What such a report does on a channel."""
    return POLICIES[channel].report_guard(report)


def states_before(event: MessageEvent) -> list[str]:
    """The states that know this event: the guard of a statement that records it for messages of any channel."""
    return sorted({state.value for each in POLICIES.values() for state in each.machine.sources(event)})


def states_after(state: MessageStatus) -> list[str]:
    """This state, and all that messages of any channel can come to from it."""
    found = set()
    for each in POLICIES.values():
        reached = {state}
        while more := {to for at, _, to in each.machine.transitions() if at in reached} - reached:
            reached |= more
        found |= reached
    return sorted(found)


def claimed_state(channel: str) -> MessageStatus:
    """The state of a message of the channel that was claimed."""
    policy = POLICIES.get(channel)
    if policy is None:
        return MessageStatus.SENDING
    return policy.machine.move(MessageStatus.QUEUED, MessageEvent.CLAIM)


def claimed_as() -> dict[str, str]:
    """The state of a claimed message, by channel, of those whose messages do not know `sending` (C10)."""
    states = {channel: claimed_state(channel) for channel in POLICIES}
    return {channel: state.value for channel, state in states.items() if state is not MessageStatus.SENDING}


def withdrawn_as() -> dict[str, str]:
    """What becomes of a queued message that somebody withdraws, by channel."""
    event = MessageEvent.WITHDRAWN
    return {
        each.channel: each.machine.move(MessageStatus.QUEUED, event).value
        for each in POLICIES.values()
        if MessageStatus.QUEUED in each.machine.sources(event)
    }


def channels_that_know(event: MessageEvent) -> list[str]:
    """The channels whose messages know this event."""
    return [each.channel for each in POLICIES.values() if each.machine.sources(event)]


def told_of(status: str) -> set[str]:
    """The events by which messages of any channel tell that they came to a state."""
    return {event for each in POLICIES.values() for at, event in each.events.items() if at == status}


def _in_any_channel(reasons: Callable[[GateTable], Collection[WaitReason]]) -> tuple[WaitReason, ...]:
    return tuple(dict.fromkeys(reason for each in POLICIES.values() for reason in reasons(each.gates)))


PASSED_BY_FORCE: Final = _in_any_channel(lambda table: table.passed_by_force)
"""Of any channel: of what is waited for, what forcing a message puts aside."""
HELD_WITHOUT_MOMENT: Final = _in_any_channel(lambda table: table.held_without_moment)
"""Of any channel: what holds a message, and nothing but a change lets go."""
