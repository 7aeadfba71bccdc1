"""Entries into journeys (C9.7): who may enter is decided under the locks of the commit that lets them in.

A chain of versions has one claim on each contact that ever entered it. Of two commits that bring a contact in at the
same moment one does, and the other is told why not.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum, auto
from typing import Any, Final, NamedTuple

from recado.domain.contacts.consent import ConsentStatus
from recado.domain.core.errors import Unavailable
from recado.domain.events.customer_event import ContactKeys
from recado.domain.journeys.entries import EntryHistory, EntryRefusal, entry_refusal
from recado.domain.journeys.execution import ExecutionOrigin, ExecutionStatus
from recado.storage.core.statements.rows import Executor, columns, pack, pack_moments
from recado.storage.core.statements.sql import load
from recado.storage.journeys import executions
from recado.storage.journeys.executions import Execution

SQL: Final = load("entries")

_MOST_ADDRESSED: Final = 100  # contacts with one e-mail address that are looked at
_ROUNDS: Final = 5  # of those whom others brought in while we looked
_ACTIVE: Final = ExecutionStatus.ATIVA.value


@dataclass(slots=True, kw_only=True)
class NewEntry:
    """A contact that is to enter a journey, by the execution that begins then; `at`: its moment.

    `interval`: the least time between two entries; None: there is no second one. `data`: what it enters with. Not
    frozen only because a frozen one takes twice as long to make; nothing changes one.
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


Begin = Callable[[Executor, Sequence[Execution]], Awaitable[None]]
"""Stores the executions of those who entered, in the transaction of their entry."""


async def enter(
    connection: Executor, organization_id: str, env: str, entries: Sequence[NewEntry], begin: Begin = executions.begin
) -> list[EntryResult]:
    """As `enter_placed`, of one organization."""
    return await enter_placed(connection, [PlacedEntry(organization_id, env, entry) for entry in entries], begin)


async def enter_placed(
    connection: Executor, placed: Sequence[PlacedEntry], begin: Begin = executions.begin
) -> list[EntryResult]:
    """Let in whom the rules let in, in the transaction of the caller; one result for each, in order.

    Of several entries of a contact into one chain the first is the first. That the journeys take entries has been made
    sure by the caller, in this transaction. One that an earlier run has let in, by the same execution, has entered.
    `begin`: stores their executions, which are due at once unless it takes them further.
    """
    results: dict[str, EntryResult] = {}
    left = list(placed)
    for _ in range(_ROUNDS):
        if left:
            results |= await _round(connection, left, begin)
            left = [each for each in left if each.entry.execution_id not in results]
    if left:
        raise Unavailable("Too many entries of the same contacts at once: try again shortly.")
    return [results[each.entry.execution_id] for each in placed]


async def begin_test(connection: Executor, organization_id: str, env: str, entry: NewEntry, *, hurried: bool) -> None:
    """Begin the execution of a test, which knows no other entries and claims nothing (C9.9)."""
    await executions.begin(connection, [_execution(PlacedEntry(organization_id, env, entry), hurried=hurried)])


async def contacts_of(executor: Executor, asked: Sequence[tuple[str, str, ContactKeys]]) -> list[str | None]:
    """The ids of the contacts that the first of their keys finds, of those that are given; None where none does."""
    given = [
        (organization_id, env, keys.contact_id, keys.external_id, keys.phone, keys.email)
        for organization_id, env, keys in asked
    ]
    rows = await executor.fetch(SQL.contacts_of, *columns(given, 6), _MOST_ADDRESSED)
    found = {row["place"]: row["id"] for row in rows}
    return [found.get(place) for place in range(1, len(asked) + 1)]


async def _round(connection: Executor, placed: Sequence[PlacedEntry], begin: Begin) -> dict[str, EntryResult]:
    """What became of those whose claims hold still; nothing is said of the others."""
    of_claim: dict[Claim, list[PlacedEntry]] = {}
    for each in placed:
        of_claim.setdefault(each.claim, []).append(each)
    claims = sorted(of_claim)  # in the order in which they are locked
    # Whoever may enter once only is not let in by what becomes of an entry that there is: nobody waits for that.
    again_allowed = [claim for claim in claims if any(each.entry.interval is not None for each in of_claim[claim])]
    locked: set[Claim] = set()
    if again_allowed:
        rows = await connection.fetch(SQL.lock, *_claims(again_allowed))
        locked = {again_allowed[row["n"] - 1] for row in rows}
    # A statement of its own: it sees what the locks waited for.
    rows = await connection.fetch(SQL.histories, *_claims(claims), _ACTIVE)
    known = {row["n"]: row for row in rows}
    results: dict[str, EntryResult] = {}
    first: list[tuple[PlacedEntry, dict[str, EntryResult]]] = []
    again: list[PlacedEntry] = []
    for n, claim in enumerate(claims, start=1):
        row = known.get(n)
        if row is None:
            results |= {each.entry.execution_id: Entered.NO_CONTACT for each in of_claim[claim]}
            continue
        entered_at = row["entered_at"]
        decided, chosen = _decided(row, of_claim[claim])
        if chosen is None:
            results |= decided
        elif entered_at is None:
            first.append((chosen, decided))
        elif claim in locked:
            results |= decided
            again.append(chosen)
        # Else it came between the two statements.
    free = await _claimed(connection, [chosen for chosen, _ in first])
    entered = []
    for chosen, decided in first:
        if chosen.entry.execution_id in free:
            results.update(decided)
            entered.append(chosen)
    if again:
        await connection.execute(SQL.enter_again, *_columns(again))
        entered += again
    if entered:
        await begin(connection, [_execution(each) for each in entered])
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


async def _claimed(connection: Executor, placed: Sequence[PlacedEntry]) -> Collection[str]:
    """The executions of those whose claims were free."""
    if not placed:
        return set()
    return {row["execution_id"] for row in await connection.fetch(SQL.enter, *_columns(placed))}


def _execution(placed: PlacedEntry, *, hurried: bool = False) -> Execution:
    """The one that an entry begins: at the first step, where it is due at once."""
    organization_id, env, entry = placed
    return Execution(
        organization_id=organization_id,
        env=env,
        journey_id=entry.journey_id,
        id=entry.execution_id,
        chain_id=entry.chain_id,
        versao=entry.versao,
        contact_id=entry.contact_id,
        origem=entry.origin,
        teste=entry.origin is ExecutionOrigin.TEST,
        hurried=hurried,
        entrada=entry.data,
        started_at=entry.at,
        step_id=entry.first_step,
        arrived_at=entry.at,
        wake_at=entry.at,
    )


def _claims(claims: Sequence[tuple[str, ...]]) -> list[str]:
    return [pack(column) for column in zip(*claims, strict=True)]


def _columns(placed: Sequence[PlacedEntry]) -> list[str]:
    rows = [(*each.claim, each.entry.journey_id, each.entry.execution_id) for each in placed]
    return [*_claims(rows), pack_moments([each.entry.at for each in placed])]
