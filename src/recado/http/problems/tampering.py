"""A stored value that fails authentication is never answered: the caller gets a 500, and the audit an entry (C30.1)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from recado.domain.core.errors import Problem
from recado.domain.core.ids import IdSource
from recado.http.api.audit import actor_of
from recado.http.api.call import Call
from recado.storage.core import audit
from recado.storage.core.connections.postgres import Database
from recado.storage.core.crypto import Tampered


@asynccontextmanager
async def tampering_recorded(database: Database, ids: IdSource, call: Call) -> AsyncIterator[None]:
    """Turn `Tampered` into INTERNAL_ERROR with an entry `record.tampered`; to be put around a transaction."""
    try:
        yield
    except Tampered as error:
        await audit.write(
            database,
            ids,
            actor_of(call),
            "record.tampered",
            organization_id=call.principal.organization_id,
            env=call.principal.env,
            target_id=error.record_id,
        )
        raise Problem(
            "INTERNAL_ERROR", "A stored value was changed outside of the service; its log has the requestId."
        ) from None
