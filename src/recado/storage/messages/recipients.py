"""Who is behind the recipients of sends, and what they consented to (C12.5.6), looked up for many callers at once."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from recado.domain.channels.address import AddressKind
from recado.domain.contacts.consent import ConsentStatus
from recado.domain.contacts.contact import email_key
from recado.domain.core.clock import Clock
from recado.domain.core.phones import other_spellings
from recado.storage.contacts import opt_outs
from recado.storage.contacts.email_consent import by_address
from recado.storage.contacts.opt_outs import Registrant
from recado.storage.core.connections.batch import Batcher
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.rows import Executor, columns
from recado.storage.core.statements.sql import load

SQL = load("recipients", **by_address())


class RecipientKey(NamedTuple):
    """A recipient by its contact, or else by its canonical phone, or its e-mail address."""

    organization_id: str
    env: str
    contact_id: str | None = None
    phone: str | None = None
    email: str | None = None


def of_address(organization_id: str, env: str, kind: AddressKind, address: str) -> RecipientKey:
    """A recipient by its address."""
    if kind is AddressKind.EMAIL:
        return RecipientKey(organization_id, env, email=address)
    return RecipientKey(organization_id, env, phone=address)


@dataclass(frozen=True, slots=True)
class Recipient:
    """What is known. `contact_id` None: there is no such contact; of several with an address the oldest of a thousand.

    `status`: of those several a refusal before a consent. `registered`: the opt-out registry has the phone, in any
    spelling, or the address.
    """

    contact_id: str | None
    phone: str | None = field(repr=False)
    status: ConsentStatus | None
    registered: bool
    email: str | None = field(default=None, repr=False)
    user_id: str | None = field(default=None, repr=False)


async def find(executor: Executor, asked: Sequence[RecipientKey]) -> list[Recipient]:
    """Each recipient as it is committed now, in the order in which they were asked for."""
    emails = {n: each for n, each in enumerate(asked) if each.email is not None}
    found = await _find(executor, {n: each for n, each in enumerate(asked) if n not in emails})
    found |= await _find_by_email(executor, emails)
    return [found[n] for n in range(len(asked))]


async def _find_by_email(executor: Executor, asked: Mapping[int, RecipientKey]) -> dict[int, Recipient]:
    if not asked:
        return {}
    given = [(n, each.organization_id, each.env, email_key(each.email or "")) for n, each in asked.items()]
    found = {}
    for row in await executor.fetch(SQL.find_by_email, *columns(given, 4)):
        status = None if row["opt_in_status"] is None else ConsentStatus(row["opt_in_status"])
        found[row["n"]] = Recipient(row["id"], None, status, row["registered"], asked[row["n"]].email)
    return found


async def _find(executor: Executor, asked: Mapping[int, RecipientKey]) -> dict[int, Recipient]:
    if not asked:
        return {}
    given = [(n, each.organization_id, each.env, each.contact_id, each.phone) for n, each in asked.items()]
    rows = await executor.fetch(SQL.find, *columns(given, 5))
    addresses = {
        row["n"]: Registrant(asked[row["n"]].organization_id, asked[row["n"]].env, phone)
        for row in rows
        if (phone := row["phone"]) is not None and not row["registered"] and other_spellings(phone)
    }
    entries = await opt_outs.entries(executor, list(addresses.values()))
    respelled = {n for n, entry in zip(addresses, entries, strict=True) if entry is not None}
    return {
        row["n"]: Recipient(
            row["id"],
            row["phone"],
            None if row["opt_in_status"] is None else ConsentStatus(row["opt_in_status"]),
            row["registered"] or row["n"] in respelled,
            row["email"],
            row["chatapp_user_id"],
        )
        for row in rows
    }


class RecipientLookup:
    """One query for the look-ups of many sends at once; a service (`start`, `stop`)."""

    def __init__(self, db: Database, *, clock: Clock) -> None:
        self._db = db
        self._look_ups: Batcher[RecipientKey, Recipient] = Batcher("recipients", self._find, clock=clock)

    async def start(self) -> None:
        await self._look_ups.start()

    async def stop(self) -> None:
        await self._look_ups.stop()

    def find(self, asked: RecipientKey) -> "asyncio.Future[Recipient]":
        """The recipient as it is committed now. Raises `Unavailable` under overload."""
        return self._look_ups.put(asked)

    async def _find(self, asked: Sequence[RecipientKey]) -> list[Recipient]:
        return await find(self._db.hot, asked)
