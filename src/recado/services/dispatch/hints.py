"""Hints to lanes from those who change their rows: the rows are the truth, and a hint may be lost."""

from dataclasses import dataclass

from recado.services.dispatch.row import Row


@dataclass(frozen=True, slots=True)
class Arrived:
    """Messages of a sender that were just committed, told to its lane."""

    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Forced:
    """The sender has a forced row."""


@dataclass(frozen=True, slots=True)
class OwnerMoved:
    """A batch or a journey goes on: its messages that were held back may leave."""

    owner: str


@dataclass(frozen=True, slots=True)
class Queued:
    """Rows of the sender were queued, besides those that arrive."""
