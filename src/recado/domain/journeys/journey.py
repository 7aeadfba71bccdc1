"""A journey's states, its versions, and the names of its copies (C9.1, C9.11, C9.12)."""

from collections.abc import Collection
from enum import StrEnum
from itertools import chain, count
from typing import Final

from recado.domain.core.machine import Machine

MAX_JOURNEYS: Final = 200  # of an environment, archived ones apart
MAX_NAME: Final = 120
SHORTEST_STEM: Final = 100
"""Characters of a name that each of its copies begins with, however high their number."""

_COPY: Final = "cópia"


class JourneyStatus(StrEnum):
    """Only `ativa` takes contacts along."""

    RASCUNHO = "rascunho"  # the customer writes it
    ATIVA = "ativa"
    PAUSADA = "pausada"
    ARQUIVADA = "arquivada"  # terminal; another version of it may be made


class JourneyEvent(StrEnum):
    """What happens to a journey. The comments name who says so."""

    EDIT = "edit"  # customer
    ARCHIVE = "archive"  # customer


_S = JourneyStatus
_E = JourneyEvent

JOURNEY_MACHINE: Final = Machine(
    "journey",
    {
        (_S.RASCUNHO, _E.EDIT): _S.RASCUNHO,
        (_S.RASCUNHO, _E.ARCHIVE): _S.ARQUIVADA,
    },
    initial={"created": _S.RASCUNHO, "duplicated": _S.RASCUNHO, "version": _S.RASCUNHO},
)


def copy_name(name: str, taken: Collection[str]) -> str:
    """What a copy of `name` is called: the first of `name (cópia)`, `name (cópia 2)` and so on that is not `taken`.

    A name that would become too long is cut before its marker.
    """
    markers = chain((f" ({_COPY})",), (f" ({_COPY} {number})" for number in count(2)))
    candidates = (name[: MAX_NAME - len(marker)].rstrip() + marker for marker in markers)
    return next(candidate for candidate in candidates if candidate not in taken)
