"""The definition of a journey: its trigger, its steps, and what leads from one to the next (C9.3, C9.4, C9.5).

A draft may hold anything of the right JSON types: a text that names no known channel, signal or operator stays as it
was written, and `problems.py` says so. Fields have the names that callers write.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NamedTuple

MAX_STEPS: Final = 50
DEFAULT_REENTRY_HOURS: Final = 24
DEFAULT_WINDOW: Final = 1_440  # minutes

_KEY: Final = r"[A-Za-z][A-Za-z0-9_.-]{0,63}"
ENTRY_KEY: Final = re.compile(_KEY).fullmatch
"""A key of the data that a contact entered with: those of metadata (C15.2)."""

_CONTACT_FIELDS: Final = frozenset(
    {
        "name", "email", "tags", "source", "externalId", "companyId", "papelNaEmpresa", "optIn.status",
        "chatappProfileName", "createdAt", "lastInteractionAt",
    }
)  # fmt: skip
_ATTRIBUTE: Final = re.compile(rf"attributes\.{_KEY}").fullmatch
_ENTRY: Final = re.compile(rf"entrada\.{_KEY}").fullmatch


class StepKind(StrEnum):
    """What a step does."""

    ENVIAR = "enviar"
    ESPERAR = "esperar"
    CONDICAO = "condicao"
    DIVIDIR = "dividir"
    WEBHOOK = "webhook"
    FIM = "fim"


class StepChannel(StrEnum):
    """By what a step sends."""

    CHATAPP = "chatapp"
    SMS = "sms"
    EMAIL = "email"
    RCS = "rcs"


class StepMode(StrEnum):
    """The ways in which steps of one kind work. Which one it is, the fields tell that are there (`modes`)."""

    SEND_CHATAPP = "send_chatapp"
    SEND_SMS = "send_sms"
    SEND_EMAIL = "send_email"
    SEND_RCS = "send_rcs"
    WAIT_FOR = "wait_for"
    WAIT_UNTIL = "wait_until"
    ON_SIGNAL = "on_signal"
    ON_FIELD = "on_field"
    SPLIT = "split"
    CALL = "call"
    END = "end"


class StepSignal(StrEnum):
    """What an earlier send is asked for."""

    ENTREGUE = "entregue"
    LIDO = "lido"
    CLICOU = "clicou"
    RESPONDEU = "respondeu"
    CONVERTEU = "converteu"


class FieldOperator(StrEnum):
    """How a field is compared."""

    IGUAL = "igual"
    DIFERENTE = "diferente"
    CONTEM = "contem"
    EXISTE = "existe"
    NAO_EXISTE = "nao_existe"
    MAIOR = "maior"
    MENOR = "menor"


class TriggerKind(StrEnum):
    """By what contacts enter."""

    LISTA = "lista"
    SEGMENTO = "segmento"
    EVENTO = "evento"
    API = "api"


class Reentry(StrEnum):
    """Whether a contact enters again."""

    NUNCA = "nunca"
    APOS_CONCLUIR = "apos_concluir"


class VariableOrigin(StrEnum):
    """Where the value of a placeholder comes from."""

    CONTATO = "contato"
    ENTRADA = "entrada"
    FIXO = "fixo"


SIGNALS: Final[Mapping[str, frozenset[str]]] = {
    StepChannel.CHATAPP: frozenset({StepSignal.ENTREGUE, StepSignal.LIDO, StepSignal.RESPONDEU, StepSignal.CONVERTEU}),
    StepChannel.SMS: frozenset({StepSignal.ENTREGUE, StepSignal.CLICOU, StepSignal.RESPONDEU, StepSignal.CONVERTEU}),
    StepChannel.RCS: frozenset(StepSignal),
    StepChannel.EMAIL: frozenset({StepSignal.ENTREGUE, StepSignal.LIDO, StepSignal.CLICOU, StepSignal.CONVERTEU}),
}
"""Which signals a send by each channel can give (C9.6)."""

WITHOUT_OPERAND: Final = frozenset({FieldOperator.EXISTE, FieldOperator.NAO_EXISTE})

Operand = str | int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """By what contacts enter, and the list, the segment or the event that it is about."""

    tipo: TriggerKind | None = None
    list_id: str | None = None
    segment_id: str | None = None
    nome: str | None = None


class VariableSource(NamedTuple):
    """Where the value of one placeholder comes from. `padrao`: what stands there in place of an empty one."""

    de: str | None = None
    campo: str | None = None
    valor: str | None = None
    padrao: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RcsContent:
    """What an RCS step sends. `card`: as the caller wrote it."""

    rota: str | None = None
    text: str | None = None
    card: Mapping[str, Any] | None = None
    has_fallback: bool = False
    fallback_text: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitBranch:
    """One way out of a split, taken by `peso` of the sum of all weights."""

    nome: str | None = None
    peso: int | None = None
    proximo: str | None = None


class Exit(NamedTuple):
    """One way out of a step. `name`: the field, or the branch; `target`: the id of the next step."""

    name: str
    target: str | None
    required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class JourneyStep:
    """One step. Which of its fields count, its kind and its mode say; the others are ignored."""

    id: str
    tipo: StepKind
    canal: str | None = None
    template_id: str | None = None
    number_id: str | None = None
    sms_route: str | None = None
    texto: str | None = None
    rcs: RcsContent | None = None
    variaveis: Mapping[str, VariableSource] = field(default_factory=dict)
    proximo: str | None = None
    minutos: int | None = None
    hora: str | None = None
    dias: tuple[int, ...] = ()
    sobre: str | None = None
    sinal: str | None = None
    evento: str | None = None
    janela_minutos: int | None = None
    campo: str | None = None
    operador: str | None = None
    valor: Operand | None = None
    sim: str | None = None
    nao: str | None = None
    ramos: tuple[SplitBranch, ...] = ()
    webhook_id: str | None = None
    se_falhar: str | None = None

    @property
    def modes(self) -> tuple[StepMode, ...]:
        """The modes that its fields tell; a step that can be run has exactly one."""
        match self.tipo:
            case StepKind.ENVIAR:
                return _SENDING.get(self.canal or "", ())
            case StepKind.ESPERAR:
                told = {StepMode.WAIT_FOR: self.minutos, StepMode.WAIT_UNTIL: self.hora}
            case StepKind.CONDICAO:
                told = {
                    StepMode.ON_SIGNAL: _either(self.sobre, self.sinal),
                    StepMode.ON_FIELD: _either(self.campo, self.operador),
                }
            case _:
                return (_ONLY_MODE[self.tipo],)
        return tuple(mode for mode, sign in told.items() if sign is not None)

    @property
    def exits(self) -> tuple[Exit, ...]:
        """What leads from it to others."""
        match self.tipo:
            case StepKind.CONDICAO:
                return Exit("sim", self.sim), Exit("nao", self.nao)
            case StepKind.DIVIDIR:
                return tuple(Exit(f"ramos/{place}", branch.proximo) for place, branch in enumerate(self.ramos))
            case StepKind.WEBHOOK:
                return Exit("proximo", self.proximo), Exit("seFalhar", self.se_falhar, required=False)
            case StepKind.FIM:
                return ()
        return (Exit("proximo", self.proximo),)


_SENDING: Final[Mapping[str, tuple[StepMode, ...]]] = {
    StepChannel.CHATAPP: (StepMode.SEND_CHATAPP,),
    StepChannel.SMS: (StepMode.SEND_SMS,),
    StepChannel.EMAIL: (StepMode.SEND_EMAIL,),
    StepChannel.RCS: (StepMode.SEND_RCS,),
}
_ONLY_MODE: Final = {
    StepKind.DIVIDIR: StepMode.SPLIT,
    StepKind.WEBHOOK: StepMode.CALL,
    StepKind.FIM: StepMode.END,
}


@dataclass(frozen=True, slots=True)
class Silence:
    """A daily window in which nothing is sent, as `HH:MM` in the journey's time zone."""

    inicio: str | None
    fim: str | None


@dataclass(frozen=True, slots=True)
class FrequencyCap:
    """At most so many messages of journeys to a contact in so many days."""

    mensagens: int
    dias: int


@dataclass(frozen=True, slots=True, kw_only=True)
class JourneyDefinition:
    """What a caller says that a journey does. `meta_evento`: the event that is its goal."""

    gatilho: Trigger
    inicio: str
    passos: tuple[JourneyStep, ...]
    reentrada: Reentry = Reentry.NUNCA
    intervalo_reentrada_horas: int = DEFAULT_REENTRY_HOURS
    silencio: Silence | None = None
    teto_de_frequencia: FrequencyCap | None = None
    meta_evento: str | None = None

    @property
    def channels(self) -> tuple[str, ...]:
        """The known channels by which its steps send, each once, in the order of the steps."""
        sends = (step.canal for step in self.passos if step.tipo is StepKind.ENVIAR)
        return tuple(dict.fromkeys(canal for canal in sends if canal is not None and canal in _SENDING))

    @property
    def flow(self) -> tuple[str, ...]:
        """The kinds of the steps that the first one leads to, breadth first."""
        steps: dict[str, JourneyStep] = {}
        for step in self.passos:
            steps.setdefault(step.id, step)
        found = {self.inicio: None} if self.inicio in steps else {}
        for reached in (queue := list(found)):
            for way_out in steps[reached].exits:
                if way_out.target in steps and way_out.target not in found:
                    found[way_out.target] = None
                    queue.append(way_out.target)
        return tuple(steps[reached].tipo.value for reached in found)


def is_contact_field(name: str) -> bool:
    """Whether a condition can look at this field of a contact; a variable can take it too."""
    return name in _CONTACT_FIELDS or _ATTRIBUTE(name) is not None


def is_condition_field(name: str) -> bool:
    """Whether a condition can look at this field: one of a contact, or of what it entered with."""
    return is_contact_field(name) or _ENTRY(name) is not None


def definition_of(document: Mapping[str, Any], steps: Iterable[JourneyStep] | None = None) -> JourneyDefinition:
    """The definition in a document, whose JSON types were checked when it came in. `steps`: its own, read already."""
    silence, cap, goal = document.get("silencio"), document.get("tetoDeFrequencia"), document.get("meta") or {}
    return JourneyDefinition(
        gatilho=_trigger(document["gatilho"]),
        inicio=document["inicio"],
        passos=tuple(map(step_of, document["passos"]) if steps is None else steps),
        reentrada=Reentry(document.get("reentrada", Reentry.NUNCA)),
        intervalo_reentrada_horas=document.get("intervaloReentradaHoras", DEFAULT_REENTRY_HOURS),
        silencio=None if silence is None else Silence(silence.get("inicio"), silence.get("fim")),
        teto_de_frequencia=None if cap is None else FrequencyCap(cap["mensagens"], cap["dias"]),
        meta_evento=goal.get("evento"),
    )


def _trigger(given: Mapping[str, Any]) -> Trigger:
    tipo = given.get("tipo")
    return Trigger(
        tipo=None if tipo is None else TriggerKind(tipo),
        list_id=given.get("listId"),
        segment_id=given.get("segmentId"),
        nome=given.get("nome"),
    )


def step_of(given: Mapping[str, Any]) -> JourneyStep:
    """One step of a document."""
    variables = given.get("variaveis") or {}
    return JourneyStep(
        id=given["id"],
        tipo=StepKind(given["tipo"]),
        canal=given.get("canal"),
        template_id=given.get("templateId"),
        number_id=given.get("numberId"),
        sms_route=given.get("smsRoute"),
        texto=given.get("texto"),
        rcs=_rcs(given.get("rcs")),
        variaveis={name: VariableSource(**source) for name, source in variables.items()},
        proximo=given.get("proximo"),
        minutos=given.get("minutos"),
        hora=given.get("hora"),
        dias=tuple(given.get("dias") or ()),
        sobre=given.get("sobre"),
        sinal=given.get("sinal"),
        evento=given.get("evento"),
        janela_minutos=given.get("janelaMinutos"),
        campo=given.get("campo"),
        operador=given.get("operador"),
        valor=given.get("valor"),
        sim=given.get("sim"),
        nao=given.get("nao"),
        ramos=tuple(SplitBranch(**branch) for branch in given.get("ramos") or ()),
        webhook_id=given.get("webhookId"),
        se_falhar=given.get("seFalhar"),
    )


def _rcs(given: Mapping[str, Any] | None) -> RcsContent | None:
    if given is None:
        return None
    content, fallback = given.get("conteudo") or {}, given.get("fallback")
    return RcsContent(
        rota=given.get("rota"),
        text=content.get("text"),
        card=content.get("card"),
        has_fallback=fallback is not None,
        fallback_text=(fallback or {}).get("text"),
    )


def _either(first: str | None, second: str | None) -> str | None:
    return first if first is not None else second
