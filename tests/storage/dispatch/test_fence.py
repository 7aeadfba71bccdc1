"""The fence of an epoch: no claim of an owner commits once its place is taken, whatever its statement saw (C14.5.6)."""

import asyncio
import os
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import asyncpg
import orjson
import pytest
from tests.waiting import until_locked_out

from recado.domain.core.errors import Unavailable
from recado.domain.core.ids import MESSAGE, IdSource
from recado.engine.clock import SystemClock, VirtualClock
from recado.storage.core.connections.postgres import Database
from recado.storage.core.statements import fence
from recado.storage.core.statements.fence import FENCE
from recado.storage.core.statements.sql import FILES
from recado.storage.dispatch import dispatch, epochs
from recado.storage.dispatch.dispatch import CLAIMED, LOST, Claim
from recado.storage.dispatch.ownership import Owned, Ownership, session_name
from recado.storage.messages import messages
from recado.storage.messages.messages import NewMessage, OwnClaim

ORGANIZATION = "org_" + "0" * 21
CLOCK = VirtualClock(SystemClock().now().replace(microsecond=0))
IDS = IdSource(CLOCK, random.Random(4))
NOW = CLOCK.now()


def new(**changes: Any) -> NewMessage:
    fields: dict[str, Any] = {
        "organization_id": ORGANIZATION, "env": "test", "channel": "chatapp", "id": IDS.new(MESSAGE),
        "sender_id": "num_" + "0" * 21, "type": "template", "recipient": "+5511987654321", "recipient_hash": 1,
        "klass": 1, "force": False, "template_id": None, "payload": None, "template_vars": None, "metadata": None,
        "campaign_id": None, "scheduled_at": None, "due_at": NOW, "ttl": timedelta(hours=1), "held_base_ms": 0,
        "accepted_at": NOW,
    }  # fmt: skip
    return NewMessage(**{**fields, **changes})


async def claim_of(db: Database) -> Claim:
    message = new()
    assert await messages.accept(db, [message]) == [messages.STORED]
    return Claim(ORGANIZATION, message.id, 1, False, NOW)


@pytest.fixture
async def hosts(database: Database) -> AsyncIterator[Any]:
    made: list[Ownership] = []

    def host(name: str, sessions: str = "recado owner") -> Ownership:
        made.append(
            Ownership(
                database.server,
                clock=SystemClock(),
                elapsed=SystemClock.elapsed,
                host=name,
                pid=4711,
                sessions=sessions,
            )
        )
        return made[-1]

    yield host
    for each in made:
        await each.stop()


@asynccontextmanager
async def session(database: Database, name: str = "recado") -> AsyncIterator[Any]:
    """A session as the batches have it: what `dispatch.claim` needs of a database, and its connection."""
    connection = await asyncpg.connect(**database.server, server_settings={"application_name": name})
    await connection.set_type_codec(
        "jsonb", schema="pg_catalog", encoder=lambda value: orjson.dumps(value).decode(), decoder=orjson.loads
    )
    try:
        yield SimpleNamespace(hot=connection, months=database.months), connection
    finally:
        connection.terminate()


async def test_a_claim_that_saw_its_epoch_alive_and_comes_too_late_to_the_fence_claims_nothing(
    database: Database, hosts: Any
) -> None:
    first, second = hosts("web-1"), hosts("web-2")
    epoch = (await first.take()).epoch
    claim = await claim_of(database)
    async with session(database) as (late, connection):
        await connection.execute("begin isolation level repeatable read; select from hosts")  # what it sees from now on
        taken = await second.take(take_over=True)
        assert await dispatch.claim(late, [claim], epoch, NOW) == [LOST]
        assert not await fence.owns(connection, epoch)
        (stored,) = await messages.accept(late.hot, [new(claim=OwnClaim(epoch, NOW))])
        assert isinstance(stored, Unavailable)
        await connection.execute("commit")
    assert await dispatch.claim(database, [claim], taken.epoch, NOW) == [CLAIMED]


async def test_whoever_takes_the_place_waits_for_a_claim_under_way_and_finds_it(database: Database, hosts: Any) -> None:
    first, second = hosts("web-1"), hosts("web-2")
    epoch = (await first.take()).epoch
    claim = await claim_of(database)
    async with session(database) as (under_way, connection):
        await connection.execute("begin")
        assert await dispatch.claim(under_way, [claim], epoch, NOW) == [CLAIMED]
        taking = asyncio.create_task(second.take(take_over=True))
        await until_locked_out(database)
        assert not taking.done()
        await connection.execute("commit")
    taken = await taking
    assert await database.fetchval("select claimed_epoch from dispatch") == epoch < taken.epoch


async def test_claims_of_a_process_that_hangs_are_ended(database: Database, hosts: Any) -> None:
    """As one that waits for a row which somebody holds for long."""
    name = session_name(os.urandom)
    first, second = hosts("web-1", name), hosts("web-2")
    epoch = (await first.take()).epoch
    claim = await claim_of(database)
    async with session(database, name) as (hung, _), database.transaction() as another:
        await another.execute("update dispatch set expires_at = expires_at + interval '1 s'")
        claiming = asyncio.create_task(dispatch.claim(hung, [claim], epoch, NOW))
        await until_locked_out(database)
        taken = await second.take(take_over=True)
        with pytest.raises((asyncpg.PostgresConnectionError, asyncpg.InterfaceError, asyncpg.AdminShutdownError)):
            await claiming
    assert await dispatch.claim(database, [claim], taken.epoch, NOW) == [CLAIMED]


async def test_nothing_is_taken_from_a_process_whose_claims_could_not_be_ended(database: Database, hosts: Any) -> None:
    first, second = hosts("web-1"), hosts("web-2")
    epoch = (await first.take()).epoch
    claim = await claim_of(database)
    async with session(database) as (under_way, connection):
        await connection.execute("begin")
        assert await dispatch.claim(under_way, [claim], epoch, NOW) == [CLAIMED]
        with pytest.raises(Owned, match=r"^process 4711 on web-1 .* claims under way .*: end that process"):
            await second.take(take_over=True)
        await connection.execute("commit")
    assert await epochs.current_epoch(database) == epoch


async def test_who_began_to_take_the_place_and_died_leaves_it_as_it_was(database: Database, hosts: Any) -> None:
    epoch = (await hosts("web-1").take()).epoch
    claim = await claim_of(database)
    async with session(database) as (_, connection):
        await connection.execute("select pg_advisory_lock($1, $2)", FENCE, epoch)
        assert await dispatch.claim(database, [claim], epoch, NOW) == [LOST]
        await connection.execute("select pg_advisory_unlock($1, $2)", FENCE, epoch)
    assert await dispatch.claim(database, [claim], epoch, NOW) == [CLAIMED]


def test_the_condition_of_the_fence_is_written_once() -> None:
    assert [name for name, file in FILES.items() if "pg_try_advisory_xact_lock" in file.read_text("utf-8")] == ["fence"]
