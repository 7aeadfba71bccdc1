"""Answers people who opt out with the organization's own words, once for each contact and day (C28.3).

That an answer is owed is a row of the commit of the refusal: it is given after that, whatever crashes in between. It is
a free-form message like any other: it has a price, and waits for its number's turn. One that is refused is left out.
"""

import asyncio
from hashlib import sha256
from typing import Protocol
from zoneinfo import ZoneInfo

import structlog

from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem, Unavailable
from recado.domain.messages.message import Priority
from recado.engine.periodic import Periodic
from recado.services.messages.draft import MessageDraft
from recado.storage.access.organizations import OrganizationDirectory
from recado.storage.contacts import opt_out_replies
from recado.storage.contacts.opt_out_replies import BEFORE_ALL, Owed
from recado.storage.core.connections.postgres import Database
from recado.storage.messages.chat_windows import WINDOW

log = structlog.get_logger()

SECONDS = 10.0
AT_ONCE = 200


class Accepts(Protocol):
    """Takes messages to send (`acceptance.py`)."""

    async def accept(self, draft: MessageDraft) -> object:
        """Store the message, once for its key."""


class OptOutReplies:
    """A service (`start`, `stop`); `hint` says that answers are owed."""

    def __init__(
        self, db: Database, acceptance: Accepts, *, organizations: OrganizationDirectory, clock: Clock
    ) -> None:
        self._db = db
        self._acceptance = acceptance
        self._organizations = organizations
        self._clock = clock
        self._round = asyncio.Lock()
        self._worker = Periodic("opt-out replies", SECONDS, self.work, clock, at_once=True)

    async def start(self) -> None:
        await self._worker.start()

    async def stop(self) -> None:
        await self._worker.stop()

    def hint(self) -> None:
        """Somebody opted out, and it is committed."""
        self._worker.hint()

    async def work(self) -> None:
        """Give every answer that is owed; what cannot be given now is owed still."""
        async with self._round:
            after = BEFORE_ALL
            while rows := await opt_out_replies.owed(self._db, after, AT_ONCE):
                outcomes = await asyncio.gather(*map(self._answer, rows), return_exceptions=True)
                done = [each for each, outcome in zip(rows, outcomes, strict=True) if self._is_done(each, outcome)]
                await opt_out_replies.settle(self._db, done)
                after = rows[-1].key

    def _is_done(self, owed: Owed, outcome: BaseException | None) -> bool:
        """Whether the answer was given or never will be: beyond its window nothing free-form leaves."""
        if outcome is None:
            return True
        if isinstance(outcome, Problem) and not isinstance(outcome, Unavailable):
            log.info("opt_out_reply_left_out", sender_id=owed.sender_id, code=outcome.code)
            return True
        given_up = self._clock.now() - owed.asked_at > WINDOW
        log.warning("opt_out_reply_not_given", sender_id=owed.sender_id, code=type(outcome).__name__, given_up=given_up)
        return given_up

    async def _answer(self, owed: Owed) -> None:
        organization = await self._organizations.get(owed.organization_id)
        if organization is None or organization.opt_out_reply is None or organization.suspended or owed.phone is None:
            return
        day = owed.asked_at.astimezone(ZoneInfo(organization.time_zone)).date()
        # One key for a contact's day: whatever comes twice, after a crash or from another process, is one message.
        key = sha256(f"opt-out reply\0{owed.contact_id}\0{day.isoformat()}".encode()).digest()
        await self._acceptance.accept(
            MessageDraft(
                organization_id=owed.organization_id,
                env=owed.env,
                channel=owed.channel,
                sender_id=owed.sender_id,
                to=owed.phone,
                contact_id=owed.contact_id,
                type="text",
                priority=Priority.NORMAL,
                payload={"text": {"body": organization.opt_out_reply}},
                key_hash=key,
                fingerprint=key,
            )
        )
