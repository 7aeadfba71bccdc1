"""Whose queued messages are being withdrawn in blocks, known to every lane of the process: none of them leaves.

The rows of `withdrawals` are the truth; this is read from them at the start, and follows each commit that notes one.
"""

from collections.abc import Iterable

from recado.domain.dispatch.gates import Fail, Hold
from recado.domain.messages.message import FailureCode, WaitReason
from recado.domain.messages.withdrawal import Withdrawal, WithdrawalKind
from recado.services.dispatch.owners import Told
from recado.services.dispatch.row import Row

REFUSED = Fail(FailureCode.OPTED_OUT, "the contact opted out")
DELETED = Hold(WaitReason.OWNER_PAUSED)
ARCHIVED = Hold(WaitReason.OWNER_PAUSED)
RECALLED = Hold(WaitReason.OWNER_PAUSED)


class Withdrawing:
    """Mostly nobody. A refusal is a gate of the claim as well, but a consent may follow it before all is withdrawn."""

    __slots__ = ("_before", "told")

    def __init__(self) -> None:
        self.told: Told | None = None  # as of `Owners`
        self._before: dict[tuple[str, str, WithdrawalKind, str], str] = {}

    def begin(self, withdrawals: Iterable[Withdrawal]) -> None:
        """Something is left of these, and it is committed."""
        withdrawals = tuple(withdrawals)
        if self.told is not None and withdrawals:
            self.told("begin", withdrawals)
        for each in withdrawals:
            self._before[each.key] = max(each.before_id, self._before.get(each.key, ""))

    def end(self, withdrawals: Iterable[Withdrawal]) -> None:
        """Nothing is left of these, but of those that were begun once more meanwhile."""
        withdrawals = tuple(withdrawals)
        if self.told is not None and withdrawals:
            self.told("end", withdrawals)
        for each in withdrawals:
            if self._before.get(each.key) == each.before_id:
                del self._before[each.key]

    @property
    def state(self) -> dict[tuple[str, str, WithdrawalKind, str], str]:
        """All that is known now, for a process that begins to follow."""
        return dict(self._before)

    def restore(self, state: dict[tuple[str, str, WithdrawalKind, str], str]) -> None:
        """Know this, and nothing else."""
        self._before = state

    def gate(self, row: Row) -> Fail | Hold | None:
        """What ends the row, or holds it back until a block takes it. None: it is none of these.

        What waits for its repeat may have left, and is not withdrawn: a claim or a deletion ends it, and so does the
        end of its journey or its execution.
        """
        if not self._before:
            return None
        if self._has(row, WithdrawalKind.ARCHIVED, row.owner):
            return ARCHIVED
        if self._has(row, WithdrawalKind.RECALLED, row.id):
            return RECALLED
        if row.repeat_of is not None:
            return None
        if row.subject_to_consent and self._has(row, WithdrawalKind.OPTED_OUT, str(row.recipient_hash)):
            return REFUSED
        if row.contact_id is not None and self._has(row, WithdrawalKind.DELETED, row.contact_id):
            return DELETED
        return None

    def _has(self, row: Row, kind: WithdrawalKind, name: str) -> bool:
        return row.id < self._before.get((row.organization_id, row.env, kind, name), "")
