"""What a lane knows of its sender, read from the rows at its start and whenever they change."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from zoneinfo import ZoneInfo

from recado.actors.dispatch.failover import OrganizationGateways
from recado.actors.dispatch.gateway import Gateway
from recado.domain.channels.policies import POLICIES
from recado.domain.channels.policy import SenderKind
from recado.domain.dispatch.gates import GateTable, Hold, SenderState
from recado.domain.dispatch.pair_pacing import PairPacing
from recado.domain.dispatch.quiet_hours import QuietHours
from recado.domain.dispatch.tier_usage import TierUsage
from recado.domain.senders.number import TIER_LIMITS, NumberStatus, QualityRating, effective_per_second
from recado.domain.senders.sender import SenderKey
from recado.domain.senders.social_account import PER_SECOND
from recado.services.dispatch.records import Records
from recado.services.senders.accounts import account_of
from recado.services.senders.social_accounts import provider_account
from recado.storage.access.organizations import Organization
from recado.storage.dispatch import dispatch
from recado.storage.senders.numbers import Number
from recado.storage.senders.social_accounts import SocialAccount


@dataclass(frozen=True, slots=True)
class SenderView:
    """A sender as its lane works with it: its state at its channel's gates, its limits, and where its messages go.

    `per_day`: None without a limit, as `tier`; `pairs`: None where the provider does not bound them.
    """

    gates: GateTable
    state: SenderState
    gateway: Gateway | OrganizationGateways
    per_day: int | None
    tier: TierUsage | None
    pairs: PairPacing | None

    def sender_hold(self, now: datetime) -> Hold | None:
        """What holds all of its messages, as far as is known without counting."""
        return self.gates.sender_hold(self.state, now)

    def take_back(self, recipient: int) -> None:
        """A message that had passed the gates did not leave: its recipient has not been written to."""
        if self.pairs is not None:
            self.pairs.take_back(recipient)


@dataclass(frozen=True, slots=True)
class SenderRecords:
    """What is stored of a sender, as the directories have it. `number`, `account`: None where it is none."""

    organization: Organization
    number: Number | None
    account: SocialAccount | None = None


async def read_sender(records: Records, key: SenderKey) -> SenderRecords | None:
    """None when it does not exist (any more)."""
    number, account = None, None
    place = (key.organization_id, key.env, key.sender_id)
    match POLICIES[key.channel].sender:
        case SenderKind.NUMBER:
            if (number := await records.numbers.get(place)) is None:
                return None
        case SenderKind.ACCOUNT:
            if (account := await records.social_accounts.get(place)) is None:
                return None
    organization = await records.organizations.get(key.organization_id)
    return None if organization is None else SenderRecords(organization, number, account)


def limit_comes(found: SenderRecords, before: SenderView | None) -> bool:
    """Whether the number has a limit of recipients, and `before` has not counted them for it (C14.5.5)."""
    if found.number is None or _tier_limit(found.number) is None:
        return False
    counted = before is not None and before.tier is not None and before.tier.limited_at is None
    return not counted or found.number.limited_at is not None


def _tier_limit(number: Number | None) -> int | None:
    return None if number is None else TIER_LIMITS[number.messaging_tier]


async def view_of(
    records: Records,
    key: SenderKey,
    found: SenderRecords,
    before: SenderView | None,
    *,
    gateway: Gateway | OrganizationGateways,
    pairs_of: Callable[[str], PairPacing],
) -> SenderView:
    """The sender ready to send. `before` keeps what was counted so far; for a limit that comes the table is read, once
    it holds whom the number wrote to before (`LaneContext.count_recipients`).

    `pairs_of`: the pace towards its recipients, by the sender's id.
    """
    number, policy = found.number, POLICIES[key.channel]
    if number is None:
        return SenderView(policy.gates, _shared(state_of(found)), gateway, None, None, None)
    limit = _tier_limit(number)
    tier = None if before is None or limit is None else before.tier
    if limit is not None and limit_comes(found, before):
        if number.limited_at is not None:
            tier = TierUsage(limit, limited_at=number.limited_at)
        else:
            now = records.clock.now()
            tier = TierUsage(limit, await dispatch.tier_recipients(records.db, key.organization_id, number.id, now))
    elif tier is not None and limit is not None:
        tier.limit = limit  # whom it has counted, and whose claim is under way, counts in every tier
    provider = records.sender_for(key.channel, key.env)
    pairs = pairs_of(number.id) if provider is not None and provider.paces_pairs else None
    return SenderView(policy.gates, _shared(state_of(found)), gateway, number.per_day, tier, pairs)


def connect(gateway: Gateway, records: Records, found: SenderRecords, channel: str) -> None:
    """Let the calls of a sender go to its account at the provider in force, at its pace."""
    if (number := found.number) is not None:
        gateway.connect(
            records.sender_for(channel, number.env),
            account_of(number, records.keys),
            effective_per_second(number.per_second, number.quality_rating),
        )
    elif (account := found.account) is not None:
        provider = records.sender_for(channel, account.env)
        gateway.connect(provider, provider_account(account, records.keys), PER_SECOND)


@lru_cache(maxsize=1_024)
def _shared(state: SenderState) -> SenderState:
    """The same value for all senders in the same state, as thousands of one organization are."""
    return state


def state_of(found: SenderRecords) -> SenderState:
    """What the gates ask of the records."""
    number, account, organization = found.number, found.account, found.organization
    status = NumberStatus.CONNECTED if number is None else number.status
    if account is not None:
        status = NumberStatus(account.status)
    quiet = None
    if organization.quiet_start is not None and organization.quiet_end is not None:
        quiet = QuietHours(organization.quiet_start, organization.quiet_end)
    return SenderState(
        status,
        QualityRating.UNKNOWN if number is None else number.quality_rating,
        None if number is None else number.operator_paused_at,
        organization.suspended,
        organization.held_since,
        organization.held_ms + (0 if number is None else number.held_ms),
        quiet,
        ZoneInfo(organization.time_zone),
    )
