"""Origin links (C27.4): which way a person came to a chat is told by a code in the text that the link prepares."""

import re
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Final

from recado.domain.links.codes import ORIGIN_ALPHABET, ORIGIN_LENGTH

MAX_ORIGIN_LINKS: Final = 1_000  # of an environment (C31)
CODES_KEPT: Final = timedelta(days=30)
LONGEST_LABEL: Final = 200  # characters of a campaign's name; what is beyond is cut
MOST_CODES: Final = 3  # of one text that are looked for

_CODES: Final = re.compile(rf"\(([{ORIGIN_ALPHABET}]{{{ORIGIN_LENGTH}}})\)")


class Fonte(StrEnum):
    """Where people find the link."""

    SEARCH_ADS = "search_ads"
    SOCIAL_ADS = "social_ads"
    VIDEO_ADS = "video_ads"
    OUTRA = "outra"  # `fonteRotulo` names it


LABELS: Final[Mapping[str, tuple[str, ...]]] = {
    "campanha": ("utm_campaign", "campanha"),
    "grupo": ("utm_content", "grupo"),
    "anuncio": ("anuncio",),
    "palavraChave": ("utm_term", "palavraChave"),
}
"""What the address of a click may say of it, by the parameters that say so: the first that does."""


def opening_text(text: str, code: str) -> str:
    """What the link writes into the chat: the person sends it."""
    return f"{text} ({code})"


def codes_in(text: str) -> list[str]:
    """The codes that a text holds, in parentheses, each once."""
    return list(dict.fromkeys(_CODES.findall(text)))[:MOST_CODES]


def labels_of(query: Mapping[str, str]) -> dict[str, str]:
    """What the parameters of a click say of it."""
    said = {
        name: next((query[each].strip() for each in parameters if query.get(each, "").strip()), "")
        for name, parameters in LABELS.items()
    }
    return {name: label[:LONGEST_LABEL] for name, label in said.items() if label}


def origin(fonte: Fonte, rotulo: str | None, labels: Mapping[str, str], code: str) -> dict[str, str]:
    """`origemDoLink`, as a message that brings the code shows it."""
    named = {} if rotulo is None else {"fonteRotulo": rotulo}
    return {"fonte": fonte.value, **named, **labels, "codigo": code}
