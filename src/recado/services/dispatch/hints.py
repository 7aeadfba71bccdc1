"""Hints to the actors of numbers from those who change their rows: the rows are the truth, and a hint may be lost."""

from dataclasses import dataclass

from recado.services.dispatch.row import Row


@dataclass(frozen=True, slots=True)
class Arrived:
    """Messages of a number that were just committed, told to its actor."""

    rows: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class Forced:
    """The number has a forced row."""


@dataclass(frozen=True, slots=True)
class OwnerMoved:
    """A batch goes on: its messages that were held back may leave."""

    owner: str
