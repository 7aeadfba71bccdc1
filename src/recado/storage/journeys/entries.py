"""Entries into journeys (C9.7): who may enter is decided under the locks of the commit that lets them in.

A chain of versions has one claim on each contact that ever entered it. Of two commits that bring a contact in at the
same moment one does, and the other is told why not.
"""

from collections import Counter, defaultdict
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
from recado.domain.journeys.step_numbers import StepCount
from recado.storage.core.rows import Executor, columns
from recado.storage.core.sql import load
from recado.storage.journeys import execution_counts, step_counts
from recado.storage.journeys.execution_counts import JourneyKey

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


class Entered(Enum):
    """What became of an entry that no rule refused."""

    ENTERED = auto()
    NO_CONTACT = auto()  # there is none with this id


EntryResult = Entered | EntryRefusal

Claim = tuple[str, str, str, str]
"""Organization, environment, chain, contact."""


class PlacedEntry(NamedTuple):
    """An entry into a journey of this organization and environment."""

    organization_id: str
    env: str
    entry: NewEntry

    @property
    def claim(self) -> Claim:
        return (self.organization_id, self.env, self.entry.chain_id, self.entry.contact_id)


async def enter(connection: Executor, organization_id: str, env: str, entries: Sequence[NewEntry]) -> list[EntryResult]:
    """As `enter_placed`, of one organization."""
    return await enter_placed(connection, [PlacedEntry(organization_id, env, entry) for entry in entries])


async def enter_placed(connection: Executor, placed: Sequence[PlacedEntry]) -> list[EntryResult]:
    """Let in whom the rules let in, in the transaction of the caller; one result for each, in order.

    Of several entries of a contact into one chain the first is the first. That the journeys take entries has been made
    sure by the caller, in this transaction. One that an earlier run has let in, by the same execution, has entered.
    """
    results: dict[str, EntryResult] = {}
    left = list(placed)
    for _ in range(_ROUNDS):
        if left:
            results |= await _round(connection, left)
            left = [each for each in left if each.entry.execution_id not in results]
    if left:
        raise Unavailable("Too many entries of the same contacts at once: try again shortly.")
    return [results[each.entry.execution_id] for each in placed]


async def begin_test(connection: Executor, organization_id: str, env: str, entry: NewEntry, *, hurried: bool) -> None:
    """Begin the execution of a test, which knows no other entries and claims nothing (C9.9)."""
    await _begin(connection, [PlacedEntry(organization_id, env, entry)], hurried=hurried)


async def contacts_of(executor: Executor, asked: Sequence[tuple[str, str, ContactKeys]]) -> list[str | None]:
    """The ids of the contacts that the first of their keys finds, of those that are given; None where none does."""
    given = [
        (organization_id, env, keys.contact_id, keys.external_id, keys.phone, keys.email)
        for organization_id, env, keys in asked
    ]
    rows = await executor.fetch(SQL.contacts_of, *columns(given, 6), _MOST_ADDRESSED)
    found = {row["place"]: row["id"] for row in rows}
    return [found.get(place) for place in range(1, len(asked) + 1)]


async def _round(connection: Executor, placed: Sequence[PlacedEntry]) -> dict[str, EntryResult]:
    """What became of those whose claims hold still; nothing is said of the others."""
    of_claim: dict[Claim, list[PlacedEntry]] = {}
    for each in placed:
        of_claim.setdefault(each.claim, []).append(each)
    claims = columns(sorted(of_claim), 4)  # in the order in which they are locked
    locked = {_claim(row) for row in await connection.fetch(SQL.lock, *claims)}
    # A statement of its own: it sees what the locks waited for.
    known = {_claim(row): row for row in await connection.fetch(SQL.histories, *claims, _ACTIVE)}
    results: dict[str, EntryResult] = {}
    first: list[tuple[PlacedEntry, dict[str, EntryResult]]] = []
    again: list[PlacedEntry] = []
    for claim in sorted(of_claim):
        row = known.get(claim)
        if row is None:
            results |= {each.entry.execution_id: Entered.NO_CONTACT for each in of_claim[claim]}
            continue
        if row["entered_at"] is not None and claim not in locked:
            continue  # it came between the two statements
        decided, chosen = _decided(row, of_claim[claim])
        if chosen is not None and row["entered_at"] is None:
            first.append((chosen, decided))
            continue
        results |= decided
        if chosen is not None:
            again.append(chosen)
    free = await _claimed(connection, [chosen for chosen, _ in first])
    for chosen, decided in first:
        if chosen.claim in free:
            results |= decided
    if again:
        await connection.execute(SQL.enter_again, *_columns(again))
    await _begin(connection, [*(chosen for chosen, _ in first if chosen.claim in free), *again])
    return results


def _decided(
    row: Mapping[str, Any], placed: Sequence[PlacedEntry]
) -> tuple[dict[str, EntryResult], PlacedEntry | None]:
    """What becomes of the entries of one claim, in their order, and the one of them that enters."""
    consent, history = ConsentStatus(row["opt_in_status"]), EntryHistory(row["entered_at"], row["active"])
    results: dict[str, EntryResult] = {}
    chosen: PlacedEntry | None = None
    for each in placed:
        entry = each.entry
        if entry.execution_id == row["execution_id"]:
            results[entry.execution_id] = Entered.ENTERED  # by an earlier run, whose answer was lost
            continue
        refusal = entry_refusal(consent, entry.interval, history, entry.at)
        results[entry.execution_id] = refusal or Entered.ENTERED
        if refusal is None:
            chosen, history = each, EntryHistory(entry.at, active=True)
    return results, chosen


async def _claimed(connection: Executor, placed: Sequence[PlacedEntry]) -> Collection[Claim]:
    """The claims of these that were free."""
    return {_claim(row) for row in await connection.fetch(SQL.enter, *_columns(placed))} if placed else set()


async def _begin(connection: Executor, placed: Sequence[PlacedEntry], *, hurried: bool = False) -> None:
    if not placed:
        return
    rows = [
        (
            organization_id,
            env,
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
        for organization_id, env, entry in placed
    ]
    await connection.execute(SQL.begin, _ACTIVE, *columns(rows, 13))
    counted = [each for each in placed if each.entry.origin is not ExecutionOrigin.TEST]
    begun = [((*each[:2], each.entry.journey_id), None, ExecutionStatus.ATIVA) for each in counted]
    await execution_counts.add(connection, begun)
    arrived: defaultdict[JourneyKey, Counter[tuple[str, str]]] = defaultdict(Counter)
    for organization_id, env, entry in counted:
        arrived[organization_id, env, entry.journey_id][entry.first_step, StepCount.ENTERED] += 1
    await step_counts.add(connection, arrived)


def _columns(placed: Sequence[PlacedEntry]) -> list[list[Any]]:
    rows = [(*each.claim, each.entry.journey_id, each.entry.execution_id, each.entry.at) for each in placed]
    return columns(rows, 7)


def _claim(row: Mapping[str, Any]) -> Claim:
    return (row["organization_id"], row["env"], row["chain_id"], row["contact_id"])
