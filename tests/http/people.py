"""People of the organizations, and their sessions."""

import itertools
import os
from typing import Any

from recado.domain.access.account import Role
from recado.storage.access import accounts, sessions
from recado.storage.access.accounts import UserAccount

_serial = itertools.count(1)


async def person(
    api: Any, role: str = "owner", *, organization: int = 0, password_hash: str = "nobody's", **fields: Any
) -> UserAccount:
    """An active account; by default nobody knows its password."""
    now, serial = api.clock.now(), next(_serial)
    async with api.database.transaction() as connection:
        _, token = await accounts.create(
            connection,
            api.ids,
            organization_id=api.organizations[organization].organization.id,
            role=Role(role),
            now=now,
            random_bytes=os.urandom,
            **{"name": f"Person {serial}", "email": f"person{serial}@example.com", **fields},
        )
        accepted = await accounts.accept(connection, token, password_hash=password_hash, now=now)
    assert accepted is not None
    return accepted


async def session(api: Any, holder: UserAccount | str = "owner", *, env: str = "test", **fields: Any) -> str:
    """The token of a new session: of an account, or of a new one with that role."""
    account = await person(api, holder, **fields) if isinstance(holder, str) else holder
    async with api.database.transaction() as connection:
        opened = await sessions.open_session(connection, api.ids, account, now=api.clock.now(), random_bytes=os.urandom)
    assert opened is not None
    return opened.tokens[env]
