"""Makes of an e-mail what travels: of a short one at once, of a long one in threads, where owners take turns (C31)."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import Final

from recado.channels.core.provider import OutboundMessage, Refused
from recado.channels.http.outbound_guard import Turn
from recado.domain.channels.email import EmailReason
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.domain.email.content import EmailContent
from recado.domain.email.dkim import DkimKey
from recado.domain.email.mime import EmailOnWire, Origin, UnsendableEmail, compose

CONTENT: Final = "content"
"""Where the details of a message hold its content."""
TIMEOUT: Final = 15.0  # seconds, for all of a send (C29.2)
PLACE_WITHIN: Final = 5.0  # seconds of them that it waits for its place
SHORT: Final = 16 * 1024  # characters of text and HTML, which take about a millisecond
MOST_TAGS: Final = 500  # in HTML of which a text is made: that takes as long for a tag as for a hundred characters
THREADS: Final = 2


class Composer:
    """`turn`: shares the threads among organizations, and raises `Unavailable`; it bounds how many wait.

    `key`: by which e-mails are signed; None: whoever takes them over signs them, or nobody.
    """

    def __init__(self, *, clock: Clock, turn: Turn, key: DkimKey | None = None) -> None:
        self._clock = clock
        self._turn = turn
        self._key = key
        self._threads: ThreadPoolExecutor | None = None
        self._ending: set[asyncio.Task[None]] = set()  # turns of those who went away

    def start(self) -> None:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="email")

    def stop(self) -> None:
        threads, self._threads = self._threads, None
        if threads is not None:
            threads.shutdown(wait=False, cancel_futures=True)

    async def compose(self, message: OutboundMessage) -> EmailOnWire:
        """Raises `UnsendableEmail`, and what `turn` does."""
        content = content_of(message)
        if content is None:
            raise UnsendableEmail("content", "there is none")
        origin = Origin(message.id, message.organization_id, self._clock.now())
        if _is_short(content) or self._threads is None:
            return compose(content, message.to, origin, self._key)
        async with AsyncExitStack() as turn:
            await turn.enter_async_context(self._turn(message.organization_id))
            if self._threads is None:
                raise Unavailable("The service stops.")
            work = asyncio.get_running_loop().run_in_executor(
                self._threads, compose, content, message.to, origin, self._key
            )
            try:
                return await asyncio.shield(work)
            except asyncio.CancelledError:
                self._leave(work, turn.pop_all())
                raise

    def _leave(self, work: "asyncio.Future[EmailOnWire]", turn: AsyncExitStack) -> None:
        """Its caller waits no longer. The thread goes on, and until it ends its turn is not over."""

        async def end() -> None:
            await asyncio.wait({work})
            if not work.cancelled():
                work.exception()  # nobody asks for it any more
            await turn.aclose()

        ending = asyncio.get_running_loop().create_task(end())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)


def _is_short(content: EmailContent) -> bool:
    """Whether it is made in about a millisecond, or few."""
    html, text = content.html or "", content.text
    if len(html) + len(text or "") > SHORT:
        return False
    return text is not None or html.count("<") <= MOST_TAGS


def content_of(message: OutboundMessage) -> EmailContent | None:
    """What is to be sent. Every message of this channel has it."""
    content = (message.details or {}).get(CONTENT)
    return content if isinstance(content, EmailContent) else None


def unsendable_outcome(unsendable: UnsendableEmail) -> Refused:
    """What an e-mail that cannot be made comes to."""
    code = EmailReason.INVALID_ADDRESS if unsendable.field == "to" else EmailReason.CONTENT_REJECTED
    return Refused(code, f"{unsendable.field}: {unsendable}")


def quotable_of(message: OutboundMessage) -> list[str]:
    """What a provider could quote back to us in the text of a refusal."""
    content = content_of(message)
    if content is None:
        return [message.to]
    return [message.to, content.subject, content.from_address, content.from_name or ""]
