"""What is left of a withdrawal: queued messages of who refused, of a deleted contact, or of an archived journey."""

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


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """Of one person, or journey. `name`: the recipient's hash, or the id of the contact or the journey.

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
