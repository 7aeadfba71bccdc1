"""Journeys: drafts are made, read, replaced and copied; they are activated, paused, archived, get versions (C9.1)."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from recado.domain.core.errors import Problem
from recado.domain.core.ids import JOURNEY
from recado.domain.core.machine import IllegalMove
from recado.domain.journeys.graph import DEFAULT_REENTRY_HOURS, Reentry
from recado.domain.journeys.journey import JOURNEY_MACHINE, JourneyEvent, JourneyStatus
from recado.domain.messages.changes import JourneyMoved, WithdrawalsLeft
from recado.http.api.call import Call
from recado.http.api.operation import missing_scope
from recado.http.api.route import Route
from recado.http.routes.core.dependencies import Dependencies
from recado.http.routes.core.groups import Group
from recado.http.routes.core.resource import Resource
from recado.http.routes.journeys.execution_models import ExecutionOut, JourneyTest, execution_view
from recado.http.routes.journeys.executions import check_data, execution_routes
from recado.http.routes.journeys.journey_models import (
    DraftQuery,
    JourneyBody,
    JourneyOut,
    JourneyPage,
    JourneyQuery,
    journey_item,
    journey_view,
)
from recado.http.routes.journeys.journey_problems import Examined, examined, held, with_problems
from recado.http.routes.journeys.simulations import simulation_routes
from recado.http.wire.reply import Reply
from recado.services.journeys.cancellation import ExecutionCancellation
from recado.services.journeys.entries import JourneyEntries
from recado.services.journeys.simulations import JourneySimulations
from recado.services.journeys.test_runs import JourneyTests
from recado.storage.core.statements.rows import Executor
from recado.storage.dispatch import withdrawals
from recado.storage.journeys import execution_counts, executions, states
from recado.storage.journeys.journeys import (
    JOURNEYS,
    LISTED_JOURNEYS,
    Journey,
    ListedJourney,
    beginnings,
    insert_copy,
    insert_version,
)
from recado.storage.journeys.uses import hold_used

SENDS: Final = "messages:send"

# What an event meets that a journey in its state does not allow; of an archived one none is allowed.
_REFUSALS: Final = {
    JourneyEvent.EDIT: (
        "JORNADA_NAO_E_RASCUNHO",
        "The journey was activated, and its definition stays: make another version of it, and change that.",
    ),
    JourneyEvent.PAUSE: (
        "JORNADA_NAO_ATIVA",
        "The journey is a draft, and nothing of it runs: there is nothing to pause.",
    ),
}


@dataclass(frozen=True, slots=True)
class JourneyOperations:
    """What is kept is looked at first; a draft with problems is kept only for who says so."""

    journeys: Resource[Journey]
    tests: JourneyTests

    async def examine(self, call: Call) -> tuple[Journey, Examined]:
        """The journey of the body, and what was seen of it. Raises `Problem` 422."""
        born = self.journeys.born(call)
        given = _defined(call.body, await self._time_zone(call))
        new = Journey(**born, chain_id=born["id"], criada_por_id=call.principal.actor_id, **given)
        return new, await self._acceptable(call, new)

    async def create(self, call: Call) -> Reply:
        new, seen = await self.examine(call)
        async with self.journeys.database.transaction() as connection:
            kept = await self._held(connection, call, new, seen)
            made = await self.journeys.table.insert(connection, replace(new, **_shown(kept)))
        return _reply(made, kept.problems, 201)

    async def replace(self, call: Call) -> Reply:
        given = _defined(call.body, await self._time_zone(call))
        seen = await self._acceptable(call, replace(call.resource, **given))
        async with self.journeys.locked(call) as (connection, before):
            edited = replace(before, status=_moved(before, JourneyEvent.EDIT), **given, **_shown(seen))
            kept = await self._held(connection, call, edited, seen)
            after = await self.journeys.table.save(connection, before, edited, call.now)
        return _reply(after, kept.problems)

    async def activate(self, call: Call) -> Reply:
        """Looked at while nobody moves a version of it, and nobody deletes what it uses."""
        async with self.journeys.database.transaction() as connection:
            await states.lock_chain(connection, call.resource)
            before = await self.journeys.hold(connection, call, call.resource)
            after = before
            if before.status is not JourneyStatus.ATIVA:
                _moved(before, JourneyEvent.ACTIVATE)
                await hold_used(connection, before)
                found = (await examined(connection, before)).problems
                if found:
                    raise with_problems(found, before)
                # Events after this moment are to bring contacts in, and one that is stored before the commit does not.
                now = self.journeys.dependencies.clock.now()
                after, superseded = await states.activate(connection, before, now)
                details = {"superseded": superseded} if superseded else None
                await self.journeys.note(connection, call, "journey.activate", after, details)
        self.journeys.tell(after)
        return await self.journeys.reply(call, after)

    async def pause(self, call: Call) -> Reply:
        async with self.journeys.locked(call) as (connection, before):
            after = before
            if before.status is not JourneyStatus.PAUSADA or before.pausada_por is not None:
                _moved(before, JourneyEvent.PAUSE)
                after = await states.pause(connection, before, call.now)
                await self.journeys.note(connection, call, "journey.pause", after)
        self.journeys.tell(after)
        return await self.journeys.reply(call, after)

    async def archive(self, call: Call) -> Reply:
        async with self.journeys.locked(call) as (connection, before):
            after = before
            if before.status is not JourneyStatus.ARQUIVADA:
                after = await states.archive(connection, before, call.now)
                await self.journeys.note(connection, call, "journey.archive", after)
        if after is not before:
            self._withdraw(after)
        return await self.journeys.reply(call, after)

    async def duplicate(self, call: Call) -> Reply:
        async with self.journeys.locked(call) as (connection, source):
            born = self.journeys.born(call)
            copy = _draft_of(source, call, **born, chain_id=born["id"], versao=1, versao_de=None)
            return await self._born(call, connection, copy, insert_copy)

    async def version(self, call: Call) -> Reply:
        async with self.journeys.locked(call) as (connection, source):
            if source.status is JourneyStatus.RASCUNHO:
                detail = "The journey is a draft: change it with PUT instead of making another version."
                raise Problem("INVALID_STATE", detail, meta={"status": source.status.value})
            draft = _draft_of(source, call, **self.journeys.born(call), versao_de=source.id)
            return await self._born(call, connection, draft, insert_version)

    async def _born(
        self,
        call: Call,
        connection: Executor,
        draft: Journey,
        insert: Callable[[Executor, Journey], Awaitable[Journey]],
    ) -> Reply:
        """Store a new draft in the commit that keeps its answer (C6.2). Others add journeys while it is looked at."""
        await hold_used(connection, draft)
        found = (await examined(connection, draft)).problems
        call.answer = _reply(await insert(connection, draft), found, 201)
        return call.answer

    def _withdraw(self, journey: Journey) -> None:
        """None of its queued messages leaves from here on, and they are withdrawn."""
        left = withdrawals.of_archived(journey.organization_id, journey.env, journey.id)
        self.journeys.dependencies.changed(WithdrawalsLeft((left,)))
        self.journeys.tell(journey)

    async def find_to_test(self, call: Call) -> Journey:
        """The journey, for anyone who may send messages, too."""
        if not call.can(SENDS):
            raise missing_scope(SENDS)
        return await self.journeys.find(call)

    async def examine_test(self, call: Call) -> None:
        """Raise `Problem` 422 for what no contact can go through it with, and for whom nobody knows."""
        check_data(call.body.dados)
        await self.tests.examine(self.journeys.database, call.resource, call.body.contact_id)

    async def test(self, call: Call) -> Reply:
        """What runs is the definition as it is kept: a draft may be tested, an archived journey may not."""
        body: JourneyTest = call.body
        check_data(body.dados)
        async with self.journeys.locked(call) as (connection, journey):
            if journey.status is JourneyStatus.ARQUIVADA:
                raise _archived(journey)
            found = (await examined(connection, journey)).problems
            if found:
                raise with_problems(found, journey)
            execution = await self.tests.begin(
                connection, journey, body.contact_id, body.dados or {}, hurried=body.pular_esperas
            )
            await self.journeys.note(connection, call, "journey.test", journey, {"executionId": execution.id})
            known = await executions.external_ids(connection, journey.organization_id, journey.env, [body.contact_id])
        self.tests.begun()
        return Reply(201, execution_view(execution, known.get(body.contact_id)), subject_id=body.contact_id)

    async def _time_zone(self, call: Call) -> str:
        if call.body.fuso_horario is not None:
            return str(call.body.fuso_horario)
        organizations = self.journeys.dependencies.directories.organizations
        return (await organizations.of_caller(call.principal.organization_id)).time_zone

    async def _acceptable(self, call: Call, journey: Journey) -> Examined:
        """The journey with the problems that it may have; 422 with any that it may not."""
        return _permitted(call, journey, await examined(self.journeys.database, journey))

    async def _held(self, connection: Executor, call: Call, journey: Journey, seen: Examined) -> Examined:
        """The same at the moment when the journey is stored, until when what it uses may have been deleted."""
        return _permitted(call, journey, await held(connection, journey, seen))


async def _views(_: Call, executor: Executor, journeys: list[Journey]) -> Iterable[dict[str, Any]]:
    runs = await _runs(executor, journeys)
    return [
        journey_view(journey, (await examined(executor, journey)).problems) | runs.get(journey.id, {})
        for journey in journeys
    ]


async def _items(call: Call, executor: Executor, journeys: list[ListedJourney]) -> Iterable[dict[str, Any]]:
    principal = call.principal
    known = await beginnings(executor, principal.organization_id, principal.env, journeys)
    runs = await _runs(executor, journeys)
    return [journey_item(journey, known) | runs.get(journey.id, {}) for journey in journeys]


async def _runs(executor: Executor, journeys: Sequence[ListedJourney]) -> dict[str, dict[str, Any]]:
    """Of those that somebody has entered, how many executions there are."""
    of_each: dict[tuple[str, str], list[str]] = {}
    for journey in journeys:
        of_each.setdefault((journey.organization_id, journey.env), []).append(journey.id)
    found: dict[str, dict[str, int]] = {}
    for where, journey_ids in of_each.items():
        found |= await execution_counts.of_journeys(executor, *where, journey_ids)
    return {journey_id: {"execucoes": counts} for journey_id, counts in found.items()}


def _reply(journey: Journey, found: list[str], status: int = 200) -> Reply:
    return Reply(status, journey_view(journey, found), revision=journey.revision)


def _permitted(call: Call, journey: Journey, seen: Examined) -> Examined:
    if seen.problems and not call.query.permitir_problemas:
        raise with_problems(seen.problems, journey)
    return seen


def _shown(seen: Examined) -> dict[str, Any]:
    """What lists show of its steps, by column."""
    return {"canais": seen.definition.channels, "fluxo": seen.definition.flow}


def _moved(journey: Journey, event: JourneyEvent) -> JourneyStatus:
    if journey.status is JourneyStatus.ARQUIVADA:
        raise _archived(journey)
    try:
        return JOURNEY_MACHINE.move(journey.status, event)
    except IllegalMove as refused:
        raise Problem(*_REFUSALS[event], meta=refused.meta) from None


def _archived(journey: Journey) -> Problem:
    detail = "The journey is archived: make another version of it, or duplicate it."
    return Problem("JORNADA_ARQUIVADA", detail, meta={"status": journey.status.value})


def _defined(body: JourneyBody, time_zone: str) -> dict[str, Any]:
    """What the caller says, by column."""
    given = body.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"passos"})
    return {
        "name": body.name,
        "descricao": body.descricao,
        "fuso_horario": time_zone,
        "gatilho": given["gatilho"],
        "inicio": body.inicio,
        "passos": tuple(body.passos),
        "reentrada": body.reentrada or Reentry.NUNCA,
        "intervalo_reentrada_horas": body.intervalo_reentrada_horas or DEFAULT_REENTRY_HOURS,
        "silencio": given.get("silencio"),
        "teto_de_frequencia": given.get("tetoDeFrequencia"),
        "meta_evento": None if body.meta is None else body.meta.evento,
    }


def _draft_of(source: Journey, call: Call, **own: Any) -> Journey:
    """A new draft with the definition of a journey."""
    return replace(
        source,
        status=JourneyStatus.RASCUNHO,
        criada_por_id=call.principal.actor_id,
        ativada_em=None,
        pausada_em=None,
        pausada_por=None,
        substituida_por=None,
        entradas_encerradas=False,
        arquivada_em=None,
        pausas=(),
        revision=1,
        **own,
    )


def journey_routes(
    dependencies: Dependencies,
    *,
    entries: JourneyEntries,
    cancellation: ExecutionCancellation,
    tests: JourneyTests,
    simulations: JourneySimulations,
) -> tuple[Route, ...]:
    group = Group("Journeys", "campaigns:read", "campaigns:write")
    path = "/v2/journeys/{id}"
    journeys = Resource(
        dependencies=dependencies, table=JOURNEYS, path=path, prefix=JOURNEY, name="journey", group=group,
        out=JourneyOut, views=_views, tell=lambda journey: dependencies.changed(JourneyMoved(journey.pauses)),
    )  # fmt: skip
    listed = Resource(
        dependencies=dependencies, table=LISTED_JOURNEYS, path=path, prefix=JOURNEY, name="journey", group=group,
        out=JourneyOut, page=JourneyPage, views=_items,
    )  # fmt: skip
    operations = JourneyOperations(journeys, tests)
    kept = (
        "A definition with problems is refused, with all of them in `meta.problemas`, unless `permitirProblemas=true`."
    )
    return (
        listed.route(
            "GET /v2/journeys", "listJourneys", "List journeys, newest first, without their steps",
            listed.listing(lambda query: (query.status,)), query=JourneyQuery,
        ),
        journeys.route(
            "POST /v2/journeys", "createJourney", "Make a journey as a draft", operations.create,
            query=DraftQuery, body=JourneyBody, errors=("JORNADA_COM_PROBLEMAS", "LIMITE_DE_JORNADAS"),
            examine=operations.examine, description=kept,
        ),
        journeys.route(
            "GET /v2/journeys/{id}", "getJourney", "Read a journey, with the problems that it has now", journeys.read
        ),
        journeys.route(
            "PUT /v2/journeys/{id}", "replaceJourney", "Replace the definition of a draft", operations.replace,
            query=DraftQuery, body=JourneyBody,
            errors=("JORNADA_COM_PROBLEMAS", "JORNADA_NAO_E_RASCUNHO", "JORNADA_ARQUIVADA"),
            description=kept,
        ),
        journeys.route(
            "POST /v2/journeys/{id}/duplicate", "duplicateJourney", "Copy a journey as a draft of its own",
            operations.duplicate, responses={201: JourneyOut}, answers_in_commit=True, errors=("LIMITE_DE_JORNADAS",),
            description="In whichever state it is. The copy is called `name (cópia)`, the next one `name (cópia 2)`.",
        ),
        journeys.route(
            "POST /v2/journeys/{id}/versao", "createJourneyVersion", "Make the next version of a journey, as a draft",
            operations.version, responses={201: JourneyOut}, answers_in_commit=True,
            errors=("INVALID_STATE", "VERSAO_EM_RASCUNHO", "LIMITE_DE_JORNADAS"),
            description="Of one that is a draft no more. Only one version at a time may be a draft.",
        ),
        journeys.route(
            "POST /v2/journeys/{id}/activate", "activateJourney", "Let a journey run", operations.activate,
            errors=("JORNADA_COM_PROBLEMAS", "JORNADA_ARQUIVADA", "INVALID_STATE"),
            description=(
                "A draft begins, a paused one goes on; one that is active stays as it is. A version takes the place "
                "of those before it: they take no more entries."
            ),
        ),
        journeys.route(
            "POST /v2/journeys/{id}/pause", "pauseJourney", "Let a journey stand still", operations.pause,
            errors=("JORNADA_NAO_ATIVA", "JORNADA_ARQUIVADA"),
            description=(
                "Until it is activated again; what it has queued is held as long. One that paused itself stays paused, "
                "and does not go on by itself any more. One that a person has paused stays as it is."
            ),
        ),
        journeys.route(
            "POST /v2/journeys/{id}/archive", "archiveJourney", "Archive a journey", operations.archive,
            description=(
                "For good, whatever state it is in; what it has queued is withdrawn. One that is archived already "
                "stays as it is."
            ),
        ),
        journeys.route(
            f"POST {path}/test", "testJourney", "Let one contact go through a journey, to try it", operations.test,
            load=operations.find_to_test, body=JourneyTest, responses={201: ExecutionOut}, creates=True,
            examine=operations.examine_test, versioned=False,
            errors=(
                "JORNADA_COM_PROBLEMAS", "JORNADA_ARQUIVADA", "INVALID_STATE", "METADATA_INVALID",
                "REFERENCE_NOT_FOUND", "CONTACT_OPTED_OUT", "LIMIT_REACHED",
            ),
            description=(
                "Its messages are sent and billed as any other. Rules of entry, frequency cap, quiet hours and pause "
                "do not hold for it, and it is not counted. A journey is tested 20 times an hour at most. Needs the "
                "scope `messages:send` as well."
            ),
        ),
        *simulation_routes(journeys, simulations),
        *execution_routes(dependencies, journeys, entries=entries, cancellation=cancellation),
    )  # fmt: skip
