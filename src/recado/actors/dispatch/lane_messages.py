"""What is told to a lane, and what it answers; what others tell it is in `hints.py`."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from recado.actors.dispatch.sender_view import SenderView
from recado.domain.dispatch.gates import Hold
from recado.services.dispatch.row import Row
from recado.storage.dispatch.dispatch import Head


@dataclass(frozen=True, slots=True)
class Look:
    """There may be rows to send that the actor has not seen."""


@dataclass(frozen=True, slots=True)
class Heads:
    """Where the sender's rows began in the table a moment ago: what the lane does not know of them it has missed."""

    rows: tuple[Head, ...]


@dataclass(frozen=True, slots=True)
class LetGo:
    """Rows that were held are ready again; forced ones may be among them."""


@dataclass(frozen=True, slots=True)
class Changed:
    """The sender or its organization was changed."""


@dataclass(frozen=True, slots=True)
class TemplateMoved:
    """A template of the number was changed: messages that waited for it may leave, or fail."""

    template_id: str


@dataclass(frozen=True, slots=True)
class AskSituation:
    """Asks what holds the sender now."""


@dataclass(frozen=True, slots=True)
class LaneSituation:
    """`holding`: what holds all of its messages. `ready_at`: the next token. `per_second`: the rate in force."""

    view: SenderView | None
    holding: Hold | None
    ready_at: datetime
    per_second: float
    in_flight: int


@dataclass(frozen=True, slots=True)
class Wake:
    """A timer: a token is due, or a pause ends."""


@dataclass(frozen=True, slots=True)
class Refilled:
    """What a refill of a class read; None: it failed."""

    klass: int
    limit: int
    rows: Sequence[Row] | None


@dataclass(frozen=True, slots=True)
class NotClaimed:
    """A claim failed: the row was withdrawn or changed, its window closed, its contact opted out, another process owns
    the numbers, or (None) the database did not take it.

    `error`: blames the row, unless the database was away.
    """

    row: Row
    verdict: str | None
    error: BaseException | None = None


@dataclass(frozen=True, slots=True)
class CameBack:
    """A message went back to the queue unspent: the provider asked for a pause, or could not be reached."""

    row: Row
