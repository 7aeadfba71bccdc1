"""Entries by API (C9.7.1): a contact enters an active journey because a caller says so."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from recado.domain.core.clock import Clock
from recado.domain.core.errors import conflict
from recado.domain.core.ids import CONTACT, EXECUTION, IdSource
from recado.domain.core.references import reference_not_found, wrong_reference
from recado.domain.events.customer_event import ContactKeys
from recado.domain.journeys.entries import EntryRefusal
from recado.domain.journeys.execution import ExecutionOrigin
from recado.domain.journeys.graph import TriggerKind
from recado.domain.journeys.journey import JourneyStatus
from recado.services.journeys.running import JourneyKey, RunningJourneys
from recado.storage.core.postgres import Connection, Database
from recado.storage.journeys import entries
from recado.storage.journeys.entries import Entered, NewEntry

_NOT_API: Final = "Contacts enter this journey by its trigger, `{}`: only those with trigger `api` take entries here."
_CLOSED: Final = "A later version of the journey takes the entries: use that one, `substituidaPor`."
_NOT_ACTIVE: Final = "The journey is {}: only an active one takes contacts in."


@dataclass(frozen=True, slots=True)
class EnteredExecution:
    """The contact entered, by this execution."""

    execution_id: str


class JourneyEntries:
    """`entered` is told, after the commit, that an execution is due."""

    def __init__(self, db: Database, *, clock: Clock, ids: IdSource, entered: Callable[[], None]) -> None:
        self._db = db
        self._clock = clock
        self._ids = ids
        self._entered = entered
        self._journeys = RunningJourneys()

    async def enter(
        self, key: JourneyKey, contact: ContactKeys, data: Mapping[str, Any]
    ) -> EnteredExecution | EntryRefusal:
        """Let a contact in, or say which rule refuses it.

        Raises `Problem`: 409 where the journey takes no entries so, 422 for an unknown contact.
        """
        organization_id, env, journey_id = key
        async with self._db.hot.transaction() as connection:
            await self._check(connection, key)
            _, journey = (await self._journeys.read(connection, [key]))[key]
            contact_id = await entries.contact_of(connection, organization_id, env, contact)
            if contact_id is None:
                raise _unknown(contact, env)
            execution_id = self._ids.new(EXECUTION)
            entry = NewEntry(
                journey_id=journey_id,
                chain_id=journey.chain_id,
                versao=journey.versao,
                first_step=journey.plan.first,
                interval=journey.plan.interval,
                contact_id=contact_id,
                execution_id=execution_id,
                origin=ExecutionOrigin.API,
                at=self._clock.now(),
                data=data,
            )
            (result,) = await entries.enter(connection, organization_id, env, [entry])
            if result is Entered.NO_CONTACT:  # it was deleted a moment ago
                raise _unknown(contact, env)
        if isinstance(result, EntryRefusal):
            return result
        self._entered()
        return EnteredExecution(execution_id)

    async def _check(self, connection: Connection, key: JourneyKey) -> None:
        """The journey takes entries, and goes on doing so until the commit."""
        held = await entries.hold_journey(connection, key)
        if held is None:
            raise LookupError("the journey is gone")
        if held.trigger != TriggerKind.API:
            raise conflict("GATILHO_NAO_E_API", _NOT_API.format(held.trigger), gatilho=held.trigger)
        status = held.status
        if status is not JourneyStatus.ATIVA:
            raise conflict("JORNADA_NAO_ATIVA", _NOT_ACTIVE.format(status.value), status=status.value)
        if held.closed:
            raise conflict("ENTRADAS_ENCERRADAS", _CLOSED)


def _unknown(contact: ContactKeys, env: str) -> Exception:
    if contact.contact_id is not None:
        return reference_not_found("contato.contactId", CONTACT, contact.contact_id, env)
    fields = {"externalId": contact.external_id, "phone": contact.phone, "email": contact.email}
    given = next(name for name, value in fields.items() if value is not None)
    return wrong_reference(f"contato.{given}", f"No contact in {env} has this {given}.")
