"""Metrics as text, in the format that Prometheus reads.

A scrape has thousands of lines, whose labels were there before: what stands before the value is made once for each.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Final

REMEMBERED: Final = 16_384
"""Sets of labels: more than there are, since none grows with what callers do (C34.1)."""

Labels = tuple[str, ...]


def counter(name: str, text: str, labels: Labels, values: Mapping[Labels, float]) -> str:
    """The lines of a counter: what was counted, by the values of its labels."""
    return _family(f"{name}_total", text, "counter", labels, values)


def gauge(name: str, text: str, labels: Labels, values: Mapping[Labels, float]) -> str:
    """The lines of a figure as it is now."""
    return _family(name, text, "gauge", labels, values)


def histogram(
    name: str,
    text: str,
    labels: Labels,
    bounds: Sequence[float],
    series: Iterable[tuple[Labels, Sequence[int], float]],
) -> str:
    """The lines of a histogram. `series`: the values of its labels, the counts under each bound and above, the sum."""
    lines = [_head(name, text, "histogram")]
    for values, counts, total in series:
        starts = _starts_of_buckets(name, labels, values, tuple(bounds))
        cumulated = list(accumulate(counts))
        lines += [
            start + _number(count) for start, count in zip(starts, (*cumulated, cumulated[-1], total), strict=True)
        ]
    return "".join(lines)


def _family(name: str, text: str, kind: str, labels: Labels, values: Mapping[Labels, float]) -> str:
    lines = [_head(name, text, kind)]
    lines += [_start(name, labels, each) + _number(value) for each, value in values.items()]
    return "".join(lines)


def _head(name: str, text: str, kind: str) -> str:
    return f"# HELP {name} {text}\n# TYPE {name} {kind}\n"


def _number(value: float) -> str:
    """With the end of its line."""
    return f"{float(value)!r}\n"


@lru_cache(REMEMBERED)
def _start(name: str, labels: Labels, values: Labels) -> str:
    """What a line has before the number."""
    pairs = [f'{label}="{_escaped(value)}"' for label, value in sorted(zip(labels, values, strict=True))]
    return f"{name}{{{','.join(pairs)}}} " if pairs else f"{name} "


@lru_cache(REMEMBERED // 8)
def _starts_of_buckets(name: str, labels: Labels, values: Labels, bounds: tuple[float, ...]) -> list[str]:
    buckets = [_start(f"{name}_bucket", (*labels, "le"), (*values, bound)) for bound in (*map(str, bounds), "+Inf")]
    return [*buckets, _start(f"{name}_count", labels, values), _start(f"{name}_sum", labels, values)]


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
