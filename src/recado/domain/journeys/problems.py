"""What is wrong with a journey's definition: every problem of C9.14 at once, as callers read them.

What it refers to is told by `References`, so that nothing is read here. A graph is walked a few times whatever is wrong
with it, and no step tells the same problem twice.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from itertools import chain
from operator import attrgetter
from typing import Any, Final, NamedTuple

from recado.domain.journeys.graph import (
    ENTRY_KEY,
    SIGNALS,
    WITHOUT_OPERAND,
    FieldOperator,
    JourneyDefinition,
    JourneyStep,
    StepKind,
    StepMode,
    StepSignal,
    TriggerKind,
    VariableOrigin,
    VariableSource,
    is_condition_field,
    is_contact_field,
)
from recado.domain.journeys.paths import Paths
from recado.domain.journeys.rcs_content import rcs_faults, sms_excess, texts_of
from recado.domain.journeys.waits import LONGEST_WAIT
from recado.domain.messages.placeholders import placeholders
from recado.domain.senders.number import IN_SERVICE, NumberStatus
from recado.domain.webhooks.webhook import SubscriptionStatus

MAX_WAIT: Final = LONGEST_WAIT // timedelta(minutes=1)
_MOST_FIXED: Final = 1_024
_BRANCHES, _MOST_BRANCH_NAME, _MOST_WEIGHT = range(2, 11), 40, 1_000
_MOST_NAMED: Final = 10  # of many names in one sentence
_LIKE_AN_ID = re.compile(r"[A-Za-z0-9_-]{1,40}").fullmatch
_MINUTE = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]").fullmatch


class JourneyFault(StrEnum):
    """The codes of problems (C9.14)."""

    SEM_INICIO = "SEM_INICIO"
    PASSO_REPETIDO = "PASSO_REPETIDO"
    PASSO_SEM_SAIDA = "PASSO_SEM_SAIDA"
    DESTINO_INEXISTENTE = "DESTINO_INEXISTENTE"
    CICLO = "CICLO"
    PASSO_INALCANCAVEL = "PASSO_INALCANCAVEL"
    GATILHO_INCOMPLETO = "GATILHO_INCOMPLETO"
    GATILHO_INEXISTENTE = "GATILHO_INEXISTENTE"
    CANAL_AUSENTE = "CANAL_AUSENTE"
    MODELO_AUSENTE = "MODELO_AUSENTE"
    MODELO_INEXISTENTE = "MODELO_INEXISTENTE"
    MODELO_NAO_APROVADO = "MODELO_NAO_APROVADO"
    MODELO_DE_OUTRO_NUMERO = "MODELO_DE_OUTRO_NUMERO"
    NUMERO_AUSENTE = "NUMERO_AUSENTE"
    NUMERO_INEXISTENTE = "NUMERO_INEXISTENTE"
    NUMERO_INDISPONIVEL = "NUMERO_INDISPONIVEL"
    REMETENTE_AUSENTE = "REMETENTE_AUSENTE"
    TEXTO_AUSENTE = "TEXTO_AUSENTE"
    TEXTO_LONGO = "TEXTO_LONGO"
    RCS_CONTEUDO_AUSENTE = "RCS_CONTEUDO_AUSENTE"
    RCS_CONTEUDO_INVALIDO = "RCS_CONTEUDO_INVALIDO"
    VARIAVEL_SEM_MAPA = "VARIAVEL_SEM_MAPA"
    VARIAVEL_FONTE_INVALIDA = "VARIAVEL_FONTE_INVALIDA"
    ESPERA_INVALIDA = "ESPERA_INVALIDA"
    HORA_INVALIDA = "HORA_INVALIDA"
    DIAS_INVALIDOS = "DIAS_INVALIDOS"
    CONDICAO_SEM_MODO = "CONDICAO_SEM_MODO"
    SOBRE_INVALIDO = "SOBRE_INVALIDO"
    SINAL_NAO_SUPORTADO = "SINAL_NAO_SUPORTADO"
    EVENTO_AUSENTE = "EVENTO_AUSENTE"
    JANELA_INVALIDA = "JANELA_INVALIDA"
    CAMPO_INVALIDO = "CAMPO_INVALIDO"
    OPERADOR_INVALIDO = "OPERADOR_INVALIDO"
    VALOR_AUSENTE = "VALOR_AUSENTE"
    RAMOS_INVALIDOS = "RAMOS_INVALIDOS"
    WEBHOOK_AUSENTE = "WEBHOOK_AUSENTE"
    WEBHOOK_INEXISTENTE = "WEBHOOK_INEXISTENTE"
    WEBHOOK_INATIVO = "WEBHOOK_INATIVO"
    SILENCIO_INVALIDO = "SILENCIO_INVALIDO"


# What a definition refers to -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TemplateState:
    """Of a chat-app template: its number, whether it may be sent, and the names of its variables."""

    number_id: str
    approved: bool
    variables: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JourneyReferences:
    """What there is, in its environment, of what a definition names: those that are missing here do not exist.

    `email_templates`: by id, the names of their variables. `email_sender`: whether a verified default sender is there.
    """

    lists: AbstractSet[str] = frozenset()
    segments: AbstractSet[str] = frozenset()
    templates: Mapping[str, TemplateState] = field(default_factory=dict)
    email_templates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    numbers: Mapping[str, NumberStatus] = field(default_factory=dict)
    webhooks: Mapping[str, SubscriptionStatus] = field(default_factory=dict)
    email_sender: bool = False


# Which fields a mode needs -------------------------------------------------------------------------------------------


class Needed(NamedTuple):
    """A field without which a mode cannot work: the problem of its absence, and the sentence."""

    field: str
    fault: JourneyFault
    sentence: str


_F = JourneyFault
_M = StepMode

_TEMPLATE: Final = Needed("template_id", _F.MODELO_AUSENTE, "Falta o modelo da mensagem, em `templateId`.")

REQUIRED: Final[Mapping[StepMode, tuple[Needed, ...]]] = {
    _M.SEND_CHATAPP: (_TEMPLATE, Needed("number_id", _F.NUMERO_AUSENTE, "Falta o número que envia, em `numberId`.")),
    _M.SEND_SMS: (Needed("texto", _F.TEXTO_AUSENTE, "Falta o texto do SMS, em `texto`."),),
    _M.SEND_EMAIL: (_TEMPLATE,),
    _M.SEND_RCS: (Needed("rcs.text", _F.RCS_CONTEUDO_AUSENTE, "Falta o texto RCS, em `rcs.conteudo.text`."),),
    _M.WAIT_FOR: (),
    _M.WAIT_UNTIL: (),
    _M.ON_SIGNAL: (
        Needed("sobre", _F.SOBRE_INVALIDO, "Falta o envio que a condição observa, em `sobre`."),
        Needed("sinal", _F.SINAL_NAO_SUPORTADO, "Falta o sinal que a condição espera, em `sinal`."),
    ),
    _M.ON_FIELD: (
        Needed("campo", _F.CAMPO_INVALIDO, "Falta o campo que a condição compara, em `campo`."),
        Needed("operador", _F.OPERADOR_INVALIDO, "Falta a comparação, em `operador`."),
    ),
    _M.SPLIT: (),
    _M.CALL: (Needed("webhook_id", _F.WEBHOOK_AUSENTE, "Falta a assinatura de webhook, em `webhookId`."),),
    _M.END: (),
}
"""By mode; exits are required besides (`JourneyStep.exits`), and what tells the mode is there (`JourneyStep.modes`)."""

_MODELESS: Final[Mapping[StepKind, tuple[JourneyFault, str]]] = {
    StepKind.ENVIAR: (_F.CANAL_AUSENTE, "O canal, em `canal`, é `chatapp`, `sms`, `email` ou `rcs`."),
    StepKind.ESPERAR: (_F.ESPERA_INVALIDA, "A espera tem `minutos`, ou então `hora` (com `dias`, se quiser)."),
    StepKind.CONDICAO: (
        _F.CONDICAO_SEM_MODO,
        "A condição observa um sinal (`sobre` e `sinal`), ou então compara um campo (`campo` e `operador`).",
    ),
}
"""By kind, the problem of a step that has no mode, or two."""

Found = tuple[JourneyFault, str]


def problems(definition: JourneyDefinition, references: JourneyReferences) -> list[str]:
    """All problems, those of the whole journey first, then step by step; empty: it may be activated."""
    return list(dict.fromkeys(chain.from_iterable(problem_parts(definition, references))))


def problem_parts(definition: JourneyDefinition, references: JourneyReferences) -> Iterator[list[str]]:
    """The same in parts, each of which is found in a millisecond: of the whole journey, and of each step.

    Two steps with one id may tell the same.
    """
    paths = Paths(definition.passos, definition.inicio)
    yield [f"{fault}: {sentence}" for fault, sentence in _of_the_whole(definition, references, paths)]
    told: set[str] = set()
    for step in definition.passos:
        found = _of_a_step(step, definition, references, paths, repeated=step.id in told)
        yield [f"{fault}[{step.id}]: {sentence}" for fault, sentence in found]
        told.add(step.id)


def _of_the_whole(definition: JourneyDefinition, references: JourneyReferences, paths: Paths) -> Iterator[Found]:
    if definition.inicio not in paths.steps:
        yield _F.SEM_INICIO, "O primeiro passo, em `inicio`, não existe."
    yield from _of_the_trigger(definition, references)
    for together in paths.cycles():
        yield _F.CICLO, f"Estes passos formam um ciclo: {', '.join(together)}."
    silence = definition.silencio
    if silence is not None:
        ends = silence.inicio, silence.fim
        if not all(end is not None and _MINUTE(end) for end in ends):
            yield _F.SILENCIO_INVALIDO, "O silêncio vai de `inicio` a `fim`, ambos no formato HH:MM."
        elif ends[0] == ends[1]:
            yield _F.SILENCIO_INVALIDO, "O início e o fim do silêncio são iguais."


def _of_the_trigger(definition: JourneyDefinition, references: JourneyReferences) -> Iterator[Found]:
    trigger = definition.gatilho
    match trigger.tipo:
        case TriggerKind.LISTA:
            yield from _reference(trigger.list_id, references.lists, "lista", "`listId`")
        case TriggerKind.SEGMENTO:
            yield from _reference(trigger.segment_id, references.segments, "segmento", "`segmentId`")
        case TriggerKind.EVENTO:
            if trigger.nome is None:
                yield _F.GATILHO_INCOMPLETO, "Falta o nome do evento do gatilho, em `nome`."
        case None:
            yield _F.GATILHO_INCOMPLETO, "Falta o tipo do gatilho: `lista`, `segmento`, `evento` ou `api`."


def _reference(named: str | None, known: AbstractSet[str], what: str, where: str) -> Iterator[Found]:
    if named is None:
        yield _F.GATILHO_INCOMPLETO, f"O gatilho precisa de {what}, em {where}."
    elif named not in known:
        yield _F.GATILHO_INEXISTENTE, f"No gatilho, {what} {_id(named)} não existe."


# Steps ---------------------------------------------------------------------------------------------------------------


def _of_a_step(
    step: JourneyStep, definition: JourneyDefinition, references: JourneyReferences, paths: Paths, *, repeated: bool
) -> Iterator[Found]:
    if repeated:
        yield _F.PASSO_REPETIDO, "Dois passos têm este `id`."
    elif definition.inicio in paths.steps and not paths.reached(step.id):
        yield _F.PASSO_INALCANCAVEL, "Nenhum caminho leva do primeiro passo a este."
    for name, target, required in step.exits:
        if target is None:
            if required:
                yield _F.PASSO_SEM_SAIDA, f"Falta o passo seguinte, em `{name}`."
        elif target not in paths.steps:
            yield _F.DESTINO_INEXISTENTE, f"O passo {_id(target)}, em `{name}`, não existe."
    modes = step.modes
    if len(modes) != 1:
        yield _MODELESS[step.tipo]
        return
    (mode,) = modes
    for needed in REQUIRED[mode]:
        if _value(step, needed.field) is None:
            yield needed.fault, needed.sentence
    if mode in _CHECKS:
        yield from _CHECKS[mode](step, _Around(definition, references, paths))


def _id(given: str | None) -> str:
    """What a sentence calls something by: only what was meant as an id is repeated (C4.1)."""
    return given if given is not None and _LIKE_AN_ID(given) else "indicado"


def _value(step: JourneyStep, name: str) -> Any:
    """The value of a field, of which any part may be missing."""
    value: Any = step
    for part in name.split("."):
        value = None if value is None else attrgetter(part)(value)
    return value


class _Around(NamedTuple):
    """What a step is looked at with."""

    definition: JourneyDefinition
    references: JourneyReferences
    paths: Paths


def _send_chatapp(step: JourneyStep, around: _Around) -> Iterator[Found]:
    template_id, number_id = step.template_id, step.number_id
    template = None if template_id is None else around.references.templates.get(template_id)
    variables: tuple[str, ...] = ()
    if template is not None:
        variables = template.variables
        if not template.approved:
            yield _F.MODELO_NAO_APROVADO, f"O modelo {_id(template_id)} não está aprovado."
        if number_id is not None and template.number_id != number_id:
            yield _F.MODELO_DE_OUTRO_NUMERO, f"O modelo {_id(template_id)} é de outro número."
    elif template_id is not None:
        yield _F.MODELO_INEXISTENTE, f"O modelo {_id(template_id)} não existe."
    if number_id is not None:
        status = around.references.numbers.get(number_id)
        if status is None:
            yield _F.NUMERO_INEXISTENTE, f"O número {_id(number_id)} não existe."
        elif status not in IN_SERVICE:
            yield _F.NUMERO_INDISPONIVEL, f"O número {_id(number_id)} não está conectado."
    yield from _variables(step, variables)


def _send_sms(step: JourneyStep, _: _Around) -> Iterator[Found]:
    text = step.texto or ""
    if excess := sms_excess(text):
        yield _F.TEXTO_LONGO, f"O texto do SMS tem mais de {excess}."
    yield from _variables(step, placeholders(text))


def _send_email(step: JourneyStep, around: _Around) -> Iterator[Found]:
    template_id = step.template_id
    variables: tuple[str, ...] | None = ()
    if template_id is not None:
        variables = around.references.email_templates.get(template_id)
        if variables is None:
            yield _F.MODELO_INEXISTENTE, f"O modelo de e-mail {_id(template_id)} não existe."
    if not around.references.email_sender:
        yield _F.REMETENTE_AUSENTE, "Não há remetente de e-mail padrão verificado."
    yield from _variables(step, variables or ())


def _send_rcs(step: JourneyStep, _: _Around) -> Iterator[Found]:
    content = step.rcs
    if content is None:
        return
    for sentence in rcs_faults(content):
        yield _F.RCS_CONTEUDO_INVALIDO, sentence
    texts = texts_of([content.text, content.fallback_text, content.card])
    yield from _variables(step, placeholders("\n".join(texts)))


_SOURCES: Final = (
    "A fonte não é conhecida ou está incompleta, em `variaveis`: {}. Ela é `contato` ou `entrada` com `campo`, ou "
    "`fixo` com `valor` (até 1.024 caracteres)."
)


def _variables(step: JourneyStep, names: tuple[str, ...]) -> Iterator[Found]:
    unmapped = [name for name in names if name not in step.variaveis]
    if unmapped:
        yield _F.VARIAVEL_SEM_MAPA, f"Faltam fontes, em `variaveis`, para {_listed(unmapped)}."
    unusable = [name for name, source in step.variaveis.items() if not _is_source(source)]
    if unusable:
        yield _F.VARIAVEL_FONTE_INVALIDA, _SOURCES.format(_listed(unusable))


def _is_source(source: VariableSource) -> bool:
    if source.padrao is not None and len(source.padrao) > _MOST_FIXED:
        return False
    match source.de:
        case VariableOrigin.CONTATO:
            return source.campo is not None and (source.campo == "phone" or is_contact_field(source.campo))
        case VariableOrigin.ENTRADA:
            return source.campo is not None and ENTRY_KEY(source.campo) is not None
        case VariableOrigin.FIXO:
            return source.valor is not None and len(source.valor) <= _MOST_FIXED
    return False


def _listed(names: list[str]) -> str:
    named = ", ".join(f"{{{{{name}}}}}" for name in names[:_MOST_NAMED])
    more = len(names) - _MOST_NAMED
    return named if more <= 0 else f"{named} e mais {more}"


def _wait_for(step: JourneyStep, _: _Around) -> Iterator[Found]:
    if step.minutos is not None and not 1 <= step.minutos <= MAX_WAIT:
        yield _F.ESPERA_INVALIDA, "A espera dura de 1 a 129.600 minutos (90 dias)."


def _wait_until(step: JourneyStep, _: _Around) -> Iterator[Found]:
    if step.hora is not None and not _MINUTE(step.hora):
        yield _F.HORA_INVALIDA, "A hora da espera tem o formato HH:MM."
    if not all(1 <= day <= 7 for day in step.dias):
        yield _F.DIAS_INVALIDOS, "Os dias da semana vão de 1 (segunda-feira) a 7 (domingo)."


def _on_signal(step: JourneyStep, around: _Around) -> Iterator[Found]:
    watched = None if step.sobre is None else around.paths.steps.get(step.sobre)
    if step.sobre is not None:
        if watched is None or watched.tipo is not StepKind.ENVIAR:
            yield _F.SOBRE_INVALIDO, f"O passo {_id(step.sobre)}, em `sobre`, não é um envio."
        elif around.paths.reached(step.id) and not around.paths.always_passed(step.id, step.sobre):
            yield _F.SOBRE_INVALIDO, f"Nem todo caminho até aqui passa pelo envio {_id(step.sobre)}, em `sobre`."
    if step.sinal is not None:
        channel = None if watched is None else watched.canal
        if step.sinal not in SIGNALS.get(channel or "", _ALL_SIGNALS):
            yield _F.SINAL_NAO_SUPORTADO, "O envio observado não dá este sinal, em `sinal`."
    if step.sinal == StepSignal.CONVERTEU and not (step.evento or around.definition.meta_evento):
        yield _F.EVENTO_AUSENTE, "Falta o evento da conversão, em `evento` do passo ou em `meta.evento`."
    if step.janela_minutos is not None and not 1 <= step.janela_minutos <= MAX_WAIT:
        yield _F.JANELA_INVALIDA, "A janela da condição dura de 1 a 129.600 minutos (90 dias)."


def _on_field(step: JourneyStep, _: _Around) -> Iterator[Found]:
    if step.campo is not None and not is_condition_field(step.campo):
        yield _F.CAMPO_INVALIDO, "O campo, em `campo`, não é do contato nem da entrada."
    if step.operador is not None and step.operador not in _OPERATORS:
        yield _F.OPERADOR_INVALIDO, f"A comparação, em `operador`, é uma destas: {', '.join(FieldOperator)}."
    if step.valor is None and step.operador in _OPERATORS - WITHOUT_OPERAND:
        yield _F.VALOR_AUSENTE, "Falta o valor com que o campo é comparado, em `valor`."


def _split(step: JourneyStep, _: _Around) -> Iterator[Found]:
    names = [branch.nome for branch in step.ramos]
    faults = []
    if len(names) not in _BRANCHES:
        faults.append("são de 2 a 10")
    if not all(name and len(name) <= _MOST_BRANCH_NAME for name in names):
        faults.append("cada um tem `nome` de 1 a 40 caracteres")
    if len(set(names)) < len(names):
        faults.append("cada `nome` é único no passo")
    if not all(branch.peso is not None and 1 <= branch.peso <= _MOST_WEIGHT for branch in step.ramos):
        faults.append("cada um tem `peso` de 1 a 1.000")
    if faults:
        yield _F.RAMOS_INVALIDOS, f"Os ramos, em `ramos`: {'; '.join(faults)}."


def _call(step: JourneyStep, around: _Around) -> Iterator[Found]:
    if step.webhook_id is None:
        return
    status = around.references.webhooks.get(step.webhook_id)
    if status is None:
        yield _F.WEBHOOK_INEXISTENTE, f"A assinatura de webhook {_id(step.webhook_id)} não existe."
    elif status in _NOT_CALLED:
        yield _F.WEBHOOK_INATIVO, f"A assinatura de webhook {_id(step.webhook_id)} está pausada ou revogada."


_ALL_SIGNALS: Final = frozenset(StepSignal)
_OPERATORS: Final = frozenset(FieldOperator)
_NOT_CALLED: Final = frozenset({SubscriptionStatus.PAUSED, SubscriptionStatus.REVOKED})

_CHECKS: Final[Mapping[StepMode, Callable[[JourneyStep, _Around], Iterator[Found]]]] = {
    _M.SEND_CHATAPP: _send_chatapp,
    _M.SEND_SMS: _send_sms,
    _M.SEND_EMAIL: _send_email,
    _M.SEND_RCS: _send_rcs,
    _M.WAIT_FOR: _wait_for,
    _M.WAIT_UNTIL: _wait_until,
    _M.ON_SIGNAL: _on_signal,
    _M.ON_FIELD: _on_field,
    _M.SPLIT: _split,
    _M.CALL: _call,
}
