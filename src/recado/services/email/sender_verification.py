"""Looks whether senders of e-mail are their organization's: when a caller asks, and once a day (C10.4).

A provider that has to be told of a domain is told when a caller asks; with the last sender the domain is taken back.
"""

import asyncio
import math
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import structlog

from recado.channels.core.adapters import IdentityMaker, SenderVerifier, VerifierFor
from recado.channels.core.errors import NothingDoneError, ProviderError
from recado.domain.channels.email import EMAIL
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem, Unavailable, no_provider, not_found
from recado.domain.email.sender import (
    ASKED_AGAIN_AFTER,
    CHECKED_EVERY,
    EMAIL_SENDER_MACHINE,
    IDENTITIES_A_DAY,
    MOST_MISSES,
    EmailSenderEvent,
    EmailSenderStatus,
    SenderLook,
    parents_of,
)
from recado.storage.core.connections.postgres import Database
from recado.storage.email import identities, senders
from recado.storage.email.identities import IdentityRemoval
from recado.storage.email.senders import SENDERS, EmailSender, stored_records

ASK_AGAIN = timedelta(hours=1)  # where nobody could tell
BLOCK = 50
AT_ONCE = 10

log = structlog.get_logger()


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

        Raises `Problem`: RATE_LIMITED within ten seconds of the last look, or where its organization had as many
        domains told in a day as it may, 404, DEPENDENCY_FAILED; `ProviderError`.
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
        """None: the sender was deleted meanwhile. A daily look tells the provider nothing."""
        domain, began = sender.mail_domain, self._clock.now()
        found = await self._found(verifier, sender)
        if found.untold and not daily and verifier.identities is not None:
            found = await self._told(verifier, verifier.identities, sender, found)
        now = self._clock.now()
        async with self._database.transaction() as connection:
            before = await senders.get_held(connection, *SENDERS.key_of(sender))
            if before is None:
                return None
            maker, names = verifier.identities, (domain, *parents_of(domain))
            if maker is not None and await identities.is_going(connection, maker.place, names, now, since=began):
                raise Unavailable()  # what was found may be gone
            after = looked_at(before, found, now, daily=daily, again=not verifier.at_once)
            saved = await senders.save(connection, before, after, now)
        self.changed()
        return saved

    async def _found(self, verifier: SenderVerifier, sender: EmailSender) -> SenderLook:
        domain, owner = sender.mail_domain, sender.organization_id
        return await verifier.sender_status(
            domain, verifier.proofs(domain, sender.token), owner, address=sender.address
        )

    async def _told(
        self, verifier: SenderVerifier, maker: IdentityMaker, sender: EmailSender, found: SenderLook
    ) -> SenderLook:
        """Tell the provider a domain that it does not know, within what an organization may have told in a day."""
        domain, owner, now = sender.mail_domain, sender.organization_id, self._clock.now()
        async with self._database.transaction() as connection:
            told, first = await identities.told_since(connection, owner, now - CHECKED_EVERY)
            if told >= IDENTITIES_A_DAY and first is not None:
                raise _told_enough(first + CHECKED_EVERY - now)
            note = await identities.note(connection, maker.place, domain, owner, now)
        if note is None:
            raise Unavailable()
        try:
            made = await maker.make(domain, owner)
        except (NothingDoneError, Unavailable):
            await identities.withdraw(self._database, note)
            raise
        if made is not None:
            return SenderLook((*found.records, *made.records), False)
        if note.is_new:
            await identities.withdraw(self._database, note)
        return await self._found(verifier, sender)

    async def remove_forsaken(self) -> None:
        """Take back at the provider what was told for senders that are gone. What fails is tried again after a day."""
        verifier = self._verifier_for("live")
        if verifier is None or verifier.identities is None:
            return
        more = True
        while more:
            maker, now = verifier.identities, self._clock.now()
            due, more = await identities.begin_removals(
                self._database, maker.place, now, again=CHECKED_EVERY, limit=BLOCK
            )
            for removal in due:
                await self._remove(maker, removal)
        await identities.forget(self._database, self._clock.now() - CHECKED_EVERY)

    async def _remove(self, maker: IdentityMaker, removal: IdentityRemoval) -> None:
        try:
            await maker.remove(removal.domain, removal.organization_id)
        except (ProviderError, Unavailable) as error:
            log.warning("email_identity_not_removed", code=error.code)
            if isinstance(error, NothingDoneError | Unavailable):
                await identities.not_removed(self._database, removal)
        else:
            await identities.removed(self._database, removal, self._clock.now())

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


def _told_enough(left: timedelta) -> Problem:
    return Problem(
        "RATE_LIMITED",
        f"The provider is told of {IDENTITIES_A_DAY} domains of an organization within 24 hours at most.",
        headers={"Retry-After": str(max(1, math.ceil(left.total_seconds())))},
    )


def looked_at(sender: EmailSender, found: SenderLook, now: datetime, *, daily: bool, again: bool) -> EmailSender:
    """The sender after a look. `again`: a verified one is looked at every day."""
    if found.proven is None:  # it stays as it is, and a daily look is repeated
        return replace(sender, dns_records=stored_records(found.records))
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
