"""Metrics as Prometheus reads them, written by its own client library.

A scrape costs what moved: of the hundreds of series most are as they were at the one before, and keep their text.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

Labels = tuple[str, ...]
_HEAD: Final = 2  # lines of a family before its series: what it is, and of which type


@dataclass(frozen=True, slots=True)
class Family:
    """Series of one name. `lines`: of the text of each. `write`: has the library take in one series."""

    metric: Callable[[], Metric]
    write: Callable[[Any, Labels, Any], None]
    lines: int
    name: str
    series: Sequence[tuple[Labels, Any]]
    """The values of the labels, and a value that is equal as long as the text is the same."""


def counter(name: str, text: str, labels: Labels, values: Mapping[Labels, float]) -> Family:
    """What was counted, by the values of its labels."""
    return Family(lambda: CounterMetricFamily(name, text, labels=labels), _figure, 1, name, list(values.items()))


def gauge(name: str, text: str, labels: Labels, values: Mapping[Labels, float]) -> Family:
    """A figure as it is now, by the values of its labels."""
    return Family(lambda: GaugeMetricFamily(name, text, labels=labels), _figure, 1, name, list(values.items()))


def histogram(
    name: str,
    text: str,
    labels: Labels,
    bounds: Sequence[float],
    series: Iterable[tuple[Labels, Sequence[int], float]],
) -> Family:
    """`series`: the values of its labels, the counts under each bound and above, the sum."""
    ends = [*map(str, bounds), "+Inf"]

    def write(metric: Any, values: Labels, seen: tuple[tuple[int, ...], float]) -> None:
        counts, total = seen
        metric.add_metric(values, list(zip(ends, accumulate(counts), strict=True)), total)

    seen = [(values, (tuple(counts), total)) for values, counts, total in series]
    of_each = len(ends) + 2  # the count and the sum
    return Family(lambda: HistogramMetricFamily(name, text, labels=labels), write, of_each, name, seen)


class Exposition:
    """Writes families, one text at a time, and keeps the text of each series for the next one."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._written: dict[tuple[str, Labels], tuple[Any, bytes]] = {}  # those of the last text, with their values
        self._heads: dict[str, bytes] = {}

    async def text(self, families: Sequence[Family]) -> bytes:
        """In a thread: where all of hundreds of routes moved it takes some thirty milliseconds."""
        async with self._turn:
            return await asyncio.to_thread(self._text, families)

    def _text(self, families: Sequence[Family]) -> bytes:
        former, self._written = self._written, {}
        return b"".join(part for family in families for part in self._parts(family, former))

    def _parts(self, family: Family, former: Mapping[tuple[str, Labels], tuple[Any, bytes]]) -> list[bytes]:
        """The head of a family, and its series in their order."""
        name, written = family.name, self._written
        moved = []
        for labels, value in family.series:
            was = former.get((name, labels))
            if was is not None and was[0] == value:
                written[name, labels] = was
            else:
                moved.append((labels, value))
        if moved or name not in self._heads:
            lines = _lines(family, moved)
            self._heads[name] = b"\n".join((*lines[:_HEAD], b""))
            for number, (labels, value) in enumerate(moved):
                first = _HEAD + number * family.lines
                written[name, labels] = value, b"\n".join((*lines[first : first + family.lines], b""))
        return [self._heads[name], *(written[name, labels][1] for labels, _ in family.series)]


def _figure(metric: Any, values: Labels, value: float) -> None:
    metric.add_metric(values, value)


def _lines(family: Family, series: Iterable[tuple[Labels, Any]]) -> list[bytes]:
    """The text of these series alone, with the head of their family."""
    metric = family.metric()
    for labels, value in series:
        family.write(metric, labels, value)
    text: bytes = generate_latest(_Collected([metric]))
    return text.split(b"\n")


class _Collected(CollectorRegistry):
    """What was collected already, as the library wants it."""

    def __init__(self, families: Sequence[Metric]) -> None:
        super().__init__()
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families
