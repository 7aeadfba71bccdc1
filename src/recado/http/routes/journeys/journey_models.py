"""Bodies and views of journeys (C9.2). What is of the right types may be kept; `problems.py` says what it lacks."""

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, GetPydanticSchema
from pydantic_core import PydanticCustomError, core_schema

from recado.domain.core.ids import LIST, NUMBER, SEGMENT, TEMPLATE, WEBHOOK
from recado.domain.journeys.graph import (
    DEFAULT_REENTRY_HOURS,
    DEFAULT_WINDOW,
    MAX_STEPS,
    FieldOperator,
    Reentry,
    StepChannel,
    StepKind,
    StepSignal,
    TriggerKind,
    VariableOrigin,
)
from recado.domain.journeys.journey import MAX_NAME, Hindrance, JourneyStatus
from recado.http.api.models import BLANK_IS_NONE, ApiModel, QueryBool, QueryInt, QueryModel, Timestamp, most_members
from recado.http.api.paging import MOST_SKIPPED, CountedPage, ListedQuery
from recado.http.routes.access.organization_models import TimeZone
from recado.http.routes.core.views import view_with
from recado.storage.journeys.journeys import Beginning, Journey, ListedJourney

MOST_LISTED = 500
MOST_VARIABLES = 100
MOST_BRANCHES = 20  # of which ten are no problem
_VARIABLE = re.compile(r"[A-Za-z0-9_]{1,64}").fullmatch
_BRACES = re.compile(r"\{\{ *([A-Za-z0-9_]{1,64}) *\}\}").fullmatch  # nothing in it can match in two ways


def _among(names: type[Any]) -> str:
    return f"One of {', '.join(f'`{each.value}`' for each in names)}."


def _variables(given: dict[str, Any]) -> dict[str, Any]:
    """By names without braces."""
    found = {}
    for place, (name, source) in enumerate(given.items(), 1):
        braces = _BRACES(name.strip())
        plain = braces[1] if braces else name.strip()
        if _VARIABLE(plain) is None:
            raise PydanticCustomError(
                "pattern_mismatch", "must name placeholders; member {place} does not", {"place": place}
            )
        if plain in found:
            raise PydanticCustomError(
                "pattern_mismatch", "must name a placeholder once; member {place} names one again", {"place": place}
            )
        found[plain] = source
    return found


# Texts that a draft may hold, also those that are too long to be sent.
LongText = Annotated[str, Field(max_length=4_000), BLANK_IS_NONE]
MediumText = Annotated[str, Field(max_length=2_500), BLANK_IS_NONE]
ShortText = Annotated[str, Field(max_length=120), BLANK_IS_NONE]
StepId = Annotated[str, Field(min_length=1, max_length=40, pattern="^[A-Za-z0-9_-]+$")]
NextStep = Annotated[str, Field(max_length=64, description="The `id` of a step."), BLANK_IS_NONE]
EventName = Annotated[str, Field(min_length=1, max_length=100)]


def _begins_with(prefix: str) -> Any:
    return Field(max_length=64, description=f"Prefix {prefix}.")


ListId = Annotated[str, _begins_with(LIST), BLANK_IS_NONE]
SegmentId = Annotated[str, _begins_with(SEGMENT), BLANK_IS_NONE]
NumberId = Annotated[str, _begins_with(NUMBER), BLANK_IS_NONE]
WebhookId = Annotated[str, _begins_with(WEBHOOK), BLANK_IS_NONE]
TemplateId = Annotated[str, _begins_with(f"{TEMPLATE}, or etpl_ where `canal` is `email`"), BLANK_IS_NONE]


class JourneyQuery(ListedQuery):
    """Filters of GET /v2/journeys."""

    status: JourneyStatus | None = None
    limit: Annotated[QueryInt, Field(ge=1, le=MOST_LISTED, description="How many items to answer.")] = 200
    skip: Annotated[QueryInt, Field(ge=0, le=MOST_SKIPPED, description="How many items to leave out first.")] = 0


class DraftQuery(QueryModel):
    """Of operations that keep a definition."""

    permitir_problemas: Annotated[
        QueryBool, Field(description="Keep the draft as it is; `problemas` says what is missing.")
    ] = False


# What callers write -------------------------------------------------------------------------------------------------


class JourneyTrigger(ApiModel):
    """By what contacts enter. `lista` needs `listId`, `segmento` `segmentId`, `evento` the `nome` of the event."""

    tipo: TriggerKind | None = None
    list_id: ListId | None = None
    segment_id: SegmentId | None = None
    nome: Annotated[str, Field(max_length=100), BLANK_IS_NONE] | None = None


class StepVariable(ApiModel):
    """Where the value of a placeholder comes from. `padrao` takes the place of an empty one."""

    de: Annotated[ShortText, Field(description=_among(VariableOrigin))] | None = None
    campo: Annotated[ShortText, Field(description="Of the contact, or a key of what it enters with.")] | None = None
    valor: Annotated[MediumText, Field(description="The fixed text, up to 1,024 characters.")] | None = None
    padrao: MediumText | None = None


class RcsSuggestion(ApiModel):
    """What can be tapped beside a card."""

    type: Annotated[ShortText, Field(description="One of `reply`, `url`, `dial`.")] | None = None
    text: ShortText | None = None
    value: MediumText | None = None


class RcsCard(ApiModel):
    """A card of an RCS message."""

    title: Annotated[str, Field(max_length=400), BLANK_IS_NONE] | None = None
    description: MediumText | None = None
    media_url: MediumText | None = None
    orientation: ShortText | None = None
    suggestions: Annotated[list[RcsSuggestion], Field(max_length=20)] | None = None


class RcsStepContent(ApiModel):
    """What an RCS message says. `text` has up to 3,072 characters."""

    text: LongText | None = None
    card: RcsCard | None = None


class RcsFallback(ApiModel):
    """The SMS that leaves where RCS does not reach."""

    text: LongText | None = None


class StepRcs(ApiModel):
    """An RCS message."""

    rota: Annotated[ShortText, Field(description="`easy_rcs` (default) or `easy_otp_rcs`.")] | None = None
    conteudo: RcsStepContent | None = None
    fallback: RcsFallback | None = None


class StepBranch(ApiModel):
    """A way out of a split, taken by `peso` of the sum of all weights."""

    nome: ShortText | None = None
    peso: int | None = None
    proximo: NextStep | None = None


class JourneyStepBody(ApiModel):
    """A step. Which of its fields count, `tipo` says, and which of them are there; the others are kept and ignored."""

    id: StepId
    tipo: StepKind
    canal: Annotated[ShortText, Field(description=_among(StepChannel))] | None = None
    template_id: TemplateId | None = None
    number_id: NumberId | None = None
    sms_route: Literal["premium", "otp"] | None = None
    texto: Annotated[LongText, Field(description="Of an SMS, up to 1,530 characters.")] | None = None
    rcs: StepRcs | None = None
    variaveis: (
        Annotated[
            dict[str, StepVariable],
            most_members(MOST_VARIABLES),
            AfterValidator(_variables),
            Field(
                description='By the name of a placeholder, `"1"`: where its value comes from.',
                json_schema_extra={
                    "maxProperties": MOST_VARIABLES,
                    "propertyNames": {"pattern": r"^([A-Za-z0-9_]{1,64}|\{\{ *[A-Za-z0-9_]{1,64} *\}\})$"},
                },
            ),
        ]
        | None
    ) = None
    proximo: NextStep | None = None
    minutos: Annotated[int, Field(description="A wait of 1 to 129,600 minutes.")] | None = None
    hora: Annotated[ShortText, Field(description="A wait until `HH:MM` in the journey's time zone.")] | None = None
    dias: Annotated[list[int], Field(max_length=20, description="On these weekdays, from 1, Monday, to 7.")] | None = (
        None
    )
    sobre: Annotated[NextStep, Field(description="The `id` of the send whose signal decides.")] | None = None
    sinal: Annotated[ShortText, Field(description=_among(StepSignal))] | None = None
    evento: EventName | None = None
    janela_minutos: (
        Annotated[int, Field(description=f"How long the signal counts, 1 to 129,600; {DEFAULT_WINDOW:,} by default.")]
        | None
    ) = None
    campo: Annotated[ShortText, Field(description="`name`, `attributes.<key>`, `entrada.<key>` and so on.")] | None = (
        None
    )
    operador: Annotated[ShortText, Field(description=_among(FieldOperator))] | None = None
    valor: Annotated[str, Field(max_length=1_024), BLANK_IS_NONE] | bool | int | float | None = None
    sim: NextStep | None = None
    nao: NextStep | None = None
    ramos: Annotated[list[StepBranch], Field(max_length=MOST_BRANCHES)] | None = None
    webhook_id: WebhookId | None = None
    se_falhar: NextStep | None = None


def _document(step: JourneyStepBody) -> Mapping[str, Any]:
    return step.model_dump(mode="json", by_alias=True, exclude_none=True)


# A step as it is stored: made where the body is read, which is another process where that is large.
StepDocument = Annotated[
    Mapping[str, Any],
    GetPydanticSchema(
        lambda _, handler: core_schema.no_info_after_validator_function(_document, handler(JourneyStepBody))
    ),
]


class JourneySilence(ApiModel):
    """A daily window in which nothing is sent, from `inicio` to `fim`, both `HH:MM`."""

    inicio: ShortText | None = None
    fim: ShortText | None = None


class JourneyCap(ApiModel):
    """At most so many messages of journeys to a contact in so many days."""

    mensagens: Annotated[int, Field(ge=1, le=100)]
    dias: Annotated[int, Field(ge=1, le=90)]


class JourneyGoal(ApiModel):
    """What the journey is for: who does it leaves the journey."""

    evento: EventName | None = None


class JourneyBody(ApiModel):
    """The definition of a journey. With `permitirProblemas=true` it may lack much."""

    name: Annotated[str, Field(min_length=1, max_length=MAX_NAME)]
    descricao: Annotated[str, Field(max_length=500), BLANK_IS_NONE] | None = None
    fuso_horario: Annotated[TimeZone, Field(description="That of the organization by default.")] | None = None
    gatilho: JourneyTrigger
    inicio: Annotated[str, Field(max_length=64, description="The `id` of the first step.")]
    passos: Annotated[list[StepDocument], Field(max_length=MAX_STEPS)]
    reentrada: Annotated[Reentry, Field(description="`nunca` by default.")] | None = None
    intervalo_reentrada_horas: (
        Annotated[int, Field(ge=1, le=8_760, description=f"{DEFAULT_REENTRY_HOURS} by default.")] | None
    ) = None
    silencio: JourneySilence | None = None
    teto_de_frequencia: JourneyCap | None = None
    meta: JourneyGoal | None = None


# What callers see ---------------------------------------------------------------------------------------------------


class JourneyRuns(ApiModel):
    """How many contacts are on their way, and how many arrived, left early or failed."""

    ativa: int
    concluida: int
    cancelada: int
    erro: int


class JourneyPause(ApiModel):
    """Why a journey paused itself, and at which step. `rotulo`: the name of the template or number that it is about."""

    motivo: Hindrance
    passo: str
    em: Timestamp
    rotulo: str | None = None


class _JourneyShown(ApiModel):
    id: str
    organization_id: str
    env: str
    name: str
    descricao: str | None = None
    status: JourneyStatus
    gatilho: JourneyTrigger
    inicio: str
    reentrada: Reentry
    intervalo_reentrada_horas: int
    silencio: JourneySilence | None = None
    teto_de_frequencia: JourneyCap | None = None
    meta: JourneyGoal | None = None
    fuso_horario: str
    execucoes: JourneyRuns
    versao: int
    versao_de: str | None = None
    substituida_por: Annotated[str, Field(description="The version that took its place.")] | None = None
    entradas_encerradas: Annotated[bool, Field(description="It takes no more contacts: a later version does.")]
    criada_por_id: str | None = None
    ativada_em: Annotated[Timestamp, Field(description="When it was activated first.")] | None = None
    pausada_em: Annotated[Timestamp, Field(description="Since when it is paused.")] | None = None
    pausada_por: Annotated[JourneyPause, Field(description="Where it paused itself.")] | None = None
    arquivada_em: Timestamp | None = None
    revisao: int
    created_at: Timestamp
    updated_at: Timestamp


class JourneyOut(_JourneyShown):
    """A journey. `problemas`: what keeps it from being activated, as of now; empty when nothing does."""

    passos: list[JourneyStepBody]
    problemas: list[str]


class JourneyList(ApiModel):
    """The list that a journey begins with."""

    nome: str
    tamanho: int


class JourneySegment(ApiModel):
    """The segment that a journey begins with."""

    nome: str


class JourneyItem(_JourneyShown):
    """A journey in a list. `fluxo`: the kinds of its steps, from the first one on."""

    canais: list[str]
    fluxo: list[str]
    meta_evento: str | None = None
    lista: JourneyList | None = None
    segmento: JourneySegment | None = None


class JourneyPage(CountedPage[JourneyItem]):
    """Journeys, newest first, without their steps."""


_NOBODY = {"ativa": 0, "concluida": 0, "cancelada": 0, "erro": 0}


def _meta(journey: ListedJourney, _: Any) -> dict[str, str] | None:
    return None if journey.meta_evento is None else {"evento": journey.meta_evento}


def _runs(_: ListedJourney, __: Any) -> dict[str, int]:
    """None of a draft; of others they are counted, and shown in place of these."""
    return _NOBODY


def _revision(journey: ListedJourney, _: Any) -> int:
    return journey.revision


def _beginning(
    journey: ListedJourney, kind: TriggerKind, member: str, known: Mapping[str, Beginning]
) -> Beginning | None:
    return known.get(journey.gatilho.get(member, "")) if journey.gatilho.get("tipo") == kind else None


def _list(journey: ListedJourney, known: Mapping[str, Beginning]) -> dict[str, Any] | None:
    found = _beginning(journey, TriggerKind.LISTA, "listId", known)
    return None if found is None else {"nome": found.name, "tamanho": found.size}


def _segment(journey: ListedJourney, known: Mapping[str, Beginning]) -> dict[str, Any] | None:
    found = _beginning(journey, TriggerKind.SEGMENTO, "segmentId", known)
    return None if found is None else {"nome": found.name}


def _problems(_: Journey, found: list[str]) -> list[str]:
    return found


journey_view = view_with(Journey, JourneyOut, meta=_meta, execucoes=_runs, revisao=_revision, problemas=_problems)
"""With the problems that it has now."""

journey_item = view_with(
    ListedJourney, JourneyItem, meta=_meta, execucoes=_runs, revisao=_revision, lista=_list, segmento=_segment
)
"""With what lists and segments there are, by id."""
