"""One real service for most tests of this folder: the sandbox, ten times as fast, and an administrator."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.acceptance.sandbox.customer import Customer, phone
from tests.callers import admin, admin_token, api, token  # noqa: F401 - fixtures of these tests
from tests.program import Api, Service, serving

TIME_SCALE = 0.1


@pytest.fixture(scope="session")
def service(tmp_path_factory: pytest.TempPathFactory, admin_token: str) -> Iterator[Service]:
    """The running service."""
    running = Service(tmp_path_factory.mktemp("sandbox"), SANDBOX_TIME_SCALE=str(TIME_SCALE), ADMIN_TOKEN=admin_token)
    with serving(running) as started:
        yield started


@dataclass(frozen=True, slots=True)
class Early:
    """What was sent before the first test: through a line that tests may share, to a phone that refuses it twice.

    `waiting`: what the message said of its wait after the first refusal, and had said when it was `seen`.
    """

    number_id: str
    template_id: str
    refused: Any
    waiting: Any
    seen: datetime


@pytest.fixture(scope="session", autouse=True)
def early(service: Service, token: str) -> Early:
    """Its two retries take 35 seconds, in which the other tests run."""

    async def begin() -> Early:
        async with Api(service.url, token) as caller:
            customer = await Customer.arrive(caller)
            message = await customer.send(phone("9005"))
            waiting = await customer.waits(message, "retry")
            return Early(customer.number_id, customer.template_id, message, waiting, datetime.now(UTC))

    return asyncio.run(begin())


@pytest.fixture
def regular(api: Api, early: Early) -> Customer:
    """A customer for whom tests change nothing but what they send."""
    return Customer(api, early.number_id, early.template_id)


Newcomer = Callable[[], Awaitable[tuple[str, Customer]]]


@pytest.fixture
async def newcomer(service: Service, admin: Api) -> AsyncIterator[Newcomer]:
    """Makes an organization of the test's own: its id, and a customer of it with a number and a template."""
    async with AsyncExitStack() as open_callers:

        async def make() -> tuple[str, Customer]:
            body = {"name": "Newcomer", "ownerEmail": f"{secrets.token_hex(8)}@example.com"}
            made = await admin.call("POST", "/v2/admin/organizations", body)
            caller = await open_callers.enter_async_context(Api(service.url, made["keys"]["test"]["token"]))
            return made["id"], await Customer.arrive(caller)

        yield make
