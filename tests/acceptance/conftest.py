"""One application for the tests over the whole interface, with two organizations, and the walk over its routes."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any

import aiohttp
import asyncpg
import pytest
from tests.acceptance.caller import Caller, Request
from tests.acceptance.samples_links import LINK_CODE
from tests.acceptance.served import ADMIN_TOKEN, Served
from tests.acceptance.tenants import Tenant, settle
from tests.acceptance.walk import Walk
from tests.message_rows import insert_messages
from tests.program import Api

from recado.domain.core.ids import MESSAGE, IdSource, lowest_id
from recado.engine.clock import SystemClock


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The whole application, running."""
    with Served(tmp_path_factory.mktemp("served")) as application:
        yield application


@pytest.fixture(scope="session")
def tenants(served: Served) -> tuple[Tenant, Tenant]:
    """Two organizations that have nothing to do with each other."""
    with asyncio.Runner() as runner:
        first, second = (runner.run(settle(served.url, ADMIN_TOKEN, name)) for name in ("First", "Second"))
        runner.run(link(served, first))
        for tenant in (first, second):
            runner.run(others(served, tenant))
    return first, second


async def link(served: Served, tenant: Tenant) -> None:
    """A link of a message: no channel of this release has any."""
    connection = await asyncpg.connect(**served.database)
    try:
        await connection.execute(
            "insert into tracked_links (code, organization_id, env, channel, message_id, url) "
            "values ($1, $2, 'test', 'sms', $3, 'https://example.com/')",
            LINK_CODE, tenant.organization_id, lowest_id(MESSAGE, datetime.now(UTC)),
        )  # fmt: skip
    finally:
        await connection.close()


async def others(served: Served, tenant: Tenant) -> None:
    """Messages of channels on which this release does not send, and whose exports there are."""
    connection = await asyncpg.connect(**served.database)
    try:
        ids = IdSource(SystemClock(), random.Random())
        rows = [{"id": ids.new(MESSAGE), "channel": channel} for channel in ("email",) for _ in range(2)]
        await insert_messages(connection, tenant.organization_id, "test", rows)
    finally:
        await connection.close()


@pytest.fixture(scope="session")
def prepared() -> dict[str, Request]:
    """Requests that were made to be refused: they stay good for the next test."""
    return {}


@pytest.fixture(scope="session")
def served_document(served: Served) -> Any:
    """The OpenAPI document as it is served."""
    return served.document()


@pytest.fixture
async def walk(
    served: Served,
    served_document: Any,
    tenants: tuple[Tenant, Tenant],
    prepared: dict[str, Request],
    request: pytest.FixtureRequest,
) -> AsyncIterator[Walk]:
    """`request.param`: each so many-th operation is walked (IN_PARTS); without it all are."""
    # The statement that looks for changes is long, and takes longer to plan than to run.
    connection = await asyncpg.connect(**served.database, max_cacheable_statement_size=0)
    try:
        async with aiohttp.ClientSession() as session, Api(served.url, tenants[0].token) as api:
            caller = Caller(session, served.url, served_document)
            every = getattr(request, "param", 1)
            yield Walk(served.routes, served_document, caller, api, tenants, connection, prepared, every)
    finally:
        await connection.close()
