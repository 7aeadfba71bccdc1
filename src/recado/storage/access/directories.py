"""The caches of this process together, so that one call makes all of them forget what a change has made stale."""

from recado.domain.core.clock import Clock
from recado.domain.messages.changes import (
    AccountChanged,
    Change,
    FlowChanged,
    KeyChanged,
    NumberChanged,
    OrganizationChanged,
    SocialAccountChanged,
    SubscriptionChanged,
    TemplateChanged,
)
from recado.storage.access.key_directory import KeyDirectory
from recado.storage.access.organizations import OrganizationDirectory
from recado.storage.access.session_directory import SessionDirectory
from recado.storage.billing.prices import PriceDirectory
from recado.storage.core.statements.rows import Executor
from recado.storage.flows.flows import FlowDirectory
from recado.storage.media.media import MediaDirectory
from recado.storage.senders.numbers import NumberDirectory
from recado.storage.senders.social_accounts import SocialAccountDirectory
from recado.storage.templates.templates import TemplateDirectory
from recado.storage.webhooks.webhooks import SubscriptionDirectory


class Directories:
    """One directory for each kind of record that the hot path reads."""

    def __init__(self, executor: Executor, *, clock: Clock) -> None:
        self.organizations = OrganizationDirectory(executor, clock=clock)
        self.keys = KeyDirectory(executor, clock=clock)
        self.sessions = SessionDirectory(executor, clock=clock)
        self.numbers = NumberDirectory(executor, clock=clock)
        self.social_accounts = SocialAccountDirectory(executor, clock=clock)
        self.templates = TemplateDirectory(executor, clock=clock)
        self.flows = FlowDirectory(executor, clock=clock)
        self.subscriptions = SubscriptionDirectory(executor, clock=clock)
        self.media = MediaDirectory(executor, clock=clock)
        self.prices = PriceDirectory(executor, clock=clock)

    def forget(self, change: Change) -> None:
        """Forget what was changed; to be called after the commit of the change and before anybody else hears of it."""
        match change:
            case NumberChanged(organization_id, env, number_id):
                self.numbers.forget((organization_id, env, number_id))
            case SocialAccountChanged(organization_id, env, account_id):
                self.social_accounts.forget((organization_id, env, account_id))
            case TemplateChanged(organization_id, env, _, template_id):
                self.templates.forget((organization_id, env, template_id))
            case FlowChanged(organization_id, env, flow_id):
                self.flows.forget((organization_id, env, flow_id))
            case OrganizationChanged(organization_id):
                self.organizations.forget(organization_id)
                self.keys.forget_organization(organization_id)
                self.sessions.forget_organization(organization_id)
                self.prices.forget(organization_id)
            case KeyChanged(key_id):
                self.keys.forget_key(key_id)
            case AccountChanged(account_id):
                self.sessions.forget_account(account_id)
            case SubscriptionChanged(organization_id, env, _):
                self.subscriptions.forget((organization_id, env))

    async def flush_uses(self) -> None:
        """Write when keys and sessions were last used. Run every minute and at the end."""
        await self.keys.flush()
        await self.sessions.flush()
