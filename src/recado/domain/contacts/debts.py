"""Debt groups of a contact: who is owed how much, and by which phones they are known (C12.9). Information only."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Final

from recado.domain.contacts.contact import MOST_GROUP_PHONES, MOST_GROUPS, DebtStatus
from recado.domain.core.errors import Problem
from recado.domain.core.ids import DEBTOR_GROUP, is_id
from recado.domain.core.phones import canonical_phone
from recado.domain.core.reading import Refusal, items, members, one_of, text, whole_number

MOST_COMPANY: Final = 200
MOST_REFERENCE: Final = 200
MOST_CENTS: Final = 2**53 - 1  # what every JSON reader holds exactly


@dataclass(frozen=True, slots=True)
class DebtGroup:
    """One group. `id` None: it gets one when it is stored. `phones` are canonical; `amount_cents`: BRL cents, open."""

    id: str | None
    company: str
    phones: tuple[str, ...] = field(repr=False)
    amount_cents: int | None = None
    status: DebtStatus | None = None
    reference: str | None = field(default=None, repr=False)


def read_groups(value: Any) -> tuple[DebtGroup, ...]:
    """At most 20 groups, each id once; raises Refusal."""
    found: list[DebtGroup] = []
    taken: set[str] = set()
    for position, item in enumerate(items(value, MOST_GROUPS)):
        try:
            group = _group(item, taken)
        except Refusal as refusal:
            raise refusal.under(position) from None
        if group.id is not None:
            taken.add(group.id)
        found.append(group)
    return tuple(found)


def _group(value: Any, taken: Collection[str]) -> DebtGroup:
    given = members(value)
    lacking = [name for name in ("company", "phones") if given.get(name) is None]
    if lacking:
        raise Refusal("REQUIRED", "is required", *(f"/{name}" for name in lacking))
    return DebtGroup(
        id=_read(given, "id", lambda item: _id(item, taken)),
        company=_read(given, "company", lambda item: text(item, MOST_COMPANY)),
        phones=_read(given, "phones", _phones),
        amount_cents=_read(given, "amountCents", lambda item: whole_number(item, 0, MOST_CENTS)),
        status=_read(given, "status", lambda item: one_of(item, DebtStatus)),
        reference=_read(given, "reference", lambda item: text(item, MOST_REFERENCE)),
    )


def _read(given: Any, name: str, read: Any) -> Any:
    value = given.get(name)
    try:
        return None if value is None else read(value)
    except Refusal as refusal:
        raise refusal.under(name) from None


def _id(value: Any, taken: Collection[str]) -> str:
    if not isinstance(value, str) or not is_id(DEBTOR_GROUP, value) or value in taken:
        raise Refusal("REFERENCE_NOT_FOUND", "is not the id of a group of this contact")
    return value


def _phones(value: Any) -> tuple[str, ...]:
    found = []
    for position, item in enumerate(items(value, MOST_GROUP_PHONES, least=1)):
        try:
            found.append(phone(item))
        except Refusal as refusal:
            raise refusal.under(position) from None
    return tuple(dict.fromkeys(found))


def phone(value: Any) -> str:
    """A phone in canonical form (C2.4); raises Refusal."""
    if not isinstance(value, str):
        raise Refusal("WRONG_TYPE", "must be a text")
    try:
        return canonical_phone(value)
    except Problem as problem:
        raise Refusal(problem.code, problem.detail) from None
