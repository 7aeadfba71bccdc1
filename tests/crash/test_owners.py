"""The owner of a number changes three times under load, and no second carries more than the number's pace (C14.5.6).

One owner is stopped for 40 s and goes on; one is killed while its claim waits for a row that somebody holds; one is
displaced while it works, by a service whose clock is 20 ms ahead. The simulator's record says what left, and when.
"""

import asyncio
import os
import shutil
import signal
import time
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.crash.evidence import is_uncertain
from tests.crash.stage import SimulatedStage
from tests.crash.traffic import send_many
from tests.crash.verdict import SECOND, STAMPED_LATE, tightest
from tests.faults.clock_shim import ClockShim
from tests.program import Api, Service
from tests.waiting import until

pytestmark = [pytest.mark.alone, pytest.mark.skipif(shutil.which("cc") is None, reason="the shim is compiled here")]

PACE = 20
MESSAGES = 900
STOPPED_FOR = 40.0  # seconds
HELD_FOR = 5.0  # seconds that somebody holds the rows
AHEAD = 0.02  # seconds
IN_FLIGHT = 6  # calls that an end may leave in doubt, each with an answer within 20 ms


@pytest.mark.long
async def test_no_second_carries_more_than_the_pace_across_owners_and_nothing_leaves_twice(
    tmp_path: Path,
) -> None:
    stage = SimulatedStage(tmp_path, seed=16, protocol="bridge", shares={})
    settings = {name: value for name, value in stage.service.settings.items() if name != "LISTEN"}

    def folder(name: str) -> Path:
        made = tmp_path / name
        made.mkdir()
        return made

    shim = ClockShim(tmp_path)
    shim.set_ahead(AHEAD)
    first = stage.service
    second, third = (Service(folder(name), durable=True, **settings) for name in ("second", "third"))
    fourth = shim.service(folder("fourth"), "--take-over", durable=True, **settings)
    owners = (first, second, third, fourth)

    async def leaves(more: int, whose: Service) -> None:
        """So many more leave by this owner."""

        def count() -> int:
            return sum(whose.url in (each.callback or "") for each in stage.requests())

        before = count()
        await until(lambda: count() >= before + more, f"messages leave by {whose.url}", every=0.1)

    try:
        await stage.start()
        key = await asyncio.to_thread(first.key, "live")
        await asyncio.to_thread(stage.credit)
        async with Api(first.url, key) as api:
            sender = await stage.sender(api, 0, PACE)
            ids = await send_many(api, sender, MESSAGES)
        await leaves(2 * PACE, first)

        os.kill(first.pid, signal.SIGSTOP)
        stopped_at = time.monotonic()
        await second.start()
        await leaves(2 * PACE, second)

        holding = await asyncpg.connect(**stage.database)
        held = holding.transaction()
        await held.start()
        await holding.execute("select from dispatch where claimed_epoch is null for update")
        held_at = time.monotonic()
        await until(lambda: blocked(holding), "a claim waits for a row", every=0.05)
        second.end(signal.SIGKILL)
        starting = asyncio.create_task(third.start())
        await until(lambda: time.monotonic() >= held_at + HELD_FOR, "the rows are let go", every=0.05)
        await held.rollback()
        await holding.close()
        await starting
        await leaves(2 * PACE, third)

        await fourth.start()
        await leaves(2 * PACE, fourth)
        await until(lambda: not third.running, "the displaced owner ends")

        await until(lambda: time.monotonic() >= stopped_at + STOPPED_FOR, "40 s are over", every=0.1)
        os.kill(first.pid, signal.SIGCONT)
        await until(lambda: not first.running, "the stopped owner sees that it is none any more, and ends")
        await leaves(PACE, fourth)

        async with Api(fourth.url, key) as api:

            async def all_left() -> bool:
                if (await api.call("GET", "/messages", status="queued", limit=1))["items"]:
                    return False
                sending = (await api.call("GET", "/messages", status="sending", limit=100))["items"]
                return all([is_uncertain(await api.call("GET", f"/messages/{each['id']}")) for each in sending])

            await until(all_left, "every message has left", every=0.5)
            messages: list[Any] = [message async for message in api.pages("/messages")]
    finally:
        for each in owners[1:]:
            each.end(signal.SIGKILL)
        if first.running:
            os.kill(first.pid, signal.SIGCONT)
        await stage.wipe()

    requests = stage.requests()
    assert "has taken the numbers over" in first.log.read_text()
    assert "has taken the numbers over" in third.log.read_text()
    times = Counter(request.id for request in requests)
    assert [message_id for message_id, count in times.items() if count > 1] == []
    never = {message["id"] for message in messages if message["status"] == "sending"} - set(times)
    assert set(times) | never == ids
    assert len(never) <= IN_FLIGHT
    # By the moment of the call, where the service knows it, and by when each request arrived.
    called = [datetime.fromisoformat(message["sentAt"]) for message in messages if message.get("sentAt")]
    assert len(called) >= MESSAGES - IN_FLIGHT
    for moments, shortest in ((called, SECOND), ([each.at for each in requests], SECOND - STAMPED_LATE)):
        worst = tightest(moments, PACE)
        assert worst is not None
        assert worst >= shortest - timedelta(milliseconds=1)  # of which sentAt shows no more


async def blocked(connection: "asyncpg.Connection[asyncpg.Record]") -> bool:
    found: bool = await connection.fetchval(
        "select exists (select from pg_locks where locktype = 'transactionid' and not granted)"
    )
    return found
