"""Sends the SMS of RCS messages that were not delivered in time, when their provider took them back (C17).

What is due is a row of its own, which stays until that is known: whatever crashes in between, the provider is asked
once more, and only then is the message queued for its SMS, in one commit, where it waits in the turn of its batch or
journey. What cannot be taken back is left as it is, and so is what would be withdrawn if it were queued: its contact is
deleted, its batch canceled, its journey archived, or its execution ended (C17.2).
"""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final, Protocol, cast

import orjson
import structlog

from recado.channels.core.adapters import MessageSender
from recado.channels.core.errors import ProviderError
from recado.channels.core.provider import Account
from recado.channels.rcs.revoking import Revokes
from recado.domain.channels.rcs import FALLBACK, POLICY, RCS, by_sms, category_in
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.domain.messages.message import MessageEvent, Priority
from recado.domain.senders.sender import SenderKey, route_sender
from recado.engine.periodic import Periodic
from recado.services.dispatch.hints import Queued
from recado.services.dispatch.sending import Tell
from recado.services.effects.consequences import Consequences
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements.moves import Money
from recado.storage.dispatch import dispatch
from recado.storage.messages import message_deadlines, state_moves
from recado.storage.messages.message_deadlines import DueMessage

log = structlog.get_logger()

EVERY: Final = 1.0  # seconds
AT_ONCE: Final = 16  # calls
BLOCK: Final = 200
OF_ONE: Final = 50  # of an organization in a block
ASK_AGAIN_AFTER: Final = timedelta(seconds=30)
ASK_FOR: Final = timedelta(minutes=10)
"""A provider that does not say whether it took a message back is asked so long; then the message stays its."""


@dataclass(frozen=True, slots=True)
class Revoker:
    """Who takes messages of an environment back, and under which account they left."""

    provider: Revokes
    account: Account


class LaneGateway(Protocol):
    """A gateway that lanes share."""

    @property
    def channel(self) -> str: ...
    @property
    def env(self) -> str: ...
    @property
    def provider(self) -> MessageSender: ...
    @property
    def account(self) -> Account | None: ...


def revokers_among(plans: Iterable[LaneGateway]) -> dict[str, Revoker]:
    """Those of the gateways of RCS, by environment."""
    return {
        plan.env: Revoker(cast("Revokes", plan.provider), plan.account)
        for plan in plans
        if plan.channel == RCS and plan.account is not None
    }


class RcsFallbacks:
    """A service (`start`, `stop`). `revokers`: by environment."""

    def __init__(
        self,
        db: Database,
        *,
        clock: Clock,
        consequences: Consequences,
        tell: Tell,
        revokers: Mapping[str, Revoker],
    ) -> None:
        self._db = db
        self._clock = clock
        self._consequences = consequences
        self._tell = tell
        self._revokers = revokers
        self._places = asyncio.Semaphore(AT_ONCE)
        self._worker = Periodic("RCS fallbacks", EVERY, self.work, clock)

    async def start(self) -> None:
        await self._worker.start()

    async def stop(self) -> None:
        await self._worker.stop()

    async def work(self) -> None:
        """See to all that is due; what fails is due again half a minute later."""
        while due := await message_deadlines.due_fallbacks(self._db, self._clock.now(), BLOCK, OF_ONE):
            await asyncio.gather(*map(self._see_to, due))

    async def _see_to(self, due: DueMessage) -> None:
        async with self._places:
            try:
                revoked = await self._take_back(due) if await self._goes_on(due) else False
                if revoked is None:
                    await self._put_off(due)
                elif revoked:
                    await self._send_sms(due)
                else:
                    await self._leave(due)
            except Unavailable:
                raise
            except Exception as error:  # noqa: BLE001 - the others are not at fault
                log.error("fallback_put_off", message_id=due.message_id, error=type(error).__name__)
                await self._put_off(due)

    async def _goes_on(self, due: DueMessage) -> bool:
        """Whether its SMS would be let go."""
        belonging = await message_deadlines.belonging(self._db.hot, due)
        return belonging is not None and belonging.owner(due.message_id) is not None

    async def _take_back(self, due: DueMessage) -> bool | None:
        """Whether its provider took it back; None: it does not say, and is asked again."""
        revoker = self._revokers.get(due.env)
        if revoker is None:
            return False
        account = replace(revoker.account, organization_id=due.organization_id, owner=due.organization_id)
        try:
            return await revoker.provider.revoke(due.message_id, due.provider_message_id or "", due.recipient, account)
        except ProviderError as error:
            gives_up = self._clock.now() - due.sent_at - _waited(due) - _held(due) > ASK_FOR
            return False if error.kind == "refused" or gives_up else None

    async def _put_off(self, due: DueMessage) -> None:
        await message_deadlines.put_off_one(self._db, due, self._clock.now() + ASK_AGAIN_AFTER)

    async def _send_sms(self, due: DueMessage) -> None:
        """Queue it for its SMS, with what is held of its price, unless it was delivered or withdrawn meanwhile."""
        now = self._clock.now()
        way = by_sms(due.details, revoked=True)
        sender_id = route_sender(RCS, due.env, way.route)
        category = category_in(due.details)
        async with self._db.hot.transaction() as connection:
            held = await message_deadlines.take_one(connection, due)
            if held is None:
                return
            await message_deadlines.hold_belonging(connection, due)
            belonging = await message_deadlines.belonging(connection, due)
            owner = None if belonging is None else belonging.owner(due.message_id)
            moved = []
            if owner is not None:
                moved = await state_moves.move(connection, RCS, [_key(due)], MessageEvent.REVOKED, now)
            queued = bool(moved)
            if belonging is not None and owner is not None and queued:
                obeys = POLICY.obeys("text", category, Priority.NORMAL)
                if belonging.test_id is not None:  # no quiet hours hold it (C9.9)
                    obeys = obeys._replace(quiet_hours=False)
                await dispatch.again(
                    connection,
                    (due.organization_id, due.env, RCS, due.message_id),
                    sender_id,
                    details=orjson.dumps(way.details).decode(),
                    units=way.units,
                    coins=held,
                    ttl=POLICY.ttl(category, Priority.NORMAL),
                    obeys=obeys,
                    owner=owner,
                    now=now,
                )
            elif held:
                moved = await state_moves.stay(connection, RCS, [_key(due)])
                moved[0].money = Money(freed=held)
            committed = await self._consequences.write(connection, moved)
        committed()
        if queued:
            self._tell(SenderKey(due.organization_id, due.env, RCS, sender_id), Queued())

    async def _leave(self, due: DueMessage) -> None:
        """It stays as it left; what was held for its SMS is released."""
        log.info("rcs_not_revoked", message_id=due.message_id)
        async with self._db.hot.transaction() as connection:
            held = await message_deadlines.take_one(connection, due)
            if not held:
                return
            moved = await state_moves.stay(connection, RCS, [_key(due)])
            moved[0].money = Money(freed=held)
            committed = await self._consequences.write(connection, moved)
        committed()


def _key(due: DueMessage) -> tuple[str, str, str]:
    return (due.organization_id, due.env, due.message_id)


def _waited(due: DueMessage) -> timedelta:
    return timedelta(seconds=due.details[FALLBACK]["afterSeconds"])


def _held(due: DueMessage) -> timedelta:
    """Since it was due: while its organization was suspended nobody asked. Rather too long than too short."""
    since = due.held_until - due.sent_at - _waited(due)
    return min(timedelta(milliseconds=due.held_ms), max(since, timedelta()))
