"""Answers people who opt out with the organization's own words, once for each contact and day (C28.3).

The answer is a free-form message like any other: it has a price, and waits for its number's turn. It is given after the
commit of the refusal; one that cannot be sent is left out.
"""

import asyncio
from hashlib import sha256
from typing import Protocol
from zoneinfo import ZoneInfo

import structlog

from recado.actors.acceptance_rules import CHATAPP, MessageDraft
from recado.actors.inbound import OptedOut
from recado.domain.clock import Clock
from recado.domain.errors import Problem, Unavailable
from recado.domain.message import Priority
from recado.storage.organizations import OrganizationDirectory

log = structlog.get_logger()

MOST_AT_ONCE = 1_000


class Accepts(Protocol):
    """Takes messages to send (`acceptance.py`)."""

    async def accept(self, draft: MessageDraft) -> object:
        """Store the message, once for its key."""


class OptOutReplies:
    """A service (`start`, `stop`)."""

    def __init__(self, acceptance: Accepts, *, organizations: OrganizationDirectory, clock: Clock) -> None:
        self._acceptance = acceptance
        self._organizations = organizations
        self._clock = clock
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Answers as soon as it is asked."""

    async def stop(self) -> None:
        """Finishes the answers under way."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    def send(self, opted_out: OptedOut) -> None:
        """Answer beside the caller. Beyond a thousand at once nobody is answered."""
        if len(self._tasks) >= MOST_AT_ONCE:
            log.warning("opt_out_reply_left_out", number_id=opted_out.number_id, code="overload")
            return
        task = asyncio.get_running_loop().create_task(self._send(opted_out))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, opted_out: OptedOut) -> None:
        try:
            await self._answer(opted_out)
        except Problem as refused:
            log.info("opt_out_reply_left_out", number_id=opted_out.number_id, code=refused.code)
        except Unavailable:
            log.warning("opt_out_reply_left_out", number_id=opted_out.number_id, code="unavailable")
        except Exception as error:  # noqa: BLE001 - nobody waits for it; what it says may be private
            log.error("opt_out_reply_left_out", number_id=opted_out.number_id, code=type(error).__name__)

    async def _answer(self, opted_out: OptedOut) -> None:
        organization = await self._organizations.get(opted_out.organization_id)
        if organization is None or organization.opt_out_reply is None or organization.suspended:
            return
        day = self._clock.now().astimezone(ZoneInfo(organization.time_zone)).date()
        # One key for a contact's day: whatever comes twice, at once or from another process, is one message.
        key = sha256(f"opt-out reply\0{opted_out.contact_id}\0{day.isoformat()}".encode()).digest()
        await self._acceptance.accept(
            MessageDraft(
                organization_id=opted_out.organization_id,
                env=opted_out.env,
                channel=CHATAPP,
                number_id=opted_out.number_id,
                to=opted_out.phone,
                contact_id=opted_out.contact_id,
                type="text",
                priority=Priority.NORMAL,
                payload={"text": {"body": organization.opt_out_reply}},
                key_hash=key,
                fingerprint=key,
            )
        )
