"""Bodies and views of dry runs (C9.17)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final

from pydantic import Field

from recado.domain.channels.chatapp import CHATAPP
from recado.domain.core.ids import LIST, SEGMENT
from recado.domain.journeys.execution import EndReason, ExecutionStatus
from recado.domain.journeys.graph import MAX_STEPS, JourneyStep
from recado.domain.journeys.journey import Hindrance
from recado.domain.journeys.outcomes import EndExecution
from recado.domain.journeys.simulation.assumptions import DEFAULTS, Rate
from recado.domain.journeys.simulation.tallies import HOUR, SenderDepartures, Tallies
from recado.domain.journeys.simulation.walk import Offer, Trail, TrailLine
from recado.http.api.models import ApiModel, Timestamp, most_members
from recado.http.routes.journeys.execution_models import TrailStepOut
from recado.http.routes.journeys.step_models import JourneyStepItem, step_view
from recado.http.routes.messages.message_models import Id, Metadata
from recado.services.journeys.simulations import Simulated

MOST_SHOWN: Final = 20  # contacts whose way is told
MOST_HOURS: Final = 31 * 24  # of departures of a sender that are told one by one
_HIGHEST_SEED: Final = 2**31 - 1

EXPECTED_ENDS: Final = (
    EndReason.FINISHED, EndReason.GOAL_REACHED, EndReason.OPTED_OUT, EndReason.SEND_UNDETERMINED,
)  # fmt: skip
"""The ends that a dry run can come to."""


def _share(rate: Rate, of: str) -> Any:
    return Field(ge=0, le=1, description=f"Of {of}; {DEFAULTS[rate]:g} by default.")


class SimulationRates(ApiModel):
    """Shares from 0 to 1. The first three together are at most 1; the rest is accepted, and no report of it comes."""

    entregue: Annotated[float, _share(Rate.ENTREGUE, "what left: delivered")] | None = None
    falha: Annotated[float, _share(Rate.FALHA, "what left: failed for certain")] | None = None
    indeterminado: Annotated[float, _share(Rate.INDETERMINADO, "what left: its outcome stays unknown")] | None = None
    lido: Annotated[float, _share(Rate.LIDO, "what was delivered: read")] | None = None
    respondeu: Annotated[float, _share(Rate.RESPONDEU, "what was delivered: answered")] | None = None
    clicou: Annotated[float, _share(Rate.CLICOU, "what was delivered: a link was opened")] | None = None
    converteu: Annotated[float, _share(Rate.CONVERTEU, "what was delivered: the event follows")] | None = None
    opt_out: Annotated[float, _share(Rate.OPT_OUT, "what was delivered: the contact opts out")] | None = None
    webhook: Annotated[float, _share(Rate.WEBHOOK, "the calls of a webhook step: taken")] | None = None

    def given(self) -> dict[Rate, float]:
        """What the caller says."""
        said = self.model_dump(by_alias=True, exclude_none=True)
        return {Rate(name): rate for name, rate in said.items()}


class SimulatedStep(ApiModel):
    """What is assumed of one step, instead of what is assumed of all."""

    taxas: Annotated[SimulationRates, Field(description="Of an `enviar`, or of a `webhook`.")] | None = None
    ramo: (
        Annotated[
            str,
            Field(
                min_length=1,
                max_length=120,
                description="The way that all take: `sim` or `nao`, the name of a branch, `webhook_ok` or "
                "`webhook_falhou`.",
            ),
        ]
        | None
    ) = None


class SimulatedAudience(ApiModel):
    """Who would enter: by one of the four."""

    contact_id: Id | None = None
    contact_ids: Annotated[list[Id], Field(min_length=1, max_length=MOST_SHOWN)] | None = None
    segment_id: Annotated[str, Field(min_length=1, max_length=64, description=f"Prefix {SEGMENT}.")] | None = None
    list_id: Annotated[str, Field(min_length=1, max_length=64, description=f"Prefix {LIST}.")] | None = None


class JourneySimulation(ApiModel):
    """A dry run of a journey. `publico`: by default the list or the segment of its trigger."""

    publico: SimulatedAudience | None = None
    taxas: SimulationRates | None = None
    passos: (
        Annotated[
            dict[str, SimulatedStep],
            most_members(MAX_STEPS),
            Field(description="By the `id` of a step.", json_schema_extra={"maxProperties": MAX_STEPS}),
        ]
        | None
    ) = None
    dados: Annotated[Metadata, Field(description="What everybody enters with; as `metadata` of messages.")] = None
    amostra: Annotated[
        int, Field(ge=0, le=MOST_SHOWN, description="Of how many contacts of a list or segment the way is told.")
    ] = 5
    semente: Annotated[int, Field(ge=0, le=_HIGHEST_SEED, description="The same draws come of the same one.")] = 1
    inicio: Annotated[Timestamp, Field(description="When all enter; now by default.")] | None = None


class SimulatedContacts(ApiModel):
    """`lidos`: looked at; the others of them. `recusados`: who opted out, and does not enter."""

    lidos: int
    entraram: int
    recusados: int
    terminaram: int
    em_andamento: int


class SimulatedStepItem(JourneyStepItem):
    """A step, as GET …/steps tells it of one that runs. `motivos`: of what was skipped; `moedas`: of its messages."""

    motivos: dict[str, int] | None = None
    moedas: int | None = None


class SimulatedCost(ApiModel):
    """What leaves, at the prices of now."""

    mensagens: int
    moedas: int


class HourOfDepartures(ApiModel):
    """What would leave within an hour that begins at `hora`."""

    hora: Timestamp
    mensagens: int


class SimulatedDepartures(ApiModel):
    """When the messages of a sender would leave. `expiradas`: what it could not send in their time to live.

    `porHora`: up to 744 hours in which something leaves. `horasAteEscoar`: from the begin until the last one has left.
    """

    canal: str
    number_id: str | None = None
    rota: Annotated[str, Field(description="Of SMS.")] | None = None
    mensagens: int
    expiradas: int
    primeira: Timestamp | None = None
    ultima: Timestamp | None = None
    horas_ate_escoar: float
    por_hora: list[HourOfDepartures]


class SimulatedPause(ApiModel):
    """For what the journey would pause itself."""

    motivo: Hindrance
    passo: str


class SimulatedMessage(ApiModel):
    """What a contact would get. `saiEm` is absent where its time to live runs out before."""

    canal: str
    number_id: str | None = None
    rota: str | None = None
    texto: str
    template_id: str | None = None
    segmentos: int
    moedas: int | None = None
    sai_em: Timestamp | None = None


class SimulatedTrailStep(TrailStepOut):
    """A step that a contact would pass."""

    mensagem: SimulatedMessage | None = None


class SimulatedWay(ApiModel):
    """The way of one contact. `entrou` false: it opted out before."""

    contact_id: str
    entrou: bool
    status: ExecutionStatus | None = None
    motivo: EndReason | None = None
    encerrada_em: Timestamp | None = None
    passos: list[SimulatedTrailStep]


class SimulationOut(ApiModel):
    """What would come of a journey. `parcial`: there was no time or room for all; what is told is of `contatos`."""

    versao: int
    semente: int
    inicio: Timestamp
    fim: Annotated[Timestamp, Field(description="The moment of the last event, on virtual time.")]
    parcial: bool
    contatos: SimulatedContacts
    passos: list[SimulatedStepItem]
    resultados: Annotated[dict[EndReason, int], Field(description="How many came to which end.")]
    custo: SimulatedCost | None = None
    saidas: list[SimulatedDepartures]
    pausaria_por: list[SimulatedPause]
    amostra: list[SimulatedWay]


Rendered = Mapping[int, Mapping[str, Any]]
"""By the `id()` of a line, the message of it."""


def simulated_view(
    found: Simulated, steps: tuple[JourneyStep, ...], *, billed: bool, start: datetime
) -> dict[str, Any]:
    """What came of a dry run, without the ways of single contacts."""
    tallies = found.tallies
    departures = [_departures(each, found.lanes[lane], start) for lane, each in tallies.departures.items()]
    view: dict[str, Any] = {
        "inicio": start,
        "fim": tallies.last_at,
        "parcial": found.partial,
        "contatos": {
            "lidos": tallies.entered + tallies.denied,
            "entraram": tallies.entered,
            "recusados": tallies.denied,
            "terminaram": tallies.entered - found.under_way,
            "emAndamento": found.under_way,
        },
        "passos": [_step(step, tallies, billed=billed) for step in steps],
        "resultados": {reason.value: tallies.ends[reason] for reason in dict.fromkeys((*EXPECTED_ENDS, *tallies.ends))},
        "saidas": departures,
        "pausariaPor": [{"motivo": each.hindrance, "passo": each.step} for each in found.hindered],
    }
    if billed:
        left = sum(each["mensagens"] for each in departures)
        view["custo"] = {"mensagens": left, "moedas": tallies.coins.total()}
    return view


def way_view(trail: Trail, kinds: Mapping[str, str], messages: Rendered) -> dict[str, Any]:
    """The way of one contact. `kinds`: the `tipo` of each step."""
    view: dict[str, Any] = {"contactId": trail.contact.id, "entrou": trail.entered}
    if trail.entered:
        view["status"] = ExecutionStatus.ATIVA if trail.reason is None else EndExecution(trail.reason).status
    if trail.reason is not None:
        view |= {"motivo": trail.reason, "encerradaEm": trail.ended_at}
    return view | {"passos": [_line(line, kinds, messages.get(id(line))) for line in trail.lines]}


def message_view(line: TrailLine, offer: Offer, text: str, *, template_id: str | None, billed: bool) -> dict[str, Any]:
    """What a contact would get in a step."""
    view: dict[str, Any] = {
        **_sender(offer),
        "texto": text,
        "templateId": template_id,
        "segmentos": offer.units,
        "moedas": offer.coins if billed else None,
        "saiEm": line.leaves_at,
    }
    return {name: value for name, value in view.items() if value is not None}


def _line(line: TrailLine, kinds: Mapping[str, str], message: Mapping[str, Any] | None) -> dict[str, Any]:
    view = {
        "passo": line.step_id,
        "tipo": kinds[line.step_id],
        "em": line.at,
        "resultado": line.result,
        "detalhe": line.detail,
        "mensagem": message,
    }
    return {name: value for name, value in view.items() if value is not None}


def _step(step: JourneyStep, tallies: Tallies, *, billed: bool) -> dict[str, Any]:
    view = step_view(step, tallies.numbers(step.id))
    if "mensagens" in view:
        view["motivos"] = dict(tallies.skipped[step.id])
        if billed:
            view["moedas"] = tallies.coins[step.id]
    return view


def _departures(departures: SenderDepartures, offer: Offer, start: datetime) -> dict[str, Any]:
    hours = sorted(departures.by_hour.items())[:MOST_HOURS]
    last = departures.last
    view: dict[str, Any] = {
        **_sender(offer),
        "mensagens": departures.by_hour.total(),
        "expiradas": departures.expired,
        "horasAteEscoar": 0.0 if last is None else round((last - start) / HOUR, 2),
        "porHora": [{"hora": hour, "mensagens": count} for hour, count in hours],
    }
    if last is not None:
        view |= {"primeira": departures.first, "ultima": last}
    return view


def _sender(offer: Offer) -> dict[str, str]:
    """By what a message leaves, as callers name it."""
    if offer.channel == CHATAPP:
        return {"canal": offer.channel, "numberId": offer.lane}
    return {"canal": offer.channel, "rota": offer.lane.rpartition(":")[2]}
