"""An opened installation: its keys, its database (embedded or given) at this program's schema, and its first contents.

What `recado serve` and every other command have in common. Commands that only use an installation ask before whether
there is one (C35).
"""

import random
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any, TypeVar

from recado import first_start
from recado.config.errors import SettingsError
from recado.config.secrets import Keys, load_keys
from recado.config.settings import Settings
from recado.domain.core.clock import Clock
from recado.domain.core.ids import IdSource, base62
from recado.storage.access import accounts
from recado.storage.access.organizations import NewOrganization, all_organizations, create_organization
from recado.storage.access.passwords import Passwords
from recado.storage.core import audit
from recado.storage.core.connections.postgres import Database
from recado.storage.core.crypto import KeyRing
from recado.storage.core.upkeep.migrate import migrate, pending
from recado.storage.dispatch.ownership import staying_owner
from recado.storage.embedded.backup import unfinished
from recado.storage.embedded.embedded import EmbeddedPostgres

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Joined:
    """An installation that another process has opened: its keys, and its database as asyncpg connects to it."""

    keys: Keys = field(repr=False)
    server: Mapping[str, Any] = field(repr=False)


FIRST_ORGANIZATION = "Demonstration"
FIRST_OWNER = "owner@demonstration.invalid"  # nobody's: the operator invites people with addresses
PASSWORD_LENGTH = 20  # characters


class Installation:
    """Open while started.

    `made`: what this start put into an empty embedded database, its keys' tokens included; `owner_password`: with which
    its owner signs in. `left_untold`: the line that names what an earlier first start made, while its file is there.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock,
        random_bytes: Callable[[int], bytes],
        pool_size: int = 16,
        hot_size: int = 8,
        restoring: bool = False,
        application_name: str = "recado",
        joined: Joined | None = None,
    ) -> None:
        """`random_bytes` must be unpredictable: tokens and nonces are made of it. Sizes: see `Database`.

        `restoring`: opened by the restore of a backup itself; nobody else may use a folder whose restore has not ended.
        `application_name`: of the database sessions. `joined`: what is open already, and used here beside its process.
        """
        self.settings = settings
        self.clock = clock
        self.random_bytes = random_bytes
        self.ids = IdSource(clock, random.Random(random_bytes(32)))  # noqa: S311 - ids are unique, not secret
        self.applied: list[str] = []
        self.made: NewOrganization | None = None
        self.owner_password: str | None = None
        self.left_untold: list[str] = []
        self._sizes = (pool_size, hot_size)
        self._restoring = restoring
        self._application_name = application_name
        self._joined = joined
        self._keys: Keys | None = None
        self._key_ring: KeyRing | None = None
        self._database: Database | None = None
        self._embedded: EmbeddedPostgres | None = None

    @property
    def database(self) -> Database:
        """The database; only while started."""
        return _started(self._database)

    @property
    def keys(self) -> Keys:
        """The installation's keys; only while started."""
        return _started(self._keys)

    @property
    def key_ring(self) -> KeyRing:
        """Encrypts and decrypts stored secrets; only while started."""
        return _started(self._key_ring)

    async def start(self, *, migrate_given: bool = False, take_over: bool = False) -> None:
        """Open everything, or nothing. A given database is migrated only on demand; the embedded one always (C33).

        Never under a service that runs, which would go on with tables that it does not know: `take_over` says that its
        place is taken.

        Raises SettingsError for missing keys or a pending migration, and what the embedded server and the database
        raise when they cannot be used.
        """
        if self._joined is not None:
            await self._join(self._joined)
            return
        if self.settings.embedded and not self._restoring and (text := unfinished(self.settings.data_dir)):
            raise SettingsError([text])
        self._keys = load_keys(self.settings)
        self._key_ring = KeyRing.parse(self._keys.encryption)
        async with AsyncExitStack() as opened:
            opened.push_async_callback(self.stop)
            url = self.settings.database_url
            server: str | dict[str, Any]
            if url is None:
                self._embedded = EmbeddedPostgres(self.settings.data_dir, clock=self.clock)
                server = await self._embedded.start()
            else:
                server = url.get_secret_value()
            self._database = self._database_at(server)
            await self._database.start()
            if (self.settings.embedded or migrate_given) and not take_over:
                await self._spare_a_service(self._database)
            if self.settings.embedded or migrate_given:
                self.applied = await migrate(self._database)
            elif missing := await pending(self._database):
                raise SettingsError([f"the database lacks {', '.join(missing)}: apply with 'recado migrate'"])
            if self.settings.embedded and not self._restoring:
                self.made = await self._fill_when_empty()
            opened.pop_all()

    async def _join(self, joined: Joined) -> None:
        self._keys, self._key_ring = joined.keys, KeyRing.parse(joined.keys.encryption)
        database = self._database_at(joined.server)
        await database.start()
        self._database = database

    def _database_at(self, server: str | Mapping[str, Any]) -> Database:
        pool_size, hot_size = self._sizes
        return Database(
            server,
            clock=self.clock,
            pool_size=pool_size,
            hot_size=hot_size,
            application_name=self._application_name,
        )

    async def stop(self, within: float | None = None) -> None:
        """Close everything, in reverse, within so many seconds when they are given. Safe to call twice."""
        end = None if within is None else self.clock.monotonic() + within
        database, self._database = self._database, None
        if database is not None:
            await database.stop()
        embedded, self._embedded = self._embedded, None
        if embedded is not None:
            await (embedded.stop() if end is None else embedded.stop(end - self.clock.monotonic()))

    async def _spare_a_service(self, database: Database) -> None:
        """Raise SettingsError where a migration is pending, and a service of an earlier version runs."""
        if await pending(database) and (owner := await staying_owner(database, self.clock)) is not None:
            told = (
                f"{owner} serves this database with an earlier version of Recado, which could not go on with the tables"
                " of this one: stop it first"
            )
            if self.settings.embedded:
                told += ", or take its place with 'recado serve --take-over'"
            raise SettingsError([told])

    async def _fill_when_empty(self) -> NewOrganization | None:
        if known := await all_organizations(self.database):
            self.left_untold = first_start.left(self.settings.data_dir, [each.id for each in known])
            return None
        password = base62(int.from_bytes(self.random_bytes(32), "big"), PASSWORD_LENGTH)
        password_hash = await Passwords(self.random_bytes).hash(password)
        async with self.database.transaction() as connection:
            # Two first commands at once: the second waits here, and then finds the organization.
            await connection.execute("lock table organizations in share row exclusive mode")
            if await all_organizations(connection):
                return None
            now = self.clock.now()
            made = await create_organization(
                connection,
                self.ids,
                name=FIRST_ORGANIZATION,
                now=now,
                random_bytes=self.random_bytes,
                owner_email=FIRST_OWNER,
                key_ring=self.key_ring,
            )
            if made.owner is not None and await accounts.accept(
                connection, made.owner[1], password_hash=password_hash, now=now
            ):
                self.owner_password = password
            await audit.write(
                connection,
                self.ids,
                audit.SYSTEM,
                "organization.create",
                organization_id=made.organization.id,
                env=None,
                target_id=made.organization.id,
            )
            # Before the commit: whatever ends this process, its keys can be found.
            first_start.keep(self.settings.data_dir, made, self.owner_password)
            return made


def _started(value: T | None) -> T:
    if value is None:
        raise RuntimeError("the installation is not started")
    return value
