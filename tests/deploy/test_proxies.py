"""Recado behind nginx and Caddy, with the configuration that `deploy/proxies` shows."""

import asyncio
import io
import secrets
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from tests.acceptance.sandbox.customer import Customer, phone
from tests.deploy import proxies
from tests.deploy.proxies import PROXIES, Proxy
from tests.program import Api, Service

from recado.http.api.route import MIB

AT_ONCE = 30.0  # seconds; a sample is made each second, and a proxy that gathers would keep it for minutes
CALLER, FORGER, FORGED = "127.0.0.3", "127.0.0.4", "127.0.0.5"

each = pytest.mark.parametrize("kind", PROXIES)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One that believes what proxies on 127.0.0.1 say of whom they serve."""
    running = Service(tmp_path_factory.mktemp("proxied"), SANDBOX_TIME_SCALE="0.1", TRUSTED_PROXIES="127.0.0.1")
    try:
        asyncio.run(running.start())
        yield running
    finally:
        asyncio.run(running.wipe())


@pytest.fixture(scope="module")
def token(service: Service) -> str:
    return service.key("test")


@pytest.fixture
async def customer(service: Service, token: str) -> AsyncIterator[Customer]:
    async with Api(service.url, token) as api:
        yield await Customer.arrive(api)


@asynccontextmanager
async def before(service: Service, kind: str, folder: Path) -> AsyncIterator[Proxy]:
    proxy = PROXIES[kind](folder, service.port)
    with proxies.running(proxy, folder):
        await proxies.listening(proxy.url)
        yield proxy


@asynccontextmanager
async def caller(proxy: Proxy, token: str, address: str = CALLER) -> AsyncIterator[aiohttp.ClientSession]:
    """Who calls through the proxy, or past it, from an address of this machine."""
    trusting = ssl.create_default_context(cafile=str(proxy.certificate.chain))
    connector = aiohttp.TCPConnector(ssl=trusting, local_addr=(address, 0))
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        yield session


@each
def test_the_program_takes_the_configuration_that_is_shown(kind: str, tmp_path: Path) -> None:
    proxy = PROXIES[kind](tmp_path, 8080)
    done = subprocess.run(
        proxy.check, env={"PATH": "/usr/sbin:/usr/bin:/bin", **proxy.environment}, capture_output=True, text=True,
        timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.long
@each
async def test_a_message_leaves_and_a_plain_request_is_led_to_tls(
    kind: str, service: Service, token: str, customer: Customer, tmp_path: Path
) -> None:
    body = {"numberId": customer.number_id, "to": phone(), "type": "template", "templateId": customer.template_id}
    async with before(service, kind, tmp_path) as proxy, caller(proxy, token) as session:
        async with session.post(f"{proxy.url}/messages", json={**body, "templateVars": ["hello"]}) as answer:
            assert answer.status == 201, await answer.text()
            message = await answer.json()
        await customer.reaches(message, "delivered")
        async with session.get(f"{proxy.plain}/messages", allow_redirects=False) as answer:
            assert answer.status == 308
            assert answer.headers["Location"].startswith("https://")
        async with session.get(f"{proxy.url}/metrics") as answer:
            assert answer.status == 401  # for this machine alone, and the proxy is asked by everybody


@pytest.mark.long
@each
async def test_a_body_above_the_limit_of_its_operation_is_refused_by_the_service_and_any_larger_one_too(
    kind: str, service: Service, token: str, tmp_path: Path
) -> None:
    large = orjson.dumps({"to": "x" * MIB})
    async with before(service, kind, tmp_path) as proxy, caller(proxy, token) as session:
        async with session.post(
            f"{proxy.url}/messages", data=io.BytesIO(large), headers={"Content-Type": "application/json"}
        ) as answer:
            assert (answer.status, answer.content_type) == (413, "application/problem+json")
        async with session.post(f"{proxy.url}/messages", data=io.BytesIO(bytes(70 * MIB))) as answer:
            assert answer.status == 413


@pytest.mark.long
@each
async def test_an_event_of_the_stream_arrives_at_once(
    kind: str, service: Service, token: str, customer: Customer, tmp_path: Path
) -> None:
    async with (
        before(service, kind, tmp_path) as proxy,
        caller(proxy, token) as session,
        session.get(f"{proxy.url}/v2/ops/stream", timeout=aiohttp.ClientTimeout(total=300)) as stream,
    ):
        assert stream.content_type == "text/event-stream"
        async with asyncio.timeout(AT_ONCE):
            await told(stream, f'"numberId":"{customer.number_id}"')
        await customer.api.call("POST", f"/v2/ops/numbers/{customer.number_id}/pause")
        async with asyncio.timeout(AT_ONCE):
            await told(stream, "operator_paused")


@pytest.mark.long
@each
async def test_the_callers_address_is_the_one_that_the_proxy_saw(
    kind: str, service: Service, token: str, customer: Customer, tmp_path: Path
) -> None:
    async with before(service, kind, tmp_path) as proxy:
        seen = [
            await noted(customer, service, proxy, token, through=through, address=address, said=said)
            for through, address, said in (
                (True, CALLER, None),
                (True, FORGER, FORGED),  # what the caller says stands before what the proxy saw
                (False, FORGER, FORGED),  # and is nothing where no proxy of ours says it
                (False, "127.0.0.1", FORGED),  # who calls from the proxy's own address is believed
            )
        ]
    assert seen == [CALLER, FORGER, FORGER, FORGED]


async def noted(
    customer: Customer, service: Service, proxy: Proxy, token: str, *, through: bool, address: str, said: str | None
) -> Any:
    """The address that the audit has of a caller who pauses and resumes a number."""
    headers = {} if said is None else {"X-Forwarded-For": said}
    url = proxy.url if through else service.url
    async with caller(proxy, token, address) as session:
        for what in ("pause", "resume"):
            path = f"{url}/v2/ops/numbers/{customer.number_id}/{what}"
            async with session.post(path, headers={**headers, "Idempotency-Key": secrets.token_hex(8)}) as answer:
                assert answer.status == 200, await answer.text()
                request = answer.headers["X-Request-Id"]
    entries = (await customer.api.call("GET", "/v2/audit", targetId=customer.number_id))["items"]
    (entry,) = [entry for entry in entries if entry["requestId"] == request]
    return entry["ip"]


async def told(stream: aiohttp.ClientResponse, text: str) -> None:
    """Read the stream until it says that."""
    async for line in stream.content:
        if text in line.decode():
            return
    raise AssertionError(f"the stream ended and did not tell {text}")
