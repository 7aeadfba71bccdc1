"""Organizations: their settings, and what a new one is born with (C2.2, C24.1)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, time, timedelta
from typing import Final
from zoneinfo import ZoneInfo

from recado.domain.access.account import Role
from recado.domain.access.scopes import KEY_SCOPES
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.domain.core.ids import ORGANIZATION, Identified, IdSource, created_at
from recado.domain.dispatch.quiet_hours import QuietHours, quiet_until
from recado.storage.access import accounts, api_keys
from recado.storage.access.accounts import UserAccount
from recado.storage.access.api_keys import ApiKey
from recado.storage.billing import ledger
from recado.storage.core import audit
from recado.storage.core.audit import AuditPrincipal
from recado.storage.core.crypto import KeyRing
from recado.storage.core.directory import Directory
from recado.storage.core.statements.rows import Executor
from recado.storage.core.statements.sql import load
from recado.storage.core.statements.tables import Table
from recado.storage.email import senders
from recado.storage.push.apps import PUSH_APPS, sandbox_app
from recado.storage.senders import numbers, social_accounts
from recado.storage.senders.numbers import Number

ACTIVE, SUSPENDED = "active", "suspended"
DEFAULT_TIME_ZONE = "America/Sao_Paulo"
DEFAULT_COUNTRY = "BR"
ENVIRONMENTS = ("live", "test")
OWNER_NAME = "Owner"
SANDBOX_PHONE = "+15555550100"  # reserved for fiction: nobody can be called by mistake


@dataclass(frozen=True, slots=True)
class Organization(Identified):
    """One customer. `held_ms`: time for which its queues stood still; `held_since`: since when they do now.

    `moving`: on the way to another database, and suspended for that.
    """

    id: str
    name: str
    status: str
    time_zone: str
    country: str
    quiet_start: time | None
    quiet_end: time | None
    require_granted_for_marketing: bool
    opt_out_keywords: tuple[str, ...]
    opt_in_keywords: tuple[str, ...]
    opt_out_reply: str | None
    dedicated_sender: str | None
    held_ms: int
    held_since: datetime | None
    revision: int
    updated_at: datetime
    hide_phone_hash: bool = False
    moving: bool = False

    @property
    def suspended(self) -> bool:
        return self.status == SUSPENDED

    def quiet_hours_end(self, at: datetime) -> datetime | None:
        """When its quiet hours that hold `at` end; None: it has none then."""
        if self.quiet_start is None or self.quiet_end is None:
            return None
        return quiet_until(QuietHours(self.quiet_start, self.quiet_end), ZoneInfo(self.time_zone), at)


@dataclass(frozen=True, slots=True)
class NewOrganization:
    """What `create_organization` made. `keys`: by environment, each with its token, which is shown once.

    `owner`: the invited owner, if there is one, with the token of its invitation, shown once too.
    """

    organization: Organization
    keys: Mapping[str, tuple[ApiKey, str]] = field(repr=False)
    number: Number
    owner: tuple[UserAccount, str] | None = field(default=None, repr=False)


ORGANIZATIONS: Final = Table(
    "organizations",
    Organization,
    "organization",
    own=load("organizations"),
    key=("id",),
    convert={"opt_out_keywords": tuple, "opt_in_keywords": tuple},
)
SQL = ORGANIZATIONS.sql
read, get, save = ORGANIZATIONS.read, ORGANIZATIONS.get, ORGANIZATIONS.save


async def create_organization(
    connection: Executor,
    ids: IdSource,
    *,
    name: str,
    now: datetime,
    random_bytes: Callable[[int], bytes],
    actor: AuditPrincipal = audit.SYSTEM,
    owner_email: str | None = None,
    key_ring: KeyRing | None = None,
) -> NewOrganization:
    """Make an organization with a key and a wallet per environment, a connected sandbox number, a sender
    and a social account (C2.2).

    With a `key_ring`, which encrypts its key for browsers, also a push app.

    To be run in one transaction. The keys hold every scope that a key may hold; the audit tells of them and of the
    owner who is invited; the caller writes its entry for the organization itself. Raises `Problem`
    ACCOUNT_EMAIL_TAKEN.
    """
    organization_id = ids.new(ORGANIZATION)
    made_at = created_at(organization_id)
    organization = read(
        await connection.fetchrow(SQL.insert, organization_id, name, DEFAULT_TIME_ZONE, DEFAULT_COUNTRY, made_at)
    )
    keys = {
        env: await api_keys.issue_key(
            connection,
            ids,
            organization_id=organization.id,
            env=env,
            name="First key",
            scopes=KEY_SCOPES,
            random_bytes=random_bytes,
            created_by_id=actor.id,
        )
        for env in ENVIRONMENTS
    }
    for env, (key, _) in keys.items():
        for action in ("api_key.create", "pii_full.grant"):
            await audit.write(
                connection, ids, actor, action, organization_id=organization.id, env=env, target_id=key.id
            )
    await ledger.open_wallets(connection, ids, organization.id, now)
    number = await numbers.insert(
        connection,
        numbers.sandbox_number(ids, organization_id=organization.id, display_phone=SANDBOX_PHONE, now=now),
    )
    await senders.insert(
        connection, senders.sandbox_sender(ids, organization_id=organization.id, token=random_bytes(16).hex())
    )
    await social_accounts.insert(connection, social_accounts.sandbox_account(ids, organization_id=organization.id))
    if key_ring is not None:
        await PUSH_APPS.insert(
            connection, sandbox_app(ids, organization_id=organization.id, keys=key_ring, random_bytes=random_bytes)
        )
    if owner_email is None:
        return NewOrganization(organization, keys, number)
    account, token = await accounts.create(
        connection,
        ids,
        organization_id=organization.id,
        name=OWNER_NAME,
        email=owner_email,
        role=Role.OWNER,
        now=now,
        random_bytes=random_bytes,
        invited_by_id=actor.id,
    )
    for action in ("account.create", "pii_full.grant"):
        await audit.write(
            connection, ids, actor, action, organization_id=organization.id, env=None, target_id=account.id
        )
    return NewOrganization(organization, keys, number, (account, token))


async def all_organizations(executor: Executor) -> list[Organization]:
    """Oldest first."""
    return [read(row) for row in await executor.fetch(SQL.all)]


def on_the_move() -> Unavailable:
    """503 for whoever asks for an organization while it is moved to another cell."""
    return Unavailable("The organization is being moved to another database: try again shortly.", retry_after=5)


def refuse_on_the_move(organization: Organization | None) -> None:
    """Raises `Unavailable` for one that is moved: what is made of it meanwhile may stay behind."""
    if organization is not None and organization.moving:
        raise on_the_move()


def with_status(organization: Organization, status: str, now: datetime) -> Organization:
    """The organization suspended or active again; the time suspended is added to the time held (C14.5, TTL)."""
    if status == organization.status:
        return organization
    if status == SUSPENDED:
        return replace(organization, status=status, held_since=now)
    held = now - organization.held_since if organization.held_since else timedelta()
    held_ms = organization.held_ms + max(0, int(held.total_seconds() * 1000))
    return replace(organization, status=status, held_since=None, held_ms=held_ms)


class OrganizationDirectory(Directory[str, Organization]):
    """Organizations by id, read through, at most 5 s old."""

    def __init__(self, executor: Executor, *, clock: Clock) -> None:
        super().__init__(lambda organization_id: get(executor, organization_id), clock=clock)

    async def of_caller(self, organization_id: str) -> Organization:
        """The organization of a key that was valid a moment ago. Raises `Unavailable` when it is gone since."""
        found = await self.get(organization_id)
        if found is None:
            raise Unavailable
        return found
