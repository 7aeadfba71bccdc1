"""What is wrong with MJML, and where (C10.4)."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.email.mjml import DEEPEST, MOST_ATTRIBUTES, MOST_ELEMENTS, faults_of


def column(inside: str) -> str:
    return f"<mjml><mj-body><mj-section><mj-column>{inside}</mj-column></mj-section></mj-body></mjml>"


def told(source: str) -> list[str]:
    return [str(fault) for fault in faults_of(source)]


@pytest.mark.parametrize(
    "source",
    [
        column("<mj-text>Hi<br>there <b>{{name}}</b> &nbsp; <img src='x'></mj-text>"),
        column('<mj-image src="{{ picture }}" /><mj-divider></mj-divider><!-- <mj-bogus> -->'),
        column("<mj-table><tr><td align='left'>é</td></tr></mj-table>"),
        column('<mj-social><mj-social-element name="facebook">x</mj-social-element></mj-social>'),
        column('<mj-button href="https://example.com/?a=1&b=2">Go</mj-button>'),
        "<!-- c -->\n<mjml><mj-head><mj-title>T</mj-title><mj-style>a > b { color: red }</mj-style></mj-head></mjml>\n",
        '<mjml><mj-head><mj-attributes><mj-all padding="0"/><mj-text a="b"></mj-text></mj-attributes></mj-head></mjml>',
        column("<mj-raw><!--[if !mso]><!-->x<!--<![endif]--></mj-raw>"),
    ],
)
def test_what_is_whole_has_no_fault(source: str) -> None:
    assert told(source) == []


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("", "Line 1, column 1: there is no `mjml`"),
        ("<html></html>", "Line 1, column 1: `html` is no element of MJML"),
        (column("\n\n  <mj-bogus>x</mj-bogus>"), "Line 3, column 3: `mj-bogus` is no element of MJML"),
        (column("<div></div>"), "Line 1, column 39: `div` is no element of MJML"),
        ("<mjml><mj-body>\n<mj-text>", "Line 2, column 1: `mj-text` does not stand inside `mj-body`"),
        (column("<mj-text><mj-image/></mj-text>"), "Line 1, column 48: `mj-image` does not stand inside `mj-text`"),
        (column("words"), "Line 1, column 39: text does not stand inside `mj-column`"),
        (column("<mj-text>a < b</mj-text>"), "Line 1, column 50: no element begins here"),
        (column("<mj-text><td align=left></td></mj-text>"), "Line 1, column 48: no element begins here"),
        (column("<mj-text><b>x</mj-text>"), "Line 1, column 52: `mj-text` ends here, but `b` is open"),
        ("<mjml><mj-body>", "Line 1, column 7: `mj-body` has no end"),
        ("<mjml></mjml></mjml>", "Line 1, column 14: `mjml` was not begun"),
        ("<mjml></mjml>\n<mjml></mjml>", "Line 2, column 1: there is more than one `mjml`"),
        (column('<mj-include path="/etc/passwd"/>'), "Line 1, column 39: `mj-include` reads nothing here"),
        ("<mjml><mj-head><mj-title><b>x</b>", "Line 1, column 26: `mj-title` holds text only"),
        (column("<!-- a -- b -->"), "Line 1, column 39: a comment holds `--`"),
        (column("<!-- open"), "Line 1, column 39: no element begins here"),
    ],
)  # fmt: skip
def test_a_fault_is_told_with_its_place(source: str, fault: str) -> None:
    assert told(source)[0].startswith(fault)


def test_what_would_not_end_is_refused() -> None:
    deep = "<b>" * DEEPEST
    many = "<mj-spacer/>" * MOST_ELEMENTS
    wide = f'<mj-all css-class="{"x" * MOST_ATTRIBUTES}"/>'
    assert "deep" in told(column(f"<mj-text>{deep}"))[0]
    assert "elements" in told(column(many))[0]
    assert "characters" in told(f"<mjml><mj-head><mj-attributes>{wide}</mj-attributes></mj-head></mjml>")[0]
    assert "characters" in told(column(f'<mj-social color="{"x" * MOST_ATTRIBUTES}"/>'))[0]
    assert "does not stand" in told(f"<mjml><mj-body>{'<mj-wrapper>' * 3_000}")[0]


@pytest.mark.parametrize(
    "piece", ["<", '<a "', '<a x="', "<!-- ", "<b>", "</b>", "<b>x</b>", "{{a}}", " ", "\n", "<mj-text a='", "<mj-raw>"]
)
def test_a_megabyte_of_anything_is_read_in_a_moment(piece: str) -> None:
    began = time.thread_time()
    told(column(f"<mj-text>{piece * (1_000_000 // len(piece))}</mj-text>"))
    told(piece * (1_000_000 // len(piece)))
    assert time.thread_time() - began < 3


@given(st.text(alphabet="<>/mj-tex b\"'=!\n", max_size=300))
def test_anything_is_read_and_places_lie_inside(text: str) -> None:
    for fault in faults_of(text):
        lines = text.split("\n")
        assert 1 <= fault.line <= len(lines)
        assert 1 <= fault.column <= len(lines[fault.line - 1]) + 1
