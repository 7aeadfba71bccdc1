"""Suppressions (C10.5): an address is found by its hash, which outlives what it is read by."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from recado.domain.contacts.contact import email_hash, email_key
from recado.domain.core.ids import Identified
from recado.domain.core.masking import mask_email
from recado.domain.email.suppression import SuppressionReason, always_suppressed
from recado.storage.core.statements.rows import Executor, columns
from recado.storage.core.statements.sql import load
from recado.storage.core.statements.tables import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class EmailSuppression(Identified):
    """One address of an environment. `email`: as it was given; masked for good once its contact was deleted (C12.6)."""

    organization_id: str
    env: str
    id: str
    email: str = field(repr=False)
    reason: SuppressionReason
    updated_at: datetime


SUPPRESSIONS: Final = Table(
    "email_suppressions",
    EmailSuppression,
    "suppression",
    own=load("email_suppressions"),
    convert={"reason": SuppressionReason},
    derived={"hash": lambda suppression: email_hash(suppression.organization_id, suppression.email)},
)
SQL = SUPPRESSIONS.sql


async def add(connection: Executor, new: EmailSuppression) -> tuple[EmailSuppression, bool]:
    """Suppress an address; answers its entry, the one that was there where there was one, and whether it is new."""
    hashed = email_hash(new.organization_id, new.email)
    row = await connection.fetchrow(
        SQL.add, new.organization_id, new.env, new.id, new.email, new.reason, hashed, new.updated_at
    )
    stored = SUPPRESSIONS.read(row)
    return stored, stored.id == new.id


async def add_many(connection: Executor, new: Sequence[EmailSuppression]) -> None:
    """Suppress addresses; those that are suppressed already stay as they are."""
    rows = {
        (each.organization_id, each.env, email_hash(each.organization_id, each.email)): each for each in reversed(new)
    }
    given = [
        (key[0], key[1], rows[key].id, rows[key].email, rows[key].reason, key[2], rows[key].updated_at)
        for key in sorted(rows)
    ]
    await connection.execute(SQL.add_many, *columns(given, 7))


async def suppressed_among(
    executor: Executor, organization_id: str, env: str, addresses: Sequence[str], *, simulator_domain: str
) -> set[str]:
    """Those of these addresses that get nothing; the simulator's needs no entry."""
    hashes = {email_hash(organization_id, address): address for address in addresses}
    rows = await executor.fetch(SQL.among, organization_id, env, list(hashes))
    found = {row["hash"] for row in rows}
    return {
        address
        for address in addresses
        if email_hash(organization_id, address) in found or always_suppressed(address, simulator_domain)
    }


async def suppressed_of(
    executor: Executor, addresses: Sequence[tuple[str, str, str]], *, simulator_domain: str | None = None
) -> set[int]:
    """The places of those of these addresses, each with its organization and environment, that get nothing.

    `simulator_domain` None: whoever asks looks for the simulator's by itself.
    """
    given = [
        (organization_id, env, email_hash(organization_id, address)) for organization_id, env, address in addresses
    ]
    found = {row["n"] - 1 for row in await executor.fetch(SQL.suppressed, *columns(given, 3))}
    if simulator_domain is None:
        return found
    return found | {
        place for place, (_, _, address) in enumerate(addresses) if always_suppressed(address, simulator_domain)
    }


async def forget_address(connection: Executor, organization_id: str, env: str, address: str) -> None:
    """Keep of an address only what is seen of it masked, unless another contact has it: its contact was deleted."""
    await connection.execute(
        SQL.mask, organization_id, env, email_hash(organization_id, address), mask_email(address), email_key(address)
    )
