"""The keys of a folder's `service`, and who calls it with them: the conftest that starts it imports these."""

import secrets
from collections.abc import AsyncIterator

import pytest
from tests.program import Api, Service


@pytest.fixture(scope="session")
def admin_token() -> str:
    """For the settings of a service that has an administrator."""
    return secrets.token_urlsafe(24)


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
