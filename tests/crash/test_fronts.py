"""A front is killed under load, then the owner; or another takes over: what was accepted leaves, once (C33, C29.2)."""

import asyncio
import os
import signal
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.crash.evidence import is_uncertain
from tests.crash.stage import SimulatedStage
from tests.crash.verdict import tightest
from tests.fronts.processes import Press, fronts_of, is_front, owner_of
from tests.program import Api, Service
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.alone]

PACE = 60
IN_FLIGHT = 6  # calls that an end may leave in doubt, each with an answer within 20 ms


async def sends(stage: SimulatedStage) -> tuple[str, dict[str, Any]]:
    """A key of the stage's service, and the body of a message through its one sender."""
    key = await asyncio.to_thread(stage.service.key, "live")
    await asyncio.to_thread(stage.credit)
    async with Api(stage.service.url, key) as api:
        sender = await stage.sender(api, 0, PACE)
    return key, {
        "numberId": sender.number_id, "to": "+5511912345678", "type": "template",
        "templateId": sender.template_id, "templateVars": ["Ana"],
    }  # fmt: skip


async def all_that_left(url: str, key: str) -> list[Any]:
    """The messages, when none waits any more, nor is under way."""
    async with Api(url, key) as api:

        async def all_left() -> bool:
            if (await api.call("GET", "/messages", status="queued", limit=1))["items"]:
                return False
            sending = (await api.call("GET", "/messages", status="sending", limit=100))["items"]
            return all([is_uncertain(await api.call("GET", f"/messages/{each['id']}")) for each in sending])

        await until(all_left, "every message has left", every=0.5)
        return [message async for message in api.pages("/messages")]


def judge(stage: SimulatedStage, messages: list[Any], presses: list[Press]) -> None:
    """What was accepted is there and left once."""
    times = Counter(request.id for request in stage.requests())
    accepted = [each.body["id"] for press in presses for each in press.accepted()]
    assert len(accepted) == len(set(accepted)) >= 200
    assert set(accepted) <= {message["id"] for message in messages}
    assert [message_id for message_id, count in times.items() if count > 1] == []
    never = {message["id"] for message in messages if message["status"] == "sending"} - set(times)
    assert len(never) <= IN_FLIGHT
    assert set(times) | never == {message["id"] for message in messages}


async def more(press: Press, count: int) -> None:
    before = len(press.accepted())
    await until(lambda: len(press.accepted()) >= before + count, "more is accepted")


async def test_what_was_accepted_leaves_once_though_a_front_and_then_the_owner_are_killed(tmp_path: Path) -> None:
    stage = SimulatedStage(tmp_path, seed=33, protocol="bridge", shares={})
    service = stage.service
    service.settings["WORKERS"] = "3"
    try:
        await stage.start()
        key, body = await sends(stage)
        press = Press(service.url, key, "/messages", body)
        fronts = fronts_of(service)
        async with press.pressing(8):
            await more(press, 100)
            os.kill(fronts[0], signal.SIGKILL)
            await more(press, 100)
            fronts = fronts_of(service)
            os.kill(owner_of(service), signal.SIGKILL)
            await until(lambda: not any(is_front(each) for each in fronts), "no front is left")
            await more(press, 100)
        messages = await all_that_left(service.url, key)
    finally:
        await stage.wipe()
    judge(stage, messages, [press])


async def test_a_service_with_fronts_that_takes_over_another_sends_nothing_twice_nor_too_fast(tmp_path: Path) -> None:
    stage = SimulatedStage(tmp_path, seed=34, protocol="bridge", shares={})
    first = stage.service
    first.settings["WORKERS"] = "3"
    later = tmp_path / "later"
    later.mkdir()
    others = {name: value for name, value in first.settings.items() if name != "LISTEN"}
    second = Service(later, "--take-over", durable=True, **others)
    try:
        await stage.start()
        key, body = await sends(stage)
        before, after = (Press(each.url, key, "/messages", body) for each in (first, second))
        fronts = fronts_of(first)
        async with before.pressing(8):
            await more(before, 150)
            # Whoever cannot have the address takes nothing over.
            refused = await asyncio.to_thread(
                second.attempt, "serve", "--take-over", "--listen", f"127.0.0.1:{first.port}"
            )
            assert refused.returncode == 1
            assert "is in use" in refused.stderr
            await more(before, 50)
            await second.start()
            await until(lambda: not first.running, "the one before ends")
            await until(lambda: not any(is_front(each) for each in fronts), "no front of it is left")
        assert len(fronts_of(second)) == 2
        async with after.pressing(8):
            await more(after, 150)
        messages = await all_that_left(second.url, key)
    finally:
        second.end(signal.SIGKILL)
        await stage.wipe()
    judge(stage, messages, [before, after])
    assert "has taken the numbers over" in first.log.read_text()
    assert "owner_died" not in first.log.read_text()  # its launcher begins no other
    called = [datetime.fromisoformat(message["sentAt"]) for message in messages if message.get("sentAt")]
    closest = tightest(called, PACE)
    assert closest is not None
    assert closest >= timedelta(milliseconds=999)  # `sentAt` shows no more than milliseconds
