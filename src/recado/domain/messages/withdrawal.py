"""What is left of a withdrawal: of who refused, of a deleted contact, of an archived journey, of an ended execution."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

ENDLESS: Final = "~"
"""An id after those of all messages, also of later ones."""


class WithdrawalKind(StrEnum):
    """Whose messages they are, and what becomes of them."""

    OPTED_OUT = "opted_out"  # of a recipient, and subject to consent: they fail (C12.5.3)
    DELETED = "deleted"  # of a contact: they are archived (C12.6)
    ARCHIVED = "archived"  # of a journey: they are archived (C9.12)
    RECALLED = "recalled"  # one, in hand when its execution ended: it is archived if it comes back (C9.12)


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """Of one person, journey or message. `name`: the recipient's hash, or the id of the other two, or of a contact.

    `before_id`: later messages are none of it.
    """

    organization_id: str
    env: str
    kind: WithdrawalKind
    name: str
    before_id: str

    @property
    def key(self) -> tuple[str, str, WithdrawalKind, str]:
        """Each is withdrawn once, whatever is added meanwhile."""
        return (self.organization_id, self.env, self.kind, self.name)
