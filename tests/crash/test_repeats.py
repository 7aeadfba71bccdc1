"""Kills before a bridge that sends each key once: what is in doubt is repeated, and reaches nobody twice (C29.2).

A report decides what waits for its repeat as it decides what is being sent: none of them is lost.
"""

import asyncio
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.crash.evidence import is_uncertain
from tests.crash.stage import SimulatedStage
from tests.crash.traffic import send_many
from tests.program import Api
from tests.waiting import until

pytestmark = pytest.mark.alone

MESSAGES, PACE = 600, 60  # however late a kill comes, there is more to leave
SHARES = {"error": 0.1, "silent": 0.5}  # processed and answered with a 5xx; no report settles half of them
LATENCY_MS = 500  # so that some thirty calls are under way at each kill
BETWEEN = 60  # requests of the provider between two kills
PATIENCE = 90.0  # a call takes 5 s to be repeated, 30 s where its first repeat was cut off as well


@pytest.mark.long
async def test_after_kills_an_idempotent_bridge_is_given_what_is_in_doubt_again_and_sends_it_once(
    tmp_path: Path,
) -> None:
    stage = SimulatedStage(tmp_path, seed=6, protocol="bridge", shares=SHARES, latency_ms=LATENCY_MS, idempotent=True)
    try:
        await stage.start()
        key = await asyncio.to_thread(stage.service.key, "live")
        await asyncio.to_thread(stage.credit)
        async with Api(stage.service.url, key) as api:
            sender = await stage.sender(api, 0, PACE)
            ids = await send_many(api, sender, MESSAGES)
            for dies in (stage.service, stage.provider, stage.service):
                begun = stage.received()
                await until(lambda begun=begun: stage.received() >= begun + BETWEEN, "messages leave", limit=PATIENCE)
                dies.end(signal.SIGKILL)
                await (stage.service.start() if dies is stage.service else stage.start_others())

        async with Api(stage.service.url, key) as api:

            async def under_way() -> list[Any]:
                found = []
                for status in ("queued", "sending"):
                    found += (await api.call("GET", "/messages", status=status, limit=100))["items"]
                return found

            async def all_left() -> bool:
                return not await under_way()

            await until(all_left, "every message has left", limit=PATIENCE, every=0.5)
            told = {request.id: "read" if request.receipts else "sent" for request in stage.requests()}

            async def all_told() -> bool:
                read = await api.call("GET", "/messages", status="read", limit=1)
                return bool(read["total"] == Counter(told.values())["read"])

            await until(all_told, "every report has moved its message", limit=PATIENCE, every=0.5)
            messages = [await api.call("GET", f"/messages/{message_id}") for message_id in ids]
    finally:
        await stage.wipe()

    requests, repeats = stage.requests(), stage.repeats()
    assert {request.id for request in requests} == ids
    assert [name for name, times in Counter(request.id for request in requests).items() if times > 1] == []
    assert not [message["id"] for message in messages if is_uncertain(message)]
    assert {message["id"]: message["status"] for message in messages} == told
    assert not [message["id"] for message in messages if "lastError" in message]  # nothing refused any of them
    known = {request.id: request.provider_message_id for request in requests}
    assert all(known[repeat["id"]] == repeat["providerMessageId"] for repeat in repeats)
    in_doubt = {request.id for request in requests if request.answered_at is None}
    assert len(in_doubt) >= PACE * LATENCY_MS / 1_000 / 2  # at three kills
    assert {request.id for request in requests if not request.receipts} & in_doubt <= {each["id"] for each in repeats}
