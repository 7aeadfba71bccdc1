"""The text of an HTML document, for those who read e-mail as plain text (C10.2.11).

Whatever the document holds, the work grows with its length only: no layout is computed, so none can be made huge.
"""

from typing import Final

from lxml import etree

from recado.domain.email.html_links import bare
from recado.domain.email.rendering import MIB

LONGEST: Final = MIB // 4  # characters

_UNSEEN: Final = frozenset({"head", "style", "script", "title", "template", "noscript", "object", "svg", "select"})
_BLOCKS: Final = frozenset(
    {
        "address", "article", "aside", "blockquote", "body", "center", "dd", "div", "dl", "dt", "fieldset",
        "figcaption", "figure", "footer", "form", "header", "hr", "li", "main", "nav", "ol", "pre", "section",
        "table", "tbody", "tfoot", "thead", "tr", "ul",
    }
)  # fmt: skip
_PARAGRAPHS: Final = frozenset({"p", "h1", "h2", "h3", "h4", "h5", "h6"})
_ITEM: Final = "- "
_CELLS: Final = frozenset({"td", "th"})
READ: Final = {"a": "href", "img": "alt"}
"""Those that are read. The parser's time grows with the square of how many a tag has: it gets no others."""
_EVENTS: Final = ("start", "end")


def text_of_html(html: str, lines: "TextLines | None" = None) -> str:
    """The text, at most `LONGEST` characters; empty where it has none. `lines`: which it is written to.

    A link shows its address behind its text, an image what it has in `alt`, an item of a list a `-`.
    """
    lines = TextLines() if lines is None else lines
    parser = etree.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, no_network=True)
    try:
        root = etree.fromstring(bare(html.replace("\0", ""), READ).encode(errors="replace"), parser)
    except etree.XMLSyntaxError:  # a document without any element
        return ""
    if root is not None:
        _walk(root, lines)
    return lines.text()


def _walk(root: etree._Element, lines: "TextLines") -> None:
    unseen: etree._Element | None = None  # the outermost open element that shows nothing
    for event, element in etree.iterwalk(root, events=_EVENTS):
        tag = element.tag
        if event == "start":
            if unseen is not None:
                continue
            if tag in _UNSEEN:
                unseen = element
                continue
            lines.open(tag, element)
            if element.text:
                lines.write(element.text)
            continue
        if unseen is element:
            unseen = None
        elif unseen is None:
            lines.close(tag, element)
        if unseen is None and element.tail and element is not root:
            lines.write(element.tail)


class TextLines:
    """What was written so far. White space is that of the document's structure, not of its source."""

    def __init__(self) -> None:
        self._done: list[str] = []
        self._line: list[str] = []
        self._spaced = True  # whether white space would stand at the beginning of a line, or behind other
        self._length = 0

    def write(self, text: str) -> None:
        words = text.split()
        if text[0].isspace() and not self._spaced:
            self._line.append(" ")
            self._spaced = True
        if words and self._length <= LONGEST:
            self._line.append(" ".join(words))
            self._length += len(text)
            self._spaced = False
            if text[-1].isspace():
                self._line.append(" ")
                self._spaced = True

    def open(self, tag: str, element: etree._Element) -> None:
        if tag in _PARAGRAPHS:
            self._end_line(blank=True)
        elif tag in _BLOCKS:
            self._end_line()
            if tag == "li":
                self._line.append(_ITEM)
        elif tag in _CELLS:
            self._space()
        elif tag == "br":
            self._end_line(always=True)
        elif tag == "img" and (alt := element.get("alt", "").strip()):
            self._space()
            self.write(alt)

    def close(self, tag: str, element: etree._Element) -> None:
        if tag in _PARAGRAPHS:
            self._end_line(blank=True)
        elif tag in _BLOCKS:
            if tag == "li" and self._line == [_ITEM]:
                self._line.clear()
            self._end_line()
        elif tag in _CELLS:
            self._space()
        elif tag == "a":
            address = element.get("href", "").strip()
            if address.startswith(("https://", "http://")) and not self.shows(address):
                self._space()
                self.write(f"({address})")

    def text(self) -> str:
        self._end_line()
        return "\n".join(self._done).strip("\n")[:LONGEST]

    @property
    def last(self) -> str | None:
        """What was written last on this line."""
        return self._line[-1] if self._line else None

    def shows(self, address: str) -> bool:
        """Whether the link's text is its address."""
        return self.last is not None and is_address(self.last, address)

    def _space(self) -> None:
        if not self._spaced:
            self._line.append(" ")
            self._spaced = True

    def _end_line(self, *, blank: bool = False, always: bool = False) -> None:
        """End the line, if anything stands on it; `blank`: with an empty one, unless there is one already."""
        if self._line == [_ITEM]:  # its text is in a block of its own, if it has any
            return
        line = "".join(self._line).rstrip()
        self._line.clear()
        self._spaced = True
        if line or (always and self._done and self._done[-1]):
            self._done.append(line)
        if blank and self._done and self._done[-1]:
            self._done.append("")


def is_address(last: str, address: str) -> bool:
    """Whether the last word of what a link follows is its address."""
    return last.rpartition(" ")[2] in (address, address.partition("://")[2])
