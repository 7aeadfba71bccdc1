"""Debt groups that an import gives: replaced when they differ, refused when they are another's (C12.7, C12.9)."""

from collections.abc import Sequence
from dataclasses import replace

from recado.domain.contacts.debts import DebtGroup
from recado.domain.core.errors import FieldError, Problem, validation_error
from recado.domain.core.ids import IdSource
from recado.services.imports.contact_targets import Target, sifted
from recado.storage.contacts import debtor_groups
from recado.storage.contacts.contact_imports import Progress
from recado.storage.core.rows import Executor


async def with_groups(
    connection: Executor, environment: tuple[str, str], targets: Sequence[Target], progress: Progress
) -> list[Target]:
    """Without those that name the group of another contact; groups that are the same as before are dropped."""
    giving = [each for each in targets if each.groups is not None]
    if not giving:
        return list(targets)
    named = [group.id for each in giving for group in each.groups or () if group.id is not None]
    held: dict[str, str] = await debtor_groups.holders(connection, *environment, named)
    before = await debtor_groups.of_contacts(
        connection, *environment, [each.contact.id for each in giving if each.before is not None]
    )

    def check(each: Target) -> Problem | None:
        for place, group in enumerate(each.groups or ()):
            if group.id is not None and held.setdefault(group.id, each.contact.id) != each.contact.id:
                message = "is not the id of a group of this contact"
                error = FieldError(f"/debtorGroups/{place}/id", "REFERENCE_NOT_FOUND", message)
                return validation_error([error], code="REFERENCE_NOT_FOUND")
        if each.groups is not None and _same(each.groups, before.get(each.contact.id, ())):
            each.groups = None
        return None

    return sifted(targets, check, progress)


async def write_groups(
    connection: Executor, environment: tuple[str, str], targets: Sequence[Target], ids: IdSource
) -> None:
    """Store the groups that differ."""
    giving = [each for each in targets if each.groups is not None]
    if not giving:
        return
    replaced = [each.contact.id for each in giving if each.before is not None]
    await debtor_groups.remove(connection, *environment, replaced)
    owned = [(each.contact.id, debtor_groups.with_ids(each.groups or (), ids)) for each in giving]
    await debtor_groups.insert(connection, *environment, owned)


def _same(given: Sequence[DebtGroup], before: Sequence[DebtGroup]) -> bool:
    """Whether groups are those that the contact has; one that is given without an id is compared by what it says."""
    return len(given) == len(before) and all(
        (new if new.id is not None else replace(new, id=old.id)) == old for new, old in zip(given, before, strict=True)
    )
