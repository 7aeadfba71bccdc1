"""The plot of a load test: the file of each kind, read again."""

from html.parser import HTMLParser
from io import BytesIO
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from recado.loadtest.chart import HEIGHT, WIDTH, chart, ticks
from recado.loadtest.chart_html import html_report, svg
from recado.loadtest.chart_png import png_report
from recado.loadtest.generator import Outcomes
from recado.loadtest.report import as_json
from recado.loadtest.verification import NumberFigures, Verification

SVG = "{http://www.w3.org/2000/svg}"


def report(*, seconds: int = 6, problems: tuple[str, ...] = ()) -> dict[str, Any]:
    """Ten a second are accepted but in the fourth second, in which all are refused; five a second are sent."""
    outcomes = Outcomes()
    for number in range(10 * seconds):
        at = number / 10
        outcomes.requested += 1
        if int(at) == 3:
            outcomes.record(429, b'{"code":"RATE_LIMITED"}', 0.001, at)
        else:
            outcomes.record(201, b'{"id":"msg_%021d"}' % number, 0.002, at)
    sent = [number / 5 for number in range(5 * seconds)]
    verification = Verification(len(sent), sent, sent, [NumberFigures("num_<1>", 5, len(sent), 5)], list(problems))
    return as_json(outcomes, verification, campaign_id="run-1", mix={"chatapp": 80, "sms": 20}, seconds=float(seconds))


def test_each_line_shows_its_value_second_by_second() -> None:
    drawn = ElementTree.fromstring(svg(chart(report())))
    lines: dict[str, list[list[list[float]]]] = {}
    for element in drawn.iter(f"{SVG}polyline"):
        title = element.find(f"{SVG}title")
        if title is not None and title.text is not None:
            points = [[float(each) for each in point.split(",")] for point in element.attrib["points"].split()]
            lines.setdefault(title.text, []).append(points)
    assert set(lines) == {"accepted", "sent", "refused", "p50", "p95", "p99"}
    ((accepted,), (sent,), (refused,)) = (lines[name] for name in ("accepted", "sent", "refused"))
    top, bottom = min(y for _, y in accepted), max(y for _, y in accepted)
    assert [y for _, y in accepted] == [top, top, top, bottom, top, top]
    assert [y for _, y in refused] == [bottom, bottom, bottom, top, bottom, bottom]
    assert {y for _, y in sent} == {(top + bottom) / 2}
    assert [len(piece) for piece in lines["p95"]] == [3, 2]  # nothing was accepted between them


class Page(HTMLParser):
    """What a page holds: its tags with their attributes, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += f"{data}\n"


def test_the_page_has_the_figures_and_asks_no_other_host() -> None:
    page = Page()
    page.feed(html_report(report(problems=("1 message is <missing>",))))
    assert "60 requests in 6.0 s: 50 accepted (8/s), 10 refused" in page.text
    for told in ("num_<1>", "429 RATE_LIMITED", "1 message is <missing>", "accepted after, ms", "p999"):
        assert told in page.text
    asks = {"script", "img", "link", "iframe", "object", "embed", "image", "use", "form", "a"}
    assert not asks & {tag for tag, _ in page.tags}
    assert not {"src", "href", "xlink:href", "style", "action"} & {name for _, each in page.tags for name in each}
    assert "url(" not in page.text
    assert "@import" not in page.text


def test_the_picture_is_a_png_with_the_lines_in_their_colours() -> None:
    with Image.open(BytesIO(png_report(report()))) as picture:
        assert (picture.format, picture.size) == ("PNG", (2 * WIDTH, 2 * HEIGHT))
        found = {color for _, color in picture.convert("RGB").getcolors(1 << 24) or ()}
    for color in ("1769aa", "2e7d32", "c62828", "8e5a00", "7b1fa2", "11692f"):
        assert tuple(bytes.fromhex(color)) in found


def test_a_run_without_any_answer_has_a_plot_too() -> None:
    empty = as_json(Outcomes(), Verification(), campaign_id="run-1", mix={"sms": 1}, seconds=0.0)
    assert "0 requests in 0.0 s" in html_report(empty)
    assert png_report(empty).startswith(b"\x89PNG")


@given(highest=st.floats(0.001, 1e9))
def test_ticks_are_few_and_reach_the_highest(highest: float) -> None:
    found = ticks(highest)
    assert found[0] == 0
    assert highest <= found[-1] * 1.000_001
    assert 2 <= len(found) <= 7


@pytest.mark.parametrize(
    ("highest", "found"), [(0, [0, 1]), (10, [0, 2, 4, 6, 8, 10]), (41, [0, 10, 20, 30, 40, 50]), (1, [0, 1])]
)
def test_seconds_are_whole(highest: float, found: list[float]) -> None:
    assert ticks(highest, whole=True) == found
