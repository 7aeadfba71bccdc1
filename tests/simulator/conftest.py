"""A service before the simulated provider."""

from collections.abc import AsyncIterator

import pytest
from tests.callback_service import SECRET, Service


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    service = Service()
    await service.start()
    yield service
    await service.stop()


@pytest.fixture
def secret() -> str:
    return SECRET
