"""The text of HTML (C10.2.11)."""

import time

import pytest

from recado.domain.email.plain_text import LONGEST, text_of_html


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("", ""),
        ("<!-- nothing -->", ""),
        ("Hello", "Hello"),
        ("<p>Hello   <b>dear</b>\n\n friend</p><p>Bye</p>", "Hello dear friend\n\nBye"),
        ("<h1>Title</h1>text<br>next<br/><br/><br/>last", "Title\n\ntext\nnext\n\nlast"),
        ("<div>a</div><div><div>b</div></div>c", "a\nb\nc"),
        ("<ul><li>one</li><li><p>two</p></li></ul>", "- one\n- two"),
        ("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a b\nc"),
        ('<a href="https://x.example/a">Here</a>.', "Here (https://x.example/a)."),
        ('<a href="https://x.example/a">https://x.example/a</a>', "https://x.example/a"),
        ('<a href="https://x.example">x.example</a>', "x.example"),
        ('<a href="javascript:alert(1)">Here</a> <a href="#top">top</a> <a>none</a>', "Here top none"),
        ('a<img src="x" alt="A  hat">b<img src="y">', "a A hatb"),
        ("<style>p {}</style><script>x()</script><title>t</title><p>Seen</p>", "Seen"),
        ("a<script>b</script>c", "ac"),
        ("<p>Tom &amp; Ana &lt;3&nbsp;you &eacute;</p>", "Tom & Ana <3 you é"),
        ("<p>broken <b>here", "broken here"),
        ("a\x00b \ud800", "ab ?"),
        ("a < b && c<d <3", "a < b && c"),
        ("1 < 2 &lt;b&gt;", "1 < 2 <b>"),
        ("a<b x='>\">' y>b</b>c<!-- <p> --!>d<!>e<?x?>f</ g>h", "abcdefh"),
        ("<a class=x HREF='https://x.example/?a&amp;b&quot;c' href=no>Here</a>", 'Here (https://x.example/?a&b"c)'),
        ("<a href=https://x.example/>Here</a> there", "Here (https://x.example/) there"),
        ("<textarea><b>&amp;</textarea> <xmp><i>&amp;</xmp> b", "<b>& <i>&amp; b"),
        ("a<svg><path d=1 /><text>no</text></svg>b<svg/>c", "abc"),
        ("a<style/>b</style>c<o:p>d</o:p><plaintext>e</p>", "acde</p>"),
    ],
)
def test_html_reads_as_text(html: str, text: str) -> None:
    assert text_of_html(html) == text


@pytest.mark.parametrize(
    "piece",
    [
        "<div>", "<blockquote>", "<ul><li>", "<table><tr><td>x", "<br>x", "<p>x", "<a href=https://x>", "<b>", "&#",
        "&nbsp;", "<!--", "<", "<a ", "x", " ", "</p>", "<style>", "<li>x<ol>", "<img alt=xy>",
    ],
)  # fmt: skip
def test_a_quarter_of_a_mebibyte_of_anything_takes_as_long_as_it_is(piece: str) -> None:
    began = time.thread_time()
    text = text_of_html(piece * (256 * 1024 // len(piece)))
    assert len(text) <= LONGEST
    assert time.thread_time() - began < 2  # a tenth of a second, where nobody else is


def many_attributes(start: str) -> str:
    return start + " ".join(f"a{n}=1" for n in range(45_000)) + ">seen"


@pytest.mark.parametrize(
    "start",
    [
        "<a ", "<p ", "<html ", "<body ", "<x\"y ", "<svg><![CDATA[ > <b ", "<math><style><b ", "<!--><b ",
        "<!--a--!><b ",
        "<noscript><b ", "<plaintext><b ", "<textarea><b ", "<title></title ><b ", "<script><!--<script></script><b ",
        "<b c='>'><i ", "</b><!x'><i ", "<?x '><i ", "<template><b ", "<select><b ", "<a a=1 ",
    ],
)  # fmt: skip
def test_a_tag_with_many_attributes_takes_as_long_as_it_is(start: str) -> None:
    html = many_attributes(start)
    began = time.thread_time()
    text_of_html(html)
    assert time.thread_time() - began < 2  # it was 13 seconds


def test_a_table_takes_no_more_room_than_its_text() -> None:
    wide = f"<table><tr><td>{'x' * 10_000}</td></tr>{'<tr><td>y</td></tr>' * 2_000}</table>"
    assert len(text_of_html(wide)) < 15_000
