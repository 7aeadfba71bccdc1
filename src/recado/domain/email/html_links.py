"""The links in an e-mail's HTML (C27.1): where their addresses stand, by the tokens of the HTML standard.

Nothing is parsed and written again: but for the addresses that change, the HTML keeps every character, however broken
it is. Each search goes on where the last one ended, so time grows with the length only.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto
from html import escape
from html.entities import html5
from typing import Final, NamedTuple

MOST_PLACES: Final = 2_000
"""Of links in one HTML: those that follow stay as they are."""

_S: Final = r"[\t\n\f\r ]"
_SKIPPED: Final = r"[\t\n\f\r /]*+"
_ATTRIBUTE: Final = re.compile(
    rf"{_SKIPPED}(?:>|([^\t\n\f\r />][^\t\n\f\r />=]*+)"
    rf"""(?:{_S}*+={_S}*+(?:"([^"]*+)"|'([^']*+)'|([^\t\n\f\r >"'][^\t\n\f\r >]*+)|(?=>))|(?!{_S}*+=)))"""
)
"""The next attribute of a tag: its name, and its value in one of three forms; or the end of the tag."""
_TAG_NAME: Final = re.compile(r"<(/?)([A-Za-z][^\t\n\f\r />]*+)")
_MARKUP: Final = re.compile(r"<[A-Za-z/!?]")
_COMMENT_END: Final = re.compile(r"--!?>")
_LINKS: Final = frozenset({"a", "area"})
_FOREIGN: Final = frozenset({"svg", "math"})  # in them no element is raw, and there is CDATA
_RAW: Final = {
    name: re.compile(rf"</{name}(?=[\t\n\f\r />])", re.IGNORECASE | re.ASCII)
    for name in ("style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
}
"""Elements that hold text whatever it looks like, and what ends each."""
_NEVER_WRITTEN: Final = frozenset({*_RAW, "script", "plaintext"})
_SEEN_RAW: Final = frozenset({"textarea", "xmp", "plaintext"})
_WRITTEN: Final = re.compile(r"[a-z][a-z0-9:_.-]{0,63}")
_IN_SCRIPT: Final = re.compile(r"<!--|-->|</?script(?=[\t\n\f\r />])", re.IGNORECASE | re.ASCII)

_REFERENCE: Final = re.compile(r"&(?:#([0-9]++);?|#[xX]([0-9a-fA-F]++);?|([A-Za-z][A-Za-z0-9]*+;?))")
_LAST_CHARACTER: Final = 0x10FFFF
_UNREADABLE: Final = "\ufffd"
_OUTER: Final = "".join(map(chr, range(0x21)))
_DROPPED: Final = str.maketrans("", "", "\t\n\r")
_ADDRESS: Final = re.compile(r"https?://[^\x00-\x1f\x7f\ud800-\udfff]+", re.IGNORECASE | re.ASCII)


class LinkPlace(NamedTuple):
    """Where the value of an `href` stands, without its quotes, and the address that it is."""

    start: int
    end: int
    url: str


class HtmlPlaces(NamedTuple):
    """`links`: those to http(s) addresses, in their order. `end`: where the content of the body ends."""

    links: Sequence[LinkPlace]
    end: int


def places_of(html: str) -> HtmlPlaces:
    """The links of elements `a` and `area`, as a browser finds them, and the last `</body>`, or what stands for it."""
    links: list[LinkPlace] = []
    at = foreign = 0
    body_end = -1
    while (markup := _MARKUP.search(html, at)) is not None:
        start = markup.start()
        opened = _TAG_NAME.match(html, start)
        if opened is None:
            at = _end_of_other(html, start, in_foreign=foreign > 0)
        else:
            closes, name = bool(opened[1]), opened[2].lower()
            at, href = _end_of_tag(html, opened.end())
            if at < 0:
                pass
            elif closes:
                if name == "body":
                    body_end = start
                elif name in _FOREIGN:
                    foreign = max(0, foreign - 1)
            elif name in _FOREIGN:
                foreign += html[at - 2] != "/"
            elif name in _LINKS:
                if href is not None and len(links) < MOST_PLACES and (url := address_in(html[href])) is not None:
                    links.append(LinkPlace(href.start, href.stop, url))
            elif not foreign:
                at = _end_of_raw(html, name, at)
        if at < 0:  # the rest is swallowed
            return HtmlPlaces(links, start if body_end < 0 else body_end)
    return HtmlPlaces(links, len(html) if body_end < 0 else body_end)


class StretchKind(Enum):
    """What a stretch of HTML is, as far as what stands in it can end it, or is seen in the HTML's text."""

    TEXT = auto()
    ADDRESS = auto()  # of a link: the quoted value of the `href` of an `a`
    NAME = auto()  # of an image: that of its `alt`
    UNSEEN = auto()  # that of any other attribute
    RAW = auto()  # of an element that holds text and shows none
    COMMENT = auto()


class Stretch(NamedTuple):
    """A part of HTML that holds no markup."""

    start: int
    end: int
    kind: StretchKind


def stretches_of(html: str) -> list[Stretch] | None:
    """Where HTML holds no markup, in order; scripts, values without quotes and what is seen as it is are in none.

    None where more than one place says what a part is: with SVG or MathML, or with a rest that is swallowed.
    """
    found: list[Stretch] = []
    at = 0
    while (markup := _MARKUP.search(html, at)) is not None:
        start = markup.start()
        found.append(Stretch(at, start, StretchKind.TEXT))
        opened = _TAG_NAME.match(html, start)
        if opened is None:
            at = _end_of_other(html, start, in_foreign=False)
            if html.startswith("<!--", start) and at > 0:
                found.append(Stretch(start + 4, at, StretchKind.COMMENT))
        else:
            closes, name = bool(opened[1]), opened[2].lower()
            at = _quoted_values(html, opened.end(), "" if closes else name, found)
            if name in _FOREIGN:
                return None
            if at >= 0 and not closes:
                start, at = at, _end_of_raw(html, name, at)
                if name in _RAW and name not in _SEEN_RAW:
                    found.append(Stretch(start, at, StretchKind.RAW))
        if at < 0:
            return None
    found.append(Stretch(at, len(html), StretchKind.TEXT))
    return found


_READ: Final = {("a", "href"): StretchKind.ADDRESS, ("img", "alt"): StretchKind.NAME}


def _quoted_values(html: str, at: int, name: str, found: list[Stretch]) -> int:
    """Behind a tag whose name ends at a place, of which the quoted values come to `found`. Below 0: it is open."""
    named = set[str]()
    while (attribute := _ATTRIBUTE.match(html, at)) is not None:
        at = attribute.end()
        value = attribute.lastindex
        if value is None:
            return at
        told = attribute[1].lower()
        kind = StretchKind.UNSEEN if told in named else _READ.get((name, told), StretchKind.UNSEEN)
        named.add(told)  # another one of the same tag says nothing
        if value in (2, 3):
            found.append(Stretch(*attribute.span(value), kind))
    return -1


def rewritten(html: str, places: HtmlPlaces, shorten: Callable[[str], str], last: str) -> str:
    """The HTML with what `shorten` makes of each address in its place, and `last` at the end of its body."""
    edits = [(start, end, escape(short)) for start, end, url in places.links if (short := shorten(url)) != url]
    parts = []
    at = 0
    for start, end, text in sorted([*edits, (places.end, places.end, last)]):
        parts += [html[at:start], text]
        at = end
    return "".join([*parts, html[at:]])


def bare(html: str, kept: Mapping[str, str]) -> str:
    """The HTML written anew, so that each parser finds the same few things in it: text, and tags of elements.

    `kept`: by element, the one attribute that stays. Raw text is left out, but for what a browser shows of it.
    """
    parts: list[str] = []
    at = foreign = 0
    while (markup := _MARKUP.search(html, at)) is not None:
        start = markup.start()
        parts.append(html[at:start].replace("<", "&lt;"))
        opened = _TAG_NAME.match(html, start)
        if opened is None:
            at = _end_of_other(html, start, in_foreign=foreign > 0)
        else:
            closes, name = opened[1], opened[2].lower()
            at, value, empty = _only_attribute(html, opened.end(), None if closes else kept.get(name))
            if at >= 0 and name in _FOREIGN:
                foreign = max(0, foreign - 1) if closes else foreign + (not empty)
            if at >= 0 and name in _NEVER_WRITTEN:
                at = at if closes or foreign else _end_of_bare_raw(html, name, at, parts)
            elif at >= 0 and _WRITTEN.fullmatch(name):
                attribute = "" if value is None else f' {kept[name]}="{_quoted(html[value])}"'
                parts.append(f"<{closes}{name}{attribute}{'/' if empty and not closes else ''}>")
        if at < 0:  # the rest is swallowed
            return "".join(parts)
    parts.append(html[at:].replace("<", "&lt;"))
    return "".join(parts)


def _only_attribute(html: str, at: int, wanted: str | None) -> tuple[int, slice | None, bool]:
    """Behind a tag whose name ends at a place, the value of its first attribute of that name, and whether it ends
    in a slash. Below 0: it is open."""
    span: slice | None = None
    named = False
    last = at
    while (found := _ATTRIBUTE.match(html, at)) is not None:
        at = found.end()
        value = found.lastindex
        if value is None:
            return at, span, at - 2 >= last and html[at - 2] == "/"
        last = at
        if wanted is not None and not named and found[1].lower() == wanted:
            named = True
            span = slice(*found.span(value)) if value > 1 else None
    return -1, None, False


def _quoted(value: str) -> str:
    return value.replace('"', "&quot;").replace("<", "&lt;")


def _end_of_bare_raw(html: str, name: str, start: int, parts: list[str]) -> int:
    """Where markup goes on after the start tag of an element that holds text; what is seen of it comes to the parts."""
    end = _end_of_raw(html, name, start)
    if name in _SEEN_RAW:
        text = html[start:] if end < 0 else html[start:end]
        parts.append((text if name == "textarea" else text.replace("&", "&amp;")).replace("<", "&lt;"))
    return end


def address_in(value: str) -> str | None:
    """The http(s) address in the value of an attribute; None where it is another, or one that no header can hold."""
    url = _REFERENCE.sub(_character, value).strip(_OUTER).translate(_DROPPED)
    return url if _ADDRESS.fullmatch(url) else None


def _end_of_tag(html: str, at: int) -> tuple[int, slice | None]:
    """Behind a tag whose name ends at a place, and where the value of its first `href` stands. Below 0: it is open."""
    href: slice | None = None
    named = False
    while (found := _ATTRIBUTE.match(html, at)) is not None:
        at = found.end()
        value = found.lastindex
        if value is None:
            return at, href
        if not named and found[1].lower() == "href":  # another one of the same tag says nothing
            named = True
            href = slice(*found.span(value)) if value > 1 else None
    return -1, None


def _end_of_other(html: str, start: int, *, in_foreign: bool) -> int:
    """Where markup ends that is no tag; below 0: it does not end, as a tag that is left open does not."""
    if html.startswith("<!--", start):
        if html.startswith((">", "->"), start + 4):
            return html.index(">", start) + 1
        found = _COMMENT_END.search(html, start + 4)
        return -1 if found is None else found.end()
    last = "]]>" if in_foreign and html.startswith("<![CDATA[", start) else ">"
    end = html.find(last, start)
    return -1 if end < 0 else end + len(last)


def _end_of_raw(html: str, name: str, start: int) -> int:
    """Where markup goes on after the start tag of an element; below 0: nowhere."""
    if name == "plaintext":
        return -1
    if name == "script":
        return _end_of_script(html, start)
    ending = _RAW.get(name)
    if ending is None:
        return start
    found = ending.search(html, start)
    return -1 if found is None else found.start()


def _end_of_script(html: str, start: int) -> int:
    """Of a script; in `<!--` of one, a `<script>` has an end of its own."""
    in_comment = doubled = False
    while (found := _IN_SCRIPT.search(html, start)) is not None:
        start = found.end()
        if found[0] == "<!--":
            start -= 2  # its dashes may be those of `-->`
            in_comment = True
        elif found[0] == "-->":
            in_comment = doubled = False
        elif not found[0].startswith("</"):
            doubled = in_comment
        elif not doubled:
            return found.start()
        else:
            doubled = False
    return -1


def _character(found: re.Match[str]) -> str:
    """What a character reference in an attribute stands for; what is none stays."""
    decimal, hexadecimal, name = found.groups()
    if name is not None:
        ends = name.endswith(";") or found.string[found.end() : found.end() + 1] != "="
        return html5.get(name, found[0]) if ends else found[0]
    digits = (decimal or hexadecimal).lstrip("0")[:8]  # as many are too many already
    number = int(digits or "0", 10 if decimal else 16)
    if 0x80 <= number <= 0x9F:
        return bytes([number]).decode("cp1252", "replace")
    if not number or number > _LAST_CHARACTER or 0xD800 <= number <= 0xDFFF:
        return _UNREADABLE
    return chr(number)
