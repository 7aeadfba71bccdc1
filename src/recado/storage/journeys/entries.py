"""Entries into journeys (C9.7): who may enter is decided under the locks of the commit that lets them in.

A chain of versions has one claim on each contact that ever entered it. Of two commits that bring a contact in at the
same moment one does, and the other is told why not.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Any, Final, NamedTuple

import orjson

from recado.domain.contacts.consent import ConsentStatus
from recado.domain.core.errors import Unavailable
from recado.domain.events.customer_event import ContactKeys
from recado.domain.journeys.entries import EntryHistory, EntryRefusal, entry_refusal
from recado.domain.journeys.execution import ExecutionOrigin, ExecutionStatus
from recado.domain.journeys.journey import JourneyStatus
from recado.storage.core.rows import Executor, columns
from recado.storage.core.sql import load
from recado.storage.journeys import executions

SQL: Final = load("entries")

_MOST_ADDRESSED: Final = 100  # contacts with one e-mail address that are looked at
_ROUNDS: Final = 5  # of those whom others brought in while we looked
_ACTIVE: Final = ExecutionStatus.ATIVA.value


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEntry:
    """A contact that is to enter a journey, by the execution that begins then; `at`: its moment.

    `interval`: the least time between two entries; None: there is no second one. `data`: what it enters with.
    """

    journey_id: str
    chain_id: str
    versao: int
    first_step: str
    interval: timedelta | None
    contact_id: str
    execution_id: str
    origin: ExecutionOrigin
    at: datetime
    data: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def claim(self) -> tuple[str, str]:
        """Chain and contact."""
        return (self.chain_id, self.contact_id)


class Entered(Enum):
    """What became of an entry that no rule refused."""

    ENTERED = auto()
    NO_CONTACT = auto()  # there is none with this id


EntryResult = Entered | EntryRefusal


async def enter(connection: Executor, organization_id: str, env: str, entries: Sequence[NewEntry]) -> list[EntryResult]:
    """Let in whom the rules let in, in the transaction of the caller; one result for each, in order.

    Of several entries of a contact into one chain the first is the first. That the journeys take entries has been made
    sure by the caller, in this transaction.
    """
    where = (organization_id, env)
    results: dict[str, EntryResult] = {}
    left = list(entries)
    for _ in range(_ROUNDS):
        if not left:
            return [results[entry.execution_id] for entry in entries]
        chosen, left = _one_of_each(left)
        results |= await _round(connection, where, chosen)
        left = [entry for entry in chosen if entry.execution_id not in results] + left
    if all(entry.execution_id in results for entry in entries):
        return [results[entry.execution_id] for entry in entries]
    raise Unavailable("Too many entries of the same contacts at once: try again shortly.")


async def begin_test(connection: Executor, organization_id: str, env: str, entry: NewEntry, *, hurried: bool) -> None:
    """Begin the execution of a test, which knows no other entries and claims nothing (C9.9)."""
    await _begin(connection, (organization_id, env), [entry], hurried=hurried)


class HeldJourney(NamedTuple):
    """What decides whether a journey takes entries. `closed`: a later version takes them."""

    trigger: str
    status: JourneyStatus
    closed: bool


async def hold_journey(connection: Executor, key: tuple[str, str, str]) -> HeldJourney | None:
    """A journey as it is, and stays until this transaction ends; others may enter it as well."""
    row = await connection.fetchrow(SQL.hold_journey, *key)
    return None if row is None else HeldJourney(row["trigger"], JourneyStatus(row["status"]), row["closed"])


async def contact_of(executor: Executor, organization_id: str, env: str, keys: ContactKeys) -> str | None:
    """The id of the contact that the first of the keys finds, of those that are given."""
    found: str | None = await executor.fetchval(
        SQL.contact_of, organization_id, env, keys.contact_id, keys.external_id, keys.phone, keys.email, _MOST_ADDRESSED
    )
    return found


def _one_of_each(entries: Sequence[NewEntry]) -> tuple[list[NewEntry], list[NewEntry]]:
    """The first entry of each contact into each chain, in the order in which claims are locked; and the others."""
    first: dict[tuple[str, str], NewEntry] = {}
    for entry in entries:
        first.setdefault(entry.claim, entry)
    others = [entry for entry in entries if first[entry.claim] is not entry]
    return [first[claim] for claim in sorted(first)], others


async def _round(connection: Executor, where: tuple[str, str], entries: Sequence[NewEntry]) -> dict[str, EntryResult]:
    """What became of those whose claims hold still; nothing is said of the others."""
    claims = columns([entry.claim for entry in entries], 2)
    locked = {(row["chain_id"], row["contact_id"]) for row in await connection.fetch(SQL.lock, *where, *claims)}
    # A statement of its own: it sees what the locks waited for.
    rows = await connection.fetch(SQL.histories, *where, *claims, _ACTIVE)
    known = {(row["chain_id"], row["contact_id"]): row for row in rows}
    results: dict[str, EntryResult] = {}
    first: list[NewEntry] = []
    again: list[NewEntry] = []
    for entry in entries:
        row = known.get(entry.claim)
        if row is None:
            results[entry.execution_id] = Entered.NO_CONTACT
            continue
        if row["entered_at"] is not None and entry.claim not in locked:
            continue  # it came between the two statements
        history = EntryHistory(row["entered_at"], row["active"])
        refusal = entry_refusal(ConsentStatus(row["opt_in_status"]), entry.interval, history, entry.at)
        if refusal is not None:
            results[entry.execution_id] = refusal
        else:
            (first if row["entered_at"] is None else again).append(entry)
    entered = [*await _claim(connection, where, first), *again]
    if again:
        await connection.execute(SQL.enter_again, *where, *_columns(again))
    await _begin(connection, where, entered)
    results |= {entry.execution_id: Entered.ENTERED for entry in entered}
    return results


async def _claim(connection: Executor, where: tuple[str, str], entries: Sequence[NewEntry]) -> list[NewEntry]:
    """Those of them whose claims were free."""
    if not entries:
        return []
    rows = await connection.fetch(SQL.enter, *where, *_columns(entries))
    free: Collection[tuple[str, str]] = {(row["chain_id"], row["contact_id"]) for row in rows}
    return [entry for entry in entries if entry.claim in free]


async def _begin(
    connection: Executor, where: tuple[str, str], entries: Sequence[NewEntry], *, hurried: bool = False
) -> None:
    if not entries:
        return
    rows = [
        (
            entry.journey_id,
            entry.execution_id,
            entry.chain_id,
            entry.versao,
            entry.contact_id,
            entry.origin.value,
            entry.origin is ExecutionOrigin.TEST,
            hurried,
            orjson.dumps(entry.data).decode(),
            entry.first_step,
            entry.at,
        )
        for entry in entries
    ]
    await connection.execute(SQL.begin, *where, _ACTIVE, *columns(rows, 11))
    counted = [entry for entry in entries if entry.origin is not ExecutionOrigin.TEST]
    await executions.count(connection, [((*where, entry.journey_id), None, ExecutionStatus.ATIVA) for entry in counted])


def _columns(entries: Sequence[NewEntry]) -> list[list[Any]]:
    return columns([(*each.claim, each.journey_id, each.execution_id, each.at) for each in entries], 5)
