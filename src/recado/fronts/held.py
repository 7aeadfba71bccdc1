"""What messages waited for so far, said to the process that sends for their numbers next (C34.4)."""

from collections.abc import Iterator
from typing import Final

from recado.actors.dispatch.waits import Handed, Waits
from recado.fronts import pickled

OF_A_PART: Final = 50
"""Entries of one part, which is less than a frame holds even where each remembers all that it can."""


def parts(handed: Handed) -> Iterator[tuple[str, bool]]:
    """All of it, in parts that are made one by one; and whether more follow."""
    for part in pickled.parts_of(handed, OF_A_PART):
        yield part, True
    yield "", False


def add(waits: Waits, part: str, more: bool) -> None:
    """Remember a part that came."""
    if more:
        place, entries = pickled.value(part)
        waits.add(Handed(entries) if place == 0 else Handed(messages=entries))
