"""The policies in force, by channel, and what follows from all of them together."""

from collections.abc import Callable, Collection, Mapping
from typing import Final

from recado.domain.channels.installed import INSTALLED
from recado.domain.channels.policy import MASK, SENDER_FIELD, AddressKind, Policy
from recado.domain.core.masking import mask_phone
from recado.domain.dispatch.gates import GateTable
from recado.domain.messages.message import MessageEvent, WaitReason

POLICIES: Final[Mapping[str, Policy]] = {each.channel: each for each in INSTALLED}


_MASKS: Final = {
    "email": MASK[AddressKind.EMAIL],  # without a policy as yet
    "social": MASK[AddressKind.SOCIAL],
    **{each.channel: MASK[each.address] for each in POLICIES.values()},
}


def masked_recipient(channel: str, recipient: str) -> str:
    """What is seen of a recipient without `pii:full` (C2.5)."""
    return _MASKS.get(channel, mask_phone)(recipient)


_SENDER_FIELDS: Final = {each.channel: SENDER_FIELD[each.sender] for each in POLICIES.values()}


def sender_field(channel: str) -> str | None:
    """The field of a record that names what its message left from (C15.2); None where callers name no sender."""
    return _SENDER_FIELDS.get(channel)


def states_before(event: MessageEvent) -> list[str]:
    """The states that know this event: the guard of a statement that records it for messages of any channel."""
    return sorted({state.value for each in POLICIES.values() for state in each.machine.sources(event)})


def _in_any_channel(reasons: Callable[[GateTable], Collection[WaitReason]]) -> tuple[WaitReason, ...]:
    return tuple(dict.fromkeys(reason for each in POLICIES.values() for reason in reasons(each.gates)))


PASSED_BY_FORCE: Final = _in_any_channel(lambda table: table.passed_by_force)
"""Of any channel: of what is waited for, what forcing a message puts aside."""
HELD_WITHOUT_MOMENT: Final = _in_any_channel(lambda table: table.held_without_moment)
"""Of any channel: what holds a message, and nothing but a change lets go."""
