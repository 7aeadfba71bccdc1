"""`recado loadtest` as a person runs it: on two channels, with a plot; interrupted, it reports what was done."""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest
from tests import forked
from tests.acceptance.sandbox.customer import Customer
from tests.program import COMMAND_LIMIT, Api, Service
from tests.waiting import until


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_an_interrupted_load_test_reports_and_puts_the_pace_back(
    service: Service, api: Api, token: str, tmp_path: Path, number: signal.Signals
) -> None:
    customer = await Customer.arrive(api, per_second=7)
    command = ["loadtest", service.url, "--token", token, "--number", customer.number_id, "--rate", "20"]
    command += ["--per-second", "3", "--duration", "600", "--json"]
    with (tmp_path / "report").open("wb") as output, (tmp_path / "log").open("wb") as log:
        process = forked.spawn(command, cwd=tmp_path, env=os.environ, stdout=output, stderr=log)

    async def queued() -> bool:
        page = await api.call("GET", "/messages", numberId=customer.number_id, status="queued", limit=1)
        return bool(page["total"] > 20)

    await until(queued, "the load test has sent more than leaves", every=0.1)
    process.send_signal(number)  # ends the sending
    seen = [0]

    async def sends_no_more() -> bool:
        seen.append((await api.call("GET", "/messages", numberId=customer.number_id, limit=1))["total"])
        return seen[-1] == seen[-2]

    await until(sends_no_more, "the load test has stopped sending 20 a second", every=0.5)
    process.send_signal(number)  # ends the waiting
    status = await asyncio.to_thread(process.wait, COMMAND_LIMIT)

    report = json.loads((tmp_path / "report").read_text())
    assert (status, report["interrupted"], report["ok"]) == (130, True, False)
    assert report["accepted"] > 20
    assert report["left"] < report["accepted"]
    limits = (await api.call("GET", f"/numbers/{customer.number_id}"))["rateLimit"]
    assert (limits["perSecond"], limits["perDay"]) == (7, 100_000)


async def test_a_mix_of_channels_is_checked_on_each_and_plotted(
    service: Service, api: Api, token: str, tmp_path: Path
) -> None:
    customer = await Customer.arrive(api, per_second=30)
    command = ["loadtest", service.url, "--token", token, "--number", customer.number_id, "--rate", "50"]
    command += ["--mix", "chatapp=4,sms=1", "--duration", "1", "--json", "--report", str(tmp_path / "run.html")]
    done = await asyncio.to_thread(forked.run, command, cwd=tmp_path, env=os.environ, timeout=COMMAND_LIMIT)

    report = json.loads(done.stdout)
    assert (done.returncode, report["problems"], report["refusals"]) == (0, [], {})
    assert report["accepted"] == report["left"] == 50
    left = {each["numberId"]: (each["left"], each["perSecond"]) for each in report["numbers"]}
    assert left == {customer.number_id: (40, 30), "sms": (10, None)}
    assert sum(point["accepted"] for point in report["series"]) == 50
    assert sum(point["sent"] for point in report["series"]) == 50
    assert report["campaignId"] in (tmp_path / "run.html").read_text()
