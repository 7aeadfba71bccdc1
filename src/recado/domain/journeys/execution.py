"""An execution's life: its states, what ended it, and the words in which its trail is told (C9.10, C9.12)."""

from datetime import datetime
from enum import StrEnum
from typing import Final

from recado.domain.core.machine import Machine


class ExecutionStatus(StrEnum):
    """The states. Only an `ativa` one moves."""

    ATIVA = "ativa"  # its timers, signals and steps move it
    CONCLUIDA = "concluida"  # by a step `fim`, or by the goal
    CANCELADA = "cancelada"  # its contact refused or is gone, its journey was archived, or a caller cancelled it
    ERRO = "erro"  # nobody knows whether it may go on, or it failed again and again


class ExecutionOrigin(StrEnum):
    """What brought its contact in (`origem`)."""

    LIST = "lista"
    SEGMENT = "segmento"
    EVENT = "evento"
    API = "api"
    TEST = "teste"


class EndReason(StrEnum):
    """What ended an execution: the event of the machine, and the `motivo` that callers see."""

    FINISHED = "fim"
    GOAL_REACHED = "meta_atingida"
    OPTED_OUT = "opt_out"
    CONTACT_DELETED = "contato_excluido"
    JOURNEY_ARCHIVED = "jornada_arquivada"
    CANCELED_BY_CALLER = "operador"
    SEND_UNDETERMINED = "envio_indeterminado"
    INTERNAL_FAILURE = "falha_interna"


_S = ExecutionStatus
_E = EndReason

EXECUTION_MACHINE: Final = Machine(
    "execution",
    {
        (_S.ATIVA, _E.FINISHED): _S.CONCLUIDA,
        (_S.ATIVA, _E.GOAL_REACHED): _S.CONCLUIDA,
        (_S.ATIVA, _E.OPTED_OUT): _S.CANCELADA,
        (_S.ATIVA, _E.CONTACT_DELETED): _S.CANCELADA,
        (_S.ATIVA, _E.JOURNEY_ARCHIVED): _S.CANCELADA,
        (_S.ATIVA, _E.CANCELED_BY_CALLER): _S.CANCELADA,
        (_S.ATIVA, _E.SEND_UNDETERMINED): _S.ERRO,
        (_S.ATIVA, _E.INTERNAL_FAILURE): _S.ERRO,
    },
    initial={"accepted entry": _S.ATIVA},
)

WITHDRAWS: Final = frozenset(
    {_E.GOAL_REACHED, _E.OPTED_OUT, _E.CONTACT_DELETED, _E.JOURNEY_ARCHIVED, _E.CANCELED_BY_CALLER}
)
"""The ends that withdraw what the execution has queued."""


class Awaited(StrEnum):
    """What an execution waits for in its step (`aguardando.tipo`)."""

    TIME = "espera"
    SIGNAL = "condicao"
    SILENCE_END = "silencio"
    WEBHOOK = "webhook"
    RESUME = "pausa"


class TrailResult(StrEnum):
    """How a step was passed. Of a split it is the name of the branch instead."""

    SENT = "enviado"
    SKIPPED = "pulado"
    WAITED = "esperou"
    YES = "sim"
    NO = "nao"
    WEBHOOK_OK = "webhook_ok"
    WEBHOOK_FAILED = "webhook_falhou"
    FINISHED = "fim"
    ERROR = "erro"


class SkipReason(StrEnum):
    """Why a send was left out, while the journey goes on (C9.8.3)."""

    NO_PHONE = "sem_telefone"
    NO_EMAIL = "sem_email"
    EMAIL_SUPPRESSED = "email_suprimido"
    VARIABLE_EMPTY = "variavel_vazia"
    TEMPLATE_UNAVAILABLE = "modelo_indisponivel"
    NUMBER_UNAVAILABLE = "numero_indisponivel"
    FREQUENCY_CAP = "teto_de_frequencia"
    CONTENT_INVALID = "conteudo_invalido"


def goal_reached(goal: str | None, started_at: datetime, event: str, occurred_at: datetime) -> bool:
    """Whether a customer event of the contact ends the execution. `goal`: the journey's `meta.evento`."""
    return event == goal and occurred_at >= started_at
