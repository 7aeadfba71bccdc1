"""The alphabet of GSM 03.38: which characters an SMS carries in seven bits, and which stand in for others (C16.2).

A text is encoded with a table of the interpreter's own codecs, which takes less than a microsecond for a whole message.
"""

import codecs
import re
import unicodedata
from collections.abc import Iterator
from typing import Final

BASIC: Final = (
    "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿"
    "abcdefghijklmnopqrstuvwxyzäöñüà"
)
"""One septet each. The escape of the standard is none of them: it only announces a character of the extension."""
EXTENSION: Final = "\f^{}\\[~]|€"
"""Two septets each: the escape and another one."""
ESCAPE: Final = b"\xff"
"""Stands before a character of the extension in what `encoded` returns."""

# Byte 0 is nobody's: codecs build their fast kind of map only from a table that begins with U+0000.
_MAP: Final = codecs.charmap_build(f"\0{BASIC}{EXTENSION}".ljust(256, "\ufffe"))
_PAIRS: Final = tuple(
    (each, ESCAPE + each) for each in (bytes([len(BASIC) + place]) for place in range(1, len(EXTENSION) + 1))
)
_OUTSIDE: Final = re.compile(f"[^{re.escape(BASIC + EXTENSION)}]+").findall

_REPLACED_BY: Final = {
    '"': "“”„‟«»″〝〞",
    "'": "‘’‚‛‹›′`´ʹʻʼ",
    "-": "‐‑‒–—―−",
    "...": "…",
    ".": "·",
    "*": "•‣●▪",
    "/": "⁄∕÷",
    "x": "×",
    "|": "¦",
    "->": "→",
    "<-": "←",
    "<=": "≤",
    ">=": "≥",
    "(c)": "©",
    "(r)": "®",
    "TM": "™",
    "No": "№",
    "o": "º°",
    "a": "ª",
    "c": "¢",
    "1": "¹",
    "2": "²",
    "3": "³",
    "1/4": "¼",
    "1/2": "½",
    "3/4": "¾",
    "L": "Ł",
    "l": "ł",
    "D": "ĐÐ",
    "d": "đð",
    "H": "Ħ",
    "h": "ħ",
    "T": "Ŧ",
    "t": "ŧ",
    "i": "ı",
    "s": "ſ",
    "OE": "Œ",
    "oe": "œ",
    "TH": "Þ",
    "th": "þ",
    "SS": "ẞ",
    "IJ": "Ĳ",
    "ij": "ĳ",
    "ff": "ﬀ",
    "fi": "ﬁ",
    "fl": "ﬂ",
    "ffi": "ﬃ",
    "ffl": "ﬄ",
    "\n": "\v\x85\u2028\u2029",
    " ": "\t\xa0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f\u3000",
    # Nobody sees these. Joiners stay: they make one sign of several.
    "": "\xad\u200b\u2060\ufeff",
}
_LATIN: Final = (range(0xC0, 0x250), range(0x1E00, 0x1F00))
_FULL_WIDTH: Final = range(0xFF01, 0xFF5F)
_FROM_FULL_WIDTH: Final = 0xFF01 - ord("!")
_WITH_MARKS: Final = re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff][\u0300-\u036f]+")


def encoded(text: str) -> bytes | None:
    """The text with a byte for each septet; None when a character is in neither set.

    The bytes are not those of the standard. `ESCAPE` is the first one of each pair, and stands nowhere else.
    """
    try:
        found: bytes = codecs.charmap_encode(text, "strict", _MAP)[0]
    except UnicodeEncodeError:
        return None
    if 0 in found:
        return None
    if not found.isascii():
        for each, pair in _PAIRS:
            found = found.replace(each, pair)
    return found


def outside(text: str) -> tuple[str, ...]:
    """The distinct characters of the text that are in neither set, in the order of their first appearance."""
    return tuple(dict.fromkeys("".join(_OUTSIDE(text))))


def transliterated(text: str) -> str:
    """The text with the nearest characters of the alphabet for accented and typographic ones.

    What has no replacement stays, and so does what is in the alphabet. A replacement has up to three characters.
    """
    text = _replaced(text)
    if _WITH_MARKS.search(text):
        text = _replaced(_WITH_MARKS.sub(_composed, text))
    return text


def _replaced(text: str) -> str:
    for each in outside(text):  # a few: one look for each is faster than one at each character
        if each in _REPLACEMENTS:
            text = text.replace(each, _REPLACEMENTS[each])
    return text


def _composed(found: re.Match[str]) -> str:
    """One character for a letter with marks: the alphabet may have it with the first of them."""
    return unicodedata.normalize("NFC", found[0][:2])[0]


def _replacements() -> Iterator[tuple[str, str]]:
    alphabet = frozenset(BASIC + EXTENSION)
    for each in (chr(code) for codes in _LATIN for code in codes):
        decomposed = unicodedata.normalize("NFD", each)
        if len(decomposed) > 1 and decomposed[0] in alphabet and each not in alphabet:
            yield each, decomposed[0]
    for code in _FULL_WIDTH:
        if (usual := chr(code - _FROM_FULL_WIDTH)) in alphabet:
            yield chr(code), usual
    for replacement, characters in _REPLACED_BY.items():
        for each in characters:
            yield each, replacement


_REPLACEMENTS: Final = dict(_replacements())
