"""What is left of a withdrawal: queued messages of who refused, or of a deleted contact, that must not leave."""

from dataclasses import dataclass
from enum import StrEnum


class WithdrawalKind(StrEnum):
    """Whose messages they are, and what becomes of them."""

    OPTED_OUT = "opted_out"  # of a recipient, and subject to consent: they fail (C12.5.3)
    DELETED = "deleted"  # of a contact: they are archived (C12.6)


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """Of one person. `name`: the recipient's hash, or the contact's id; `before_id`: later messages are none of it."""

    organization_id: str
    env: str
    kind: WithdrawalKind
    name: str
    before_id: str

    @property
    def key(self) -> tuple[str, str, WithdrawalKind, str]:
        """A person is withdrawn once, whatever is added meanwhile."""
        return (self.organization_id, self.env, self.kind, self.name)
