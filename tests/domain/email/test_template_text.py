"""The text of a template, filled in, is the text of the HTML with the same values (C10.2.11)."""

import time
from collections.abc import Mapping
from html import escape
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from recado.domain.email.html_links import Stretch, StretchKind, places_of, rewritten
from recado.domain.email.plain_text import LONGEST, text_of_html
from recado.domain.email.rendering import Pieces
from recado.domain.email.template_text import OpenTags, TemplateText, TextSource

LINK_BASE = "https://go.example"


def both(template: str, values: Mapping[str, str], *, tracked: bool = False) -> tuple[str | None, str]:
    """The text that is filled in, and the one that is made of the HTML, as it leaves."""
    pieces = Pieces(template)
    html = pieces.filled({name: escape(values[name]) for name in pieces.names})
    shorts: dict[str, str] = {}
    if tracked:

        def shorten(url: str) -> str:
            return url if len(shorts) == 9 else shorts.setdefault(url, f"{LINK_BASE}/l/{len(shorts)}")

        html = rewritten(html, places_of(html), shorten, f'<img src="{LINK_BASE}/o/x.gif" width="1" height="1" alt="">')
    source = TextSource(TemplateText(pieces), values, shorts if tracked else None)
    return source.text(html), text_of_html(html)


@pytest.mark.parametrize("tracked", [False, True])
@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("<p>Olá {{name}}, {{ word }}!</p>{{name}}", "Olá Ana & Bo <3, x!\n\nAna & Bo <3"),
        ("<title>{{name}}</title><td style='color: {{word}}'>{{word}}</td>", "x"),
        ("<!--[if mso]><v:rect href='{{url}}'><![endif]--><b>{{word}}", "x"),
        ('<img src="{{url}}" alt=" {{word}} of {{name}}">', "x of Ana & Bo <3"),
        ("<ul><li>{{word}}</li><li></li></ul>", "- x"),
    ],
)
def test_values_are_filled_in(template: str, text: str, *, tracked: bool) -> None:
    values = {"name": "Ana & Bo <3", "word": "x", "url": "https://x.example/?a=1&b=2"}
    assert both(template, values, tracked=tracked) == (text, text)


@pytest.mark.parametrize(
    ("template", "plain", "tracked"),
    [
        ('<a href="{{url}}">Here</a>', "Here (https://x.example/?a=1&b=2)", "Here (https://go.example/l/0)"),
        ('<a href="https://y.example/{{word}}">{{word}}</a>', "x (https://y.example/x)", "x (https://go.example/l/0)"),
        ('<a href="https://y.example/{{word}}">y.example/{{word}}</a>', "y.example/x",
         "y.example/x (https://go.example/l/0)"),
        ('<a href="mailto:{{word}}@y.example">Mail {{word}}</a>', "Mail x", "Mail x"),
        ("<a href='https://y.example'>a</a> <a href='https://y.example'>b</a> {{word}}",
         "a (https://y.example) b (https://y.example) x", "a (https://go.example/l/0) b (https://go.example/l/0) x"),
    ],
)  # fmt: skip
def test_links_are_filled_in_as_they_leave(template: str, plain: str, tracked: str) -> None:
    values = {"word": "x", "url": "https://x.example/?a=1&b=2"}
    assert both(template, values) == (plain, plain)
    assert both(template, values, tracked=True) == (tracked, tracked)


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("<p>{{v}}</p>", ""),
        ("<p>{{v}}</p>", "two  spaces"),
        ("<p>{{v}}</p>", "a line\nand one"),
        ("<p>{{v}}</p>", "a\x00b"),
        ("<p>{{v}}</p>", "\ue0001\ue002"),
        ("<p>\ue0000\ue002 {{v}}</p>", "x"),
        ("<p>&{{v}};</p>", "amp"),
        ("<p>&am{{v}};</p>", "p"),
        ("<p><{{v}}>x</p>", "br"),
        ("<{{v}}>x", "p"),
        ("&<p<b>{{v}} x", "amp;"),
        ("<p class={{v}}>x", "a href=b"),
        ("<a href={{v}}>x</a>", "https://x.example"),
        ('<a href="{{v}}">x</a>', "mailto:x"),
        ('<a href="ht{{v}}">x</a>', "tps://x.example"),
        ('<a href="https://y.example/x">y.example/{{v}}</a>', "x"),
        ("<!--{{v}}-->x", "-"),
        ("<!-- {{v}}> -->x", "--"),
        ("<script>{{v}}</script>x", "x"),
        ("<textarea>{{v}}</textarea>x", "x"),
        ("<svg><text>{{v}}</text></svg>x", "x"),
        ("<p>{{v}}<plaintext>", "x"),
        ("<p>{{v}}</p>" + "x" * LONGEST, "x"),
    ],
)
def test_where_a_value_could_change_more_than_its_place_the_html_is_read(template: str, value: str) -> None:
    assert both(template, {"v": value})[0] is None


BITS = (
    "<p>", "</p>", "<b>", "</b>", "<br>", "<ul><li>", "</li>", "</ul>", "<table><tr><td>", "</td><td>", "</table>",
    "<div>", "</div>", " ", "\n", "word", "x.example/", "https://x.example/", "é", "&amp;", "&nbsp;", "&", "<", ">",
    "&#1", "<!--", "-->", "<!", "-", "--", "!", '"', "'", "=", "/", '<a href="', "<a href='", "<a href=", "<a ",
    "</a>", '">', "'>", '<a href="https://x.example/', '<img alt="', "<img src='", " alt='", '<td class="', "<style>",
    "</style>", "<title>", "</title>", "<script>", "</script>", "<textarea>", "</textarea>", "<select>", "<option>",
    "<noscript>", "<svg>", "</svg>", "<head>", "<body>", "</body></html>", "<html>", "<area href='https://x.example/",
    "http://", "mailto:", "<h1>", "\ue000", "\ue0020", "<p",
)  # fmt: skip
PLAIN = (
    "<p>Olá {{a}}, ", "{{b}}</p>", "<td>{{a}} e pão</td>", '<a href="https://x.example/{{b}}">{{a}}</a>',
    "<li>{{b}}</li>", '<a href="{{c}}">{{b}}</a>', '<a href="https://x.example/">x.example/</a>',
    '<img src="{{c}}" alt="{{a}}">', "<br>", "word ", '<a href="https://x.example/{{a}}">x.example/{{b}}</a>',
    '<div title="{{a}}">', "</div>", "&amp; {{a}}&nbsp;", "<!-- {{b}} -->",
)  # fmt: skip
PLACES = (
    "{{a}}", "{{ b }}", "{{c}}",
)  # fmt: skip
VALUES = (
    "Ana", "Ana & Bo", "<b>", "a  b", " a", "", "é", "x.example/", "x", "https://x.example/",
    "http://x.example/?a=1&b", "&amp;", "amp;", "-", "--", ">", "\n", "\x00", "\x0b", "\xa0", "😀", '"', "' href='x",
    "br", "\ue000", "\ud800", "tps://x", "x" * 2_000,
)  # fmt: skip


@settings(max_examples=examples(4_000))
@given(
    bits=st.lists(st.sampled_from(BITS + PLACES * 6), max_size=14),
    values=st.fixed_dictionaries({name: st.sampled_from(VALUES) for name in "abc"}),
    tracked=st.booleans(),
)
def test_whatever_is_filled_in_is_what_the_html_says(bits: list[str], values: dict[str, str], *, tracked: bool) -> None:
    filled, made = both("".join(bits), values, tracked=tracked)
    assert filled in (None, made)


@pytest.mark.parametrize("tracked", [False, True])
def test_what_is_written_as_it_should_be_is_mostly_filled_in(*, tracked: bool) -> None:
    random, filled = Random(7), 0
    words = ("Ana", "Ana & Bo", "<b>", "é", "x", "x.example", "https://x.example/", "&amp;", '"', "😀", "x" * 2_000)
    for _ in range(300):
        template = "".join(random.choices(PLAIN, k=random.randint(1, 20)))
        values = {"a": random.choice(words), "b": random.choice(words), "c": "https://x.example/go?to=1&b"}
        told, made = both(template, values, tracked=tracked)
        assert told in (None, made)
        filled += told is not None
    assert filled > 150


@pytest.mark.parametrize(
    "piece",
    [
        "{{v}}", "{{v}} ", "<p>{{v}}", "<title>{{v}}<", "<!-- {{v}}", "<a href='https://x.example/{{v}}'></a>",
        "<a href={{v}}>", "<a href='{{v}}'>{{v}}</a>", "&{{v}}", "<img alt='{{v}}'>", "x.example/<a href='https://x.example/'></a>{{v}}",
    ],
)  # fmt: skip
@pytest.mark.parametrize("before", ["", "<title>" + "<" * 100_000, "<a href='https://x.example/" + "y" * 100_000])
def test_whatever_a_template_holds_takes_as_long_as_it_is(piece: str, before: str) -> None:
    template = before + piece * (5_000 // piece.count("{{"))
    began = time.thread_time()
    for tracked in (False, True):
        filled, made = both(template, {"v": "x"}, tracked=tracked)
        assert filled in (None, made)
    assert time.thread_time() - began < 4  # less than half a second, where nobody else is


def test_links_that_stand_behind_one_long_word_are_not_kept_with_it_each() -> None:
    template = "{{v}}" + "y" * 100_000 + "x.example" + "<a href='https://x.example'></a>" * 3_000
    assert both(template, {"v": "x"})[0] is None


@given(html=st.text("<>x", max_size=40), cuts=st.lists(st.integers(0, 40), max_size=12))
@settings(max_examples=examples(2_000))
def test_a_tag_is_open_where_the_last_bracket_of_its_stretch_opens_one(html: str, cuts: list[int]) -> None:
    start, *places = sorted([0, *cuts])
    halves = [Stretch(start, 20, StretchKind.RAW), Stretch(20, 40, StretchKind.RAW)]
    tags = OpenTags(html)
    for place in places:
        stretch = halves[place >= 20]
        before = html[stretch.start : place]
        assert tags.at(stretch, place) is (before.rfind("<") > before.rfind(">"))
