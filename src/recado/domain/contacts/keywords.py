"""Words by which a person opts out of messages and in again: the whole text is one of them (C28.3)."""

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

KEYWORD_SOURCE: Final = "inbound_keyword"
PROVIDER_SOURCE: Final = "provider"
UNSUBSCRIBE_SOURCE: Final = "unsubscribe"
OWN_SOURCES: Final = frozenset({KEYWORD_SOURCE, PROVIDER_SOURCE, UNSUBSCRIBE_SOURCE})
"""Sources of a refusal by the person's own hand: a keyword takes it back. Operators and complaints name others."""

OPT_OUT_KEYWORDS: Final = (
    "sair", "stop", "parar", "pare", "cancelar", "descadastrar", "remover", "unsubscribe", "end", "quit",
)  # fmt: skip
OPT_IN_KEYWORDS: Final = ("voltar", "start", "quero receber")
LONGEST_READ: Final = 500  # characters: no keyword has a fifth of them, whatever stands around it


@dataclass(frozen=True, slots=True)
class Keyword:
    """What a text asked for; `word`: as it was understood."""

    opts_out: bool
    word: str = field(repr=False)


def normalized(text: str) -> str:
    """`text` in lower case, without accents, punctuation and outer spaces."""
    decomposed = unicodedata.normalize("NFKD", text.lower())
    kept = (each for each in decomposed if unicodedata.category(each)[0] not in "MP")
    return "".join(kept).lower().strip()


def keyword_of(text: str, opt_out: Iterable[str] = (), opt_in: Iterable[str] = ()) -> Keyword | None:
    """What `text` asks for; None when it is no keyword. `opt_out`, `opt_in`: the organization's own words besides.

    A word that is in both lists opts out.
    """
    if len(text) > LONGEST_READ:
        return None
    word = normalized(text)
    if not word:
        return None
    if word in OPT_OUT_KEYWORDS or word in _words(tuple(opt_out)):
        return Keyword(True, word)
    if word in OPT_IN_KEYWORDS or word in _words(tuple(opt_in)):
        return Keyword(False, word)
    return None


def written(type_: str, payload: Mapping[str, Any]) -> str | None:
    """What the person wrote, or the words on the button that was pressed; None of everything else.

    A text beside `raw` is ours: it describes a location, a reaction and the like.
    """
    if type_ == "text" and "raw" not in payload:
        return _text(payload.get("text"), "body")
    if type_ == "interactive":
        reply = payload.get("interactive")
        return _text(reply, "text") or _text(reply, "title")
    return None


def _text(given: object, name: str) -> str | None:
    found = given.get(name) if isinstance(given, Mapping) else None
    return found if isinstance(found, str) else None


@lru_cache(maxsize=1_000)
def _words(given: tuple[str, ...]) -> frozenset[str]:
    return frozenset(normalized(word) for word in given)
