"""Where those who send, and those who explain why a message waits, read what they need to know."""

from dataclasses import dataclass, field

from recado.channels.core.adapters import SenderFor
from recado.domain.core.clock import Clock
from recado.services.dispatch.owners import Owners
from recado.services.dispatch.withdrawing import Withdrawing
from recado.storage.access.organizations import OrganizationDirectory
from recado.storage.core.connections.postgres import Database
from recado.storage.core.crypto import KeyRing
from recado.storage.senders.numbers import NumberDirectory
from recado.storage.senders.social_accounts import SocialAccountDirectory
from recado.storage.templates.templates import TemplateDirectory


@dataclass(frozen=True, slots=True)
class Records:
    """Where the rows come from. `owners`: who holds its rows back; `withdrawing`: whose must not leave."""

    db: Database
    numbers: NumberDirectory
    social_accounts: SocialAccountDirectory
    organizations: OrganizationDirectory
    templates: TemplateDirectory
    keys: KeyRing
    sender_for: SenderFor
    clock: Clock
    owners: Owners = field(default_factory=Owners)
    withdrawing: Withdrawing = field(default_factory=Withdrawing)
