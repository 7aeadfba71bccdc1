"""Metrics as Prometheus reads them, written by its own client library."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

Labels = tuple[str, ...]


def counter(name: str, text: str, labels: Labels, values: Mapping[Labels, float]) -> Metric:
    """What was counted, by the values of its labels."""
    family = CounterMetricFamily(name, text, labels=labels)
    for each, value in values.items():
        family.add_metric(each, value)
    return family


def gauge(name: str, text: str, labels: Labels, values: Mapping[Labels, float]) -> Metric:
    """A figure as it is now, by the values of its labels."""
    family = GaugeMetricFamily(name, text, labels=labels)
    for each, value in values.items():
        family.add_metric(each, value)
    return family


def histogram(
    name: str,
    text: str,
    labels: Labels,
    bounds: Sequence[float],
    series: Iterable[tuple[Labels, Sequence[int], float]],
) -> Metric:
    """`series`: the values of its labels, the counts under each bound and above, the sum."""
    family = HistogramMetricFamily(name, text, labels=labels)
    ends = [*map(str, bounds), "+Inf"]
    for values, counts, total in series:
        family.add_metric(values, list(zip(ends, accumulate(counts), strict=True)), total)
    return family


async def text_of(families: Sequence[Metric]) -> bytes:
    """In a thread: with hundreds of routes it takes some thirty milliseconds, in which the event loop serves others."""
    return await asyncio.to_thread(_text, _Collected(families))


def _text(collected: "_Collected") -> bytes:
    text: bytes = generate_latest(collected)
    return text


class _Collected(CollectorRegistry):
    """What was collected already, as the library wants it."""

    def __init__(self, families: Sequence[Metric]) -> None:
        super().__init__()
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families
