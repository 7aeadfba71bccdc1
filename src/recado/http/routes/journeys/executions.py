"""Entries into journeys by API, and executions: listed, read, canceled; the numbers of steps (C9.7.1, C9.10)."""

from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final

from recado.domain.core.errors import validation_error
from recado.domain.core.ids import EXECUTION, JOURNEY
from recado.domain.core.metadata import metadata_errors
from recado.domain.core.retention import EXECUTIONS_MONTHS, months_before
from recado.domain.events.customer_event import ContactKeys
from recado.domain.journeys.entries import EntryRefusal
from recado.domain.journeys.step_numbers import StepNumbers
from recado.http.api.audit import actor_of
from recado.http.api.call import Call
from recado.http.api.page_items import PageItems
from recado.http.api.paging import Cursors
from recado.http.api.route import Route
from recado.http.middleware.idempotency import kept_in_commit
from recado.http.problems.missing import found
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.resource import Resource
from recado.http.routes.events.customer_events import contact_keys
from recado.http.routes.journeys.execution_models import (
    EntryOut,
    ExecutionDetail,
    ExecutionOut,
    ExecutionPage,
    ExecutionQuery,
    JourneyEntry,
    execution_view,
    trail_step_view,
)
from recado.http.routes.journeys.step_models import JourneySteps, step_view
from recado.http.wire.reply import Reply
from recado.services.journeys.cancellation import ExecutionCancellation
from recado.services.journeys.entries import EntryOutcome, JourneyEntries
from recado.services.journeys.running import JourneyKey
from recado.storage.core.audit import entry_of
from recado.storage.core.statements.rows import Page
from recado.storage.journeys import execution_pages, executions, step_counts
from recado.storage.journeys.execution_pages import ExecutionFilter
from recado.storage.journeys.executions import Execution
from recado.storage.journeys.journeys import Journey

LIST: Final = "listExecutions"
CANCEL: Final = "journey.execution_cancel"  # in the audit


@dataclass(frozen=True, slots=True)
class ExecutionOperations:
    """The handlers. `call.resource` is the journey of the path, or the execution where it names one."""

    journeys: Resource[Journey]
    cursors: Cursors
    entries: JourneyEntries
    cancellation: ExecutionCancellation

    async def find(self, call: Call) -> Execution:
        """The execution of the path; 404 also where its journey is another one."""
        principal, path = call.principal, call.path
        key = (principal.organization_id, principal.env, path["id"], path["executionId"])
        return found(await executions.get(self.journeys.database, key))

    async def examine(self, call: Call) -> None:
        """Raise `Problem` 422 for whom nobody knows."""
        await self.entries.examine(self._key(call), self._contact(call))

    def _key(self, call: Call) -> JourneyKey:
        journey: Journey = call.resource
        return (journey.organization_id, journey.env, journey.id)

    def _contact(self, call: Call) -> ContactKeys:
        """Who is to enter. Raises `Problem` 422."""
        body: JourneyEntry = call.body
        check_data(body.dados)
        return contact_keys(body.contato, "/contato")

    async def enter(self, call: Call) -> Reply:
        contact = self._contact(call)
        kept = kept_in_commit(call, _entered)  # the entry is committed with those of others
        return _entered(await self.entries.enter(self._key(call), contact, call.body.dados or {}, kept=kept))

    async def list(self, call: Call) -> Reply:
        query: ExecutionQuery = call.query
        operation = f"{LIST} {call.path['id']}"  # a cursor is good for its journey only
        after = self.cursors.read(call, operation)
        first_id, before_id = query.ids(EXECUTION)
        principal = call.principal
        wanted = ExecutionFilter(
            organization_id=principal.organization_id,
            env=principal.env,
            journey_id=call.path["id"],
            first_id=first_id,
            before_id=before_id if after is None else min(before_id, after[0]),
            kept_from=months_before(call.now, EXECUTIONS_MONTHS),
            status=query.status,
            contact_id=query.contact_id,
            step_id=query.passo,
            test=query.teste,
        )
        looked_to = await execution_pages.reach(self.journeys.database, wanted)
        if looked_to is not None:
            wanted = replace(wanted, first_id=looked_to)

        def rest(last: Execution, left: int) -> Awaitable[Page[Execution]]:
            return execution_pages.list_page(self.journeys.database, replace(wanted, before_id=last.id), limit=left)

        first = await execution_pages.list_page(self.journeys.database, wanted, limit=query.limit)
        items = PageItems(first, partial(self._items, call), rest, query.limit)
        body = await self.cursors.page(call, operation, items, lambda row: [row.id])
        if looked_to is not None and not items.more:  # the page is short, and the list is longer
            body["nextCursor"] = self.cursors.write(call, operation, [looked_to])
        return Reply(200, body)

    async def steps(self, call: Call) -> Reply:
        journey: Journey = call.resource
        key = (journey.organization_id, journey.env, journey.id)
        counts = await step_counts.of_journey(self.journeys.database, key)
        items = [step_view(step, StepNumbers(counts.get(step.id, {}))) for step in journey.definition().passos]
        return Reply(200, {"items": items, "versao": journey.versao, "atualizadoEm": call.now})

    async def read(self, call: Call) -> Reply:
        execution: Execution = call.resource
        view = await self._view(call, execution)
        passed = await executions.trail(self.journeys.database, execution.organization_id, execution.id)
        return Reply(200, {**view, "passos": [trail_step_view(step) for step in passed]})

    async def cancel(self, call: Call) -> Reply:
        execution: Execution = call.resource
        entry = entry_of(
            self.journeys.dependencies.ids,
            actor_of(call),
            CANCEL,
            organization_id=execution.organization_id,
            env=execution.env,
            target_id=execution.id,
            details={"journeyId": execution.journey_id},
        )
        canceled = found(await self.cancellation.cancel(execution.key, entry))
        return Reply(200, await self._view(call, canceled), subject_id=canceled.contact_id)

    async def _view(self, call: Call, execution: Execution) -> dict[str, Any]:
        known = await self._external_ids(call, [execution])
        return execution_view(execution, known.get(execution.contact_id))

    async def _items(self, call: Call, shown: Sequence[Execution]) -> Iterable[dict[str, Any]]:
        known = await self._external_ids(call, shown)
        return (execution_view(execution, known.get(execution.contact_id)) for execution in shown)

    async def _external_ids(self, call: Call, shown: Sequence[Execution]) -> dict[str, str]:
        principal = call.principal
        contact_ids = sorted({execution.contact_id for execution in shown})
        return await executions.external_ids(
            self.journeys.database, principal.organization_id, principal.env, contact_ids
        )


def _entered(outcome: EntryOutcome) -> Reply:
    if isinstance(outcome, EntryRefusal):
        return Reply(200, {"entrou": False, "motivo": outcome})
    return Reply(201, {"entrou": True, "executionId": outcome.execution_id})


def check_data(data: Mapping[str, Any] | None) -> None:
    """Raise METADATA_INVALID for what nobody can enter with."""
    if data is not None and (wrong := metadata_errors(data, "/dados")):
        raise validation_error(wrong, code="METADATA_INVALID")


def execution_routes(
    dependencies: Dependencies,
    journeys: Resource[Journey],
    *,
    entries: JourneyEntries,
    cancellation: ExecutionCancellation,
) -> tuple[Route, ...]:
    """The operations on what belongs to a journey."""
    operations = ExecutionOperations(journeys, dependencies.cursors, entries, cancellation)
    one = partial(
        journeys.route, load=operations.find, path_ids={"id": JOURNEY, "executionId": EXECUTION}, versioned=False
    )
    return (
        journeys.route(
            "POST /v2/journeys/{id}/entries", "createJourneyEntry", "Bring a contact into a journey", operations.enter,
            body=JourneyEntry, responses={201: EntryOut, 200: EntryOut}, rate_class="send", creates=True,
            examine=operations.examine, versioned=False,
            errors=(
                "METADATA_INVALID", "PHONE_INVALID", "REFERENCE_NOT_FOUND", "GATILHO_NAO_E_API", "JORNADA_NAO_ATIVA",
                "ENTRADAS_ENCERRADAS",
            ),
            description="201 with the execution that began, or 200 with the rule that keeps the contact out.",
        ),
        journeys.route(
            "GET /v2/journeys/{id}/executions", LIST, "List the executions of a journey, newest first",
            operations.list, query=ExecutionQuery, responses={200: ExecutionPage},
            description=(
                "A page by a filter that few executions match may be shorter than `limit`, or empty, and have a "
                "`nextCursor`: the list ends where there is none."
            ),
        ),
        journeys.route(
            "GET /v2/journeys/{id}/steps", "getJourneySteps", "Read the numbers of each step of a journey",
            operations.steps, responses={200: JourneySteps}, versioned=False,
            description="Without tests. What a message came to is counted within a minute.",
        ),
        one(
            "GET /v2/journeys/{id}/executions/{executionId}", "getExecution",
            "Read an execution with the steps that it has passed", operations.read, responses={200: ExecutionDetail},
        ),
        one(
            "POST /v2/journeys/{id}/executions/{executionId}/cancel", "cancelExecution", "End an execution",
            operations.cancel, responses={200: ExecutionOut}, errors=("INVALID_STATE",),
            description="What it has queued does not leave.",
        ),
    )  # fmt: skip
