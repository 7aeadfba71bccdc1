"""Counts requests by route and status, and how long they took: plain integers, read for metrics (C34.1)."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from recado.http.api.route import Route

BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Seconds: an answer is counted under the first of them that it did not exceed."""
CLASSES: Final = ("1xx", "2xx", "3xx", "4xx", "5xx")


class Figures:
    """Of one route. `statuses`: answers by class of status; `counts`: by `BOUNDS`, and last those that took longer."""

    __slots__ = ("counts", "seconds", "statuses")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Begin again."""
        self.statuses = [0] * len(CLASSES)
        self.counts = [0] * (len(BOUNDS) + 1)
        self.seconds = 0.0

    def answered(self, status: int, seconds: float) -> None:
        """Count an answer."""
        self.statuses[status // 100 - 1] += 1
        self.counts[bisect_left(BOUNDS, seconds)] += 1
        self.seconds += seconds

    def add(self, statuses: Sequence[int], counts: Sequence[int], seconds: float) -> None:
        """Count what another process answered."""
        self.statuses = [a + b for a, b in zip(self.statuses, statuses, strict=True)]
        self.counts = [a + b for a, b in zip(self.counts, counts, strict=True)]
        self.seconds += seconds


class RequestFigures:
    """Of all routes, and of requests that found none: as many as there are routes, whatever callers ask for."""

    def __init__(self) -> None:
        self.nowhere = Figures()
        self._routes: dict[tuple[str, str], Figures] = {}

    def of(self, route: Route) -> Figures:
        """Those of a route."""
        return self._routes.setdefault((route.method, route.path), Figures())

    def all(self) -> Iterator[tuple[str, str, Figures]]:
        """Method, path and figures of each that was called; the path of what found no route is empty."""
        every: Iterable[tuple[tuple[str, str], Figures]] = (*self._routes.items(), (("", ""), self.nowhere))
        for (method, path), figures in every:
            if any(figures.statuses):
                yield method, path, figures

    def taken(self) -> list[tuple[str, str, list[int], list[int], float]]:
        """What was counted since the last time, for another process that counts it (`add`); nothing is left here."""
        taken = []
        for method, path, each in self.all():
            taken.append((method, path, each.statuses, each.counts, each.seconds))
            each.clear()
        return taken

    def add(self, taken: Iterable[Sequence[Any]]) -> None:
        """Count what another process has counted."""
        for method, path, statuses, counts, seconds in taken:
            figures = self._routes.setdefault((method, path), Figures()) if path else self.nowhere
            figures.add(statuses, counts, seconds)
