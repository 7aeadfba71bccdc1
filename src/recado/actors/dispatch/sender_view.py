"""What a number's actor knows of its number, read from the rows at its start and whenever they change."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from zoneinfo import ZoneInfo

from recado.channels.core.adapters import MessageSender
from recado.channels.core.provider import Account
from recado.domain.channels.chatapp import CHATAPP
from recado.domain.channels.policies import POLICIES
from recado.domain.dispatch.gates import GateTable, Hold, SenderState
from recado.domain.dispatch.pair_pacing import PairPacing
from recado.domain.dispatch.quiet_hours import QuietHours
from recado.domain.dispatch.tier_usage import TierUsage
from recado.domain.senders.number import TIER_LIMITS, MessagingTier, effective_per_second
from recado.domain.senders.sender import SenderKey
from recado.services.dispatch.records import Records
from recado.services.senders.accounts import account_of
from recado.storage.access.organizations import Organization
from recado.storage.dispatch import dispatch
from recado.storage.senders.numbers import Number


@dataclass(frozen=True, slots=True)
class SenderView:
    """A number ready to send: its state at the gates, its pace, its provider.

    `tier`: None without a limit; `pairs`: None where the provider does not bound them.
    """

    gates: GateTable
    state: SenderState
    per_second: float
    per_day: int
    messaging_tier: MessagingTier
    tier: TierUsage | None
    pairs: PairPacing | None
    provider: MessageSender | None
    account: Account

    def sender_hold(self) -> Hold | None:
        """What holds all of its messages, as far as is known without counting."""
        return self.gates.sender_hold(self.state)

    def take_back(self, recipient: int) -> None:
        """A message that had passed the gates did not leave: its recipient has not been written to."""
        if self.pairs is not None:
            self.pairs.take_back(recipient)


@dataclass(frozen=True, slots=True)
class SenderRecords:
    """A number and its organization, as the directories have them."""

    number: Number
    organization: Organization


async def read_rows(records: Records, key: SenderKey) -> SenderRecords | None:
    """None when the number does not exist (any more)."""
    number = await records.numbers.get((key.organization_id, key.env, key.sender_id))
    organization = await records.organizations.get(key.organization_id)
    return None if number is None or organization is None else SenderRecords(number, organization)


def limit_comes(rows: SenderRecords, before: SenderView | None) -> bool:
    """Whether the number has a limit of recipients, and `before` had none (C14.5.5)."""
    return TIER_LIMITS[rows.number.messaging_tier] is not None and (before is None or before.tier is None)


async def view_of(
    records: Records, rows: SenderRecords, before: SenderView | None, pairs_of: Callable[[str], PairPacing]
) -> SenderView:
    """The number ready to send. `before` keeps what was counted so far; for a limit that comes the table is read.

    `pairs_of`: the pace towards its recipients, by the number's id.
    """
    number, organization = rows.number, rows.organization
    limit = TIER_LIMITS[number.messaging_tier]
    tier = before.tier if before is not None and limit is not None else None
    if tier is not None and limit is not None:
        tier.limit = limit  # whom it has counted, and whose claim is under way, counts in every tier
    elif limit is not None:
        now = records.clock.now()
        tier = TierUsage(limit, await dispatch.tier_recipients(records.db, organization.id, number.id, now))
    provider = records.sender_for(CHATAPP, number.env)
    pairs = pairs_of(number.id) if provider is not None and provider.paces_pairs else None
    return SenderView(
        POLICIES[CHATAPP].gates,
        _shared(state_of(number, organization)),
        effective_per_second(number.per_second, number.quality_rating),
        number.per_day,
        number.messaging_tier,
        tier,
        pairs,
        provider,
        account_of(number, records.keys),
    )


@lru_cache(maxsize=1_024)
def _shared(state: SenderState) -> SenderState:
    """The same value for all senders in the same state, as thousands of one organization do."""
    return state


def state_of(number: Number, organization: Organization) -> SenderState:
    """What the gates ask of the two records."""
    quiet = None
    if organization.quiet_start is not None and organization.quiet_end is not None:
        quiet = QuietHours(organization.quiet_start, organization.quiet_end)
    return SenderState(
        number.status,
        number.quality_rating,
        number.operator_paused_at,
        organization.suspended,
        organization.held_since,
        number.held_ms + organization.held_ms,
        quiet,
        ZoneInfo(organization.time_zone),
    )
