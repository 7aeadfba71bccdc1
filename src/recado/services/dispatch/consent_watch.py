"""Messages between the beginning of their claim and their call, of recipients who may refuse meanwhile (C12.5.3).

A claim that began before a refusal was committed may not have seen it. Anyone who records a refusal says so here after
its commit and before its answer; a message that was stopped so goes back to the queue, and its next claim fails it.
"""

from collections.abc import Iterable

from recado.services.dispatch.row import Row

Recipient = tuple[str, str, int]
"""Organization, environment, `recipient_hash`."""


class ConsentWatch:
    """The messages of all numbers of the process; small, because a claim comes at most 50 ms before its call."""

    def __init__(self) -> None:
        self._going: dict[Recipient, set[str]] = {}
        self._stopped: set[str] = set()

    def begin(self, row: Row) -> None:
        """The row is about to be claimed: from now on a refusal stops it."""
        for recipient in _recipients(row):
            self._going.setdefault(recipient, set()).add(row.id)

    def end(self, row: Row) -> bool:
        """The row leaves now, or was not claimed after all; answers whether a refusal stopped it meanwhile."""
        for recipient in _recipients(row):
            going = self._going.get(recipient)
            if going is not None:
                going.discard(row.id)
                if not going:
                    del self._going[recipient]
        if row.id in self._stopped:
            self._stopped.discard(row.id)
            return True
        return False

    def refused(self, recipients: Iterable[Recipient]) -> None:
        """These people opted out, and it is committed: no call for them begins from now on."""
        if self._going:
            for recipient in recipients:
                self._stopped |= self._going.get(recipient, set())


def _recipients(row: Row) -> tuple[Recipient, ...]:
    """Whom it goes to, and its contact."""
    to = (row.organization_id, row.env, row.recipient_hash)
    return (to,) if row.contact_hash is None else (to, (row.organization_id, row.env, row.contact_hash))
