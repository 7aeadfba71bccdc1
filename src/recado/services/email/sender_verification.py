"""Looks whether senders of e-mail are their organization's: when a caller asks, and once a day (C10.4)."""

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

from recado.channels.core.adapters import SenderVerifier, VerifierFor
from recado.channels.core.errors import ProviderError
from recado.domain.channels.email import EMAIL
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem, Unavailable, no_provider, not_found
from recado.domain.email.sender import (
    ASKED_AGAIN_AFTER,
    CHECKED_EVERY,
    EMAIL_SENDER_MACHINE,
    MOST_MISSES,
    EmailSenderEvent,
    EmailSenderStatus,
    SenderLook,
    domain_of_address,
)
from recado.storage.core.connections.postgres import Database
from recado.storage.email import senders
from recado.storage.email.senders import SENDERS, EmailSender, stored_records

ASK_AGAIN = timedelta(hours=1)  # where nobody could tell
BLOCK = 50
AT_ONCE = 10


class SenderVerification:
    """Asks an environment's adapter, and writes what it found."""

    def __init__(
        self, database: Database, *, clock: Clock, verifier_for: VerifierFor, changed: Callable[[], None]
    ) -> None:
        """`changed`: is told that senders changed, after their commit: of others too, which follow as default."""
        self.changed = changed
        self._database = database
        self._clock = clock
        self._verifier_for = verifier_for

    def required(self, env: str) -> SenderVerifier:
        """Who verifies in an environment; `Problem` DEPENDENCY_FAILED where nobody does (C33)."""
        verifier = self._verifier_for(env)
        if verifier is None:
            raise no_provider(EMAIL)
        return verifier

    async def verify(self, sender: EmailSender, now: datetime) -> EmailSender:
        """Look now, for a caller; answers the sender as it is then.

        Raises `Problem`: RATE_LIMITED within ten seconds of the last look, 404, DEPENDENCY_FAILED; `ProviderError`.
        """
        verifier = self.required(sender.env)
        if not await senders.claim_check(self._database, sender, now, apart=ASKED_AGAIN_AFTER):
            raise await self._too_soon(sender, now)
        stored = await self._look(verifier, sender, daily=False)
        if stored is None:
            raise not_found()
        return stored

    async def check_due(self) -> None:
        """The daily look at every sender that is due, a few at once."""
        while due := await senders.claim_due(self._database, self._clock.now(), lease=ASK_AGAIN, limit=BLOCK):
            turns = asyncio.Semaphore(AT_ONCE)
            await asyncio.gather(*(self._check(turns, sender) for sender in due))
            if len(due) < BLOCK:
                return

    async def _check(self, turns: asyncio.Semaphore, sender: EmailSender) -> None:
        """Where nobody can tell, nothing is known and nothing written: it is asked again later."""
        verifier = self._verifier_for(sender.env)
        if verifier is None:
            return
        async with turns:
            try:
                await self._look(verifier, sender, daily=True)
            except (ProviderError, Unavailable):
                return

    async def _look(self, verifier: SenderVerifier, sender: EmailSender, *, daily: bool) -> EmailSender | None:
        """None: the sender was deleted meanwhile."""
        domain = mail_domain(sender)
        found = await verifier.sender_status(domain, verifier.proofs(domain, sender.token), sender.organization_id)
        now = self._clock.now()
        async with self._database.transaction() as connection:
            before = await senders.get_held(connection, *SENDERS.key_of(sender))
            if before is None:
                return None
            after = looked_at(before, found, now, daily=daily, again=not verifier.at_once)
            saved = await senders.save(connection, before, after, now)
        self.changed()
        return saved

    async def _too_soon(self, sender: EmailSender, now: datetime) -> Problem:
        """Why it may not be looked at now."""
        there = await SENDERS.get(self._database, *SENDERS.key_of(sender))
        if there is None or there.checked_at is None:
            return not_found()
        since = max(now - there.checked_at, timedelta())  # who was first may have come later
        left = max(1, math.ceil((ASKED_AGAIN_AFTER - since).total_seconds()))
        return Problem(
            "RATE_LIMITED",
            f"A sender is looked at once in {ASKED_AGAIN_AFTER.seconds} seconds at most.",
            headers={"Retry-After": str(left)},
        )


def mail_domain(sender: EmailSender) -> str:
    """The domain whose owner has to prove it."""
    domain = sender.domain or domain_of_address(sender.address or "")
    if domain is None:
        raise ValueError("a sender without a domain was stored")
    return domain


def looked_at(sender: EmailSender, found: SenderLook, now: datetime, *, daily: bool, again: bool) -> EmailSender:
    """The sender after a look. `again`: a verified one is looked at every day."""
    misses = 0
    event = EmailSenderEvent.FOUND
    if not found.proven:
        misses = sender.misses + 1 if daily else sender.misses
        event = EmailSenderEvent.LOST if daily and misses >= MOST_MISSES else EmailSenderEvent.MISSING
    status = EMAIL_SENDER_MACHINE.move(sender.status, event)
    verified = status is EmailSenderStatus.VERIFIED
    next_check_at = now + CHECKED_EVERY
    if not daily and event is EmailSenderEvent.MISSING and sender.next_check_at is not None:
        next_check_at = sender.next_check_at  # who looks again and again puts off no day's look
    return replace(
        sender,
        status=status,
        dns_records=stored_records(found.records),
        misses=misses if verified else 0,
        verified_at=(sender.verified_at or now) if verified else None,
        next_check_at=next_check_at if verified and again else None,
    )
