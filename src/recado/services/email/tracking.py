"""Adds to an e-mail what tells of clicks and opens, and the way to unsubscribe (C10.2.9, C10.2.7).

Whoever sends calls it with the e-mail as it was rendered, and stores the links in the commit of the message.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple, Protocol

from recado.domain.contacts.contact import email_hash
from recado.domain.email.content import EmailContent
from recado.domain.email.html_links import HtmlPlaces, places_of, rewritten
from recado.domain.email.public_tokens import EmailKey, PublicTokens, Unsubscription
from recado.domain.links.tracked import MessageLinks, TrackedLink

LARGE: Final = (
    16 * 1024
)  # characters of HTML; what is smaller is looked through at once, unless it is all markup: some five milliseconds
MOST_AT_ONCE: Final = 4_000  # times that `<` and `&` stand in such HTML

HEADER: Final = "List-Unsubscribe"
POST_HEADER: Final = "List-Unsubscribe-Post"
ONE_CLICK: Final = "List-Unsubscribe=One-Click"


class TrackedEmail(NamedTuple):
    """The e-mail as it leaves, and the links to be stored with its message (`NewMessage.links`)."""

    content: EmailContent
    links: tuple[TrackedLink, ...]


class PlacesElsewhere(Protocol):
    """Looks through large HTML where nobody waits for it. Raises `Unavailable`."""

    def __call__(self, html: str, *, caller: str) -> Awaitable[HtmlPlaces]: ...


class EmailTracking:
    """What is added to e-mails. `link_base`: the address of the public routes, without a slash at its end."""

    def __init__(
        self,
        *,
        link_base: str,
        tokens: PublicTokens,
        links: Callable[[Sequence[TrackedLink]], MessageLinks],
        elsewhere: PlacesElsewhere,
    ) -> None:
        """`links`: makes those of one message, of which some may be stored already."""
        self._link_base = link_base
        self._tokens = tokens
        self._links = links
        self._elsewhere = elsewhere

    async def prepare(
        self,
        content: EmailContent,
        message: EmailKey,
        *,
        to: str,
        contact_id: str | None,
        transactional: bool,
        tracking: bool | None = None,
        known: Sequence[TrackedLink] = (),
    ) -> TrackedEmail:
        """The e-mail of this message to an address. `tracking` None: unless it is transactional.

        `known`: its links that are stored already; asked again without them it draws other codes. Raises `Unavailable`
        where large HTML cannot be read.
        """
        if not transactional:
            who = Unsubscription(message, contact_id, email_hash(message.organization_id, to))
            address = f"{self._link_base}/u/{self._tokens.of_unsubscription(who)}"
            content = replace(content, headers=(*content.headers, (HEADER, f"<{address}>"), (POST_HEADER, ONE_CLICK)))
        if content.html is None or not (not transactional if tracking is None else tracking):
            return TrackedEmail(content, ())
        if _is_large(content.html):
            places = await self._elsewhere(content.html, caller=message.organization_id)
        else:
            places = places_of(content.html)
        links = self._links(known)
        shorten = self._shorten(links)
        shorts = {url: short for _, _, url in places.links if (short := shorten(url)) != url}
        html = rewritten(content.html, places, lambda url: shorts.get(url, url), self._image(message))
        source = content.text_source and replace(content.text_source, shorts=shorts)
        return TrackedEmail(replace(content, html=html, text_source=source), links.rows)

    def _shorten(self, links: MessageLinks) -> Callable[[str], str]:
        own = f"{self._link_base}/u/"
        return lambda url: url if url.startswith(own) else links.shorten(url)

    def _image(self, message: EmailKey) -> str:
        address = f"{self._link_base}/o/{self._tokens.of_open(message)}.gif"
        return f'<img src="{address}" width="1" height="1" alt="" style="border:0">'


def _is_large(html: str) -> bool:
    return len(html) > LARGE or html.count("<") + html.count("&") > MOST_AT_ONCE
