"""One real service for the tests of this folder: an owner and two fronts, with the sandbox ten times as fast."""

from collections.abc import Iterator

import pytest
from tests.callers import admin, admin_token, api, token  # noqa: F401 - fixtures of these tests
from tests.fronts.processes import WORKERS
from tests.program import Service, serving


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory, admin_token: str) -> Iterator[Service]:
    """The running service."""
    folder = tmp_path_factory.mktemp("fronts")
    running = Service(folder, "--workers", str(WORKERS), SANDBOX_TIME_SCALE="0.1", ADMIN_TOKEN=admin_token)
    with serving(running) as started:
        yield started
