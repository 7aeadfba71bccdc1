"""The opt-out registry (C12.5.8): phones and addresses, by hash, that asked for nothing more. It outlives contacts.

An entry from before a spelling was canonical keeps its hash. So whoever asks asks for every spelling that a phone had.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from recado.domain.channels.address import Address, AddressKind, recipient_hash
from recado.domain.contacts.consent import OptOutEntry
from recado.domain.contacts.contact import email_hash, email_key
from recado.domain.contacts.keywords import OWN_SOURCES
from recado.domain.core.phones import canonical_phone, other_spellings, phone_hash
from recado.storage.contacts.email_consent import by_address
from recado.storage.core.statements.rows import Executor, columns, pack, pack_some
from recado.storage.core.statements.sql import load

SQL = load("opt_outs", **by_address())

Name = tuple[str, bytes]
"""Kind and hash of an entry."""

_OWN_SOURCES: Final = sorted(OWN_SOURCES)


@dataclass(frozen=True, slots=True)
class Registrant:
    """Whom the registry may know: a phone, an e-mail address, a user id of the chat app, or several of these.

    `email_hash`: of an address that nobody can tell any more (`Address.hash`), in its place.
    """

    organization_id: str
    env: str
    phone: str | None = field(default=None, repr=False)
    email: str | None = field(default=None, repr=False)
    email_hash: bytes | None = None
    user_id: str | None = field(default=None, repr=False)

    def addresses(self) -> list[Address]:
        """What a refusal enters."""
        phone = [] if self.phone is None else [Address(AddressKind.PHONE, canonical_phone(self.phone))]
        return phone + self._user_ids() + self._emails()

    def known_addresses(self) -> list[Address]:
        """What may have been entered, or written to: the phone in every spelling that was one of its own once."""
        phones = [] if self.phone is None else Address(AddressKind.PHONE, self.phone).spellings()
        return [*phones, *self._user_ids(), *self._emails()]

    def names(self) -> list[Name]:
        """Of each entry that a refusal writes."""
        return [self._name(each) for each in self.addresses()] + self._hashed()

    def known_names(self) -> list[Name]:
        """Of each entry that it may have."""
        return [self._name(each) for each in self.known_addresses()] + self._hashed()

    def recipients(self) -> list[tuple[str, str, int]]:
        """Whom queued messages go to: organization, environment, `recipient_hash`.

        What was queued before a spelling was canonical goes to the phone as it was spelled then.
        """
        where = self.organization_id, self.env
        return [(*where, recipient_hash(hashed)) for _, hashed in self.known_names()]

    def _name(self, address: Address) -> Name:
        return address.asked_as.value, address.hash(self.organization_id)

    def _user_ids(self) -> list[Address]:
        return [] if self.user_id is None else [Address(AddressKind.SCOPED_USER, self.user_id)]

    def _hashed(self) -> list[Name]:
        return [] if self.email_hash is None else [(AddressKind.EMAIL.value, self.email_hash)]

    def _emails(self) -> list[Address]:
        return [] if self.email is None else [Address(AddressKind.EMAIL, email_key(self.email))]


Refusal = tuple[Registrant, OptOutEntry]
"""Whose, when, and from where."""


def texts(addresses: Sequence[Address | None], kind: AddressKind) -> list[str | None]:
    """Those that are asked about as a kind, each in its place."""
    return [each.text if each is not None and each.asked_as is kind else None for each in addresses]


def pack_spellings(phones: Sequence[str | None]) -> str | None:
    """The other spellings of each phone, for a statement that asks the registry; usually nobody has any."""
    return pack_some([None if phone is None else " ".join(other_spellings(phone)) or None for phone in phones])


def by_email(statement: str, place: int) -> str:
    """A statement that asks for consent by phone, as one that asks by e-mail as well; `place`: of the addresses.

    The addresses are an array of keys (`email_key`), null where a row asks by phone or not at all.
    """
    return (
        statement.replace("/*+column*/", ", email")
        .replace("/*+values*/", f", ${place}::text[]")
        .replace("/*+phones*/", "and g.email is null")
        .replace("/*+refused*/", SQL.refused_by_email)
        .replace("/*+forbidden*/", SQL.forbidden_by_email)
    )


async def entries(executor: Executor, registrants: Sequence[Registrant]) -> list[OptOutEntry | None]:
    """What the registry says of each: of its phone, in any spelling, and its e-mail address, as one refusal."""
    named = [
        (n, each.organization_id, each.env, *name) for n, each in enumerate(registrants) for name in each.known_names()
    ]
    found: list[OptOutEntry | None] = [None] * len(registrants)
    if not named:
        return found
    numbers, organizations, envs, kinds, hashes = (list(column) for column in zip(*named, strict=True))
    for row in await executor.fetch(SQL.entries, numbers, organizations, envs, kinds, hashes):
        known, entry = found[row["n"]], OptOutEntry(row["at"], row["source"])
        found[row["n"]] = entry if known is None else known.joined(entry)
    return found


async def registered_places(
    connection: Executor, organization_id: str, env: str, new: Sequence[tuple[str, str | None]]
) -> list[int]:
    """The places of those, by phone and address, that the opt-out registry knows, if it knows anyone."""
    if not new or not await connection.fetchval(SQL.anyone_opted_out, organization_id, env):
        return []
    rows = await connection.fetch(
        SQL.opted_out,
        organization_id,
        env,
        pack([phone_hash(organization_id, phone).hex() for phone, _ in new]),
        pack([None if email is None else email_hash(organization_id, email).hex() for _, email in new]),
        pack_spellings([phone for phone, _ in new]),
    )
    return [row["place"] - 1 for row in rows]


async def enter(connection: Executor, refusals: Sequence[Refusal]) -> None:
    """Record refusals. An entry that is there already, or is entered twice, is joined (`OptOutEntry.joined`)."""
    rows: dict[tuple[str, str, str, bytes], OptOutEntry] = {}
    for registrant, refusal in refusals:
        for name in registrant.names():
            key = (registrant.organization_id, registrant.env, *name)
            rows[key] = rows[key].joined(refusal) if key in rows else refusal
    if rows:
        entered = [(*key, rows[key].at, rows[key].source) for key in sorted(rows)]
        await connection.execute(SQL.enter, *columns(entered, 6), _OWN_SOURCES)


async def leave(connection: Executor, registrant: Registrant, contact_id: str) -> None:
    """A contact consents again. An e-mail address stays while another contact with it refuses."""
    organization_id, env = registrant.organization_id, registrant.env
    for kind, hashed, text in sorted(
        (each.asked_as, each.hash(organization_id), each.text) for each in registrant.known_addresses()
    ):
        if kind is AddressKind.PHONE:
            await connection.execute(SQL.leave, organization_id, env, kind, hashed)
        else:
            await connection.execute(SQL.leave_unless_shared, organization_id, env, kind, hashed, text, contact_id)
