"""Push apps: their names, and the credentials that their notifications leave with, encrypted (C22.4, C30.1)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from recado.domain.core.ids import PUSH_APP, Identified, IdSource, created_at
from recado.domain.push.device import PLATFORMS
from recado.domain.push.vapid import RANDOM_BYTES, vapid_pair
from recado.storage.core.crypto import KeyRing
from recado.storage.core.statements.rows import Executor, reader
from recado.storage.core.statements.sql import load
from recado.storage.core.statements.tables import Limit, Table

MOST_APPS: Final = 20  # C31
LOOKED_AT_ONCE: Final = 2_000  # devices, of any app
CREDENTIALS_FIELD: Final = "push_credentials"
VAPID_FIELD: Final = "push_vapid"


@dataclass(frozen=True, slots=True, kw_only=True)
class PushApp(Identified):
    """One app. `credentials_cipher`: a JSON text, encrypted; `vapid_cipher`: the private key, a PEM text, encrypted."""

    organization_id: str
    env: str
    id: str
    name: str
    platforms: tuple[str, ...]
    credentials_cipher: str | None = None
    vapid_cipher: str
    vapid_public_key: str
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class Removal:
    """An app that is deleted. Its devices up to `after_id` are gone."""

    organization_id: str
    env: str
    app_id: str
    after_id: str


_read_removal = reader(Removal)

PUSH_APPS: Final = Table(
    "push_apps",
    PushApp,
    "push app",
    own=load("push_apps"),
    convert={"platforms": tuple},
    limit=Limit(MOST_APPS, "push apps"),
)
SQL = PUSH_APPS.sql


async def in_use(connection: Executor, app: PushApp) -> bool:
    """Whether a message that is on its way, or scheduled, has devices of the app."""
    used: bool = await connection.fetchval(SQL.in_use, app.organization_id, app.env, app.id)
    return used


async def delete(connection: Executor, app: PushApp) -> bool:
    """Remove it with some of its devices, in the transaction that holds the row; whether more may be left."""
    await PUSH_APPS.delete(connection, app)
    return await remove_devices(connection, Removal(app.organization_id, app.env, app.id, ""))


async def removals(executor: Executor, most: int) -> list[Removal]:
    """Some of the apps that were deleted, and may have devices left."""
    return [_read_removal(row) for row in await executor.fetch(SQL.removals, most)]


async def remove_devices(connection: Executor, removal: Removal) -> bool:
    """Remove some devices of an app that is deleted, in a transaction; whether more may be left, which is noted."""
    key = (removal.organization_id, removal.env, removal.app_id)
    seen = await connection.fetchrow(SQL.delete_devices, *key, removal.after_id, LOOKED_AT_ONCE)
    more: bool = seen["looked_at"] == LOOKED_AT_ONCE
    if more:
        await connection.execute(SQL.note_removal, *key, seen["last_id"])
    else:
        await connection.execute(SQL.removed, *key)
    return more


def new_vapid(
    keys: KeyRing, *, organization_id: str, app_id: str, random_bytes: Callable[[int], bytes]
) -> dict[str, str]:
    """The columns of a key pair that is drawn for this app."""
    private, public = vapid_pair(random_bytes(RANDOM_BYTES))
    sealed = keys.encrypt(private, organization_id=organization_id, record_id=app_id, field=VAPID_FIELD)
    return {"vapid_cipher": sealed, "vapid_public_key": public}


def sandbox_app(ids: IdSource, *, organization_id: str, keys: KeyRing, random_bytes: Callable[[int], bytes]) -> PushApp:
    """The app that every new organization has in test (C2.2)."""
    app_id = ids.new(PUSH_APP)
    return PushApp(
        organization_id=organization_id,
        env="test",
        id=app_id,
        name="Sandbox",
        platforms=PLATFORMS,
        updated_at=created_at(app_id),
        **new_vapid(keys, organization_id=organization_id, app_id=app_id, random_bytes=random_bytes),
    )
