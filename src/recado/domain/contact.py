"""A contact's values: their limits, how its tags compare, and by which words a search finds it (C12.1, C12.2)."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256
from itertools import islice
from typing import Final

from recado.domain.ids import base62

MOST_ATTRIBUTES: Final = 100
MOST_TAGS: Final = 100
MOST_TAG: Final = 64
MOST_GROUPS: Final = 20
MOST_GROUP_PHONES: Final = 20
MOST_NAME: Final = 200
MOST_EMAIL: Final = 254
MOST_EXTERNAL_ID: Final = 255
MOST_QUERY: Final = 100
LEAST_PHONE_DIGITS: Final = 4  # of a search term that is looked for in phones

INTEGRATIONS: Final = ("integration_a", "integration_b", "integration_c", "integration_d")


class ContactSource(StrEnum):
    """How a contact was born. `webhook`, by an inbound message, cannot be sent by a caller."""

    MANUAL = "manual"
    IMPORT = "import"
    API = "api"
    WEBHOOK = "webhook"


GIVEN_SOURCES: Final = (ContactSource.MANUAL, ContactSource.IMPORT, ContactSource.API)


class CompanyRole(StrEnum):
    """A contact's part in its company (`papelNaEmpresa`)."""

    DECISOR = "decisor"
    FINANCEIRO = "financeiro"
    OPERACAO = "operacao"
    OUTRO = "outro"


class DebtStatus(StrEnum):
    """How a debt stands."""

    VENCIDA = "vencida"
    EM_ATRASO = "em_atraso"
    EM_DIA = "em_dia"


def email_key(address: str) -> str:
    """How addresses compare (C2.4)."""
    return address.lower()


def email_hash(organization_id: str, address: str) -> bytes:
    """SHA-256 (32 bytes) of organization id, a colon, and the address in lower case: as in the registry (C30.2)."""
    return sha256(f"{organization_id}:{email_key(address)}".encode()).digest()


def tag_key(tag: str) -> str:
    """How tags compare: without case."""
    return tag.casefold()


def tags_united(*each: Iterable[str]) -> tuple[str, ...]:
    """The tags of all, in order; of those that differ in case only the first spelling stays."""
    found: dict[str, str] = {}
    for tags in each:
        for tag in tags:
            found.setdefault(tag_key(tag), tag)
    return tuple(found.values())


def tags_without(tags: Iterable[str], removed: Iterable[str]) -> tuple[str, ...]:
    """The tags that are not among those removed, whatever their case."""
    keys = {tag_key(tag) for tag in removed}
    if not keys:
        return tuple(tags)
    return tuple(tag for tag in tags if tag_key(tag) not in keys)


# Search -------------------------------------------------------------------------------------------------------------

_WORD = re.compile(r"\w+")
_NO_DIGIT = re.compile(r"[^0-9]+")
_PHONE_CHARACTERS = re.compile(r"[0-9+()\-.\s]+").fullmatch
_BEGINNING, _END = "+", "-"  # marks of a phone's digits from the front and from the back: no word begins so
_MOST_WORDS = 100  # of one contact
_MOST_WORD = 60  # characters of a word that count


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
    terms = [q] if _PHONE_CHARACTERS(q) else q.split()
    found = [condition for term in terms if (condition := _term(mark, term)) is not None]
    return " & ".join(found) or None


def _term(mark: str, term: str) -> str | None:
    words = " & ".join(_prefix(mark + word) for word in _words(term))
    digits = _NO_DIGIT.sub("", term)
    if len(digits) < LEAST_PHONE_DIGITS or not _PHONE_CHARACTERS(term):
        return words or None
    phone = f"{_prefix(mark + _BEGINNING + digits)} | {_prefix(mark + _END + digits[::-1])}"
    return f"({words} | {phone})" if words else f"({phone})"


def _words(text: str) -> list[str]:
    return _words_in(folded(text))


def _words_in(text: str) -> list[str]:
    """The words of a folded text, in order."""
    found: list[str]
    found = text.encode().translate(_GAPS).decode().split() if text.isascii() else _WORD.findall(text)
    return found if len(text) <= _MOST_WORD else [word[:_MOST_WORD] for word in found]


def _prefix(word: str) -> str:
    return f"'{word}':*"  # a word holds no quote: see _WORD
