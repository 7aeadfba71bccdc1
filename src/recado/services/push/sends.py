"""Push messages: accepted with their audience fixed and their price held, previewed, canceled (C22.3)."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from recado.domain.audience.segment import Node
from recado.domain.billing.prices import BR
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Problem, field_refused, no_provider
from recado.domain.core.ids import PUSH_MESSAGE, IdSource
from recado.domain.push.dispatch_ids import KEY_BYTES
from recado.domain.push.message import ALL_OPT_IN, PUSH, PushContent, PushStatus
from recado.services.messages.acceptance_rules import LONGEST_SCHEDULE
from recado.services.messages.request_keys import still_bound
from recado.storage.access.organizations import Organization, OrganizationDirectory
from recado.storage.audience import segments
from recado.storage.batches import batches
from recado.storage.billing import wallet
from recado.storage.billing.prices import PriceDirectory
from recado.storage.billing.wallet import Settlement
from recado.storage.core.connections.postgres import Connection, Database
from recado.storage.messages import messages as keyed
from recado.storage.push import audiences, messages
from recado.storage.push.audiences import PushAudience, PushAudiences, Reach
from recado.storage.push.messages import PushKey, PushMessage

_REBINDS: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class PushDraft:
    """What a caller wants sent. `tokens`: device ids and raw tokens; without them `segment`."""

    organization_id: str
    env: str
    origin: str
    content: PushContent
    platforms: tuple[str, ...]
    segment: str | None
    tokens: tuple[str, ...] | None
    scheduled_at: datetime | None = None
    campaign_id: str | None = None
    metadata: dict[str, Any] | None = None
    created_by_id: str | None = None
    key_hash: bytes | None = None
    fingerprint: bytes | None = None


@dataclass(frozen=True, slots=True)
class AcceptedPush:
    """A message that is stored. `replayed`: its key had made it before."""

    message: PushMessage
    reach: Reach
    replayed: bool


@dataclass(frozen=True, slots=True)
class PushPreview:
    """What a send would reach and cost. `charged` False: this installation has no wallets."""

    reach: Reach
    rate_kind: str
    unit_coins: int
    charged: bool
    quiet_deferred_to: datetime | None


class PushSends:
    """`queued`: told after the commit of a message that may leave at once."""

    def __init__(
        self,
        db: Database,
        *,
        ids: IdSource,
        clock: Clock,
        organizations: OrganizationDirectory,
        prices: PriceDirectory | None,
        random_bytes: Callable[[int], bytes],
        queued: Callable[[], None],
        sends_in: Collection[str] = ("test", "live"),
        accepted: Callable[[int], None] = lambda reach: None,
    ) -> None:
        """`sends_in`: the environments in which somebody sends. `accepted`: told how many devices a new one is for."""
        self._db = db
        self._ids = ids
        self._clock = clock
        self._organizations = organizations
        self._prices = prices
        self._random_bytes = random_bytes
        self._queued = queued
        self._sends_in = sends_in
        self._accepted = accepted
        self._audiences = PushAudiences(db)

    async def preview(self, draft: PushDraft) -> PushPreview:
        """What it would come to; nothing is stored. Raises `Problem` as `accept` does, but for what a wallet lacks."""
        now = self._clock.now()
        audience = await self._audience(draft)
        organization = await self._organizations.of_caller(draft.organization_id)
        reach = await self._audiences.reach(draft.organization_id, draft.env, audience, now)
        return PushPreview(
            reach,
            draft.content.rate_kind.value,
            await self._unit(draft, now),
            self._prices is not None,
            _deferred(organization, draft.content, now),
        )

    async def accept(self, draft: PushDraft) -> AcceptedPush:
        """Store it, or find what its key made before. Raises `Problem`."""
        for _ in range(_REBINDS):
            replayed = await self._replayed(draft)
            if replayed is not None:
                return replayed
            new = await self._new(draft)
            audience = await self._audience(draft)
            stored = await self._store(draft, new, audience)
            if stored is not None:
                self._accepted(stored.message.reach)
                if stored.message.status is PushStatus.QUEUED:
                    self._queued()
                return stored
        raise Problem("IDEMPOTENCY_IN_PROGRESS", "A request with this key is under way.", headers={"Retry-After": "1"})

    async def examine(self, draft: PushDraft) -> None:
        """Raise what `accept` refuses in the message itself; nothing is stored."""
        await self._new(draft)
        await self._audience(draft)

    async def cancel(self, key: PushKey) -> PushMessage | None:
        """Let nothing of it leave, and release what it holds; None: there is no such message. Raises `IllegalMove`."""
        now = self._clock.now()
        async with self._db.transaction() as connection:
            message = await messages.get_locked(connection, key)
            if message is None:
                return None
            await messages.cancel(connection, message, now)
            if message.billed:
                released = Settlement(released=message.reach * message.unit_coins)
                await wallet.settle(connection, self._ids, {key[:2]: released}, {}, now=now)
            return await messages.get(connection, *key)

    async def _store(self, draft: PushDraft, new: PushMessage, audience: PushAudience) -> AcceptedPush | None:
        """In one transaction; None when another request has bound the key meanwhile."""
        now = self._clock.now()
        gathering = (
            self._db.transaction() if draft.tokens is not None else self._audiences.transaction(draft.organization_id)
        )
        async with gathering as connection:
            key, seen = draft.key_hash, draft.fingerprint
            if key is not None and seen is not None and not await messages.bind_key(connection, new, key, seen, now):
                return None
            reach = await audiences.fix(
                connection, new.organization_id, new.env, audience, now, message_id=new.id,
                ready=new.status is PushStatus.QUEUED,
            )  # fmt: skip
            new = replace(new, reach=sum(reach.values()))
            if not new.reach:
                raise field_refused(
                    "EMPTY_AUDIENCE", "/segment" if draft.tokens is None else "/tokenIds",
                    "No registered device of these platforms is in the audience.",
                )  # fmt: skip
            await messages.insert(connection, new)
            await self._hold(connection, new, now)
            if draft.env not in self._sends_in:  # what is wrong with the message is told first (C2.6)
                raise no_provider(PUSH)
        return AcceptedPush(new, reach, replayed=False)

    async def _hold(self, connection: Connection, new: PushMessage, now: datetime) -> None:
        coins = new.reach * new.unit_coins
        if new.billed and not await wallet.hold(connection, self._ids, new.organization_id, new.env, coins, now=now):
            there = (await wallet.available(connection, [(new.organization_id, new.env)])).get(
                (new.organization_id, new.env), 0
            )
            raise Problem(
                "PAYMENT_REQUIRED", "The balance does not cover the reach.",
                meta={"requiredCoins": coins, "availableCoins": max(there, 0)},
            )  # fmt: skip

    async def _replayed(self, draft: PushDraft) -> AcceptedPush | None:
        if draft.key_hash is None:
            return None
        bound = await keyed.binding(self._db, draft.organization_id, draft.env, draft.key_hash)
        if bound is None:
            return None
        if not still_bound(bound, draft.fingerprint, self._clock.now()):
            await batches.unbind(self._db, draft.organization_id, draft.env, draft.key_hash, bound.message_id)
            return None
        found = await messages.get(self._db, draft.organization_id, draft.env, bound.message_id)
        if found is None:
            return None
        counts = await messages.counts(self._db, [found])
        return AcceptedPush(found, {each.platform: each.reach for each in counts[found.id]}, replayed=True)

    async def _new(self, draft: PushDraft) -> PushMessage:
        """The message, but for its reach."""
        message_id = self._ids.new(PUSH_MESSAGE)
        now = self._ids.moment_of(message_id)
        due_at = draft.scheduled_at if draft.scheduled_at is not None and draft.scheduled_at > now else now
        if due_at - now > LONGEST_SCHEDULE:
            detail = f"`scheduledAt` must be at most {LONGEST_SCHEDULE.days} days ahead."
            raise field_refused("SCHEDULE_TOO_FAR", "/scheduledAt", detail)
        organization = await self._organizations.of_caller(draft.organization_id)
        deferred = _deferred(organization, draft.content, due_at)
        due_at = deferred or due_at
        content = draft.content
        return PushMessage(
            organization_id=draft.organization_id, env=draft.env, id=message_id,
            status=PushStatus.SCHEDULED if due_at > now else PushStatus.QUEUED, open=True, origin=draft.origin,
            rate_kind=content.rate_kind, unit_coins=await self._unit(draft, now), billed=self._prices is not None,
            reach=0, title=content.title, body=content.body, platforms=draft.platforms, deep_link=content.deep_link,
            image_url=content.image_url, actions=content.actions, data=content.data, segment=draft.segment,
            campaign_id=draft.campaign_id, metadata=draft.metadata, dispatch_key=self._random_bytes(KEY_BYTES),
            scheduled_at=draft.scheduled_at, quiet_deferred_to=deferred, due_at=due_at, started_at=None,
            finished_at=None, created_by_id=draft.created_by_id, updated_at=now,
        )  # fmt: skip

    async def _unit(self, draft: PushDraft, now: datetime) -> int:
        if self._prices is None:
            return 0
        kind = draft.content.rate_kind.price_kind
        return (await self._prices.price_of(draft.organization_id, draft.env, kind, BR, now)).coins

    async def _audience(self, draft: PushDraft) -> PushAudience:
        tree: Node | None = None
        if draft.segment is not None and draft.segment != ALL_OPT_IN:
            segment = await segments.get(self._db, draft.organization_id, draft.env, draft.segment)
            if segment is None:
                raise field_refused("REFERENCE_NOT_FOUND", "/segment", "There is no such segment.", field="segment")
            tree = segment.tree
        return PushAudience(platforms=draft.platforms, tree=tree, tokens=draft.tokens)


def _deferred(organization: Organization, content: PushContent, at: datetime) -> datetime | None:
    """When a send that is due at `at` may leave, if that is in the organization's quiet hours; nothing shown is."""
    return None if content.silent else organization.quiet_hours_end(at)
