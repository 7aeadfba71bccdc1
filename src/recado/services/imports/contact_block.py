"""Writes one block of an import: its rows in one transaction, by statements for many rows (C12.7).

Rows are taken in their order. Those of the same contact are folded into one, unless one of them changes its consent or
may fail alone: each change of consent has its place in the contact's history, and so a turn of its own. New contacts of
whom a row gives nothing but plain fields go a shorter way, which writes the same.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

import asyncpg

from recado.domain.contacts.consent import (
    ConsentRefusal,
    ConsentStatus,
    ConsentUpdate,
    decide,
    readdressed,
    repeated_refusal,
)
from recado.domain.contacts.contact import MOST_TAGS, Contact, ContactSource, consent_columns, tags_without
from recado.domain.contacts.contact_import import ImportMode, ImportOptions, MatchBy
from recado.domain.contacts.debts import DebtGroup
from recado.domain.contacts.documents import BIRTH_DATE, CNPJ, CPF
from recado.domain.core.clock import Clock
from recado.domain.core.errors import FieldError, Problem, validation_error
from recado.domain.core.ids import CONTACT, IdSource
from recado.engine.turns import in_pieces, turns
from recado.services.contacts import contact_events
from recado.services.contacts.consents import ConsentChanged, Consents, Gathered, Outcome, address_of, new_address
from recado.services.contacts.contact_rules import changed_contact, new_contact, refusal_of
from recado.services.imports.contact_rows import ContactRow
from recado.services.imports.contact_targets import STATEMENT, Finder, Target, looked_up, passing, readable, turn
from recado.storage.audience import lists
from recado.storage.contacts import companies, contact_columns, contact_imports, contacts, debtor_groups, opt_outs
from recado.storage.contacts.contact_columns import PlainLines
from recado.storage.contacts.contact_imports import ContactImport, Progress
from recado.storage.contacts.documents import DocumentCipher
from recado.storage.core.audit import AuditPrincipal
from recado.storage.core.connections.failures import Collided
from recado.storage.core.connections.postgres import Connection, Database

PIECE: Final = 50  # contacts that are made in one turn
_IGNORED: Final = ("CONSENTIMENTO_ANTERIOR_A_RECUSA", "CONSENTIMENTO_SEM_ORIGEM")
"""A consent that does not undo a refusal: the row is written without it."""


class Raced(Exception):
    """Somebody else wrote a contact of this block meanwhile: nothing was written, and the block is to be run again."""


class BlockWriter:
    """Writes blocks, each once."""

    def __init__(
        self, db: Database, *, ids: IdSource, documents: DocumentCipher, consents: Consents, clock: Clock
    ) -> None:
        self._db = db
        self._ids = ids
        self._documents = documents
        self._consents = consents
        self._clock = clock

    async def write(self, found: ContactImport, first_row: int, rows: Sequence[ContactRow], *, wary: bool) -> None:
        """Write the rows of a block and the import's progress in one commit; nothing when that was done before.

        Raises `Raced`. Who else has the external ids of rows that are matched by phone is looked up only when `wary`:
        nobody has, as a rule, and otherwise the index says so.
        """
        outcomes: list[Outcome] = []
        try:
            async with self._db.bulk.transaction() as connection:
                if not await contact_imports.take_block(connection, found.key, first_row):
                    return
                progress = Progress()
                block = _Block(self, connection, found, progress, self._clock.now(), wary)
                waiting = readable(rows, progress)
                await block.hold_companies(waiting)
                if not wary and may_be_plain(block.options):
                    waiting = await block.write_plain(waiting)
                while waiting:
                    await turns.next()
                    targets, waiting = turn(waiting, block.options.match_by)
                    outcomes.append(await block.write(targets))
                await block.join_list()
                committed = await self._consents.write(connection, block.withdrawn)
                await contact_imports.advance(connection, found.key, progress, self._clock.now())
        except (asyncpg.UniqueViolationError, Collided):
            raise Raced from None
        for outcome in outcomes:
            outcome.committed()
        committed()


class _Block:
    """One block in its transaction."""

    def __init__(
        self,
        parts: BlockWriter,
        connection: Connection,
        found: ContactImport,
        progress: Progress,
        now: datetime,
        wary: bool,
    ) -> None:
        self.options = ImportOptions.load(found.options)
        self.withdrawn = Gathered()  # wallets are locked last, and once
        self._ids, self._documents = parts._ids, parts._documents
        self._consents = parts._consents.gathering(self.withdrawn)
        self._connection = connection
        self._import = found
        self._progress = progress
        self._now = now
        self._wary = wary
        self._environment = (found.organization_id, found.env)
        self._members: list[str] = []
        self._known: dict[str, Contact] | None = None  # by phone, as they were before this block
        self._by = AuditPrincipal(found.actor_type, found.actor_id, ip=found.actor_ip)

    async def hold_companies(self, rows: Sequence[ContactRow]) -> None:
        """The companies of all turns, before any contact: anyone who deletes one locks it, and then its contacts."""
        named = sorted({row.values["company_id"] for row in rows if row.values.get("company_id") is not None})
        if named:
            await companies.existing(self._connection, *self._environment, named)

    async def write_plain(self, rows: Sequence[ContactRow]) -> list[ContactRow]:
        """Write what needs no closer look; answers the other rows."""
        phones = [row.values["phone"] for row in rows]
        found = await looked_up(contacts.by_phones, self._connection, self._environment, phones)
        known = {contact.phone: contact for contact in found}
        await turns.next()
        plain, others = split_plain(rows, known)
        people = [(row.values["phone"], row.values.get("email")) for row in plain]
        registered = set(await opt_outs.registered_places(self._connection, *self._environment, people))
        new = [row for place, row in enumerate(plain) if place not in registered]
        lines = PlainLines(*self._environment, ContactSource.IMPORT.value)
        async for piece in in_pieces(new, PIECE):
            for row in piece:
                contact_id = self._ids.new(CONTACT)
                lines.add(contact_id, row.values)
                self._members.append(contact_id)
        if new:
            await lines.copy(self._connection)
        self._progress.created += len(new)
        self._known = known
        if not registered:
            return others
        return sorted([*others, *(plain[place] for place in registered)], key=lambda row: row.number)

    async def write(self, targets: Sequence[Target]) -> Outcome:
        """Write one turn: no two of the targets are the same contact."""
        finder = Finder(self._connection, self._import, self.options, self._progress)
        by_phone, self._known = self._known, None
        targets = await finder.found(await finder.with_companies(targets), wary=self._wary, known=by_phone)
        targets = await self._made(targets)
        targets = await self._with_groups(targets)
        targets = await self._decided(targets)
        await self._readdressed(targets)
        new = [each for each in targets if each.before is None]
        known = [each for each in targets if each.before is not None]
        await self._insert(new)
        await self._save(known)
        await self._write_groups(targets)
        await turns.next()
        self._members += [each.contact.id for each in targets]
        self._progress.unchanged += sum(each.rows - 1 for each in targets)
        changes = [
            ConsentChanged(each.contact, each.changed, self._by, registered=each.registered is not None)
            for each in targets
            if each.changed is not None
        ]
        events = [contact_events.created(each.contact) for each in new] if self.options.emit_events else []
        repeated = [(address_of(each.contact), each.repeated) for each in targets if each.repeated is not None]
        return await self._consents.record(self._connection, changes, self._now, events=events, repeated=repeated)

    async def join_list(self) -> None:
        """Everyone whom the block names becomes a member; a list that was deleted meanwhile has none."""
        if self.options.list_id is not None and self._members:
            await lists.join(
                self._connection,
                *self._environment,
                self.options.list_id,
                list(dict.fromkeys(self._members)),
                self._now,
            )

    # What it becomes ------------------------------------------------------------------------------------------------

    async def _made(self, targets: Sequence[Target]) -> list[Target]:
        """The targets with the contact that each shall be."""
        organization_id, env = self._environment

        def make(each: Target) -> None:
            values = dict(each.values)  # the row stays as it is: the block may have to run again
            each.consent = values.pop("opt_in", None)
            each.groups = values.pop("debtor_groups", None)
            if each.before is not None:
                values = self._differing(each.before, values)
                each.contact = changed_contact(each.before, values, self._documents) if values else each.before
                return
            if each.consent is not None and each.consent.status is ConsentStatus.UNKNOWN:
                each.consent = None
            each.contact = new_contact(
                values, self._documents, organization_id=organization_id, env=env,
                contact_id=self._ids.new(CONTACT), source=ContactSource.IMPORT.value,
            )  # fmt: skip

        made: list[Target] = []
        async for piece in in_pieces(targets, PIECE):
            made += passing(piece, make, self._progress)
        return made

    def _differing(self, before: Contact, values: Mapping[str, Any]) -> dict[str, Any]:
        """What the contact does not have yet. Nulls take the place of no attribute."""
        given = {
            name: value
            for name, value in values.items()
            if name == "attributes" or getattr(before, name, None) != value
        }
        has = before.attributes
        new = {
            key: value
            for key, value in given.pop("attributes", {}).items()
            if key not in has or (value is not None and not _is_same(has[key], value))
        }
        if new:
            given["attributes"] = new
        if "external_ids" in given and given["external_ids"].items() <= before.external_ids.items():
            del given["external_ids"]
        if "added_tags" in given and not tags_without(given["added_tags"], before.tags):
            del given["added_tags"]
        for name, kept in (("cpf", before.cpf_index), ("cnpj", before.cnpj_index)):
            if name in given and kept is not None and kept == self._index(name, given[name]):
                del given[name]
        if "birth_date" in given and before.birth_date_cipher is not None:
            place = {"organization_id": before.organization_id, "contact_id": before.id}
            if self._documents.holds(BIRTH_DATE, before.birth_date_cipher, given["birth_date"], **place):
                del given["birth_date"]
        return given

    def _index(self, name: str, value: str) -> bytes:
        organization_id, env = self._environment
        return self._documents.index({"cpf": CPF, "cnpj": CNPJ}[name], value, organization_id=organization_id, env=env)

    async def _decided(self, targets: Sequence[Target]) -> list[Target]:
        """The targets with what becomes of their consents. One that would undo a refusal does not, and is counted."""
        asking = [each for each in targets if each.consent is not None]
        if not asking:
            return list(targets)

        def check(each: Target) -> Problem | None:
            current = None if each.before is None else each.before.consent
            decided = decide(current, each.consent, now=self._now, registered=each.registered)
            if not isinstance(decided, ConsentRefusal):
                _take(each, decided)
                each.repeated = None if current is None else repeated_refusal(current, each.consent, now=self._now)
            elif decided.code not in _IGNORED:
                return refusal_of(decided)
            else:
                self._progress.consent_ignored += 1
                if each.before is None:
                    _take(each, decide(None, None, now=self._now, registered=each.registered))
            return None

        decided = [each for each in targets if each.consent is None]
        async for piece in in_pieces(asking, STATEMENT):
            entries = await opt_outs.entries(self._connection, [address_of(each.contact) for each in piece])
            for each, entry in zip(piece, entries, strict=True):
                each.registered = entry
            decided += passing(piece, check, self._progress)
        return decided

    async def _readdressed(self, targets: Sequence[Target]) -> None:
        """Anyone who receives an address that the opt-out registry knows has refused."""
        addresses = [
            (each, address)
            for each in targets
            if each.before is not None
            and each.changed is None
            and (address := new_address(each.before, each.contact)) is not None
        ]
        async for piece in in_pieces(addresses, STATEMENT):
            entries = await opt_outs.entries(self._connection, [address for _, address in piece])
            for (each, _), entry in zip(piece, entries, strict=True):
                each.registered = entry or each.registered
                _take(each, readdressed(each.contact.consent, entry))

    async def _with_groups(self, targets: Sequence[Target]) -> list[Target]:
        """Without those that name the group of another contact; groups that are the same as before are dropped."""
        giving = [each for each in targets if each.groups is not None]
        if not giving:
            return list(targets)
        named = [group.id for each in giving for group in each.groups or () if group.id is not None]
        held = await debtor_groups.holders(self._connection, *self._environment, named)
        before = await debtor_groups.of_contacts(
            self._connection, *self._environment, [each.contact.id for each in giving if each.before is not None]
        )

        def check(each: Target) -> Problem | None:
            for place, group in enumerate(each.groups or ()):
                if group.id is not None and held.setdefault(group.id, each.contact.id) != each.contact.id:
                    message = "is not the id of a group of this contact"
                    error = FieldError(f"/debtorGroups/{place}/id", "REFERENCE_NOT_FOUND", message)
                    return validation_error([error], code="REFERENCE_NOT_FOUND")
            if each.groups is not None and _are_same(each.groups, before.get(each.contact.id, ())):
                each.groups = None
            return None

        return passing(targets, check, self._progress)

    # What is written ------------------------------------------------------------------------------------------------

    async def _insert(self, new: Sequence[Target]) -> None:
        """Insert; whom the opt-out registry knows is born denied."""
        async for piece in in_pieces(new, STATEMENT):
            await self._deny_opted_out([each for each in piece if each.consent is None])
            lines: list[str] = []
            async for some in in_pieces(piece, PIECE):
                lines += [contact_columns.line(each.contact) for each in some]
            await contact_columns.copy_new(self._connection, lines)
        self._progress.created += len(new)

    async def _deny_opted_out(self, new: Sequence[Target]) -> None:
        people = [(each.contact.phone, each.contact.email) for each in new]
        places = await opt_outs.registered_places(self._connection, *self._environment, people)
        known = [new[place] for place in places]
        entries = await opt_outs.entries(self._connection, [address_of(each.contact) for each in known])
        for each, entry in zip(known, entries, strict=True):
            each.registered = entry
            _take(each, decide(None, None, now=self._now, registered=entry))

    async def _save(self, known: Sequence[Target]) -> None:
        """Write those that differ; anyone who was changed since they were read makes the block run again.

        So does anyone who was deleted of those that join a list: its members are contacts. Anyone who only refuses
        once more is held: a consent at the same moment comes before that, or after it.
        """
        differing = [each for each in known if each.contact is not each.before or each.groups is not None]
        differing.sort(key=lambda each: each.contact.id)  # as everybody locks contacts, who changes several
        async for piece in in_pieces(differing, STATEMENT):
            written = await contacts.save_many(
                self._connection, *self._environment, [each.contact for each in piece], self._now
            )
            if len(written) < len(piece):
                raise Raced
            for each in piece:
                each.contact = replace(each.contact, revision=each.contact.revision + 1, updated_at=self._now)
        repeating = [each.contact for each in known if each.repeated is not None and each.contact is each.before]
        async for held in in_pieces(repeating, STATEMENT):
            if not await contacts.hold_unchanged(self._connection, *self._environment, held):
                raise Raced
        if self.options.list_id is not None:
            same = [each.contact.id for each in known if each.contact is each.before and each.groups is None]
            if not await contacts.hold(self._connection, *self._environment, same):
                raise Raced
        self._progress.updated += len(differing)
        self._progress.unchanged += len(known) - len(differing)

    async def _write_groups(self, targets: Sequence[Target]) -> None:
        """Store the groups that differ."""
        giving = [each for each in targets if each.groups is not None]
        if not giving:
            return
        replaced = [each.contact.id for each in giving if each.before is not None]
        await debtor_groups.remove(self._connection, *self._environment, replaced)
        owned = [(each.contact.id, debtor_groups.with_ids(each.groups or (), self._ids)) for each in giving]
        await debtor_groups.insert(self._connection, *self._environment, owned)


def may_be_plain(options: ImportOptions) -> bool:
    """Whether an import may have plain rows: matched by phone, free to create, and no event to be told of them."""
    return options.match_by is MatchBy.PHONE and options.mode is not ImportMode.UPDATE and not options.emit_events


def split_plain(rows: Sequence[ContactRow], known: Collection[str]) -> tuple[list[ContactRow], list[ContactRow]]:
    """The rows of new contacts that meet no other row, and give only plain fields; and the others. `known`: phones."""
    phones = Counter([row.values["phone"] for row in rows])
    external_ids = Counter([row.values.get("external_id") for row in rows])
    external_ids[None] = 1  # anyone who has none meets nobody
    plain: list[ContactRow] = []
    others: list[ContactRow] = []
    for row in rows:
        values = row.values
        phone = values["phone"]
        if (
            phone not in known
            and phones[phone] == 1
            and external_ids[values.get("external_id")] == 1
            and values.keys() <= PlainLines.PLAIN
            and len(values.get("added_tags", ())) <= MOST_TAGS
        ):
            plain.append(row)
        else:
            others.append(row)
    return plain, others


def _are_same(given: Sequence[DebtGroup], before: Sequence[DebtGroup]) -> bool:
    """Whether groups are those that the contact has; one that is given without an id is compared by what it says."""
    return len(given) == len(before) and all(
        (new if new.id is not None else replace(new, id=old.id)) == old for new, old in zip(given, before, strict=True)
    )


def _is_same(one: Any, other: Any) -> bool:
    """Whether two values are the same in JSON, where 1 is not true."""
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def _take(target: Target, decided: ConsentUpdate | ConsentRefusal | None) -> None:
    if isinstance(decided, ConsentUpdate):
        target.changed = decided
        target.contact = replace(target.contact, **consent_columns(decided.after))
