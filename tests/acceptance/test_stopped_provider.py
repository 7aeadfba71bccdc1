"""A provider that stops answering: what the service tells before and after, and whether the alert fires by it."""

import asyncio
import re
import signal
import urllib.request
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.deploy import promtool
from tests.program import Api, Program, Service, free_port, running
from tests.waiting import until

SECRET = "a secret between the two"
ALERT = "RecadoNumbersUnreachable"
HALF = 20  # minutes that each of the two scrapes is said to last
EACH = {**promtool.SCRAPED, "channel": "chatapp", "env": "live", "gateway": "own"}


@dataclass
class Line:
    """A live number before a provider that can be ended."""

    service: Service
    provider: Program
    api: Api
    number_id: str = ""
    template_id: str = ""

    async def prepare(self) -> None:
        number = await self.api.number("106540352242922", access_token="access", business="business")
        self.number_id = number["id"]
        await self.api.call("POST", "/v2/templates/sync", {"numberId": self.number_id})

        async def approved() -> Any:
            held = await self.api.call("GET", "/v2/templates", numberId=self.number_id, status="approved")
            return next((each["id"] for each in held["items"] if each["name"] == "order_update"), None)

        self.template_id = await until(approved, "the provider's templates are here", every=0.1)

    async def send(self) -> str:
        body = {"numberId": self.number_id, "to": "+5511987654321", "type": "template", "templateVars": ["one"]}
        return str((await self.api.call("POST", "/messages", {**body, "templateId": self.template_id}))["id"])

    async def scraped(self) -> str:
        def read() -> str:
            with urllib.request.urlopen(f"{self.service.url}/metrics", timeout=30) as answer:
                return str(answer.read().decode())

        return await asyncio.to_thread(read)


@pytest.fixture
async def line(tmp_path: Path) -> AsyncIterator[Line]:
    port = free_port()
    service = Service(
        tmp_path,
        BILLING_ENABLED="false",
        ADAPTER_CHATAPP="bridge",
        BRIDGE_CHATAPP_URL=f"http://127.0.0.1:{port}",
        BRIDGE_CHATAPP_TOKEN="any",
        BRIDGE_CHATAPP_SECRET=SECRET,
    )
    provider = Program(
        tmp_path,
        "simulator",
        *("simulator", "--listen", f"127.0.0.1:{port}", "--record", str(tmp_path / "record.jsonl")),
        *("--secret", SECRET, "--protocol", "bridge", "--silent-share", "1"),
        *("--callback-url", f"{service.url}/v2/callbacks/chatapp/bridge"),
    )
    provider.spawn()
    try:
        await until(lambda: re.search("listens on", provider.output.read_text()), "the simulator listens")
        async with running(service):
            token = await asyncio.to_thread(service.key, "live")
            async with Api(service.url, token) as api:
                made = Line(service, provider, api)
                await made.prepare()
                yield made
    finally:
        provider.end(signal.SIGKILL)


def samples(text: str) -> Iterator[tuple[str, float]]:
    """Each series of a scrape, as promtool writes it, with what Prometheus adds."""
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = {**sample.labels, **promtool.SCRAPED}
            yield sample.name + "{" + ",".join(f'{name}="{each}"' for name, each in labels.items()) + "}", sample.value


def scraped_over_time(first: str, second: str) -> dict[str, str]:
    """Series that tell the first scrape for so many minutes, and then the second; `_`: there was none."""

    def values(scrape: dict[str, float], series: str) -> str:
        return f"{scrape[series]:f}+0x{HALF - 1}" if series in scrape else f"_x{HALF}"

    before, after = dict(samples(first)), dict(samples(second))
    return {series: f"{values(before, series)} {values(after, series)}" for series in before | after}


@pytest.mark.long
async def test_a_provider_that_stops_answering_fires_the_alert_of_its_numbers(line: Line, tmp_path: Path) -> None:
    async def told(open_circuits: int) -> str | None:
        text = await line.scraped()
        wanted = {"channel": "chatapp", "env": "live", "gateway": "own"}
        found = [
            sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == "recado_gateway_circuits_open" and sample.labels == wanted
        ]
        return text if found == [open_circuits] else None

    first = await line.send()

    async def sent() -> bool:
        return bool((await line.api.call("GET", f"/messages/{first}"))["status"] == "sent")

    await until(sent, "the message is sent", every=0.05)
    healthy = await until(lambda: told(0), "no circuit is open", every=0.1)
    line.provider.end(signal.SIGKILL)
    for _ in range(10):
        await line.send()
    broken = await until(lambda: told(1), "the circuit is open", every=0.1)

    looks = [
        promtool.looked_at(ALERT, f"{HALF - 1}m"),
        promtool.looked_at(ALERT, f"{HALF + 4}m"),
        promtool.looked_at(ALERT, f"{HALF + 5}m", promtool.fired(ALERT, EACH)),
        promtool.looked_at("RecadoGatewayUnreachable", f"{HALF + 5}m"),
    ]
    done = promtool.judged(tmp_path, [promtool.about("stopped", scraped_over_time(healthy, broken), looks)])
    assert done.returncode == 0, done.stdout + done.stderr
