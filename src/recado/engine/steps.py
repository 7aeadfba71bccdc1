"""Runs work in steps on the event loop: others have a turn after each (C31)."""

from typing import TypeVar

from recado.domain.core.steps import Steps
from recado.engine.turns import turns

T = TypeVar("T")


async def in_steps(work: Steps[T]) -> T:
    """What the work finds; whatever it raises."""
    while True:
        try:
            next(work)
        except StopIteration as done:
            found: T = done.value
            return found
        await turns.next()
