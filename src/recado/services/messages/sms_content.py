"""What an SMS says and how it leaves, of the text that a caller gives: payload, segments, details (C16.2)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Self

from recado.domain.channels.sms import TRANSACTIONAL, SmsRoute
from recado.domain.messages.sms_text import SmsText, measure

FROM: Final = "from"
"""What a message leaves as, where that is one organization's: a name in its details."""

UNTRACKED: Final = "untracked"
"""Of a text whose links are to be shortened when it becomes a message: in its details until then, how it was asked."""

Shorten = Callable[[str], str]
"""From a link to what stands in its place."""


class SmsContent(NamedTuple):
    """As a message stores it. `units`: segments; `details`: what the record shows of it."""

    payload: dict[str, Any]
    units: int
    details: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SmsForm:
    """How texts are to leave. `dedicated_sender`: as what, of that route."""

    route: SmsRoute = SmsRoute.PREMIUM
    transactional: bool = False
    transliterate: bool = False
    shorten_links: bool = False
    dedicated_sender: str | None = None

    @classmethod
    def of(cls, details: Mapping[str, Any] | None, dedicated_sender: str | None) -> Self:
        """As a draft says it in its details (`asked`)."""
        return cls(**(details or {}), dedicated_sender=dedicated_sender)

    @property
    def asked(self) -> dict[str, Any]:
        """What a caller asked for, as the details of a draft."""
        return {
            "route": self.route,
            "transactional": self.transactional,
            "transliterate": self.transliterate,
            "shorten_links": self.shorten_links,
        }

    def measured(self, text: str, shorten: Shorten | None = None) -> SmsText:
        """What the text takes; Problem 422 `TEXT_TOO_LONG`."""
        return measure(text, transliterate=self.transliterate, shorten=shorten)

    def content(self, text: str, shorten: Shorten | None = None) -> SmsContent:
        """As `measured`."""
        measured = self.measured(text, shorten)
        details: dict[str, Any] = {
            "route": self.route,
            "encoding": measured.encoding,
            "length": measured.length,
        }
        if self.transactional:
            details[TRANSACTIONAL] = True
        if self.route is SmsRoute.DEDICATED and self.dedicated_sender is not None:
            details[FROM] = self.dedicated_sender
        return SmsContent({"text": {"body": measured.text}}, measured.segments, details)

    def untracked(self, text: str, shorten: Shorten) -> SmsContent:
        """The content before its links are shortened: its size as it will leave, and its text as it was given.

        `shorten`: of links for the count alone.
        """
        _, units, details = self.content(text, shorten)
        asked = {"transliterate": self.transliterate}
        return SmsContent({"text": {"body": text}}, units, {**details, UNTRACKED: asked})


def with_links(text: str, details: Mapping[str, Any], shorten: Shorten) -> SmsContent:
    """What `untracked` is, with its links."""
    form = SmsForm(
        route=SmsRoute(details["route"]),
        transactional=TRANSACTIONAL in details,
        shorten_links=True,
        dedicated_sender=details.get(FROM),
        **details[UNTRACKED],
    )
    return form.content(text, shorten)
