"""What customers entrust to webhooks stays out of the logs, also when everything goes wrong (C30.5)."""

import asyncio
import secrets
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import pytest
from aiohttp import web
from tests.acceptance.sandbox.customer import Customer, phone
from tests.privacy import found_in_logs
from tests.program import Api, Refused, Service, running
from tests.waiting import until

ANSWER = "the endpoint's own private words"
TEXT = "meet me at the old mill"


async def endpoint(status: Callable[[], int], heard: list[Any]) -> tuple[web.ServerRunner, str]:
    async def handle(request: web.BaseRequest) -> web.Response:
        heard.append(await request.json())
        return web.Response(status=status(), text=f"{ANSWER}: {heard[-1]}")

    runner = web.ServerRunner(web.Server(handle), shutdown_timeout=0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    return (
        runner,
        f"http://127.0.0.1:{runner.addresses[0][1]}/hook/{secrets.token_hex(12)}?sesame={secrets.token_hex(8)}",
    )


async def test_secrets_headers_addresses_payloads_and_answers_stay_out_of_the_logs(tmp_path: Path) -> None:
    service = Service(tmp_path, SSRF_ALLOW_CIDRS="127.0.0.0/8", SANDBOX_TIME_SCALE="0.1", LOG_LEVEL="debug")
    person, header, metadata = phone("0000"), secrets.token_hex(16), secrets.token_hex(16)
    answers, heard = [200], list[Any]()
    runner, url = await endpoint(lambda: answers[-1], heard)
    kept: list[str] = []
    try:
        async with running(service):
            token = await asyncio.to_thread(service.key, "test")
            async with Api(service.url, token) as api:
                customer = await Customer.arrive(api)
                new = {"url": url, "events": ["*"], "includePii": True, "headers": [{"key": "X-Shop", "value": header}]}
                made = await api.call("POST", "/webhooks", new)
                path = f"/webhooks/{made['id']}"
                kept.append(made["secret"])

                async def happens(arrives: bool = True) -> None:
                    before = len(heard)
                    await customer.sends_at_last(person, metadata={"order": metadata})
                    inbound = {"numberId": customer.number_id, "from": person, "text": TEXT}
                    await api.call("POST", "/v2/sandbox/inbound", inbound)
                    if arrives:
                        await until(lambda: len(heard) > before, "the endpoint hears of it")

                await happens()
                for hours in (1, 0):
                    kept.append((await api.call("POST", f"{path}/rotate", {"graceHours": hours}))["secret"])
                    await happens()
                for answer in (500, 302, 429):
                    answers.append(answer)
                    await api.call("POST", f"{path}/test")
                    await happens()
                answers.append(200)
                await _be_refused(service, token, new)

                await service.end_postgres(signal.SIGKILL)
                await happens()
                await _spoil(service, made["id"])
                assert (await api.call("POST", f"{path}/test"))["error"] == "the signing secret cannot be read"
                await happens(arrives=False)
                await api.call("DELETE", path)
            service.end(signal.SIGTERM)
            postgres_log = tmp_path / "postgres.log"
            postgres_log.write_bytes(service.cluster().log.read_bytes())
    finally:
        await runner.cleanup()

    bare = [secret.removeprefix("whsec_") for secret in kept]
    private = [
        *bare,
        header,
        url.partition("/hook/")[2],
        url.partition("sesame=")[2],
        person[1:],
        metadata,
        TEXT,
        ANSWER,
    ]
    assert any(TEXT in str(event) for event in heard)
    assert found_in_logs([service.log, postgres_log], [*private, token]) == []


async def _be_refused(service: Service, token: str, new: dict[str, Any]) -> None:
    """Requests that go wrong with all of it in their hands."""
    async with Api(service.url, token) as api:
        for wrong in (
            {"url": new["url"].replace("http://", "http://user@")},
            {"headers": [*new["headers"], {"key": "Host"}]},
        ):
            with pytest.raises(Refused, match="422"):
                await api.call("POST", "/webhooks", {**new, **wrong})
    async with aiohttp.ClientSession() as session:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        async with session.post(f"{service.url}/webhooks", data=str(new).encode(), headers=headers) as answer:
            assert answer.status == 400


async def _spoil(service: Service, subscription_id: str) -> None:
    """Let the stored secret be unreadable, as after a restore under other keys."""
    connection = await asyncpg.connect(**service.cluster().connect_arguments)
    try:
        await connection.execute(
            "update webhook_subscriptions set secret_cipher = overlay(secret_cipher placing 'AAAA' from 20), "
            "revision = revision + 1 where id = $1",
            subscription_id,
        )
    finally:
        await connection.close()
