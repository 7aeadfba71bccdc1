"""Counts what the entry passes on and what it refuses: plain integers, read when somebody scrapes (C34.1)."""

from collections import Counter
from enum import StrEnum
from typing import Final

from recado.http.api.request_figures import Figures

REQUEST: Final = "request"
ANSWER: Final = "answer"
CALLER: Final = "caller"
CELL: Final = "cell"


class EntryBound(StrEnum):
    """What a request can be refused by, beside the classes of C6.1 that the rules name."""

    PLACES = "places"  # requests of its caller, or of all, that are under way to a cell
    BODIES = "bodies"  # bytes that are read here
    CONNECTIONS = "connections"


class EntryFigures:
    """`requests`: by way and cell, which is empty where none answered; `broken`: those whose answer did not come to its
    end, by who ended it and the cell; `refused`: by bound; `bytes`, `pieces`: of bodies, by whose they are.
    """

    def __init__(self) -> None:
        self.requests: dict[tuple[str, str], Figures] = {}
        self.broken: Counter[tuple[str, str]] = Counter()
        self.refused: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self.pieces: Counter[str] = Counter()

    def answered(self, way: str, cell: str, status: int, seconds: float) -> None:
        """Count an answer. `seconds`: until it began."""
        figures = self.requests.get((way, cell))
        if figures is None:
            figures = self.requests[way, cell] = Figures()
        figures.answered(status if 100 <= status < 600 else 500, seconds)  # of a cell, which may say anything

    def passed(self, whose: str, size: int) -> None:
        """Count a piece of a body."""
        self.bytes[whose] += size
        self.pieces[whose] += 1
