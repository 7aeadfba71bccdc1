"""Dashboard and alerts of `deploy/` ask for nothing that the running service does not tell (C34.1)."""

import asyncio
import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.acceptance.sandbox.customer import Customer, phone
from tests.acceptance.sandbox.test_metrics import scraped, value, values
from tests.deploy import promtool
from tests.deploy.asked_metrics import all_stand_in
from tests.program import Api, Refused, Service, free_port
from tests.waiting import until

from recado.actors.ops.actor_tree import ONLY_WITH_THE_PROGRAM
from recado.domain.channels.policies import POLICIES
from recado.domain.messages.message import CLASSES as PRIORITIES
from recado.domain.messages.message import FailureCode, WaitReason
from recado.http.api.request_figures import CLASSES as STATUSES
from recado.http.routes.ops.metrics import OTHER

VALUES: Mapping[str, set[str]] = {
    "channel": {*POLICIES, "push"},
    "status": set(STATUSES),
    "class": {priority.value for priority in PRIORITIES},
    "code": {*map(str, FailureCode), *(str(code) for each in POLICIES.values() for code in each.refusals), OTHER},
    "reason": {reason.value for reason in WaitReason} | {"ready", "sending"},
    "env": {"live", "test"},
    "gateway": {"own"},
    "outcome": {"delivered", "failed"},
}


async def busy(service: Service, regular: Customer, api: Api, admin: Api) -> str:
    """What is scraped of a service in which everything that has labels has happened."""
    await regular.reaches(await regular.send(phone()), "read")
    await regular.reaches(await regular.send(phone("9001")), "failed")
    lanes = [each["path"] for each in (await api.call("GET", "/v2/ops/actors"))["items"] if each["kind"] == "Lane"]
    before = await value(service, "recado_restarts_total")
    await admin.call("POST", "/v2/ops/actors/restart", {"path": lanes[0]})

    async def restarted() -> bool:
        return await value(service, "recado_restarts_total") > before

    await until(restarted, "the restart is counted")
    for name in sorted(ONLY_WITH_THE_PROGRAM):  # 404: nothing has that name
        with pytest.raises(Refused, match="409"):
            await admin.call("POST", "/v2/ops/actors/restart", {"path": f"recado/{name}"})
    await regular.send(phone("9005"))  # waits for its second try

    async def queued() -> str | None:
        text = await asyncio.to_thread(scraped, service)
        return text if {"recado_queue_messages", "recado_queue_oldest_seconds"} <= values(text).keys() else None

    return await until(queued, "something is queued") or ""


async def test_promtool_takes_the_metrics_of_the_service(service: Service, regular: Customer) -> None:
    await regular.reaches(await regular.send(phone()), "read")
    done = promtool.run("check", "metrics", text=await asyncio.to_thread(scraped, service))
    assert done.returncode == 0, done.stdout + done.stderr


async def test_dashboard_and_alerts_name_metrics_labels_and_values_that_there_are(
    service: Service, regular: Customer, api: Api, admin: Api
) -> None:
    text = await busy(service, regular, api, admin)
    all_stand_in(text, of_entry=False, values=VALUES, least=21)


def shown_configuration(service: Service) -> Any:
    """What docs/operators.md shows of Prometheus' own, for this service, which has no token."""
    page = (promtool.ROOT / "docs" / "operators.md").read_text("utf-8")
    content: dict[str, Any] = {"global": {"evaluation_interval": "1s"}}
    for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL):
        content |= yaml.safe_load(block.replace("/opt/recado", str(promtool.ROOT)))
    (job,) = content["scrape_configs"]
    del job["authorization"]
    job["scrape_interval"] = "1s"
    job["static_configs"][0]["targets"] = [service.url.removeprefix("http://")]
    return content


@pytest.mark.long
async def test_prometheus_itself_scrapes_the_service_and_evaluates_each_rule(service: Service, tmp_path: Path) -> None:
    program = shutil.which("prometheus")
    if program is None:
        pytest.skip("prometheus is not installed (Debian: prometheus)")
    configuration, log = tmp_path / "prometheus.yml", tmp_path / "prometheus.log"
    configuration.write_text(yaml.safe_dump(shown_configuration(service)))
    address = f"127.0.0.1:{free_port()}"

    def asked(path: str, **query: str) -> Any:
        with urllib.request.urlopen(f"http://{address}{path}?{urllib.parse.urlencode(query)}", timeout=30) as answer:
            return json.loads(answer.read())["data"]

    async def up() -> bool:
        try:
            found = await asyncio.to_thread(asked, "/api/v1/query", query='up{job="recado"}')
        except OSError:
            return False
        return [value for each in found["result"] for value in each["value"][1:]] == ["1"]

    async def evaluated() -> bool:
        groups = (await asyncio.to_thread(asked, "/api/v1/rules"))["groups"]
        health = {rule["name"]: rule["health"] for group in groups for rule in group["rules"]}
        return health == dict.fromkeys(promtool.alerts(), "ok")

    command = [
        program, f"--config.file={configuration}", f"--storage.tsdb.path={tmp_path / 'series'}",
        f"--web.listen-address={address}",
    ]  # fmt: skip
    with log.open("wb") as said:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=said, stderr=said)
    try:
        await until(up, "Prometheus has scraped the service", every=0.2)
        await until(evaluated, "each rule is evaluated", every=0.2)
        for expression in promtool.shown():
            await asyncio.to_thread(asked, "/api/v1/query", query=expression)  # another answer than 200 raises
    finally:
        process.terminate()
        process.wait(30)
