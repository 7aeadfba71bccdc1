"""Views of the numbers of steps (C9.10)."""

from typing import Any

from recado.domain.journeys.execution import TrailResult
from recado.domain.journeys.graph import JourneyStep, StepKind
from recado.domain.journeys.step_numbers import StepNumbers, branch_names
from recado.http.api.models import ApiModel, Timestamp


class StepMessageNumbers(ApiModel):
    """What came of the messages of a send. `conversoes`: customer events that are attributed to them."""

    enviadas: int
    entregues: int
    lidas: int
    clicadas: int
    respondidas: int
    falhas: int
    conversoes: int


class BranchTotal(ApiModel):
    """How many executions took a branch of a split."""

    nome: str
    total: int


class JourneyStepItem(ApiModel):
    """How many executions came to a step, stand there, and passed it. What else it has depends on its kind."""

    passo: str
    tipo: StepKind
    canal: str | None = None
    entraram: int
    aguardando: int
    concluiram: int
    pulados: int
    erros: int
    mensagens: StepMessageNumbers | None = None
    sim: int | None = None
    nao: int | None = None
    ramos: list[BranchTotal] | None = None
    sucesso: int | None = None
    falha: int | None = None


class JourneySteps(ApiModel):
    """The numbers of the steps of a journey, in the order of the steps."""

    items: list[JourneyStepItem]
    versao: int
    atualizado_em: Timestamp


def step_view(step: JourneyStep, numbers: StepNumbers) -> dict[str, Any]:
    """As callers see it."""
    view: dict[str, Any] = {"passo": step.id, "tipo": step.tipo}
    if step.tipo is StepKind.ENVIAR and step.canal is not None:
        view["canal"] = step.canal
    view |= {
        "entraram": numbers.entered,
        "aguardando": numbers.waiting,
        "concluiram": numbers.passed,
        "pulados": numbers.skipped,
        "erros": numbers.errors,
    }
    return view | _of_kind(step, numbers)


def _of_kind(step: JourneyStep, numbers: StepNumbers) -> dict[str, Any]:
    match step.tipo:
        case StepKind.ENVIAR:
            return {"mensagens": numbers.messages()}
        case StepKind.CONDICAO:
            return {"sim": numbers.result(TrailResult.YES), "nao": numbers.result(TrailResult.NO)}
        case StepKind.DIVIDIR:
            names = branch_names(step)
            return {"ramos": [{"nome": name, "total": numbers.branch(name)} for name in names]}
        case StepKind.WEBHOOK:
            return {
                "sucesso": numbers.result(TrailResult.WEBHOOK_OK),
                "falha": numbers.result(TrailResult.WEBHOOK_FAILED),
            }
    return {}
