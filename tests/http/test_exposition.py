"""The text that Prometheus reads, beside what its own client library makes of the same figures (C34.1)."""

from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.parser import text_string_to_metric_families

from recado.http.routes.ops.exposition import counter, gauge, histogram

BOUNDS = (0.001, 0.25, 1.0, 10.0)
names = st.text('ab\\"\n é{}=,', max_size=6)
figures = st.one_of(st.integers(0, 999_999), st.floats(-1e5, 999_999.0))


class Collected(CollectorRegistry):
    """One family, as the library wants it."""

    def __init__(self, metric: Metric) -> None:
        super().__init__()
        self._metric = metric

    def collect(self) -> list[Metric]:
        return [self._metric]


def by_the_library(metric: Metric) -> str:
    return generate_latest(Collected(metric)).decode()


@given(values=st.dictionaries(st.tuples(names, names), figures, max_size=5))
def test_a_counter_and_a_gauge_are_what_the_library_makes_of_them(values: dict[tuple[str, ...], float]) -> None:
    labels = ("route", "class")
    counted = CounterMetricFamily("recado_things", "Things", labels=labels)
    now = GaugeMetricFamily("recado_now", "Now", labels=labels)
    for each, value in values.items():
        counted.add_metric(each, value)
        now.add_metric(each, value)
    assert counter("recado_things", "Things", labels, values) == by_the_library(counted)
    assert gauge("recado_now", "Now", labels, values) == by_the_library(now)


def test_a_figure_without_labels_is_what_the_library_makes_of_it() -> None:
    family = GaugeMetricFamily("recado_now", "Now", labels=())
    family.add_metric((), 3)
    assert gauge("recado_now", "Now", (), {(): 3}) == by_the_library(family)


@given(
    series=st.dictionaries(
        st.tuples(names, names),
        st.tuples(st.lists(st.integers(0, 9_999), min_size=len(BOUNDS) + 1, max_size=len(BOUNDS) + 1), figures),
        max_size=4,
    )
)
@pytest.mark.parametrize("labels", [("method", "batch"), ("a", "zone")])
def test_a_histogram_is_what_the_library_makes_of_it(
    labels: tuple[str, str], series: dict[tuple[str, ...], tuple[list[int], float]]
) -> None:
    family = HistogramMetricFamily("recado_seconds", "How long", labels=labels)
    for each, (counts, total) in series.items():
        buckets = zip((*map(str, BOUNDS), "+Inf"), map(float, accumulate(counts)), strict=True)
        family.add_metric(each, list(buckets), total)
    ours = histogram(
        "recado_seconds", "How long", labels, BOUNDS, [(each, *figures) for each, figures in series.items()]
    )
    assert ours == by_the_library(family)


@pytest.mark.parametrize("value", [1_000_000, 123_456_789.5, 10**17, 1e-9, -2.5, float("inf")])
def test_a_large_number_is_read_as_it_is(value: float) -> None:
    ((family,),) = [list(text_string_to_metric_families(gauge("recado_now", "Now", (), {(): value})))]
    assert family.samples[0].value == value
