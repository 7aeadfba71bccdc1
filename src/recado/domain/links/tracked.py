"""Links in messages (C27.1): each address of a message has a code, and a short link stands in its place."""

import re
from collections.abc import Sequence
from datetime import timedelta
from typing import Final, NamedTuple

from recado.domain.links.codes import RandomBytes, link_code
from recado.domain.links.text_links import parted, short_link

LINKS_KEPT: Final = timedelta(days=180)
LONGEST_URL: Final = 2_048  # characters: what is longer stays as it is
MOST_LINKS: Final = 200  # of one message: what follows stays as it is


class TrackedLink(NamedTuple):
    """Where a code leads: the address, exactly as it was in the message."""

    code: str
    url: str


class MessageLinks:
    """The links of one message, which are stored in its commit. An address has one code, however often it stands there.

    `link_base`: the address of public routes, without a slash at its end.
    """

    def __init__(self, link_base: str, random_bytes: RandomBytes, known: Sequence[TrackedLink] = ()) -> None:
        """`known`: those that are stored already, of a message that is made once more."""
        self._link_base = link_base
        self._random_bytes = random_bytes
        self._known = frozenset(code for code, _ in known)
        self._codes: dict[str, str] = {url: code for code, url in known}

    @property
    def rows(self) -> tuple[TrackedLink, ...]:
        """What is to be stored with the message; nothing where no address was given."""
        return tuple(TrackedLink(code, url) for url, code in self._codes.items() if code not in self._known)

    def shorten(self, url: str) -> str:
        """What stands in the message in place of an address."""
        code = self._codes.get(url)
        if code is None:
            if len(url) > LONGEST_URL or len(self._codes) >= MOST_LINKS:
                return url
            code = self._codes[url] = link_code(self._random_bytes)
        return short_link(self._link_base, code)

    def in_text(self, text: str) -> str:
        """The text with short links in place of its addresses."""
        parts = parted(text)
        parts[1::2] = map(self.shorten, parts[1::2])
        return "".join(parts)

    def in_place_of(self, text: str, others: Sequence[TrackedLink]) -> str:
        """A text that has the links of another message, with links of this one instead."""
        if not others:
            return text
        own: dict[str, str] = {}
        for code, url in others:
            drawn = self._codes[url] = link_code(self._random_bytes)
            own[short_link("", code)] = short_link("", drawn)
        # All at once: what is drawn for one may be the code of another.
        return re.sub("|".join(own), lambda found: own[found[0]], text)
