"""The report of a load test as one page of HTML: the plot as SVG, and the figures. It asks nothing of any host."""

from collections.abc import Mapping
from html import escape
from typing import Any, Final

from recado.loadtest.chart import HEIGHT, WIDTH, ChartBox, ChartLine, ChartText, Mark, chart
from recado.loadtest.percentiles import SHARES

_STYLE: Final = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:960px;margin:1rem auto;padding:0 1rem;color:#1f2430;"
    "background:#fff}svg{width:100%;height:auto}table{border-collapse:collapse;margin:1rem 0}"
    "th,td{padding:.2rem .8rem .2rem 0;text-align:right}th:first-child,td:first-child{text-align:left}"
    "tr{border-bottom:1px solid #d9dce3}"
)


def html_report(report: Mapping[str, Any]) -> str:
    """The page of a report, as `as_json` makes it."""
    title = escape(f"Load test {report['campaignId']}")
    problems = "".join(f"<li>{escape(problem)}</li>" for problem in report["problems"])
    refusals = [(code, f"{count:,}") for code, count in report["refusals"].items()]
    numbers = [
        (each["numberId"], f"{each['left']:,}", f"{each['busiestSecond']:,}", _given(each["perSecond"]))
        for each in report["numbers"]
    ]
    seconds = [
        tuple(
            _given(value)
            for value in (
                *(point[name] for name in ("second", "accepted", "refused", "sent")),
                *(point["acceptLatencyMs"].get(name) for name in ("p50", "p95", "p99")),
            )
        )
        for point in report["series"]
    ]
    times = [
        (told, *(f"{report[key][name]:,.2f}" for name, _ in SHARES))
        for told, key in (("accepted after, ms", "acceptLatencyMs"), ("sent after, s", "secondsToSent"))
        if report[key]
    ]
    return "".join(
        (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
            '<meta name="viewport" content="width=device-width">',
            f"<style>{_STYLE}</style></head><body><main>",
            svg(chart(report)),
            f"<ul>{problems}</ul>" if problems else "",
            _table(("", *(name for name, _ in SHARES)), times),
            _table(("refused with", "requests"), refusals),
            _table(("number", "left", "most within a second", "its limit"), numbers),
            "<details><summary>Second by second</summary>",
            _table(("second", "accepted/s", "refused/s", "sent/s", "p50 ms", "p95 ms", "p99 ms"), seconds),
            "</details></main></body></html>\n",
        )
    )


def svg(marks: list[Mark]) -> str:
    """The marks, as an SVG element of a page."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="Messages a second, and how long an answer took" font-family="system-ui,sans-serif">'
        f"{''.join(map(_element, marks))}</svg>"
    )


def _element(mark: Mark) -> str:
    match mark:
        case ChartBox():
            return (
                f'<rect x="{mark.x:g}" y="{mark.y:g}" width="{mark.width:g}" height="{mark.height:g}" '
                f'fill="{mark.color}"/>'
            )
        case ChartText():
            return (
                f'<text x="{mark.x:g}" y="{mark.y:g}" font-size="{mark.size:g}" fill="{mark.color}" '
                f'text-anchor="{mark.anchor}">{escape(mark.text)}</text>'
            )
        case ChartLine():
            points = " ".join(f"{x:g},{y:g}" for x, y in mark.points)
            title = f"<title>{escape(mark.title)}</title>" if mark.title else ""
            return (
                f'<polyline points="{points}" fill="none" stroke="{mark.color}" stroke-width="{mark.width:g}" '
                f'stroke-linejoin="round">{title}</polyline>'
            )


def _table(head: tuple[str, ...], rows: list[Any]) -> str:
    if not rows:
        return ""
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"


def _given(value: float | None) -> str:
    return "" if value is None else f"{value:,g}"
