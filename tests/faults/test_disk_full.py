"""A service whose tables have no room, while the write-ahead log has: it is told, until there is room again (C2.7).

The tables are on a small disk of their own, which is filled to the last page.
"""

import asyncio
import json
import os
import signal
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import pytest
from tests.acceptance.sandbox.customer import Customer, phone
from tests.faults.proxy import before_postgres
from tests.faults.stage import behind
from tests.fronts.processes import Press, fronts_of
from tests.program import Api, Refused, Service
from tests.required import only_where
from tests.storage.conftest import empty_database
from tests.waiting import until

from recado.domain.core.errors import Unavailable
from recado.engine.clock import SystemClock
from recado.storage.core.connections.postgres import Database

_MOUNTS = 21  # the bit of CAP_SYS_ADMIN


def _may_mount() -> bool:
    capabilities = Path("/proc/self/status").read_text().partition("CapEff:")[2].split()[0]
    return bool(int(capabilities, 16) >> _MOUNTS & 1)


@pytest.fixture
def disk() -> Iterator[Path]:
    """An empty disk of 200 MiB, which every user can reach."""
    folder = Path("/var/lib") / f"recado-test-{os.getpid()}"
    folder.mkdir()
    try:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200m,mode=0755", "tmpfs", folder], check=True)
        try:
            yield folder
        finally:
            subprocess.run(["umount", folder], check=True)
    finally:
        folder.rmdir()


@pytest.fixture
async def server(disk: Path, postgres: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    """How to connect to a migrated database whose tables are on that disk."""
    tables = disk / "tables"
    tables.mkdir(mode=0o700)
    os.chown(tables, Path(postgres["host"]).stat().st_uid, -1)
    administrator = await asyncpg.connect(**postgres)
    try:
        await administrator.execute(f"create tablespace small location '{tables}'")
        async with empty_database(postgres, "template recado_template tablespace small") as arguments:
            yield arguments
        await administrator.execute("drop tablespace small")
    finally:
        await administrator.close()


@pytest.fixture
async def service(server: dict[str, Any], tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Service]:
    """One with as many processes as the test says."""
    workers = str(getattr(request, "param", 1))
    async with before_postgres(server) as (proxy, _):
        running = Service(tmp_path, LOG_LEVEL="info", WORKERS=workers, **behind(proxy, server))
        await asyncio.to_thread(running.command, "org", "create", "--name", "Padaria Central", "--json")
        await running.start()
        try:
            yield running
        finally:
            await asyncio.to_thread(running.end, signal.SIGKILL)


def fill(disk: Path) -> Path:
    """Nothing of the disk is left."""
    filler = disk / "filler"
    room = os.statvfs(disk)
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, room.f_bavail * room.f_frsize)
    return filler


async def readiness(service: Service) -> tuple[int, Any]:
    async with aiohttp.ClientSession() as session, session.get(service.url + "/readyz") as answer:
        body = await answer.json(content_type=None)
        return answer.status, body["checks"] if answer.status == 200 else body["meta"]["checks"]


def told(service: Service) -> list[dict[str, Any]]:
    """What the service has logged of its database."""
    lines = [json.loads(line) for line in service.log.read_text().splitlines()]
    return [line for line in lines if line["message"].startswith("database_")]


@pytest.mark.long
@only_where(_may_mount(), "only root makes a disk")
async def test_a_full_disk_is_told_and_the_service_is_not_ready_until_there_is_room(
    service: Service, disk: Path
) -> None:
    token = await asyncio.to_thread(service.key, "test")
    async with Api(service.url, token) as api:
        customer = await Customer.arrive(api)
        filler = fill(disk)

        async def refused() -> bool:
            try:
                await customer.send(phone("1234"))
            except Refused as refusal:
                return refusal.status == 503
            return False

        await until(refused, "a message finds no room")
        assert await readiness(service) == (503, {"database": False, "migrations": True})
        assert [(line["message"], line["cause"]) for line in told(service)] == [
            ("database_refuses_writes", "its disk is full")
        ]

        filler.unlink()

        async def ready() -> bool:
            return (await readiness(service))[0] == 200

        await until(ready, "the service is ready again")
        await customer.reaches(await customer.send(phone("1234")), "delivered")
    assert Counter(line["message"] for line in told(service)) == {
        "database_refuses_writes": 1,
        "database_writes_again": 1,
    }


@pytest.mark.long
@only_where(_may_mount(), "only root makes a disk")
@pytest.mark.parametrize("service", [3], indirect=True)
async def test_what_fronts_accept_around_a_full_disk_leaves_once_and_no_front_ends(
    service: Service, disk: Path
) -> None:
    token = await asyncio.to_thread(service.key, "test")
    async with Api(service.url, token) as api:
        customer = await Customer.arrive(api, per_second=500)
        body = {
            "numberId": customer.number_id, "to": phone(), "type": "template", "templateId": customer.template_id,
            "templateVars": ["hello"],
        }  # fmt: skip
        press, fronts = Press(service.url, token, "/messages", body), fronts_of(service)
        assert len(fronts) == 2

        def accepted_since(moment: float) -> bool:
            return len(press.accepted(moment)) > 100

        now = asyncio.get_running_loop().time
        async with press.pressing():
            await until(lambda: accepted_since(0.0), "messages are accepted")
            filler = fill(disk)
            await until(lambda: any(each.status == 503 for each in press.answers), "a message finds no room")
            filler.unlink()
            freed = now()
            await until(lambda: accepted_since(freed), "messages are accepted again")
        assert fronts_of(service) == fronts
        assert {each.status for each in press.answers} == {201, 503}
        assert all(each.headers["Retry-After"] for each in press.answers if each.status == 503)

        async def all_left() -> bool:
            waiting = [await api.call("GET", "/messages", status=status, limit=1) for status in ("queued", "sending")]
            return not any(each["items"] for each in waiting)

        await until(all_left, "everything has left", every=0.2)
        made = {each.body["id"] for each in press.accepted()}
        messages = [each async for each in api.pages("/messages")]
        # A message whose request was answered 503 may be there, for its commit was; none is lost, nor there twice.
        assert made <= {each["id"] for each in messages}
        assert len(made) == len(press.accepted())
        assert all(each["providerMessageId"] for each in messages)
    assert "front_ended" not in service.log.read_text()


@pytest.mark.long
@only_where(_may_mount(), "only root makes a disk")
async def test_a_try_to_write_finds_that_there_is_no_room_and_that_there_is_again(
    server: dict[str, Any], disk: Path
) -> None:
    database = Database(server, clock=SystemClock())
    await database.start()
    try:
        await database.try_write()
        filler = fill(disk)
        with pytest.raises(Unavailable):
            await database.try_write()
        assert database.refuses_writes
        filler.unlink()
        await database.try_write()
    finally:
        await database.stop()
