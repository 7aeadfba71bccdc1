"""Entries by API (C9.7.1): a contact enters an active journey because a caller says so; many of them in a commit."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem, Unavailable, conflict
from recado.domain.core.idempotency import KeptInCommit
from recado.domain.core.ids import CONTACT, EXECUTION, IdSource
from recado.domain.core.references import reference_not_found, wrong_reference
from recado.domain.events.customer_event import ContactKeys
from recado.domain.journeys.entries import EntryRefusal
from recado.domain.journeys.execution import ExecutionOrigin
from recado.domain.journeys.journey import JourneyStatus
from recado.services.journeys.running import JourneyKey, RunningJourneys
from recado.storage.core import idempotency
from recado.storage.core.connections.batch import Batcher
from recado.storage.core.connections.postgres import Connection, Database
from recado.storage.journeys import doors, entries
from recado.storage.journeys.doors import Door
from recado.storage.journeys.entries import Entered, PlacedEntry

IN_A_COMMIT: Final = 200
IN_FLIGHT: Final = 3  # commits: one is written while another is flushed; the last is for those who are no crowd
MOST_WAITING: Final = 5_000  # entries, of up to 26 KB each

_CUT_OFF: Final = "The request was cut off: try again shortly, with the same Idempotency-Key."
_NOT_API: Final = "Contacts enter this journey by its trigger, `{}`: only those with trigger `api` take entries here."
_CLOSED: Final = "A later version of the journey takes the entries: use that one, `substituidaPor`."
_NOT_ACTIVE: Final = "The journey is {}: only an active one takes contacts in."


@dataclass(frozen=True, slots=True)
class EnteredExecution:
    """The contact entered, by this execution."""

    execution_id: str


EntryOutcome = EnteredExecution | EntryRefusal


@dataclass(frozen=True, slots=True)
class _AskedEntry:
    """What a caller asks for; `execution_id`: of the execution, if it begins. `kept`: of the answer in the commit."""

    journey: JourneyKey
    contact: ContactKeys
    data: Mapping[str, Any] = field(repr=False)
    execution_id: str
    at: datetime
    kept: KeptInCommit[EntryOutcome] | None


class JourneyEntries:
    """A service (`start`, `stop`). `entered` is told, after the commit, that executions are due."""

    def __init__(
        self, db: Database, *, clock: Clock, ids: IdSource, entered: Callable[[], None], journeys: RunningJourneys
    ) -> None:
        self._db = db
        self._clock = clock
        self._ids = ids
        self._entered = entered
        self._journeys = journeys
        self._asked: Batcher[_AskedEntry, EntryOutcome] = Batcher(
            "journey entries",
            self._enter,
            clock=clock,
            max_rows=IN_A_COMMIT,
            max_queue=MOST_WAITING,
            concurrency=IN_FLIGHT,
            owner=lambda asked: asked.journey[0],
        )

    async def start(self) -> None:
        await self._asked.start()

    async def stop(self) -> None:
        """Lets in whoever was brought."""
        await self._asked.stop()

    async def examine(self, journey: JourneyKey, contact: ContactKeys) -> None:
        """Raise the 422 that `enter` answers for an unknown contact; nobody is let in."""
        (found,) = await entries.contacts_of(self._db, [(journey[0], journey[1], contact)])
        if found is None:
            raise _unknown(contact, journey[1])

    def enter(
        self,
        key: JourneyKey,
        contact: ContactKeys,
        data: Mapping[str, Any],
        *,
        kept: KeptInCommit[EntryOutcome] | None = None,
    ) -> "asyncio.Future[EntryOutcome]":
        """Let a contact in, or say which rule refuses it; known after the commit. Raises `Unavailable` under load.

        `kept`: the commit keeps the answer, so that a repeat gets it whatever becomes of this request (C6.2). One that
        has given up by then lets nobody in.

        The future raises `Problem`: 422 for an unknown contact, 409 where the journey takes no entries so.
        """
        return self._asked.put(_AskedEntry(key, contact, data, self._ids.new(EXECUTION), self._clock.now(), kept))

    async def _enter(self, batch: Sequence[_AskedEntry]) -> Sequence[EntryOutcome | Exception]:
        async with self._db.hot.transaction() as connection:
            keys = await idempotency.hold_keys(connection, [each.kept.held for each in batch if each.kept is not None])
            asking = [each for each in batch if each.kept is None or each.kept.held in keys]
            decided = await self._decide(connection, asking) if asking else {}
            answers = [
                (each.kept.held, each.kept.answer(outcome))
                for each in asking
                if each.kept is not None and not isinstance(outcome := decided[each.execution_id], Exception)
            ]
            await idempotency.keep_answers(connection, answers)
        outcomes = [decided.get(each.execution_id) or Unavailable(_CUT_OFF) for each in batch]
        if any(isinstance(outcome, EnteredExecution) for outcome in outcomes):
            self._entered()
        return outcomes

    async def _decide(
        self, connection: Connection, batch: Sequence[_AskedEntry]
    ) -> Mapping[str, EntryOutcome | Exception]:
        """What becomes of each, by the execution that it is to begin. Journeys stay as they are until the commit."""
        held = await doors.hold_keys(connection, {asked.journey for asked in batch})
        open_ones = [key for key, journey in held.items() if _refusal(journey) is None]
        running = await self._journeys.read(connection, open_ones)
        people = [(asked.journey[0], asked.journey[1], asked.contact) for asked in batch]
        found = await entries.contacts_of(connection, people)
        outcomes: dict[str, EntryOutcome | Exception] = {}
        placed: list[PlacedEntry] = []
        for asked, contact_id in zip(batch, found, strict=True):
            if contact_id is None:
                outcomes[asked.execution_id] = _unknown(asked.contact, asked.journey[1])
            elif (refusal := _refusal(held[asked.journey])) is not None:
                outcomes[asked.execution_id] = refusal
            else:
                organization_id, env, journey_id = asked.journey
                entry = running[asked.journey][1].entry(
                    journey_id, contact_id, asked.execution_id, ExecutionOrigin.API, asked.at, asked.data
                )
                placed.append(PlacedEntry(organization_id, env, entry))
        asking = {asked.execution_id: asked for asked in batch}
        for each, result in zip(placed, await entries.enter_placed(connection, placed), strict=True):
            execution_id = each.entry.execution_id
            if isinstance(result, EntryRefusal):
                outcomes[execution_id] = result
            elif result is Entered.NO_CONTACT:  # it was deleted a moment ago
                asked = asking[execution_id]
                outcomes[execution_id] = _unknown(asked.contact, asked.journey[1])
            else:
                outcomes[execution_id] = EnteredExecution(execution_id)
        return outcomes


def _refusal(door: Door) -> Problem | None:
    """Why the journey takes no entries by API."""
    if door.trigger is not ExecutionOrigin.API:
        return conflict("GATILHO_NAO_E_API", _NOT_API.format(door.trigger), gatilho=door.trigger)
    if door.open:
        return None
    if door.closed and door.status is JourneyStatus.ATIVA:
        return conflict("ENTRADAS_ENCERRADAS", _CLOSED)
    status = door.status.value
    return conflict("JORNADA_NAO_ATIVA", _NOT_ACTIVE.format(status), status=status)


def _unknown(contact: ContactKeys, env: str) -> Problem:
    if contact.contact_id is not None:
        return reference_not_found("contato.contactId", CONTACT, contact.contact_id, env)
    fields = {"externalId": contact.external_id, "phone": contact.phone, "email": contact.email}
    given = next(name for name, value in fields.items() if value is not None)
    return wrong_reference(f"contato.{given}", f"No contact in {env} has this {given}.")
