"""What was changed, told to anyone who holds a copy of it in memory: a lane, a cache.

A change is a hint. Its row is committed before the hint is given, and anyone who hears it reads the row again.
"""

from collections.abc import Callable
from dataclasses import dataclass

from recado.domain.messages.owner_pauses import OwnerPauses
from recado.domain.messages.withdrawal import Withdrawal
from recado.domain.webhooks.webhook import SubscriptionKey


@dataclass(frozen=True, slots=True)
class OrganizationChanged:
    """Settings or status of an organization: quiet hours, suspension."""

    organization_id: str


@dataclass(frozen=True, slots=True)
class KeyChanged:
    """An API key was changed, rotated or revoked."""

    key_id: str


@dataclass(frozen=True, slots=True)
class AccountChanged:
    """An account was changed, or its sessions were ended."""

    account_id: str


@dataclass(frozen=True, slots=True)
class NumberChanged:
    """A number was made, changed or deleted: state, quality, tier, rate, credential."""

    organization_id: str
    env: str
    number_id: str


@dataclass(frozen=True, slots=True)
class SocialAccountChanged:
    """A social account was made, changed or deleted: state, credential."""

    organization_id: str
    env: str
    account_id: str


@dataclass(frozen=True, slots=True)
class TemplateChanged:
    """A template was changed or deleted: its waiting messages may leave now, or none may any more (C14.5)."""

    organization_id: str
    env: str
    number_id: str
    template_id: str


@dataclass(frozen=True, slots=True)
class FlowChanged:
    """A flow was made, changed or deleted: whether messages may open it."""

    organization_id: str
    env: str
    flow_id: str


@dataclass(frozen=True, slots=True)
class SubscriptionChanged:
    """A webhook subscription was made, changed or revoked."""

    organization_id: str
    env: str
    subscription_id: str


@dataclass(frozen=True, slots=True)
class DeliveriesQueued:
    """Webhook deliveries were queued, to these."""

    subscriptions: tuple[SubscriptionKey, ...]


@dataclass(frozen=True, slots=True)
class ConsentRefused:
    """People opted out: nothing that is subject to consent may begin to leave for them any more (C12.5.3).

    Each by organization, environment and `recipient_hash`.
    """

    recipients: tuple[tuple[str, str, int], ...]


@dataclass(frozen=True, slots=True)
class WithdrawalsLeft:
    """More waits of these than the commit withdrew that had to: the rest follows, and must not leave."""

    withdrawals: tuple[Withdrawal, ...]


@dataclass(frozen=True, slots=True)
class JourneyMoved:
    """A journey was activated, paused or archived: what it has queued may leave, or may not any more (C9.12)."""

    pauses: OwnerPauses


Change = (
    OrganizationChanged
    | KeyChanged
    | AccountChanged
    | NumberChanged
    | SocialAccountChanged
    | TemplateChanged
    | FlowChanged
    | SubscriptionChanged
    | DeliveriesQueued
    | ConsentRefused
    | WithdrawalsLeft
    | JourneyMoved
)
OnChange = Callable[[Change], None]
