"""What a text is as an SMS: its encoding, its length, and the segments that it takes and is billed by (C16.2)."""

from collections.abc import Callable
from enum import StrEnum
from typing import Final, NamedTuple

from recado.domain.core.counting import counted
from recado.domain.core.errors import Problem, field_refused
from recado.domain.links.text_links import parted
from recado.domain.messages.gsm_alphabet import ESCAPE, encoded, outside, transliterated

MOST_SEGMENTS: Final = 10
MOST_CHARACTERS: Final = 10_000
"""Of a text as it is given, links in full: what is longer is refused unread."""


class Encoding(StrEnum):
    """How a text travels: seven bits a character, or sixteen (UTF-16)."""

    GSM_7 = "GSM-7"
    UCS_2 = "UCS-2"


class SmsText(NamedTuple):
    """A text as it leaves, and what it takes."""

    text: str
    """Transliterated and with short links, where that was asked for."""
    encoding: Encoding
    length: int
    """Septets, or units of UTF-16."""
    segments: int
    characters_left: int
    """The septets or units that the last segment still has room for."""
    links: tuple[str, ...]
    """The distinct links that were shortened, as they were written, in their order."""

    @property
    def non_gsm(self) -> tuple[str, ...]:
        """The distinct characters outside of GSM-7, for which it leaves in UCS-2."""
        return outside(self.text)

    def __repr__(self) -> str:
        return f"SmsText({self.encoding}, length={self.length}, segments={self.segments})"  # no text in a log


class _Form(NamedTuple):
    """How a text is laid out for one encoding; sizes in bytes of its layout."""

    encoding: Encoding
    alone: int
    """Room in the only segment."""
    room: int
    """Room in each of several: the rest holds the header by which a phone joins them."""
    unit: int
    first_halves: frozenset[int]
    """First bytes of what takes two units, and is never split."""


_GSM_7: Final = _Form(Encoding.GSM_7, 160, 153, 1, frozenset(ESCAPE))
_UCS_2: Final = _Form(Encoding.UCS_2, 2 * 70, 2 * 67, 2, frozenset(range(0xD8, 0xDC)))
_WIDE: Final = {Encoding.GSM_7: _GSM_7._replace(room=152), Encoding.UCS_2: _UCS_2._replace(room=2 * 66)}
"""Where that header has a reference of two octets."""


def measure(text: str, *, transliterate: bool = False, shorten: Callable[[str], str] | None = None) -> SmsText:
    """What `text` is as an SMS; nothing is cut. Problem 422 `TEXT_TOO_LONG` beyond 10 segments (C16.2.3).

    `transliterate`: replace what has a replacement in GSM-7, unless that takes more segments; a link stays as written.
    `shorten`: the short form of a link, asked once for each distinct one; for a count alone, `short_link` of a sample.
    """
    if len(text) > MOST_CHARACTERS:
        raise _too_long(f"The text must have at most {MOST_CHARACTERS:,} characters, and {MOST_SEGMENTS} segments.")
    links: dict[str, str] = {}
    if shorten is not None:
        parts = parted(text)
        links = {link: shorten(link) for link in dict.fromkeys(parts[1::2])}
        parts[1::2] = [links[link] for link in parts[1::2]]
        text = "".join(parts)
    found = _measured(text, tuple(links))
    if transliterate and found.encoding is Encoding.UCS_2:
        parts = parted(text)
        parts[::2] = map(transliterated, parts[::2])
        plainer = _measured("".join(parts), found.links)
        if plainer.text and plainer.segments <= found.segments:
            found = plainer
    if found.segments > MOST_SEGMENTS:
        raise _too_long(
            f"The text takes {counted(found.segments, 'segment')} in {found.encoding}, and may take {MOST_SEGMENTS}."
        )
    return found


def segment_texts(text: str, *, wide: bool = False) -> list[str]:
    """The text of each segment, in their order; joined, they are `text`, which is one that leaves (`SmsText.text`).

    `wide`: the header that joins them takes an octet more, so that each has room for a character less.
    """
    form, layout = _laid_out(text)
    if wide:
        form = _WIDE[form.encoding]
    ends = _ends(form, layout)
    pieces = [layout[begin:end] for begin, end in zip([0, *ends], ends, strict=False)]
    if form.encoding is Encoding.UCS_2:
        return [piece.decode("utf-16-be", "surrogatepass") for piece in pieces]
    texts, begin = [], 0
    for piece in pieces:
        end = begin + len(piece) - piece.count(ESCAPE)
        texts.append(text[begin:end])
        begin = end
    return texts


def _measured(text: str, links: tuple[str, ...]) -> SmsText:
    form, layout = _laid_out(text)
    size = len(layout)
    if size <= form.alone:
        return SmsText(text, form.encoding, size // form.unit, 1, (form.alone - size) // form.unit, links)
    ends = _ends(form, layout)
    left = form.room - (size - ends[-2])
    return SmsText(text, form.encoding, size // form.unit, len(ends), left // form.unit, links)


def _laid_out(text: str) -> tuple[_Form, bytes]:
    septets = encoded(text)
    if septets is not None:
        return _GSM_7, septets
    return _UCS_2, text.encode("utf-16-be", "surrogatepass")


def _ends(form: _Form, layout: bytes) -> list[int]:
    """Where each segment ends. What takes two units and does not fit whole begins the next one."""
    size = len(layout)
    if size <= form.alone:
        return [size]
    ends = []
    end = form.room
    while end < size:
        if layout[end - form.unit] in form.first_halves:
            end -= form.unit
        ends.append(end)
        end += form.room
    return [*ends, size]


def _too_long(message: str) -> Problem:
    return field_refused("TEXT_TOO_LONG", "/text", message)
