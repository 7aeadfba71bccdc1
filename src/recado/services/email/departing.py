"""Makes queued e-mails when they leave: no row holds a body (C10.2.5), but a template and values of its variables.

What is asked of rows is asked for many messages at once; a long template is rendered in the line of long work, and few
of those are in memory at a time.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, NamedTuple, Protocol

import orjson

from recado.domain.channels.email import EMAIL, TRANSACTIONAL, EmailReason
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem, Unavailable
from recado.domain.email.content import EmailContent
from recado.domain.email.mailbox import mailbox_of
from recado.domain.email.public_tokens import EmailKey
from recado.domain.links.tracked import TrackedLink
from recado.domain.messages.message import Cause, FailureCode
from recado.engine.turns import turns
from recado.services.email.sendable import SendableMailboxes, SendableTemplates
from recado.services.email.tracking import EmailTracking
from recado.storage.core.connections.batch import Batcher
from recado.storage.core.connections.postgres import Database
from recado.storage.core.shares.fair_places import FairPlaces
from recado.storage.email import suppressions
from recado.storage.links import tracked_links
from recado.storage.links.tracked_links import DrawnLink

VARIABLES: Final = "variables"
"""Where the payload of a queued e-mail holds the values of its template."""
SUBJECT: Final = "subject"
"""Where it holds a subject that takes the place of its template's; among the details, the subject as it is shown."""
EXAMPLES: Final = "examples"
"""The member of its details by which examples stand for values that it lacks; without it, it needs all of them."""
TRACKING: Final = "tracking"
"""The member of its details that says whether it is tracked; without it, unless it is transactional."""
LONG_AT_ONCE, LONG_EACH, LONG_WAITING = 32, 16, 2_000  # e-mails of long templates in memory: in all, of an organization
LINGER: Final = 0.005  # seconds that a look gathers while traffic is dense
MOST_ROWS: Final = 100  # of a statement, which may hold 200 links of each

_SUPPRESSED: Final = Cause(EmailReason.SUPPRESSED, "the address is suppressed")
_NO_SENDER: Final = Cause(EmailReason.NO_VERIFIED_SENDER, "its sender is not verified any more")
_NO_TEMPLATE: Final = Cause(FailureCode.TEMPLATE_UNAVAILABLE, "the template is archived")
_INCOMPLETE: Final = Cause(EmailReason.CONTENT_REJECTED, "the template uses variables that have no value")
_TOO_LONG: Final = Cause(EmailReason.CONTENT_REJECTED, "with its variables the e-mail is too long")


class QueuedEmail(Protocol):
    """What of a queued message its e-mail is made of. `payload`: a JSON text."""

    @property
    def organization_id(self) -> str: ...
    @property
    def env(self) -> str: ...
    @property
    def id(self) -> str: ...
    @property
    def recipient(self) -> str: ...
    @property
    def contact_id(self) -> str | None: ...
    @property
    def template_id(self) -> str | None: ...
    @property
    def payload(self) -> str | None: ...
    @property
    def details(self) -> Mapping[str, Any] | None: ...


class _Known(NamedTuple):
    """What rows tell. `links`: those of an earlier call for it."""

    suppressed: bool
    links: Sequence[TrackedLink]


class _Drawn(NamedTuple):
    message: QueuedEmail
    links: Sequence[TrackedLink]


class DepartingEmails:
    """A service (`start`, `stop`)."""

    def __init__(
        self,
        db: Database,
        *,
        clock: Clock,
        templates: SendableTemplates,
        mailboxes: SendableMailboxes,
        tracking: EmailTracking,
        simulator_domain: str,
    ) -> None:
        self._db = db
        self._templates = templates
        self._mailboxes = mailboxes
        self._tracking = tracking
        self._simulator_domain = simulator_domain
        self._long = FairPlaces(LONG_AT_ONCE, each=LONG_EACH, most_waiting=LONG_WAITING)
        self._looks: Batcher[QueuedEmail, _Known] = Batcher(
            "look_at_emails",
            self._look,
            clock=clock,
            max_rows=MOST_ROWS,
            linger=LINGER,
            owner=lambda message: message.organization_id,
        )
        self._drawn: Batcher[_Drawn, bool] = Batcher(
            "links_of_emails",
            self._store,
            clock=clock,
            max_rows=MOST_ROWS,
            linger=LINGER,
            owner=lambda drawn: drawn.message.organization_id,
        )

    async def start(self) -> None:
        await self._looks.start()
        await self._drawn.start()

    async def stop(self) -> None:
        await self._looks.stop()
        await self._drawn.stop()

    @asynccontextmanager
    async def content_of(self, message: QueuedEmail) -> AsyncIterator[EmailContent | Cause]:
        """What leaves, while the block has it in hand; a `Cause` where it cannot be made. Raises `Unavailable`.

        Its links are stored before.
        """
        async with AsyncExitStack() as held:
            yield await self._made(message, held)

    async def _made(self, message: QueuedEmail, held: AsyncExitStack) -> EmailContent | Cause:
        where = (message.organization_id, message.env)
        details = message.details or {}
        told = mailbox_of(details.get("from", ""))
        mailbox = None if told is None else await self._mailboxes.get((*where, told.address))
        if told is None or mailbox is None:
            return _NO_SENDER
        template = await self._templates.get((*where, message.template_id or ""))
        if template is None:
            return _NO_TEMPLATE
        payload = orjson.loads(message.payload or "{}")
        values, subject = payload.get(VARIABLES, {}), payload.get(SUBJECT)
        parts = template.parts if subject is None else template.parts.with_subject(subject)
        if EXAMPLES not in details and not parts.used <= values.keys():
            return _INCOMPLETE
        known = await self._looks.put(message)
        if known.suppressed:
            return _SUPPRESSED
        if template.long:
            await held.enter_async_context(self._long.place(message.organization_id))
            await turns.next()
        try:
            rendered = parts.render(values)
        except Problem:
            return _TOO_LONG
        transactional = bool(details.get(TRANSACTIONAL))
        content = EmailContent(
            from_address=told.address,
            from_name=told.name,
            subject=rendered.subject,
            html=rendered.html,
            text=rendered.text,
            transactional=transactional,
            text_source=template.text_source(values),
        )
        tracked = await self._tracking.prepare(
            content,
            EmailKey(*where, message.id),
            to=message.recipient,
            contact_id=message.contact_id,
            transactional=transactional,
            tracking=details.get(TRACKING),
            known=known.links,
        )
        if tracked.links and not await self._drawn.put(_Drawn(message, tracked.links)):
            raise Unavailable("A code of its links is another message's.")
        return tracked.content

    async def _look(self, asked: Sequence[QueuedEmail]) -> Sequence[_Known]:
        addresses = [(each.organization_id, each.env, each.recipient) for each in asked]
        suppressed = await suppressions.suppressed_of(self._db.hot, addresses, simulator_domain=self._simulator_domain)
        links = await tracked_links.of_messages(self._db.hot, [each.id for each in asked])
        return [_Known(place in suppressed, links.get(each.id, ())) for place, each in enumerate(asked)]

    async def _store(self, drawn: Sequence[_Drawn]) -> Sequence[bool]:
        """False for those that have a code of another message, or were stored by a run whose answer was lost."""
        rows = [
            DrawnLink(code, each.message.organization_id, each.message.env, EMAIL, each.message.id, url)
            for each in drawn
            for code, url in each.links
        ]
        stored = await tracked_links.insert_drawn(self._db.hot, rows)
        return [all(code in stored for code, _ in each.links) for each in drawn]
