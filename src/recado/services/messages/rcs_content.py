"""What an RCS message says and how it leaves, and the SMS that may take its place: payload and details (C17)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

from recado.domain.channels.rcs import (
    DELIVERED_VIA,
    FALLBACK,
    RCS,
    RICH,
    SMS_ROUTE_OF,
    USUAL_WAIT,
    RcsRoute,
    is_rich,
)
from recado.domain.channels.sms import TRANSACTIONAL
from recado.domain.core.errors import FieldError, Problem, field_refused, validation_error
from recado.domain.links.text_links import parted
from recado.domain.links.tracked import MessageLinks
from recado.domain.messages.sms_text import SmsText, measure

LONGEST_TEXT: Final = 3_072

Links = Callable[[], MessageLinks]


class RcsMessageContent(NamedTuple):
    """As a message stores it. `segments`: of its SMS; None: it has none."""

    payload: dict[str, Any]
    details: dict[str, Any]
    segments: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RcsForm:
    """How a message is to leave. `after_seconds`: without a delivery its SMS leaves then."""

    route: RcsRoute = RcsRoute.EASY
    transactional: bool = False
    after_seconds: int | None = None

    @classmethod
    def of(cls, details: Mapping[str, Any] | None) -> Self:
        """As a draft says it (`asked`); one without a form answers whoever wrote to us, and asks for no consent."""
        if details is None:
            return cls(transactional=True)
        return cls(
            route=RcsRoute(details["route"]),
            transactional=details["transactional"],
            after_seconds=details["after_seconds"],
        )

    @classmethod
    def stored(cls, details: Mapping[str, Any]) -> Self:
        """As the details of a message have it."""
        return cls(
            route=RcsRoute(details["route"]),
            transactional=bool(details.get(TRANSACTIONAL)),
            after_seconds=details.get(FALLBACK, {}).get("afterSeconds"),
        )

    @property
    def asked(self) -> dict[str, Any]:
        """What a caller asked for, as the details of a draft."""
        return {
            "route": self.route,
            "transactional": self.transactional,
            "after_seconds": self.after_seconds,
        }

    def content(self, given: Mapping[str, Any], links: MessageLinks) -> RcsMessageContent:
        """Of what a draft has as its payload: with short links in its texts and suggestions, and in that of its SMS.

        Problem 422: `VALIDATION_ERROR`, `TEXT_TOO_LONG`.
        """
        said: dict[str, Any] = {}
        text = (given.get("text") or {}).get("body")
        if text is not None:
            text = links.in_text(text)
            if len(text) > LONGEST_TEXT:  # a short link may be longer than what it stands for
                raise field_refused("TEXT_TOO_LONG", "/content/text", "With its short links the text is too long.")
            said["text"] = {"body": text}
        card, suggestions = given.get("card"), given.get("suggestions")
        if card is not None:
            said["card"] = _card(card, links)
        if suggestions:
            said["suggestions"] = [_suggestion(each, links) for each in suggestions]
        taps = bool(suggestions) or bool((card or {}).get("suggestions"))
        details: dict[str, Any] = {"route": self.route, DELIVERED_VIA: RCS}
        if is_rich(text, card=card is not None, suggestions=taps):
            details[RICH] = True
        if self.transactional:
            details[TRANSACTIONAL] = True
        fallback = given.get(FALLBACK)
        if fallback is None:
            return RcsMessageContent(said, details, None)
        measured = _measured(fallback["text"], links)
        said[FALLBACK] = {"text": measured.text}
        details[FALLBACK] = {
            "route": SMS_ROUTE_OF[self.route],
            "encoding": measured.encoding,
            "length": measured.length,
            "segments": measured.segments,
            "afterSeconds": USUAL_WAIT[self.route] if self.after_seconds is None else self.after_seconds,
        }
        return RcsMessageContent(said, details, measured.segments)


def check_content(route: RcsRoute, given: Mapping[str, Any]) -> None:
    """A message says something, and by `easy_otp_rcs` in a text alone; Problem 422."""
    if given.get("text") is None and given.get("card") is None:
        sentence = "Give a text, or a card."
        raise validation_error([FieldError("/content", "REQUIRED", sentence)])
    if route is RcsRoute.OTP:
        sentence = "Route easy_otp_rcs takes a text alone: leave this out, or use route easy_rcs."
        extra = [name for name in ("card", "suggestions") if given.get(name)]
        if extra:
            raise validation_error([FieldError(f"/content/{name}", "NOT_ALLOWED", sentence) for name in extra])


def _measured(text: str, links: MessageLinks) -> SmsText:
    try:
        return measure(text, transliterate=False, shorten=links.shorten)
    except Problem as problem:
        raise field_refused(problem.code, "/fallback/text", problem.detail) from None


def _card(card: Mapping[str, Any], links: MessageLinks) -> dict[str, Any]:
    """Its picture is loaded, not opened: its address stays as it is."""
    told = dict(card)
    for name in ("title", "description"):
        if told.get(name) is not None:
            told[name] = links.in_text(told[name])
    if told.get("suggestions") is not None:
        told["suggestions"] = [_suggestion(each, links) for each in told["suggestions"]]
    return told


def _suggestion(given: Mapping[str, Any], links: MessageLinks) -> dict[str, Any]:
    value = given["value"]
    return {**given, "value": links.shorten(value) if parted(value)[1::2] == [value] else value}
