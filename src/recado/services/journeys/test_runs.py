"""Test runs of a journey (C9.9): one contact goes through the saved definition, by messages that are sent and paid."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from recado.domain.contacts.consent import OPTED_OUT
from recado.domain.contacts.contact import Contact
from recado.domain.core.clock import Clock
from recado.domain.core.errors import conflict
from recado.domain.core.ids import CONTACT, EXECUTION, IdSource, lowest_id
from recado.domain.core.references import reference_not_found
from recado.domain.journeys.decide import left_because
from recado.domain.journeys.execution import ExecutionOrigin
from recado.domain.journeys.runnable import runnable
from recado.services.messages.acceptance_rules import no_consent
from recado.storage.core.connections.postgres import Connection
from recado.storage.core.statements.rows import Executor
from recado.storage.journeys import executions
from recado.storage.journeys.entries import NewEntry, begin_test
from recado.storage.journeys.execution_facts import ContactKey, contacts_of
from recado.storage.journeys.executions import Execution
from recado.storage.journeys.journeys import Journey

MOST: Final = 20
PERIOD: Final = timedelta(hours=1)


class JourneyTests:
    """`begun` is to be called after the commit of a run: an execution is due."""

    def __init__(self, *, clock: Clock, ids: IdSource, begun: Callable[[], None]) -> None:
        self._clock = clock
        self._ids = ids
        self.begun = begun

    async def examine(self, executor: Executor, journey: Journey, contact_id: str) -> None:
        """Raise the 422 of `begin` for an unknown contact."""
        await _known(executor, journey, contact_id)

    async def begin(
        self, connection: Connection, journey: Journey, contact_id: str, data: Mapping[str, Any], *, hurried: bool
    ) -> Execution:
        """Begin one of a journey that this transaction has locked, and that has no problems. `hurried`: without waits.

        Raises `Problem`: 422 for an unknown contact and for one that opted out; 409 beyond 20 in an hour.
        """
        where = (journey.organization_id, journey.env)
        contact, registered = await _known(connection, journey, contact_id)
        if left_because(contact, registered=registered) is not None:
            raise no_consent(OPTED_OUT, "contactId")
        now = self._clock.now()
        first_id = lowest_id(EXECUTION, now - PERIOD)
        if await executions.tests_from(connection, (*where, journey.id), first_id, MOST) >= MOST:
            raise conflict(
                "LIMIT_REACHED", f"The journey was tested {MOST} times within an hour: try again later.", limit=MOST
            )
        entry = NewEntry(
            journey_id=journey.id,
            chain_id=journey.chain_id,
            versao=journey.versao,
            first_step=runnable(journey.definition()).first,
            interval=None,
            contact_id=contact.id,
            execution_id=self._ids.new(EXECUTION),
            origin=ExecutionOrigin.TEST,
            at=now,
            data=data,
        )
        await begin_test(connection, *where, entry, hurried=hurried)
        begun = await executions.get(connection, (*where, journey.id, entry.execution_id))
        assert begun is not None  # noqa: S101 - this transaction stored it
        return begun


async def _known(executor: Executor, journey: Journey, contact_id: str) -> tuple[Contact, bool]:
    """The contact, and whether the registry of refusals has it."""
    key = ContactKey(journey.organization_id, journey.env, contact_id)
    contact, registered = (await contacts_of(executor, [key])).get(key, (None, False))
    if contact is None:
        raise reference_not_found("contactId", CONTACT, contact_id, journey.env)
    return contact, registered
