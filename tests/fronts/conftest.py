"""One real service for the tests of this folder: an owner and two fronts, with the sandbox ten times as fast."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator

import pytest
from tests.fronts.processes import WORKERS
from tests.program import Api, Service


@pytest.fixture(scope="session")
def admin_token() -> str:
    return secrets.token_urlsafe(24)


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory, admin_token: str) -> Iterator[Service]:
    """The running service."""
    folder = tmp_path_factory.mktemp("fronts")
    running = Service(folder, "--workers", str(WORKERS), SANDBOX_TIME_SCALE="0.1", ADMIN_TOKEN=admin_token)
    try:
        asyncio.run(running.start())
        yield running
    finally:
        asyncio.run(running.wipe())


@pytest.fixture(scope="session")
def token(service: Service) -> str:
    """A key of the first organization without request limits."""
    return service.key("test")


@pytest.fixture
async def api(service: Service, token: str) -> AsyncIterator[Api]:
    async with Api(service.url, token) as caller:
        yield caller


@pytest.fixture
async def admin(service: Service, admin_token: str) -> AsyncIterator[Api]:
    async with Api(service.url, admin_token) as caller:
        yield caller
