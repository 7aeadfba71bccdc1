"""Links that people open, without a credential: those in messages (C27.1), and those to the chat of a number (C27.4).

A link that leads nowhere costs whoever opened it a token of the class `public` (C6.1).
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote

from recado.domain.links.origin import labels_of
from recado.http.api.call import Call
from recado.http.api.route import Access, Handler, Route, Shortcut
from recado.http.callers.rate_limits import PUBLIC, RateLimiter
from recado.http.routes.links.origin_link_models import OpenQuery
from recado.http.wire.reply import Reply
from recado.services.links.origin_clicks import OriginClicks
from recado.services.links.tracked_clicks import TrackedClicks
from recado.storage.links.tracked_links import FoundLink

TEXT: Final = "text/plain; charset=utf-8"
CODES_OF_ADDRESS: Final = (5.0, 50)
"""A second, and at once: so many links to chats give one address a code; the others it opens without one (C27.4)."""
LONGEST_AGENT: Final = 512  # characters of the name of a program that count
_PLAIN: Final = re.compile(r"[!-~]*").fullmatch
_ALL_OF_A_URL: Final = "!#$%&'()*+,/:;=?@[]~"
_PUBLIC: Final[dict[str, Any]] = {
    "method": "GET", "access": Access.PUBLIC, "tag": "Links", "rate_class": PUBLIC, "responses": {302: None},
    "response_types": {404: TEXT},
}  # fmt: skip


class Visitors:
    """Tells people from programs that look at links. `scanners`: parts of the names of those, in lower case."""

    def __init__(self, scanners: Collection[str]) -> None:
        self._scanners = tuple(scanners)
        self._looks = lru_cache(maxsize=1_024)(self._is_scanner)

    def is_counted(self, call: Call) -> bool:
        """Whether a person follows the link, as far as one can tell."""
        return call.method != "HEAD" and self.is_person(call.user_agent)

    def is_person(self, agent: str | None) -> bool:
        """Whether this is no program that looks at links."""
        return not self._looks((agent or "")[:LONGEST_AGENT])

    def _is_scanner(self, agent: str) -> bool:
        agent = agent.lower()
        return any(scanner in agent for scanner in self._scanners)


def to_address(clicks: TrackedClicks, visitors: Visitors) -> Handler:
    async def opened(call: Call) -> Reply:
        return led_to(await clicks.open(call.path["code"], counted=visitors.is_counted(call)))

    return opened


def straight_to_address(clicks: TrackedClicks, visitors: Visitors) -> Shortcut:
    def led(link: FoundLink, agent: str | None) -> str:
        if visitors.is_person(agent):
            clicks.take(link)
        return location_of(link.url)

    async def led_later(asked: asyncio.Future[FoundLink | None], agent: str | None) -> str | None:
        link = await asked
        return None if link is None else led(link, agent)

    def lead(code: str, agent: str | None) -> str | Awaitable[str | None] | None:
        found = clicks.find(code)
        if isinstance(found, FoundLink):
            return led(found, agent)
        return None if found is None else led_later(found, agent)

    return lead


def to_chat(clicks: OriginClicks, visitors: Visitors, monotonic: Callable[[], float]) -> Handler:
    codes = RateLimiter({"codes": CODES_OF_ADDRESS}, {})

    async def opened(call: Call) -> Reply:
        labels = labels_of(call.query.model_dump(by_alias=True, exclude_none=True))
        counted = visitors.is_counted(call)
        if counted:
            now = monotonic()
            counted = codes.of_address(call.client_ip, "codes", now).take(now)
        return led_to(await clicks.open(call.path["slug"], labels, counted=counted))

    return opened


def led_to(url: str | None) -> Reply:
    """302 to the address, exactly as it is but for what no header can hold; 404 without one."""
    return nowhere() if url is None else Reply(302, headers={"Location": location_of(url)})


def nowhere() -> Reply:
    """Of a link that leads nowhere."""
    return Reply(404, b"This link leads nowhere.\n", headers={"Content-Type": TEXT})


def location_of(url: str) -> str:
    """The address as a header can hold it."""
    return url if _PLAIN(url) else quote(url, safe=_ALL_OF_A_URL)


def opened_link_routes(
    *, tracked: TrackedClicks, origin: OriginClicks, scanners: Collection[str], monotonic: Callable[[], float]
) -> tuple[Route, ...]:
    """What people open. `scanners`: parts of the names of programs that only look."""
    visitors = Visitors(scanners)
    return (
        Route(
            **_PUBLIC, path="/l/{code}", handler=to_address(tracked, visitors), operation_id="openLink", at_fronts=True,
            summary="Lead a person to where a link of a message leads", description="For browsers: it answers 302.",
            shortcut=straight_to_address(tracked, visitors),
        ),
        Route(
            **_PUBLIC, path="/c/{slug}", handler=to_chat(origin, visitors, monotonic), operation_id="openChat",
            summary="Lead a person to the chat of a number", description="For browsers: it answers 302.",
            query=OpenQuery,
        ),
    )  # fmt: skip
