"""Whom a call on a list's members names, read in one go."""

from collections.abc import Sequence

from recado.domain.members import Identifiers, reading
from recado.domain.steps import at_once


def read_identifiers(contact_ids: Sequence[str], phones: Sequence[str], external_ids: Sequence[str]) -> Identifiers:
    return at_once(reading(contact_ids, phones, external_ids))
