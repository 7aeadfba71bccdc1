"""Look-ups of the 24 h windows, many in one query."""

import asyncio
from datetime import UTC, datetime

from recado.engine.clock import SystemClock
from recado.storage.core.connections.postgres import Database
from recado.storage.messages.chat_windows import SQL, ChatWindows

ORGANIZATION = "org_" + "0" * 21
NUMBER = "num_" + "0" * 21
AT = datetime(2026, 11, 20, 12, tzinfo=UTC)


async def test_each_caller_gets_its_own_window(database: Database) -> None:
    for recipient in (-(2**63), 7):
        await database.execute("insert into chat_windows values ($1, $2, $3, $4)", ORGANIZATION, NUMBER, recipient, AT)
    windows = ChatWindows(database, clock=SystemClock())
    await windows.start()
    found = await asyncio.gather(
        windows.last_inbound(ORGANIZATION, NUMBER, 7),
        windows.last_inbound(ORGANIZATION, NUMBER, 8),
        windows.last_inbound(ORGANIZATION, NUMBER, -(2**63)),
        windows.last_inbound(ORGANIZATION, "num_" + "1" * 21, 7),
        windows.last_inbound("org_" + "1" * 21, NUMBER, 7),
        windows.last_inbound(ORGANIZATION, NUMBER, 7),
    )
    await windows.stop()
    assert found == [AT, None, AT, None, None, AT]


async def test_a_batch_probes_the_key(database: Database) -> None:
    await database.execute(
        "insert into chat_windows select $1, $2, n, $3 from generate_series(1, 20000) n", ORGANIZATION, NUMBER, AT
    )
    await database.execute("analyze chat_windows")
    plan = await database.hot.fetch(f"explain {SQL.last_inbound}", [ORGANIZATION] * 9, [NUMBER] * 9, list(range(9)))
    assert "chat_windows_pkey" in "\n".join(row[0] for row in plan)
