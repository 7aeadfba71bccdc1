"""The opt-out registry (C12.5.8): phones and addresses, by hash, that asked for nothing more. It outlives contacts.

An entry from before a spelling was canonical keeps its hash. So whoever asks asks for every spelling that a phone had.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from recado.domain.contacts.consent import OptOut
from recado.domain.contacts.contact import email_hash, email_key
from recado.domain.contacts.keywords import OWN_SOURCES
from recado.domain.core.phones import canonical_phone, other_spellings, phone_hash, recipient_hash
from recado.storage.core.rows import Executor, columns, pack, pack_some
from recado.storage.core.sql import load

SQL = load("opt_outs")

PHONE, EMAIL = "phone", "email"
_OWN_SOURCES: Final = sorted(OWN_SOURCES)


@dataclass(frozen=True, slots=True)
class Address:
    """Whom the registry may know: a phone, an e-mail address, or both."""

    organization_id: str
    env: str
    phone: str | None = field(default=None, repr=False)
    email: str | None = field(default=None, repr=False)

    def names(self) -> list[tuple[str, bytes]]:
        """Kind and hash of each entry that a refusal writes."""
        found = []
        if self.phone is not None:
            found.append((PHONE, phone_hash(self.organization_id, canonical_phone(self.phone))))
        if self.email is not None:
            found.append((EMAIL, email_hash(self.organization_id, self.email)))
        return found

    def known_names(self) -> list[tuple[str, bytes]]:
        """Kind and hash of each entry that it may have: those of `names`, and of the phone's other spellings."""
        if self.phone is None:
            return self.names()
        spelled = [
            (PHONE, phone_hash(self.organization_id, each)) for each in (self.phone, *other_spellings(self.phone))
        ]
        return spelled + [name for name in self.names() if name[0] != PHONE]

    def recipients(self) -> list[tuple[str, str, int]]:
        """Whom queued messages go to: organization, environment, `recipient_hash`; empty without a phone.

        What was queued before a spelling was canonical goes to the phone as it was spelled then.
        """
        if self.phone is None:
            return []
        spelled = (self.phone, *other_spellings(self.phone))
        return [(self.organization_id, self.env, recipient_hash(self.organization_id, each)) for each in spelled]


Refusal = tuple[Address, OptOut]
"""Whose, when, and from where."""


def pack_spellings(phones: Sequence[str | None]) -> str | None:
    """The other spellings of each phone, for a statement that asks the registry; usually nobody has any."""
    return pack_some([None if phone is None else " ".join(other_spellings(phone)) or None for phone in phones])


async def entries(executor: Executor, addresses: Sequence[Address]) -> list[OptOut | None]:
    """What the registry says of each: of its phone, in any spelling, and its e-mail address, as one refusal."""
    named = [
        (n, a.organization_id, a.env, kind, hashed) for n, a in enumerate(addresses) for kind, hashed in a.known_names()
    ]
    found: list[OptOut | None] = [None] * len(addresses)
    if not named:
        return found
    numbers, organizations, envs, kinds, hashes = (list(column) for column in zip(*named, strict=True))
    for row in await executor.fetch(SQL.entries, numbers, organizations, envs, kinds, hashes):
        known, entry = found[row["n"]], OptOut(row["at"], row["source"])
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
    """Record refusals. An entry that is there already, and one that is entered twice, are joined (`OptOut.joined`)."""
    rows: dict[tuple[str, str, str, bytes], OptOut] = {}
    for address, refusal in refusals:
        for name in address.names():
            key = (address.organization_id, address.env, *name)
            rows[key] = rows[key].joined(refusal) if key in rows else refusal
    if rows:
        entered = [(*key, rows[key].at, rows[key].source) for key in sorted(rows)]
        await connection.execute(SQL.enter, *columns(entered, 6), _OWN_SOURCES)


async def leave(connection: Executor, address: Address, contact_id: str) -> None:
    """A contact consents again. An address stays while another contact with it refuses."""
    for kind, hashed in sorted(address.known_names()):
        if kind == PHONE:
            await connection.execute(SQL.leave, address.organization_id, address.env, kind, hashed)
        else:
            key = email_key(address.email or "")
            await connection.execute(
                SQL.leave_unless_shared, address.organization_id, address.env, kind, hashed, key, contact_id
            )
