"""The links in HTML: which they are, where they lead, and that nothing else of it changes (C27.1)."""

import re
import time
from collections.abc import Iterator
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.domain.email.html_links import MOST_PLACES, HtmlPlaces, address_in, places_of, rewritten

IMAGE = "<img>"
SHORT = re.compile(r"https://s\.test/(\d+)/")


class Shortened:
    """Short forms of addresses, by which they are found again."""

    def __init__(self) -> None:
        self.urls: list[str] = []

    def __call__(self, url: str) -> str:
        self.urls.append(url)
        return f"https://s.test/{len(self.urls) - 1}/"


def made(html: str) -> tuple[str, list[str]]:
    """The HTML with short links and the image, and the addresses in their order."""
    shorten = Shortened()
    return rewritten(html, places_of(html), shorten, IMAGE), shorten.urls


def urls(html: str) -> list[str]:
    return [place.url for place in places_of(html).links]


@pytest.mark.parametrize(
    ("html", "found"),
    [
        ('<a href="http://x.test/?a=1&amp;b=2">x</a>', ["http://x.test/?a=1&b=2"]),
        ("<A HREF='HTTPS://X.test'>x</A>", ["HTTPS://X.test"]),
        ("<a href=http://x.test/a>", ["http://x.test/a"]),
        ("<a href=http://x.test/a/>", ["http://x.test/a/"]),
        ('<area shape="rect" href="http://x.test">', ["http://x.test"]),
        ('<a\n\thref \f=\r "http://x.test">', ["http://x.test"]),
        ('<a/href="http://x.test"/>', ["http://x.test"]),
        ('<a title="<a href=http://no.test>" href="http://x.test">', ["http://x.test"]),
        ('<a title=\'"\' href="http://x.test">', ["http://x.test"]),
        ('<a class="b"href="http://x.test">', ["http://x.test"]),
        ('<a href="http://x.test" href="http://no.test">', ["http://x.test"]),
        ('<a href href="http://no.test">', []),
        ('<a href= href="http://no.test">', []),
        ('<a hrefs="http://no.test" data-href="http://no.test">', []),
        ('<a =href="http://no.test">', []),
        ('<abbr href="http://no.test"><link href="http://no.test"><base href="http://no.test">', []),
        ('<img src="http://no.test"><form action="http://no.test">', []),
        ('<a href="mailto:a@x.test"><a href="tel:1"><a href="/x"><a href="#x"><a href="//no.test">', []),
        ('<a href="javascript:location=\'http://no.test\'"><a href="{{url}}"><a href="">', []),
        ('<a href="http://">', []),
        ('<p>http://no.test &lt;a href="http://no.test"&gt;</p>', []),
        ('</a href="http://no.test">', []),
        ('<!-- <a href="http://no.test"> --><a href="http://x.test">', ["http://x.test"]),
        ('<!--><a href="http://x.test">', ["http://x.test"]),
        ('<!---><a href="http://x.test">', ["http://x.test"]),
        ('<!-- --!><a href="http://x.test">', ["http://x.test"]),
        ('<!--[if mso]><a href="http://no.test"><![endif]--><a href="http://x.test">', ["http://x.test"]),
        ('<![if !mso]><a href="http://x.test"><![endif]>', ["http://x.test"]),
        ('<!doctype html><?xml version="1.0"?><a href="http://x.test">', ["http://x.test"]),
        ('</ <a href="http://no.test">x', []),
        ('< a href="http://no.test"><a href="http://x.test">', ["http://x.test"]),
        ('<style>a{} <a href="http://no.test"></style ><a href="http://x.test">', ["http://x.test"]),
        ('<title><a href="http://no.test"></TITLE><a href="http://x.test">', ["http://x.test"]),
        ('<textarea><a href="http://no.test"></textareas></textarea><a href="http://x.test">', ["http://x.test"]),
        ('<script>"<a href=http://no.test>"</script><a href="http://x.test">', ["http://x.test"]),
        (
            '<script><!--<script></script><a href="http://no.test">--></script><a href="http://x.test">',
            ["http://x.test"],
        ),
        ('<script><!--><a href="http://no.test"></script><a href="http://x.test">', ["http://x.test"]),
        ('<svg><title/><a href="http://x.test"/></svg>', ["http://x.test"]),
        ('<svg><![CDATA[> <a href="http://no.test">]]><a href="http://x.test"/></svg>', ["http://x.test"]),
        ('<![CDATA[><a href="http://x.test">', ["http://x.test"]),
        ('<plaintext><a href="http://no.test">', []),
        ('<a href="http://no.test', []),
        ('<a href="http://no.test"', []),
        ('<!-- <a href="http://no.test">', []),
        ('<style><a href="http://no.test">', []),
    ],
)
def test_links_are_those_that_a_browser_finds(html: str, found: list[str]) -> None:
    assert urls(html) == found


@pytest.mark.parametrize(
    ("value", "address"),
    [
        ("http://x.test/?a=1&amp;b=2", "http://x.test/?a=1&b=2"),
        ("http://x.test/?a=1&copy=2", "http://x.test/?a=1&copy=2"),
        ("http://x.test/?a=1&copy2", "http://x.test/?a=1&copy2"),
        ("http://x.test/?a=1&copy", "http://x.test/?a=1©"),
        ("http://x.test/?a=1&copy;=2", "http://x.test/?a=1©=2"),
        ("http://x.test/&frac12;&nothing;&&amp", "http://x.test/½&nothing;&&"),
        ("http://x.test/&#65;&#x42;&#X43&#0068;", "http://x.test/ABCD"),
        ("http://x.test/&#128;&#0;&#xD800;&#x110000;&#;&#x;", "http://x.test/€\ufffd\ufffd\ufffd&#;&#x;"),
        ("http://x.test/&#" + "9" * 5_000 + ";", "http://x.test/\ufffd"),
        ("&#104;ttp://x.test", "http://x.test"),
        (" \n http://x.test/\n a\tb \f", "http://x.test/ ab"),
        ("http://x.test/ção", "http://x.test/ção"),
        ("http://x.test/\x01", "http://x.test/"),
        ("http://x.test/\x01a", None),
        ("http://x.test/&#127;", None),
        ("ftp://x.test/", None),
    ],
)
def test_an_address_is_what_its_value_stands_for(value: str, address: str | None) -> None:
    assert address_in(value) == address


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>x</p>", "<p>x</p><img>"),
        ("<html><body>x</body></html>", "<html><body>x<img></body></html>"),
        ("<BODY>x</BODY >", "<BODY>x<img></BODY >"),
        ("<body>x</body>y</body>", "<body>x</body>y<img></body>"),
        ("x<!-- </body> -->", "x<!-- </body> --><img>"),
        ("x<!-- ", "x<img><!-- "),
        ("x<textarea></body>", "x<img><textarea></body>"),
        ('x</body><a href="http://x.test', 'x<img></body><a href="http://x.test'),
        ("", "<img>"),
        ("</body><a href='http://x.test'>", "<img></body><a href='https://s.test/0/'>"),
    ],
)
def test_the_image_stands_at_the_end_of_the_body(html: str, expected: str) -> None:
    assert made(html)[0] == expected


def test_what_stands_in_place_of_an_address_can_end_no_attribute() -> None:
    html = "<a href=http://x.test>"
    assert rewritten(html, places_of(html), lambda url: "https://s.test/'\"<", "") == (
        "<a href=https://s.test/&#x27;&quot;&lt;>"
    )


def test_an_address_that_is_not_shortened_stays_as_it_was_written() -> None:
    html = '<a href=" http://x.test/?a&amp;b ">'
    assert rewritten(html, places_of(html), lambda url: url, "") == html


def test_links_beyond_the_bound_stay() -> None:
    assert len(urls("<a href=http://x.test>" * (MOST_PLACES + 1))) == MOST_PLACES


PIECES = st.sampled_from(
    [
        "<a ", "<a", "</a>", "<area ", "<A\n", "href", "HREF", "=", ' "', "'", '"', ">", "/>", " ", "\n",
        "http://x.test/", "https://y.test/?a=1&amp;b", "mailto:a@x.test", "<!--", "-->", "--!>", "<!", "<?", "</",
        "<script>", "</script>", "<style>", "</style>", "<svg>", "</svg>", "<![CDATA[", "]]>", "<textarea>",
        "</textarea>", "<body>", "</body>", "&amp;", "&#65", "é", "\x00", "<b class=", "x", "<title",
        "</title>", "<plaintext>",
    ]
)  # fmt: skip
SOUP = st.lists(PIECES | st.text(max_size=3), max_size=40).map("".join)


def outside(html: str, places: HtmlPlaces) -> Iterator[str]:
    at = 0
    for start, end, _ in places.links:
        yield html[at:start]
        at = end
    yield html[at:]


@given(SOUP)
def test_whatever_the_html_is_nothing_changes_but_addresses(html: str) -> None:
    places, shorten = places_of(html), Shortened()
    parts = SHORT.split(rewritten(html, places, shorten, ""))
    assert parts[::2] == list(outside(html, places))
    assert [shorten.urls[int(number)] for number in parts[1::2]] == [place.url for place in places.links]


@given(SOUP)
def test_what_was_rewritten_has_the_same_links_at_the_same_places(html: str) -> None:
    """Rewritten once more, each short link is found where the address was: no link was cut, joined or lost."""
    made_of, found = made(html)
    assert [found[int(SHORT.fullmatch(url)[1])] for url in urls(made_of)] == found  # type: ignore[index]


NAMES = st.sampled_from(["a", "area", "b", "p", "A", "abbr"])
QUERY = st.text("abcXYZ019&;=#%/?é'<> ", max_size=12)
VALUES = st.builds(
    "{}{}".format, st.sampled_from(["http://x.test/", "HTTPS://y.test/", "mailto:", "/", "", "#"]), QUERY
)
ATTRIBUTES = st.lists(st.tuples(st.sampled_from(["href", "HREF", "title", "data-href", "class"]), VALUES), max_size=3)
TEXTS = st.text("abc &;.http:/\n", max_size=12)


@st.composite
def documents(draw: st.DrawFn) -> str:
    """HTML that nobody can read in two ways."""
    parts = []
    for _ in range(draw(st.integers(0, 8))):
        name = draw(NAMES)
        written = "".join(
            f' {key}="{value.replace("&", "&amp;").replace("<", "&lt;")}"' for key, value in draw(ATTRIBUTES)
        )
        parts.append(f"<{name}{written}>{draw(TEXTS)}</{name}>")
    return "".join(parts)


class Reader(HTMLParser):
    """What another parser reads: tags with their attributes, and texts."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=False)
        self.read: list[tuple[str, object]] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.read.append((tag, tuple(attrs)))

    def handle_endtag(self, tag: str) -> None:
        self.read.append((tag, None))

    def handle_data(self, data: str) -> None:
        self.read.append(("", data))


@given(documents())
def test_another_parser_reads_the_same_but_for_addresses_which_lead_to_the_same(html: str) -> None:
    shorten = Shortened()
    before = Reader(html).read
    after = Reader(rewritten(html, places_of(html), shorten, "")).read
    led_back = []
    for tag, told in after:
        if isinstance(told, tuple):
            told = tuple(
                (key, shorten.urls[int(found[1])] if value and (found := SHORT.fullmatch(value)) else value)
                for key, value in told
            )
        led_back.append((tag, told))
    expected = []
    for tag, told in before:
        if isinstance(told, tuple) and tag in ("a", "area"):
            first = next((n for n, (key, _) in enumerate(told) if key == "href"), None)
            told = tuple(
                (key, value.strip(" \n") if n == first and is_address(value) else value)
                for n, (key, value) in enumerate(told)
            )
        expected.append((tag, told))
    assert led_back == expected
    assert len(shorten.urls) == sum(
        is_address(next((value for key, value in told if key == "href"), None))
        for tag, told in before
        if isinstance(told, tuple) and tag in ("a", "area")
    )


def is_address(value: str | None) -> bool:
    return value is not None and value.lower().startswith(("http://", "https://"))


@pytest.mark.parametrize(
    "piece",
    [
        "<", "<a ", "<a a ", "<p>", "</ >", "<!>", "<!--", "<!---->", "<a href='", "<a href=http://x.test>",
        "<svg><![CDATA[", "<script><!--<script>", "<title></titl", "&", "<a href='http://x.test/&#1", "a=b ", "<a x = ",
        "</body>",
    ],
)  # fmt: skip
def test_the_time_grows_with_the_length_only(piece: str) -> None:
    """A mebibyte of the worst takes a third of a second on a quiet machine: what grew faster would take minutes."""
    html = "<a " * (piece == "a=b ") + piece * (1024 * 1024 // len(piece))
    began = time.perf_counter()
    rewritten(html, places_of(html), lambda url: "https://s.test", IMAGE)
    assert time.perf_counter() - began < 10
