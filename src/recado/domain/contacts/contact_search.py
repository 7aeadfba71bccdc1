"""By which words a search finds a contact, and what it looks for (C12.1).

A contact has entries: the words of its texts, and its phone's digits in both directions, each behind a mark of its
organization and environment. A search looks for beginnings of entries and, where the server can, inside words.
"""

import re
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from typing import Final

from recado.domain.core.ids import base62

LEAST_PHONE_DIGITS: Final = 4  # of a search term that is looked for in phones

_WORD = re.compile(r"\w+")
_NO_DIGIT = re.compile(r"[^0-9]+")
_PHONE_CHARACTERS = re.compile(r"[0-9+()\-.\s]+").fullmatch
_BEGINNING, _END = "+", "-"  # marks of a phone's digits from the front and from the back: no word begins so
_MOST_WORDS = 100  # of one contact
_MOST_WORD = 60  # characters of a word that count


class Inside(StrEnum):
    """Which words a server finds inside words: it looks them up by three of their characters in a row."""

    NONE = "none"
    ASCII = "ascii"  # it knows no other letters
    ALL = "all"


_INSIDE: Final[dict[Inside, Callable[[str], object]]] = {
    Inside.ASCII: re.compile(r"[0-9a-z]{3}").search,
    Inside.ALL: re.compile(r"[^\W_]{3}").search,
}


@dataclass(frozen=True, slots=True)
class SearchTerm:
    """What a term demands of a contact: all of `beginnings` and `inside`, or `phone` instead.

    `beginnings`, `phone`: queries of the server's text search; `inside`: regular expressions for the entries as a text,
    where each stands between quotes.
    """

    beginnings: str | None
    inside: tuple[str, ...] = ()
    phone: str | None = None


def folded(text: str) -> str:
    """`text` without case and accents."""
    if text.isascii():
        return text.lower()
    try:
        latin = text.encode("latin-1")
    except UnicodeEncodeError:
        return _folded(text)
    return _folded(text) if latin.translate(None, _LATIN_LETTERS) else latin.translate(_LATIN_FOLDED).decode("ascii")


def _folded(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(character for character in decomposed if not unicodedata.combining(character)).casefold()


# Names of the many who write with Latin letters are folded byte by byte. What becomes more than one letter is not.
_LATIN: Final = {code: each for code in range(256) if len(each := _folded(chr(code))) == 1 and each.isascii()}
_LATIN_LETTERS: Final = bytes(_LATIN)
_LATIN_FOLDED: Final = bytes(ord(_LATIN.get(code, "?")) for code in range(256))
_GAPS: Final = bytes(code if _WORD.fullmatch(chr(code)) else ord(" ") for code in range(128)).ljust(256)


@lru_cache(maxsize=1_000)
def search_mark(organization_id: str, env: str) -> str:
    """Four characters that every entry of an environment begins with, so that a search meets few entries of others."""
    return base62(int.from_bytes(sha256(f"{organization_id}:{env}".encode()).digest()[:4], "big"), 4)


def search_words(mark: str, phone: str, texts: Sequence[str | None]) -> list[str]:
    """What finds a contact: the words of name, profile name and e-mail, and its phone's digits in both directions."""
    digits = phone.removeprefix("+")
    words = dict.fromkeys(_words_in(" ".join([folded(text) for text in texts if text])))
    found = [mark + word for word in islice(words, _MOST_WORDS)]
    return [*found, f"{mark}{_BEGINNING}{digits}", f"{mark}{_END}{digits[::-1]}"]


def search_query(mark: str, q: str) -> str | None:
    """`q` as a query of the server's text search; None when it names nothing that could be found.

    Every term must match: each of its words the beginning of a word, or its digits, when there are four or more, the
    beginning or the end of the phone. A text of digits and separators is one phone.
    """
    found = [condition for term in _terms(q) if (condition := _term(mark, term)) is not None]
    return " & ".join(dict.fromkeys(found)) or None


def search_terms(mark: str, q: str, inside: Inside) -> tuple[SearchTerm, ...]:
    """`q` as a server looks for it that finds these words inside words, too; none when it names nothing to be found."""
    looks_inside = _INSIDE.get(inside)
    if looks_inside is None:
        query = search_query(mark, q)
        return () if query is None else (SearchTerm(query),)
    found = []
    for term in _terms(q):
        words, phone = _words(term), _phone(mark, term)
        if words or phone:
            short = [word for word in words if not looks_inside(word)]
            longer = tuple(_inside(mark, word) for word in words if looks_inside(word))
            found.append(SearchTerm(_beginnings(mark, short), longer, phone))
    return tuple(dict.fromkeys(found))


def _terms(q: str) -> list[str]:
    return [q] if _PHONE_CHARACTERS(q) else q.split()


def _term(mark: str, term: str) -> str | None:
    words, phone = _beginnings(mark, _words(term)), _phone(mark, term)
    if phone is None:
        return words
    return f"({words} | {phone})" if words else f"({phone})"


def _beginnings(mark: str, words: Sequence[str]) -> str | None:
    return " & ".join(_prefix(mark + word) for word in words) or None


def _phone(mark: str, term: str) -> str | None:
    digits = _NO_DIGIT.sub("", term)
    if len(digits) < LEAST_PHONE_DIGITS or not _PHONE_CHARACTERS(term):
        return None
    return f"{_prefix(mark + _BEGINNING + digits)} | {_prefix(mark + _END + digits[::-1])}"


def _words(text: str) -> list[str]:
    return _words_in(folded(text))


def _words_in(text: str) -> list[str]:
    """The words of a folded text, in order."""
    found: list[str]
    found = text.encode().translate(_GAPS).decode().split() if text.isascii() else _WORD.findall(text)
    return found if len(text) <= _MOST_WORD else [word[:_MOST_WORD] for word in found]


def _prefix(word: str) -> str:
    return f"'{word}':*"  # a word holds no quote: see _WORD


def _inside(mark: str, word: str) -> str:
    """From the quote before an entry of this mark to the word: past no other quote, and not in a phone."""
    return f"'{mark}([^'{_BEGINNING}{_END}][^']*)?{word}"  # neither holds what is special in an expression
