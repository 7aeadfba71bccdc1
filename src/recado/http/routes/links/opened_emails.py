"""What e-mails lead to, without a credential: the image that tells of opens (C27.2), and the way out (C27.3).

A token that is none of ours costs whoever came with it a token of the class `public` (C6.1).
"""

from collections.abc import Callable, Collection
from typing import Final

from recado.domain.email.public_tokens import Unsubscription
from recado.http.api.call import Call
from recado.http.api.route import Access, Handler, Route, Shortcut
from recado.http.callers.rate_limits import PUBLIC, RateLimiter
from recado.http.routes.links.opened_links import TEXT, Visitors, nowhere
from recado.http.routes.links.unsubscribe_pages import asking, done
from recado.http.wire.reply import Reply
from recado.services.email.opens import EmailOpens
from recado.services.email.unsubscriptions import Unsubscriptions

GIF: Final = (
    b"GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff!\xf9\x04\x01\x00\x00\x00\x00"
    b",\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"
)
"""One transparent pixel."""
SUFFIX: Final = ".gif"
REFUSALS_OF_ADDRESS: Final = (200.0, 2_000)
"""A second, and at once: so many are recorded of an address. Mailbox providers post those of many people from a few."""
LONGEST_BODY: Final = 8 * 1024  # bytes: what it says is `List-Unsubscribe=One-Click`, or nothing


def image(opens: EmailOpens, visitors: Visitors) -> Handler:
    async def loaded(call: Call) -> Reply:
        token = _token_of(call.path["image"])
        if token is None or not opens.open(token, counted=visitors.is_counted(call)):
            return nowhere()
        return Reply(200, GIF, headers={"Content-Type": "image/gif"})

    return loaded


def straight_to_image(opens: EmailOpens, visitors: Visitors) -> Shortcut:
    def lead(name: str, agent: str | None) -> bytes | None:
        token = _token_of(name)
        found = token is not None and opens.open(token, counted=visitors.is_person(agent))
        return GIF if found else None

    return lead


class UnsubscriptionPages:
    """The handlers."""

    def __init__(self, unsubscriptions: Unsubscriptions, monotonic: Callable[[], float]) -> None:
        self._unsubscriptions = unsubscriptions
        self._monotonic = monotonic
        self._limiter = RateLimiter({"unsubscriptions": REFUSALS_OF_ADDRESS}, {})

    async def ask(self, call: Call) -> Reply:
        return nowhere() if await self._who(call) is None else asking(call.headers.get("Accept-Language"))

    async def record(self, call: Call) -> Reply:
        """The body says nothing that counts: whoever posts has pressed a button, here or in a mail program."""
        who = await self._who(call)
        if who is None:
            return nowhere()
        now = self._monotonic()
        bucket = self._limiter.of_address(call.client_ip, "unsubscriptions", now)
        if not bucket.take(now):
            raise bucket.refusal()
        await self._unsubscriptions.record(who, ip=call.client_ip, user_agent=call.user_agent, now=call.now)
        return done(call.headers.get("Accept-Language"))

    async def _who(self, call: Call) -> Unsubscription | None:
        return await self._unsubscriptions.find(call.path["token"])


def _token_of(name: str) -> str | None:
    return name.removesuffix(SUFFIX) if name.endswith(SUFFIX) else None


def opened_email_routes(
    *,
    opens: EmailOpens,
    unsubscriptions: Unsubscriptions,
    scanners: Collection[str],
    monotonic: Callable[[], float],
) -> tuple[Route, ...]:
    """`scanners`: parts of the names of programs that only look."""
    visitors = Visitors(scanners)
    pages = UnsubscriptionPages(unsubscriptions, monotonic)
    html = "text/html; charset=utf-8"
    return (
        Route(
            method="GET", path="/o/{image}", handler=image(opens, visitors), operation_id="openEmail",
            summary="Give the image of an e-mail, and record that it was opened",
            description="The last part of the path is a token and `.gif`.", tag="Links", access=Access.PUBLIC,
            rate_class=PUBLIC, responses={200: None}, response_types={200: "image/gif", 404: TEXT},
            shortcut=straight_to_image(opens, visitors),
        ),
        Route(
            method="GET", path="/u/{token}", handler=pages.ask, operation_id="askToUnsubscribe",
            summary="Ask a person whether they want no more messages",
            description="A page with a button, for who follows the address of `List-Unsubscribe`. Nothing is recorded.",
            tag="Links", access=Access.PUBLIC, rate_class=PUBLIC, errors=("SERVICE_UNAVAILABLE",),
            responses={200: None}, response_types={200: html, 404: TEXT},
        ),
        Route(
            method="POST", path="/u/{token}", handler=pages.record, operation_id="unsubscribe",
            summary="Record that a person wants no more messages",
            description=(
                "For people who press the button of that page, and for mail programs (RFC 8058). The body counts for "
                "nothing. A repeat changes nothing."
            ),
            tag="Links", access=Access.PUBLIC, rate_class=PUBLIC, raw_body=True, body_limit=LONGEST_BODY,
            responses={200: None}, response_types={200: html, 404: TEXT},
        ),
    )  # fmt: skip
