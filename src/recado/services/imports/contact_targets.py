"""Whose rows they are: the contacts that the rows of a block mean, and the rows that fail (C12.7)."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from recado.domain.contacts.consent import ConsentChange, ConsentUpdate, OptOutEntry
from recado.domain.contacts.contact import Contact, ContactSource
from recado.domain.contacts.contact_import import ImportMode, ImportOptions, MatchBy
from recado.domain.core.errors import FieldError, Problem, validation_error
from recado.domain.core.ids import CONTACT, lowest_id
from recado.engine.turns import in_pieces
from recado.services.contacts.contact_rules import no_such_company, taken
from recado.services.imports.contact_rows import ContactRow, folded, row_error
from recado.storage.contacts import companies, contacts
from recado.storage.contacts.contact_imports import ContactImport, Progress
from recado.storage.contacts.debtor_groups import Groups
from recado.storage.core.statements.rows import Executor

STATEMENT: Final = 250
"""Contacts of one statement: to make its parameters, and to read what it answers, takes a millisecond or two."""


@dataclass(slots=True, eq=False)
class Target:
    """One contact of a block. `before` None: it is new. `rows`: how many were folded into it."""

    row: int
    values: dict[str, Any] = field(repr=False)
    rows: int = 1
    before: Contact | None = None
    contact: Contact = field(default=None, repr=False)  # type: ignore[assignment] # set when it is found or made
    consent: ConsentChange | None = None
    changed: ConsentUpdate | None = None
    registered: OptOutEntry | None = None
    repeated: OptOutEntry | None = None  # refused before, and refuses again
    groups: Groups | None = None


_REFUSABLE: Final = ("company_id", "external_id", "debtor_groups")
"""What may belong to somebody else, or not exist."""

TargetCheck = Callable[[Target], Problem | None] | Callable[[Target], None]
"""Answers, or raises, why the row of a target fails."""


def readable(rows: Sequence[ContactRow], progress: Progress) -> list[ContactRow]:
    """The rows that could be read; the others are counted with their errors."""
    good = [row for row in rows if not row.errors]
    progress.failed += len(rows) - len(good)
    progress.errors += [error for row in rows for error in row.errors]
    return good


def turn(rows: Sequence[ContactRow], match_by: MatchBy) -> tuple[list[Target], list[ContactRow]]:
    """The rows that can be written together, folded by contact, and those that must wait for them."""
    key = "phone" if match_by is MatchBy.PHONE else "external_id"
    targets: dict[str, Target] = {}
    waiting: list[ContactRow] = []
    held_back: set[str] = set()
    for row in rows:
        name = row.values[key]
        target = targets.get(name)
        if target is None:
            targets[name] = Target(row.number, row.values)
        elif name in held_back or _stand_apart(target.values, row.values):
            held_back.add(name)
            waiting.append(row)
        else:
            target.values = folded(target.values, row.values)
            target.row = row.number
            target.rows += 1
    return list(targets.values()), waiting


def _stand_apart(earlier: Mapping[str, Any], later: Mapping[str, Any]) -> bool:
    """Whether two rows of one contact are written one after the other.

    One changes its consent, or may fail for what the other does not say: a bad row fails alone (C12.7.4).
    """
    if "opt_in" in earlier or "opt_in" in later:
        return True
    if any(earlier.get(name) != later.get(name) for name in _REFUSABLE):
        return True
    return "phone" in earlier and "phone" in later and earlier["phone"] != later["phone"]


def passing(targets: Iterable[Target], check: TargetCheck, progress: Progress) -> list[Target]:
    """Those that pass; a refusal is the error of its row."""
    passed = []
    for each in targets:
        try:
            problem = check(each)
        except Problem as raised:
            problem = raised
        if problem is None:
            passed.append(each)
        else:
            _fail(each, problem, progress)
    return passed


def _fail(target: Target, problem: Problem, progress: Progress) -> None:
    progress.failed += target.rows
    errors = problem.errors or [FieldError("", problem.code, problem.detail)]
    # A row's tags are added to those that the contact has: what is wrong with them is told of `tags`.
    paths = [error.path.replace("/addTags", "/tags") for error in errors]
    progress.errors += [
        row_error(target.row, replace(error, path=path)) for error, path in zip(errors, paths, strict=True)
    ]


LookUp = Callable[[Executor, str, str, Sequence[str]], Awaitable[list[Contact]]]


async def looked_up(
    look_up: LookUp, connection: Executor, environment: tuple[str, str], keys: Sequence[str]
) -> list[Contact]:
    """The contacts with these keys, of which each becomes a record: some at a time."""
    found: list[Contact] = []
    async for piece in in_pieces(keys, STATEMENT):
        found += await look_up(connection, *environment, piece)
    return found


class Finder:
    """Finds the contacts that targets mean, in the transaction of their block."""

    def __init__(self, connection: Executor, found: ContactImport, options: ImportOptions, progress: Progress) -> None:
        self._connection = connection
        self._import = found
        self._options = options
        self._progress = progress
        self._environment = (found.organization_id, found.env)

    async def with_companies(self, targets: Sequence[Target]) -> list[Target]:
        """Without those whose company does not exist; the others' companies stay until the block is written."""
        named = sorted({each.values["company_id"] for each in targets if "company_id" in each.values})
        if not named:
            return list(targets)
        known = await companies.existing(self._connection, *self._environment, named)

        def check(each: Target) -> Problem | None:
            company_id = each.values.get("company_id")
            if company_id is None or company_id in known:
                return None
            return no_such_company(company_id, self._environment[1])

        return passing(targets, check, self._progress)

    async def found(
        self, targets: Sequence[Target], *, wary: bool, known: Mapping[str, Contact] | None = None
    ) -> list[Target]:
        """The targets with the contacts that they name; without those that the mode or another's id forbids.

        `wary`: also look who has the external ids when contacts are matched by phone. `known`: who has their phones,
        when that was looked up already.
        """
        external_ids = [each.values["external_id"] for each in targets if "external_id" in each.values]
        by_phone = await self._by_phones(targets) if known is None else known
        by_external_id: dict[str, Contact] = {}
        if external_ids and (wary or self._options.match_by is MatchBy.EXTERNAL_ID):
            found = await looked_up(contacts.by_external_ids, self._connection, self._environment, external_ids)
            by_external_id = {str(c.external_id): c for c in found}
        # Who has a phone or an external id once the targets before are written.
        phones_taken: dict[str, object] = {phone: c.id for phone, c in by_phone.items()}
        ids_taken: dict[str, object] = {external_id: c.id for external_id, c in by_external_id.items()}
        matched = self._options.match_by

        def check(each: Target) -> Problem | None:
            phone, external_id = each.values.get("phone"), each.values.get("external_id")
            before = by_phone.get(phone or "") if matched is MatchBy.PHONE else by_external_id.get(external_id or "")
            refused = self._refused_by_mode(before, phone)
            if refused is not None:
                return refused
            me: object = each if before is None else before.id
            if before is None and phones_taken.setdefault(str(phone), me) != me:
                return taken(by_phone=True)
            if external_id is not None and ids_taken.setdefault(external_id, me) != me:
                return taken(by_phone=False)
            each.before = before
            return None

        return passing(targets, check, self._progress)

    async def _by_phones(self, targets: Sequence[Target]) -> Mapping[str, Contact]:
        phones = [each.values["phone"] for each in targets if "phone" in each.values]
        return {c.phone: c for c in await looked_up(contacts.by_phones, self._connection, self._environment, phones)}

    def _refused_by_mode(self, before: Contact | None, phone: str | None) -> Problem | None:
        mode = self._options.mode
        if before is None:
            if mode is ImportMode.UPDATE:
                return Problem("NOT_FOUND", "No contact has this key.")
            if phone is None:
                return validation_error([FieldError("/phone", "REQUIRED", "is required to create a contact")])
        elif mode is ImportMode.CREATE and not self._is_own(before):
            return taken(by_phone=self._options.match_by is MatchBy.PHONE)
        return None

    def _is_own(self, contact: Contact) -> bool:
        """Whether an earlier row of this file made the contact: then a later one wins."""
        made_since = lowest_id(CONTACT, self._import.created_at)
        return contact.source == ContactSource.IMPORT.value and contact.id >= made_since
