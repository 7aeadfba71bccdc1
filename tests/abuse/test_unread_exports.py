"""A caller that exports all it has on many connections, and reads nothing: everybody else is served (C18, C31)."""

import asyncio
import itertools
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import asyncpg
import pytest
from tests.abuse.attacker import Attacker, keep_on
from tests.abuse.neighbour import Neighbour
from tests.program import Api, Service

from recado.domain.core.ids import MESSAGE, lowest_id
from recado.domain.core.timestamps import format_timestamp

pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("memory_returns")]

KEYS = 4  # as many as come up to the ceiling of the organization
AT_ONCE = 40
LEFT_UNREAD = 100  # answers; then the oldest connection ends
SMALL, LARGE = 20_000, 1_000  # rows
_SMALL = """
insert into messages (
    organization_id, env, channel, id, direction, status, type, recipient, recipient_hash, class, force, metadata,
    contact_id, sent_at, delivered_at, read_at, updated_at
)
select
    $1, 'test', 'chatapp', $2 || lpad(g::text, 13, '0'), 'outbound', 'read', 'text', '+5511987654321', g, 1, false,
    json_build_object('order', g), 'cnt_' || lpad(g::text, 21, '0'), now(), now(), now(), now()
from generate_series(1, $3::int) g
"""
# Nothing of it packs: a page is 11 MiB.
_LARGE = """
insert into messages (
    organization_id, env, channel, id, direction, status, type, recipient, recipient_hash, class, force, metadata,
    updated_at
)
select
    $1, 'test', 'sms', $2 || lpad(g::text, 13, '0'), 'outbound', 'sent', 'text', '+5511987654321', g, 1, false,
    (
        select json_object_agg(k, (select string_agg(md5(g || ' ' || k || ' ' || n), '') from generate_series(1, 8) n))
        from generate_series(1, 20) k
    ),
    now()
from generate_series(1, $3::int) g
"""
MADE = {"chatapp": (_SMALL, SMALL), "sms": (_LARGE, LARGE)}
# Not one that is between two statements of its work.
_HELD = """
select count(*) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid() and state like 'idle in transaction%'
and state_change < clock_timestamp() - interval '1 s'
"""


@asynccontextmanager
async def database(service: Service) -> AsyncIterator["asyncpg.Connection[asyncpg.Record]"]:
    connection = await asyncpg.connect(**service.cluster().connect_arguments)
    try:
        yield connection
    finally:
        await connection.close()


@pytest.fixture(scope="session")
def filled() -> dict[str, str]:
    """The query of an export of all the attacker's messages, by the channel for which they were made."""
    return {}


@pytest.fixture
async def rows(service: Service, attacker_token: str, filled: dict[str, str], channel: str) -> str:
    """Makes the attacker's messages of the channel; the query of an export of all of them."""
    if channel not in filled:
        made = datetime.now(UTC) - timedelta(minutes=1)
        async with Api(service.url, attacker_token) as api, database(service) as connection:
            organization_id = (await api.call("GET", "/v2/organization"))["id"]
            sql, count = MADE[channel]
            await connection.execute(sql, organization_id, lowest_id(MESSAGE, made)[:-13], count)
            await connection.execute("analyze messages")
        period = {"from": made - timedelta(hours=1), "to": made + timedelta(hours=1)}
        filled[channel] = urlencode({name: format_timestamp(at) for name, at in period.items()})
    return filled[channel]


@pytest.fixture(scope="session")
def callers(service: Service, attacker_token: str) -> list[Attacker]:
    """The attacker, by each of its keys."""
    made = [service.command("keys", "create", "--env", "test", "--scopes", "all", "--json") for _ in range(KEYS - 1)]
    tokens = [attacker_token, *(str(each["token"]) for each in made)]
    return [Attacker("127.0.0.1", service.port, token) for token in tokens]


@pytest.mark.parametrize(
    "channel", ["chatapp", pytest.param("sms", marks=pytest.mark.long)], ids=["small rows", "large rows"]
)
async def test_exports_that_nobody_reads_keep_nobody_waiting(
    service: Service, rows: str, callers: list[Attacker], neighbour: Neighbour, seconds: float, channel: str
) -> None:
    path = f"/v2/exports/{channel}?{rows}&limit=1000"
    turn = itertools.cycle(callers)
    unread: deque[asyncio.StreamWriter] = deque()

    async def leave_unread() -> int:
        caller = next(turn)
        with suppress(OSError):
            reader, writer = await caller.connect()
            unread.append(writer)
            writer.write(caller.head("GET", path, None))
            line = await reader.readline()
            writer.transport.pause_reading()  # type: ignore[attr-defined]
            if len(unread) > LEFT_UNREAD:
                unread.popleft().transport.abort()
            return int(line.split()[1]) if line else 0
        return 0

    try:
        async with neighbour.held():
            answers = await keep_on(seconds, AT_ONCE, leave_unread)
        async with database(service) as connection:
            assert await connection.fetchval(_HELD) == 0
        assert {200} <= set(answers) <= {0, 200, 429, 503}
        async with Api(service.url, neighbour_token(service)) as other:
            assert (await other.call("GET", path))["items"] == []
    finally:
        for writer in unread:
            writer.transport.abort()


def neighbour_token(service: Service) -> str:
    """A key of an organization that has nothing to export."""
    made = service.command("org", "create", "--name", "Beside", "--json")
    return str(made["keys"]["test"]["token"])
