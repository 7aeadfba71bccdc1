"""Who calls: what a valid credential stands for, whatever kind of credential it was (C3)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import IPv4Network, IPv6Network

from recado.domain.access.scopes import PII

NO_OVERRIDES: Mapping[str, tuple[float, int]] = {}

ACCOUNT = "account"
KEY = "key"
ADMIN = "admin"


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller.

    `scopes` already contains what they imply. `rate_limits` overrides (refill per second, capacity) of single classes;
    `from_operator`: they were given by the operator of the installation, so no ceiling holds for them (C6.1).
    """

    organization_id: str
    env: str
    actor_type: str
    actor_id: str
    scopes: frozenset[str]
    unlimited: bool = False
    suspended: bool = False
    hide_phone_hash: bool = False
    allowed_ips: tuple[IPv4Network | IPv6Network, ...] = ()
    rate_limits: Mapping[str, tuple[float, int]] = field(default_factory=lambda: NO_OVERRIDES)
    from_operator: bool = False
    expires_at: datetime | None = None
    name: str | None = None

    @property
    def share(self) -> str:
        """Whose part of unread answers it takes: its organization's, the administrator's, or that of all others."""
        return self.organization_id or self.actor_type

    @property
    def sees_phone_hashes(self) -> bool:
        """Whether it is shown `phoneHash`: the organization may keep it from those who see no phones (C2.5)."""
        return not self.hide_phone_hash or PII in self.scopes

    @property
    def person(self) -> tuple[str, str] | None:
        """Account and name of the one who calls in a session."""
        return (self.actor_id, self.name or "") if self.actor_type == ACCOUNT else None

    def can(self, scope: str) -> bool:
        """Whether the credential holds `scope`."""
        return scope in self.scopes


ADMINISTRATOR = Principal("", "", ADMIN, ADMIN, frozenset())
NOBODY = Principal("", "", "public", "", frozenset())
