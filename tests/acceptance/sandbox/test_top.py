"""`recado top` as a person uses it, in a terminal beside a real service (C34.1, C35)."""

import asyncio
import os
from pathlib import Path

import orjson
from tests import forked
from tests.acceptance.sandbox.customer import Customer
from tests.program import Api, Service
from tests.terminal import SEEN_WITHIN, Terminal
from tests.waiting import until


async def test_a_person_sees_a_number_and_pauses_and_resumes_it_by_keys(service: Service, api: Api, token: str) -> None:
    number_id = (await Customer.arrive(api)).number_id

    async def held_by() -> str | None:
        held = (await api.call("GET", f"/v2/ops/numbers/{number_id}")).get("holding")
        return None if held is None else str(held["reason"])

    async with Terminal() as terminal:
        process = await terminal.run("top", "--url", service.url, "--filter", number_id, RECADO_API_KEY=token)
        await terminal.shows("live", "1–1 of 1 number by trouble", number_id)
        terminal.type("p")
        await terminal.shows(f"y: pause {number_id}")
        assert await held_by() is None
        terminal.type("y")
        await terminal.shows(f"{number_id} is paused", "operator_paused")
        assert await held_by() == "operator_paused"
        terminal.type("u")
        await terminal.shows(f"y: resume {number_id}")
        terminal.type("y")
        await terminal.shows(f"{number_id} is resumed")
        assert await held_by() is None
        assert terminal.now != terminal.before
        terminal.type("q")
        assert await asyncio.wait_for(process.wait(), SEEN_WITHIN) == 0
        assert terminal.now == terminal.before
        left = "\x1b[?25h\x1b[?1049l"  # the cursor is there again, and what the terminal showed before
        await until(lambda: terminal.written.endswith(left), "the screen is left", every=0.05)


async def test_a_script_gets_the_numbers_once(service: Service, api: Api, token: str, tmp_path: Path) -> None:
    number_id = (await Customer.arrive(api)).number_id
    command = ["top", "--url", service.url, "--json", "--filter", number_id]
    environment = {**os.environ, "RECADO_API_KEY": token}
    done = await asyncio.to_thread(forked.run, command, env=environment, cwd=tmp_path, timeout=60)
    (item,) = orjson.loads(done.stdout)["items"]
    assert (done.returncode, item["numberId"], item["breaker"]) == (0, number_id, "closed")
