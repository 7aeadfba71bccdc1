"""The plot of a load test, as marks on a sheet that any painter can paint: lines, texts and boxes, in points."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from textwrap import shorten
from typing import Any, Final, Literal

from recado.loadtest.report import summary, verdict

WIDTH: Final = 960
HEIGHT: Final = 700
_LEFT, _RIGHT = 70.0, 940.0  # of a panel
_PANELS: Final = ((130.0, 360.0), (440.0, 650.0))  # top and bottom of each
_LEGEND: Final = 100.0  # for each line
_LONGEST: Final = 130  # characters of a line of text
_TICKS: Final = 5
_INK, _FAINT, _RULE, _GOOD, _BAD = "#1f2430", "#5b6270", "#d9dce3", "#11692f", "#b3261e"


@dataclass(frozen=True, slots=True)
class ChartLine:
    """A line through points; `title` says what it shows, empty for a rule."""

    points: tuple[tuple[float, float], ...]
    color: str
    width: float
    title: str = ""


@dataclass(frozen=True, slots=True)
class ChartText:
    """A text on a base line."""

    x: float
    y: float
    text: str
    size: float = 13
    color: str = _INK
    anchor: Literal["start", "middle", "end"] = "start"


@dataclass(frozen=True, slots=True)
class ChartBox:
    """A filled box."""

    x: float
    y: float
    width: float
    height: float
    color: str


Mark = ChartLine | ChartText | ChartBox


@dataclass(frozen=True, slots=True)
class _Panel:
    """`lines`: what each shows, its colour, and its value at each point, None where there is none."""

    title: str
    lines: tuple[tuple[str, str, Sequence[float | None]], ...]


def chart(report: Mapping[str, Any]) -> list[Mark]:
    """The marks of a report, as `as_json` makes it."""
    points = report["series"]
    seconds = [float(point["second"]) for point in points]

    def latency(name: str) -> list[float | None]:
        return [point["acceptLatencyMs"].get(name) for point in points]

    panels = (
        _Panel(
            "messages a second",
            (
                ("accepted", "#1769aa", [point["accepted"] for point in points]),
                ("sent", "#2e7d32", [point["sent"] for point in points]),
                ("refused", "#c62828", [point["refused"] for point in points]),
            ),
        ),
        _Panel(
            "accepted after, ms",
            (
                ("p50", "#1769aa", latency("p50")),
                ("p95", "#8e5a00", latency("p95")),
                ("p99", "#7b1fa2", latency("p99")),
            ),
        ),
    )
    marks: list[Mark] = [ChartBox(0, 0, WIDTH, HEIGHT, "#ffffff"), *_head(report)]
    for panel, (top, bottom) in zip(panels, _PANELS, strict=True):
        marks += _painted(panel, seconds, top, bottom)
    return marks


def _head(report: Mapping[str, Any]) -> Iterator[Mark]:
    yield ChartText(20, 32, f"Load test {report['campaignId']}", 18)
    yield ChartText(20, 56, shorten(summary(report), _LONGEST, placeholder=" …"), 13, _FAINT)
    found = shorten(verdict(report), _LONGEST, placeholder=" …")
    yield ChartText(20, 78, found, 13, _GOOD if report["ok"] else _BAD)


def _painted(panel: _Panel, seconds: Sequence[float], top: float, bottom: float) -> Iterator[Mark]:
    highest = max((value for _, _, values in panel.lines for value in values if value is not None), default=0.0)
    rising, passing = ticks(highest), ticks(seconds[-1] if seconds else 0.0, whole=True)
    yield ChartText(20, top - 14, panel.title, 14)
    for at, (title, color, _) in enumerate(panel.lines):
        x = _RIGHT - _LEGEND * (len(panel.lines) - at)
        yield ChartBox(x, top - 20, 14, 4, color)
        yield ChartText(x + 20, top - 14, title)
    for value in rising:
        y = _between(value, rising[-1], bottom, top)
        yield ChartLine(((_LEFT, y), (_RIGHT, y)), _RULE, 1)
        yield ChartText(_LEFT - 8, y + 4, f"{value:,g}", 12, _FAINT, "end")
    for value in passing:
        yield ChartText(_between(value, passing[-1], _LEFT, _RIGHT), bottom + 20, f"{value:,g} s", 12, _FAINT, "middle")
    for title, color, values in panel.lines:
        for piece in _pieces(seconds, values):
            placed = [
                (_between(second, passing[-1], _LEFT, _RIGHT), _between(value, rising[-1], bottom, top))
                for second, value in piece
            ]
            if len(placed) == 1:  # a point by itself would be no line
                ((x, y),) = placed
                placed = [(x - 2, y), (x + 2, y)]
            yield ChartLine(tuple(placed), color, 2, title)


def _pieces(seconds: Sequence[float], values: Sequence[float | None]) -> Iterator[list[tuple[float, float]]]:
    """The parts of a line between which there is nothing."""
    piece: list[tuple[float, float]] = []
    for second, value in zip(seconds, values, strict=True):
        if value is not None:
            piece.append((second, value))
        elif piece:
            yield piece
            piece = []
    if piece:
        yield piece


def _between(value: float, highest: float, low: float, high: float) -> float:
    return round(low + (high - low) * value / highest, 2)


def ticks(highest: float, *, whole: bool = False) -> list[float]:
    """Round values from zero to the highest or just above it, five steps at most; `whole`: whole numbers."""
    if highest <= 0:
        return [0.0, 1.0]
    rough = highest / _TICKS
    size = 10.0 ** math.floor(math.log10(rough))
    step = next(size * factor for factor in (1, 2, 5, 10) if size * factor >= rough * 0.999_999)
    if whole:
        step = max(1.0, step)
    return [round(step * number, 10) for number in range(math.ceil(highest / step - 0.000_001) + 1)]
