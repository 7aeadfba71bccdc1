"""Messages as rows, for tests of what is shown of them."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import orjson

from recado.domain.core.ids import MESSAGE, lowest_id

PHONE = "+5511987654321"
MASKED = "+55*******4321"
_INSERT = """
insert into messages
select * from jsonb_populate_recordset(null::messages, $1::text::jsonb)
"""
_USUAL: dict[str, Any] = {
    "channel": "chatapp",
    "direction": "outbound",
    "status": "delivered",
    "type": "text",
    "recipient": PHONE,
    "recipient_hash": 1,
    "class": 1,
    "force": False,
    "attempts": 1,
    "reprocessed": False,
    "units": 1,
}


def message_id(at: datetime, number: int = 0) -> str:
    """The id of a message that was made then: ids of one millisecond are in the order of their numbers."""
    return f"{lowest_id(MESSAGE, at)[:-13]}{number:013}"


async def insert_messages(executor: Any, organization_id: str, env: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Store messages with these columns, `id` among them, the others as usual. There is a table of their month."""
    whole = [
        {**_USUAL, "organization_id": organization_id, "env": env, "updated_at": "2026-01-01T00:00:00Z", **row}
        for row in rows
    ]
    await executor.execute(_INSERT, orjson.dumps(whole).decode())
