"""Bodies and views of entries and executions (C9.7, C9.10)."""

from typing import Annotated, Any

from pydantic import Field

from recado.domain.journeys.entries import EntryRefusal
from recado.domain.journeys.execution import Awaited, EndReason, ExecutionOrigin, ExecutionStatus
from recado.http.api.models import ApiModel, QueryBool, Timestamp
from recado.http.api.paging import CursorPage, CursorQuery, PeriodQuery
from recado.http.routes.events.customer_event_models import ContactOfEvent
from recado.http.routes.journeys.journey_models import StepId
from recado.http.routes.messages.message_models import Id, Metadata
from recado.storage.journeys.executions import Execution, TrailStep


class ContactOfEntry(ContactOfEvent):
    """Who enters, by at least one of the four; the first that finds a contact counts, in this order."""


class JourneyEntry(ApiModel):
    """A contact that is to enter a journey."""

    contato: ContactOfEntry
    dados: Annotated[
        Metadata, Field(description="What it enters with, for conditions and variables; as `metadata` of messages.")
    ] = None


class JourneyTest(ApiModel):
    """Who goes through a journey to try it."""

    contact_id: Id
    dados: Annotated[
        Metadata, Field(description="What it enters with, for conditions and variables; as `metadata` of messages.")
    ] = None
    pular_esperas: Annotated[
        bool, Field(description="Waits last 1 second, and windows of conditions 60 seconds at most.")
    ] = True


class EntryOut(ApiModel):
    """What became of an entry: its execution, or which rule refused it."""

    entrou: bool
    execution_id: str | None = None
    motivo: EntryRefusal | None = None


class ExecutionQuery(CursorQuery, PeriodQuery):
    """Filters of GET /v2/journeys/{id}/executions. The period is that of their begin."""

    status: ExecutionStatus | None = None
    contact_id: Id | None = None
    passo: Annotated[StepId | None, Field(description="Of those under way that stand at this step.")] = None
    teste: Annotated[QueryBool | None, Field(description="Of tests only, or of all but tests.")] = None


class AwaitedOut(ApiModel):
    """What an execution waits for in its step. `ate` is absent while nobody knows the moment."""

    tipo: Awaited
    ate: Timestamp | None = None


class ExecutionOut(ApiModel):
    """The way of a contact through a journey. `passoAtual` and `aguardando` are those of one that is `ativa`."""

    id: str
    journey_id: str
    versao: int
    contact_id: str
    contact_external_id: str | None = None
    status: ExecutionStatus
    motivo: EndReason | None = None
    origem: ExecutionOrigin
    teste: bool
    entrada: dict[str, Any]
    passo_atual: str | None = None
    aguardando: AwaitedOut | None = None
    iniciada_em: Timestamp
    encerrada_em: Timestamp | None = None


class TrailStepOut(ApiModel):
    """A step that was passed. `resultado`: of a split the name of the branch; `detalhe`: why a send was left out."""

    passo: str
    tipo: str
    em: Timestamp
    resultado: str
    message_id: str | None = None
    detalhe: str | None = None


class ExecutionDetail(ExecutionOut):
    """An execution with the steps that it has passed, in their order."""

    passos: list[TrailStepOut]


class ExecutionPage(CursorPage[ExecutionOut]):
    """Executions, the last one that began first."""


def execution_view(execution: Execution, external_id: str | None) -> dict[str, Any]:
    """As callers see it."""
    under_way = execution.status is ExecutionStatus.ATIVA
    view: dict[str, Any] = {
        "id": execution.id,
        "journeyId": execution.journey_id,
        "versao": execution.versao,
        "contactId": execution.contact_id,
        "contactExternalId": external_id,
        "status": execution.status,
        "motivo": execution.motivo,
        "origem": execution.origem,
        "teste": execution.teste,
        "entrada": execution.entrada,
        "passoAtual": execution.step_id if under_way else None,
        "aguardando": _awaited(execution),
        "iniciadaEm": execution.started_at,
        "encerradaEm": execution.ended_at,
    }
    return {name: value for name, value in view.items() if value is not None}


def trail_step_view(step: TrailStep) -> dict[str, Any]:
    """As callers see it."""
    view = {
        "passo": step.step_id,
        "tipo": step.tipo,
        "em": step.at,
        "resultado": step.resultado,
        "messageId": step.message_id,
        "detalhe": step.detalhe,
    }
    return {name: value for name, value in view.items() if value is not None}


def _awaited(execution: Execution) -> dict[str, Any] | None:
    if execution.awaited is None:
        return None
    waits: dict[str, Any] = {"tipo": execution.awaited}
    return waits if execution.awaited_until is None else {**waits, "ate": execution.awaited_until}
