"""The text of a template's HTML, made once: values and links have places in it, and an e-mail only fills these in.

What comes of it is what `text_of_html` makes of the HTML with the same values. Where a value could change more than its
own place, there is no such text, and the HTML is read for each e-mail.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from typing import Final

from recado.domain.email.html_links import Stretch, StretchKind, bare, places_of, rewritten, stretches_of
from recado.domain.email.plain_text import LONGEST, READ, TextLines, is_address, text_of_html
from recado.domain.email.rendering import Pieces

_VALUE, _ADDRESS, _END = "\ue000", "https://\ue001", "\ue002"
"""What the places of values, and of whole addresses, begin and end with: characters for private use."""
_RESERVED: Final = re.compile("[\ue000-\ue002]")
_PLACE: Final = re.compile(f"(?:{_VALUE}|{_ADDRESS})([0-9]+){_END}")
_CHARACTER: Final = r"[^\s\x00-\x1f\x7f-\x9f\ud800-\udfff\ue000-\ue002\ufdd0-\ufdef\ufffe\uffff]"
_WORDS: Final = re.compile(f"{_CHARACTER}++(?:[ \n]{_CHARACTER}++)*+")
"""Values that stand in a text as they are, each on a line of its own: words with one space between them."""
_OPEN_REFERENCE: Final = re.compile(rf"&[#0-9A-Za-z]*+{_VALUE}")
_SEEN: Final = frozenset({StretchKind.TEXT, StretchKind.ADDRESS, StretchKind.NAME})
_HTTP: Final = ("https://", "http://")
_NOTED: Final = 4_096  # characters of links, in any template
_IMAGE: Final = '<img src="x" alt="">'
"""As tracking puts at the end of a body (C10.2.9)."""


class TemplateText:
    """Of the HTML of one template. Nothing is made before the first e-mail needs it; threads may ask at once."""

    __slots__ = ("_made", "_pieces")

    def __init__(self, html: Pieces) -> None:
        self._pieces = html
        self._made: dict[bool, _Plan | None] = {}  # by whether links are tracked

    def filled(self, values: Mapping[str, str], shorts: Mapping[str, str] | None) -> str | None:
        """The text with these values, as they were given; None: it has to be made of the HTML.

        `shorts`: what stands in place of each address of a link; None: they stay.
        """
        tracked = shorts is not None
        if tracked not in self._made:
            self._made[tracked] = _plan(self._pieces, tracked=tracked)
        plan = self._made[tracked]
        return None if plan is None else plan.filled(values, shorts or {})


@dataclass(frozen=True, slots=True)
class TextSource:
    """Of what the text of one e-mail is made faster than of its HTML. `values`, `shorts`: as `filled` takes them."""

    template: TemplateText
    values: Mapping[str, str] = field(repr=False)
    shorts: Mapping[str, str] | None = field(default=None, repr=False)

    def text(self, html: str) -> str | None:
        """The text of this e-mail, whose HTML this is; None: it has to be made of the HTML."""
        return self.template.filled(self.values, self.shorts) if len(html) <= LONGEST else None


class _Cut:
    """A text cut at its places, each of which has a number."""

    __slots__ = ("_numbers", "_pieces")

    def __init__(self, text: str) -> None:
        self._pieces = _PLACE.split(text)
        self._numbers = [int(number) for number in self._pieces[1::2]]

    def filled(self, told: Sequence[str]) -> str:
        """With what is told of each number in its places."""
        pieces = self._pieces.copy()
        pieces[1::2] = map(told.__getitem__, self._numbers)
        return "".join(pieces)


@dataclass(frozen=True, slots=True)
class _Shown:
    """A link whose text may be its address with some values: what stands on the line, the address, and if it is so."""

    last: _Cut
    address: _Cut
    told: bool


@dataclass(frozen=True, slots=True)
class _Plan:
    """`names`: by number. `words`: those that must be words; `addresses`: those that must begin as an address. `urls`:
    addresses of links that stand behind the names."""

    text: _Cut
    names: Sequence[str]
    words: Sequence[str]
    addresses: Sequence[str]
    urls: Sequence[_Cut]
    shown: Sequence[_Shown]

    def filled(self, values: Mapping[str, str], shorts: Mapping[str, str]) -> str | None:
        given = [values[name] for name in self.words]
        if given and (_WORDS.fullmatch("\n".join(given)) is None or any("\n" in value for value in given)):
            return None
        for name in self.addresses:
            if not values[name].startswith(_HTTP):
                return None
        told = [values[name] for name in self.names]
        for url in self.urls:
            address = url.filled(told)
            short = shorts.get(address, address)
            if short == address or not short.startswith(_HTTP):  # it stays as the HTML has it
                return None
            told.append(short)
        for link in self.shown:
            if is_address(link.last.filled(told), link.address.filled(told)) is not link.told:
                return None
        return self.text.filled(told)


def _plan(html: Pieces, *, tracked: bool) -> _Plan | None:
    """None where values could change what stands beside them, or what an HTML parser makes of it."""
    names = html.names
    numbers = {name: number for number, name in enumerate(names)}
    if _RESERVED.search(html.filled(dict.fromkeys(names, ""))) is not None:
        return None
    marked = html.filled({name: f"{_VALUE}{number}{_END}" for name, number in numbers.items()})
    if len(marked) > LONGEST:
        return None
    stretches = stretches_of(marked)
    if stretches is None or _OPEN_REFERENCE.search(bare(marked, READ)) is not None:
        return None
    words, addresses, at_start = set[str](), set[str](), list[int]()
    left, tags = iter(stretches), OpenTags(marked)
    stretch: Stretch | None = next(left, None)
    for place in _PLACE.finditer(marked):
        first = False
        while stretch is not None and stretch.end < place.end():
            stretch, first = next(left, None), True
        if stretch is None or place.start() < stretch.start or not _keeps_to_itself(stretch, tags, *place.span()):
            return None
        name = names[int(place[1])]
        if stretch.kind in _SEEN:
            words.add(name)
        if stretch.kind is StretchKind.ADDRESS and first:
            start = unescape(marked[stretch.start : place.start()]).strip().lower()
            if not start:
                addresses.add(name)
                at_start.append(place.start())
            elif any(each.startswith(start) and each != start for each in _HTTP):
                return None
    marked = _with_addresses(marked, at_start)
    urls: dict[str, int] = {}
    if tracked:

        def token(url: str) -> str:
            return f"{_ADDRESS}{urls.setdefault(url, len(names) + len(urls))}{_END}"

        marked = rewritten(marked, places_of(marked), token, _IMAGE)
    lines = _PlannedLines(max(_NOTED, len(marked) // 4))
    text = text_of_html(marked, lines)
    if len(marked) > LONGEST or lines.left < 0:
        return None
    return _Plan(_Cut(text), names, sorted(words), sorted(addresses), [_Cut(url) for url in urls], lines.found)


def _with_addresses(marked: str, places: Sequence[int]) -> str:
    """The HTML in which the values at these places, which ascend, are whole addresses."""
    pieces, at = list[str](), 0
    for place in places:
        pieces += (marked[at:place], _ADDRESS)
        at = place + len(_VALUE)
    return "".join((*pieces, marked[at:]))


class OpenTags:
    """Says of places, which ascend, whether `<` stands before them in their stretch, and no `>` behind it.

    Each character is looked at once, however many places a stretch has.
    """

    __slots__ = ("_at", "_open", "_stretch", "html")

    def __init__(self, html: str) -> None:
        self.html = html
        self._stretch: Stretch | None = None
        self._at, self._open = 0, False

    def at(self, stretch: Stretch, place: int) -> bool:
        if stretch is not self._stretch:
            self._stretch, self._at, self._open = stretch, stretch.start, False
        begins, ends = self.html.rfind("<", self._at, place), self.html.rfind(">", self._at, place)
        if begins != ends:  # one of them is there
            self._open = begins > ends
        self._at = place
        return self._open


def _keeps_to_itself(stretch: Stretch, tags: OpenTags, start: int, end: int) -> bool:
    """Whether a value in such a place can neither end what it stands in nor be one with what stands beside it."""
    html = tags.html
    before, behind = html[max(stretch.start, start - 1) : start], html[end : end + 1]
    if stretch.kind is StretchKind.COMMENT:
        return before not in ("-", "!") and behind not in ("-", "!", ">")
    if stretch.kind is StretchKind.RAW:
        return not tags.at(stretch, start)
    return before != "<"


class _PlannedLines(TextLines):
    """Notes each link of which the values say whether its text is its address, up to so many characters of them."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self.found: list[_Shown] = []
        self.left = most

    def shows(self, address: str) -> bool:
        shown, last = super().shows(address), self.last
        if last is None or self.left < 0:
            return shown
        word = last.rpartition(" ")[2]
        if _PLACE.search(address) is not None or _PLACE.search(word) is not None:
            self.left -= len(word) + len(address)
            if self.left >= 0:
                self.found.append(_Shown(_Cut(word), _Cut(address), shown))
        return shown
