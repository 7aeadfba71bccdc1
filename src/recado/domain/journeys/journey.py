"""A journey's states, why it pauses itself, its versions, and the names of its copies (C9.1, C9.8, C9.11, C9.12)."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from itertools import chain, count
from typing import Any, Final

from recado.domain.core.machine import Machine
from recado.domain.core.timestamps import format_timestamp

MAX_JOURNEYS: Final = 200  # of an environment, archived ones apart
MAX_NAME: Final = 120
FAILURES_IN_A_ROW: Final = 50
"""Messages of a step that failed for certain, after which its journey pauses itself (C9.8.4)."""

SHORTEST_STEM: Final = 100
"""Characters of a name that each of its copies begins with, however high their number."""

_COPY: Final = "cópia"


class JourneyStatus(StrEnum):
    """Only `ativa` takes contacts along."""

    RASCUNHO = "rascunho"  # the customer writes it
    ATIVA = "ativa"  # its definition stays as it is; it takes entries, unless a later version does
    PAUSADA = "pausada"  # by the customer, or by itself; its executions stand still
    ARQUIVADA = "arquivada"  # terminal; another version of it may be made


class JourneyEvent(StrEnum):
    """What happens to a journey. The comments name who says so."""

    EDIT = "edit"  # customer
    ACTIVATE = "activate"  # customer; only one without problems
    PAUSE = "pause"  # customer
    HINDERED = "hindered"  # an execution that cannot go on, and so could no other one (C9.8.4)
    CREDITED = "credited"  # a credit to the wallet for want of which it paused itself (C9.7.5)
    EMPTIED = "emptied"  # the end of the last execution, when a later version takes the entries (C9.11.3)
    ARCHIVE = "archive"  # customer


_S = JourneyStatus
_E = JourneyEvent

JOURNEY_MACHINE: Final = Machine(
    "journey",
    {
        (_S.RASCUNHO, _E.EDIT): _S.RASCUNHO,
        (_S.RASCUNHO, _E.ACTIVATE): _S.ATIVA,
        (_S.RASCUNHO, _E.ARCHIVE): _S.ARQUIVADA,
        (_S.ATIVA, _E.PAUSE): _S.PAUSADA,
        (_S.ATIVA, _E.HINDERED): _S.PAUSADA,
        (_S.ATIVA, _E.EMPTIED): _S.ARQUIVADA,
        (_S.ATIVA, _E.ARCHIVE): _S.ARQUIVADA,
        (_S.PAUSADA, _E.PAUSE): _S.PAUSADA,  # it paused itself, and waits for a person from now on
        (_S.PAUSADA, _E.ACTIVATE): _S.ATIVA,
        (_S.PAUSADA, _E.CREDITED): _S.ATIVA,
        (_S.PAUSADA, _E.ARCHIVE): _S.ARQUIVADA,
    },
    initial={"created": _S.RASCUNHO, "duplicated": _S.RASCUNHO, "version": _S.RASCUNHO},
)


class Hindrance(StrEnum):
    """Why a journey pauses itself (C9.8.4): `pausadaPor.motivo`."""

    NO_BALANCE = "saldo_insuficiente"
    TEMPLATE_UNAVAILABLE = "modelo_indisponivel"
    NUMBER_UNAVAILABLE = "numero_indisponivel"
    CONSECUTIVE_FAILURES = "falhas_consecutivas"


@dataclass(frozen=True, slots=True)
class AutomaticPause:
    """What made a journey pause itself: at which step, when, and the name of the template or number it is about.

    `lacked`: coins, of the message that the wallet did not cover: it goes on when there are as many. `failed`: the last
    message of those that failed in a row: later ones begin another row.
    """

    hindrance: Hindrance
    step: str
    at: datetime
    label: str | None = None
    lacked: int | None = None
    failed: str | None = None

    def document(self) -> dict[str, Any]:
        """As it is stored and shown, `pausadaPor`."""
        told = {"motivo": self.hindrance.value, "passo": self.step, "em": format_timestamp(self.at)}
        return told if self.label is None else {**told, "rotulo": self.label}


def copy_name(name: str, taken: Collection[str]) -> str:
    """What a copy of `name` is called: the first of `name (cópia)`, `name (cópia 2)` and so on that is not `taken`.

    A name that would become too long is cut before its marker.
    """
    markers = chain((f" ({_COPY})",), (f" ({_COPY} {number})" for number in count(2)))
    candidates = (name[: MAX_NAME - len(marker)].rstrip() + marker for marker in markers)
    return next(candidate for candidate in candidates if candidate not in taken)
