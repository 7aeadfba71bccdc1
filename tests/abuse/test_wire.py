"""What happens before a request is understood: requests sent ahead, and idle connections."""

import resource
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
from tests.abuse.attacker import Attacker, keep_on, status_of
from tests.abuse.conftest import Resident
from tests.abuse.neighbour import Neighbour
from tests.program import Api, Service

pytestmark = [pytest.mark.alone, pytest.mark.usefixtures("memory_returns")]

AHEAD = 5_000
IDLE = 1_100
DESCRIPTORS = 1_024


async def test_a_stranger_who_sends_thousands_of_requests_ahead_keeps_nobody_waiting(
    attacker: Attacker, neighbour: Neighbour, seconds: float
) -> None:
    stranger = attacker.without_credential()
    ahead = stranger.head("GET", "/healthz", None) * (AHEAD - 1)
    last = stranger.head("GET", "/healthz", None, {"Connection": "close"})

    async def ask() -> int:
        reader, writer = await stranger.connect()
        try:
            writer.write(ahead + last)
            return await status_of(reader)
        finally:
            writer.transport.abort()

    async with neighbour.held():
        answers = await keep_on(seconds, 4, ask)
    assert set(answers) == {200}


class Limited(Service):
    """The service under a limit of descriptors."""

    starts_with = ("/bin/sh", "-c", f'ulimit -n {DESCRIPTORS}; exec "$0" -m recado "$@"', sys.executable)


@pytest.fixture
def descriptors() -> Iterator[None]:
    """Enough of them for the attack itself."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 4 * IDLE if hard == resource.RLIM_INFINITY else min(4 * IDLE, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@asynccontextmanager
async def limited(folder: Any) -> AsyncIterator[Limited]:
    service = Limited(folder)
    try:
        await service.start()
        yield service
    finally:
        await service.wipe()


@pytest.mark.long
@pytest.mark.usefixtures("descriptors")
async def test_idle_connections_leave_descriptors_for_those_who_send(tmp_path: Any) -> None:
    async with limited(tmp_path) as service, AsyncExitStack() as streams:
        resident = await Resident.settle(service)
        neighbour = await streams.enter_async_context(resident.measured())
        attacker = Attacker("127.0.0.1", service.port)
        async with neighbour.held():
            resting = [await attacker.connect() for _ in range(IDLE)]
            for _, writer in resting:
                streams.callback(writer.transport.abort)
            for _ in range(20):
                async with Api(service.url, resident.token) as caller:  # a new connection each
                    assert await caller.call("GET", "/messages", limit=1)
