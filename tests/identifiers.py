"""Whom a call on a list's members names, read without a pause."""

from collections.abc import Sequence

from recado.domain.audience.members import Identifiers, reading


def read_identifiers(contact_ids: Sequence[str], phones: Sequence[str], external_ids: Sequence[str]) -> Identifiers:
    steps = reading(contact_ids, phones, external_ids)
    while True:
        try:
            next(steps)
        except StopIteration as done:
            found: Identifiers = done.value
            return found
