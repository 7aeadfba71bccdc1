"""What is wrong with the SMS and RCS texts of a step (C9.4): one Portuguese sentence for each fault."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from recado.domain.channels.rcs import RcsRoute
from recado.domain.core.errors import Problem
from recado.domain.core.web_addresses import is_web_address, opens
from recado.domain.journeys.graph import RcsContent
from recado.domain.messages.placeholders import emptied
from recado.domain.messages.sms_text import measure

MAX_SMS_TEXT: Final = 1_530
_SURELY_FITS: Final = 670  # characters of two bytes that ten segments have room for
_MOST_TEXT, _MOST_TITLE, _MOST_DESCRIPTION = 3_072, 200, 2_000
_MOST_SUGGESTIONS, _MOST_LABEL, _MOST_VALUE = 4, 25, 2_048
_SUGGESTIONS: Final = frozenset({"reply", "url", "dial"})
_VARIABLE = re.compile(r"\{\{[^{}]*\}\}")
_ADDRESS = re.compile(r"https://[^\s/]\S*").fullmatch


_ROUTES: Final = frozenset(RcsRoute)


def sms_excess(text: str) -> str | None:
    """Of what a text has too much for an SMS, whatever its placeholders hold and however short its links become."""
    if len(text) > MAX_SMS_TEXT:
        return "1.530 caracteres"
    if len(text.encode("utf-16-le", "surrogatepass")) <= 2 * _SURELY_FITS:
        return None
    try:
        measure(emptied(text), shorten=lambda link: "")
    except Problem:
        return "10 segmentos"
    return None


def rcs_faults(content: RcsContent) -> Iterator[str]:
    """Of a content that has its text."""
    if len(content.text or "") > _MOST_TEXT:
        yield "O texto RCS tem mais de 3.072 caracteres."
    if content.rota is not None and content.rota not in _ROUTES:
        yield "A rota RCS é `easy_rcs` ou `easy_otp_rcs`."
    if content.card is not None:
        if content.rota == RcsRoute.OTP:
            yield "A rota `easy_otp_rcs` só aceita texto, sem `card`."
        yield from _card_faults(content.card)
    if content.has_fallback and not content.fallback_text:
        yield "O `fallback` não tem `text`."
    if excess := sms_excess(content.fallback_text or ""):
        yield f"O texto do `fallback` tem mais de {excess}."


def texts_of(document: Any) -> Iterator[str]:
    """Every text of a JSON value but the names of members: any may have placeholders."""
    match document:
        case str():
            yield document
        case Mapping():
            for each in document.values():
                yield from texts_of(each)
        case list() | tuple():
            for each in document:
                yield from texts_of(each)


def _card_faults(card: Mapping[str, Any]) -> Iterator[str]:
    title, address = card.get("title"), card.get("mediaUrl")
    if not title or len(title) > _MOST_TITLE:
        yield "O `card` precisa de `title` com até 200 caracteres."
    if len(card.get("description") or "") > _MOST_DESCRIPTION:
        yield "A `description` do `card` tem mais de 2.000 caracteres."
    if address and (_ADDRESS(address) is None or not is_web_address(_filled(address))):
        yield "A `mediaUrl` do `card` não é um endereço https."
    suggestions = card.get("suggestions") or ()
    if len(suggestions) > _MOST_SUGGESTIONS:
        yield "O `card` tem mais de 4 sugestões."
    if not all(map(_is_suggestion, suggestions)):
        yield "Cada sugestão precisa de `type` (`reply`, `url`, `dial`), `text` (até 25) e `value` (até 2.048)."


def _is_suggestion(given: Mapping[str, Any]) -> bool:
    text, value = given.get("text") or "", given.get("value") or ""
    fits = given.get("type") in _SUGGESTIONS and 1 <= len(text) <= _MOST_LABEL and 1 <= len(value) <= _MOST_VALUE
    return fits and (given["type"] != "url" or value.startswith("{{") or opens(_filled(value)))


def _filled(address: str) -> str:
    """With something in the place of each variable."""
    return _VARIABLE.sub("1", address)
