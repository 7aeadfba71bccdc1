"""Hints to lanes of another process, as a link says them: what JSON can say, and back."""

from typing import Any, Final

from recado.actors.dispatch.lane_messages import Heads, Look
from recado.services.dispatch.crossing import packed, unpacked_rows
from recado.services.dispatch.hints import Arrived, Forced, OwnerMoved, Queued
from recado.storage.dispatch.dispatch import Head

LOOK: Final = ["look"]
"""Also of a hint that is too long for the link: there is something to read."""


def said_of(hint: object) -> list[Any] | None:
    """Its name, and what it holds; None for what each process tells its own lanes: changes of records."""
    match hint:
        case Arrived(rows):
            return ["arrived", *(packed(row) for row in rows)]
        case Heads(rows):
            return ["heads", *(list(each) for each in rows)]
        case Forced():
            return ["forced"]
        case OwnerMoved(owner):
            return ["owner_moved", owner]
        case Queued() | Look():
            return LOOK
        case _:
            return None


def hint_of(said: list[Any]) -> object:
    """The hint that was said. Raises ValueError, TypeError or IndexError for what is none."""
    name, *held = said
    match name:
        case "arrived":
            return Arrived(unpacked_rows(held))
        case "heads":
            return Heads(tuple(Head(*each) for each in held))
        case "forced":
            return Forced()
        case "owner_moved":
            return OwnerMoved(held[0])
        case "look":
            return Queued()
        case _:
            raise ValueError("no hint")
