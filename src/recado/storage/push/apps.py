"""Push apps: their names, and the credentials that their notifications leave with, encrypted (C22.4, C30.1)."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from recado.domain.core.ids import PUSH_APP, Identified, IdSource, created_at
from recado.domain.push.device import PLATFORMS
from recado.domain.push.vapid import RANDOM_BYTES, vapid_pair
from recado.storage.core.crypto import KeyRing
from recado.storage.core.rows import Executor
from recado.storage.core.sql import load
from recado.storage.core.tables import Limit, Table

MOST_APPS: Final = 20  # C31
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


async def delete(connection: Executor, app: PushApp) -> None:
    """Remove it with its devices, in the transaction that holds the row."""
    await connection.execute(SQL.delete_devices, app.organization_id, app.env, app.id)
    await PUSH_APPS.delete(connection, app)


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
