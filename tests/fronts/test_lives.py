"""What ends, stops or stands still of a service with fronts, and what its callers notice of it."""

import asyncio
import json
import os
import re
import signal
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from tests.acceptance.sandbox.customer import Customer, phone
from tests.clusters import give_cluster
from tests.fronts.processes import WORKERS, Press, fronts_of, is_front, name_of, owner_of, standbys_of
from tests.program import Api, Service, running
from tests.waiting import until

from recado.fronts.frames import ANSWERS_FOR

pytestmark = [pytest.mark.long, pytest.mark.alone]  # seconds are measured

PATIENCE = 30.0
SLOWLY = 25.0  # seconds: longer than a front takes to leave, within the 30 s in which a byte has to come


async def a_press(service: Service, api: Api, token: str) -> Press:
    customer = await Customer.arrive(api)
    body = {
        "numberId": customer.number_id, "to": phone(), "type": "template", "templateId": customer.template_id,
        "templateVars": ["hello"],
    }  # fmt: skip
    return Press(service.url, token, "/messages", body)


async def more(press: Press, count: int = 40) -> None:
    """So many more are accepted."""
    before = len(press.accepted())
    await until(lambda: len(press.accepted()) >= before + count, "more is accepted")


async def ids_of(api: Api) -> set[str]:
    return {each["id"] async for each in api.pages("/messages")}


async def lists_all(api: Api, press: Press) -> None:
    """Each message that was answered with 201 is there, once."""
    made = [each.body["id"] for each in press.accepted()]
    assert len(made) == len(set(made))
    assert set(made) <= await ids_of(api)


async def test_a_front_that_crashes_says_where_and_is_begun_again_and_the_other_one_goes_on(
    service: Service, api: Api, token: str
) -> None:
    press, now = await a_press(service, api, token), asyncio.get_running_loop().time
    before = fronts_of(service)
    assert len(before) == WORKERS - 1
    async with press.pressing():
        await more(press)
        for pid, number in ((before[1], signal.SIGUSR1), (before[0], signal.SIGSEGV)):  # the first one goes on
            os.kill(pid, number)
            named = re.compile(rf" in front [12], pid {pid}\n")
            await until(lambda named=named: named.search(service.log.read_text()), "it says where it is")
        killed = now()
        await more(press)
        await until(lambda: len(set(fronts_of(service)) - {before[0]}) == 2, "another one is begun")
        ready = service.log.read_text().count("front_ended")
        assert ready
        await until(lambda: now() > killed + 1.0, "a second is over")
        await more(press)
    assert before[1] in fronts_of(service)
    log = service.log.read_text()
    assert log.count("Fatal Python error: Segmentation fault") == 1
    # Who was at the front that died lost a connection; nobody else noticed, and nobody was refused.
    assert set(Counter(each.status for each in press.answers)) <= {201, 0}
    assert all(killed - 1 < each.ended and each.began < killed + 1 for each in press.answers if not each.status)
    await lists_all(api, press)


async def test_a_front_that_stands_still_holds_a_change_up_for_two_seconds_and_is_replaced(
    service: Service, api: Api, token: str
) -> None:
    press, now = await a_press(service, api, token), asyncio.get_running_loop().time
    await until(lambda: len(fronts_of(service)) == 2, "both run")
    before = fronts_of(service)
    os.kill(before[0], signal.SIGSTOP)
    stopped = now()
    try:
        key = await api.call("POST", "/v2/api-keys", {"name": "brief", "scopes": ["messages:send"]})
        await api.call("DELETE", f"/v2/api-keys/{key['id']}")
        answered = now()
        assert answered - stopped < 2 * ANSWERS_FOR + 1.0  # two changes, each of which waits
        await until(lambda: before[0] not in fronts_of(service) or not is_front(before[0]), "it is killed")
        assert 4.0 < now() - stopped < 8.0
    finally:
        if is_front(before[0]):
            os.kill(before[0], signal.SIGCONT)
    await until(lambda: len(fronts_of(service)) == 2, "another one is begun")
    async with press.pressing():
        await more(press)
    assert "front_silent" in service.log.read_text()


async def test_fronts_accept_nothing_while_the_owner_stands_still_and_go_on_with_it(
    service: Service, api: Api, token: str
) -> None:
    press, now = await a_press(service, api, token), asyncio.get_running_loop().time
    await until(lambda: len(fronts_of(service)) == 2, "both run")
    before = fronts_of(service)
    async with press.pressing():
        await more(press)
        os.kill(owner_of(service), signal.SIGSTOP)
        stopped = now()
        try:
            await until(lambda: now() > stopped + 3.5, "more than two seconds are over", every=0.05)
        finally:
            os.kill(owner_of(service), signal.SIGCONT)
        went_on = now()
        await more(press)
    late = [each for each in press.accepted(stopped + ANSWERS_FOR + 0.1) if each.ended < went_on]
    assert late == []
    assert fronts_of(service) == before
    assert set(Counter(each.status for each in press.answers)) == {201}
    await lists_all(api, press)


@asynccontextmanager
async def own(folder: Path, **settings: str) -> AsyncIterator[Service]:
    service = Service(folder, "--workers", str(WORKERS), SANDBOX_TIME_SCALE="0.1", **settings)
    async with running(service):
        yield service


async def gone(pids: list[int]) -> None:
    await until(lambda: not any(is_front(each) for each in pids), "no front is left")


@pytest.mark.parametrize("whole_group", [False, True])
async def test_a_stop_under_load_answers_all_and_leaves_no_process(tmp_path: Path, whole_group: bool) -> None:
    async with own(tmp_path) as service:
        token = service.key("test")
        async with Api(service.url, token) as api:
            press = await a_press(service, api, token)
        fronts = fronts_of(service)
        async with press.pressing():
            await more(press)
            if whole_group:  # Ctrl-C
                os.killpg(os.getpgid(service.pid), signal.SIGINT)
                status = service.end(signal.SIGCONT)
            else:
                status = await asyncio.to_thread(service.end, signal.SIGTERM)
        assert status == 0
        assert not any(is_front(each) for each in fronts)
        accepted = [each.body["id"] for each in press.accepted()]
        await service.start()
        async with Api(service.url, token) as api:
            assert set(accepted) <= await ids_of(api)
        logged = [json.loads(line)["message"] for line in service.log.read_text().splitlines()]
        assert not {"front_silent", "stopped_before_the_end", "fronts_end_slowly"} & set(logged)


async def test_an_owner_that_is_killed_under_load_is_followed_by_another_and_no_connection_is_refused(
    tmp_path: Path,
) -> None:
    """Twice: by one that has waited, and by one that has yet to load the program, whose predecessor dies with it."""
    async with own(tmp_path) as service:
        token, now = service.key("test"), asyncio.get_running_loop().time
        async with Api(service.url, token) as api:
            press = await a_press(service, api, token)
        launcher, refused = service.pid, 0
        took = []
        for waits in (True, False):
            if waits:
                await until(lambda: standbys_of(service), "another owner waits")
                (waiting,) = standbys_of(service)
                await until(lambda waiting=waiting: loaded(waiting), "it has loaded the program", every=0.1)
            else:
                for each in standbys_of(service):
                    os.kill(each, signal.SIGKILL)
            owner, fronts = owner_of(service), fronts_of(service)
            async with press.pressing():
                await more(press)
                for each in fronts:
                    os.kill(each, signal.SIGSTOP)  # so that something is under way
                await until(lambda: press.under_way > 0, "something is under way")
                os.kill(owner, signal.SIGKILL)
                killed = now()
                await until(lambda killed=killed: press.accepted(killed + 0.01), "more is accepted")
                took.append(now() - killed)
                while len(press.accepted(killed + 0.01)) < 100:
                    refused += await connection_refused(service)
            await gone(fronts)
            assert owner_of(service) != owner
            assert not waits or owner_of(service) == waiting
            assert service.pid == launcher
        print(f"answered again after {took} s")
        assert refused == 0
        assert {each.status for each in press.answers} == {201, 0}  # 0: what was under way, of callers with connections
        assert took[0] < (2.5 if os.getloadavg()[0] < 1.0 else PATIENCE)
        async with Api(service.url, token) as api:
            await lists_all(api, press)
            await until(lambda: all_left(api), "everything has left", every=0.2)
        async with aiohttp.ClientSession() as session, session.get(f"{service.url}/metrics") as answer:
            assert "recado_owner_restarts_total 2.0" in (await answer.text()).splitlines()
        logged = [json.loads(line) for line in service.log.read_text().splitlines()]
        assert [each["message"] for each in logged if each["message"].startswith("owner_")] == [
            "owner_died", "owner_begun", "owner_died", "owner_begun",
        ]  # fmt: skip

        # A reload is asked of either; an owner that is told to stop is followed by none.
        os.kill(owner_of(service), signal.SIGHUP)
        await reloaded(service)
        os.kill(owner_of(service), signal.SIGTERM)
        await until(lambda: not service.running, "its launcher ends with it")
        assert service.end(signal.SIGCONT) == 0


async def test_a_stop_while_there_is_no_owner_stops_the_database(tmp_path: Path) -> None:
    async with own(tmp_path, STANDBY="false") as service:
        await until(lambda: '"serving"' in service.output.read_text(), "its start is over")
        postgres, owner = service.cluster().pid(), owner_of(service)
        assert postgres is not None
        os.kill(service.pid, signal.SIGSTOP)
        os.kill(owner, signal.SIGKILL)
        await until(lambda: not name_of(owner) and len(os.listdir(f"/proc/{owner}/task")) == 1, "it is dead")
        assert service.cluster().pid() == postgres
        os.kill(service.pid, signal.SIGTERM)
        assert await asyncio.to_thread(service.end, signal.SIGCONT) == 0
        assert service.cluster().pid() is None
        assert "owner_begun" not in service.log.read_text()


async def test_a_start_whose_owner_is_killed_ends_and_leaves_no_database(tmp_path: Path) -> None:
    service = Service(tmp_path, "--workers", str(WORKERS))
    await asyncio.to_thread(give_cluster, service.data_dir)
    try:
        service.spawn()
        await until(lambda: service.cluster().pid() is not None, "its database runs", every=0.01)
        os.kill(owner_of(service), signal.SIGKILL)
        await until(lambda: not service.running, "the service has ended", limit=PATIENCE)
        assert service.cluster().pid() is None
        assert service.end(signal.SIGCONT) == -signal.SIGKILL
        assert "serving" not in service.output.read_text()
    finally:
        await service.wipe()


async def test_all_end_with_a_launcher_that_is_killed_and_the_next_service_sends_everything(tmp_path: Path) -> None:
    async with own(tmp_path) as service:
        token = service.key("test")
        async with Api(service.url, token) as api:
            press = await a_press(service, api, token)
        pids = [owner_of(service), *fronts_of(service)]
        async with press.pressing():
            await more(press)
            service.end(signal.SIGKILL)
            await until(lambda: not any(name_of(each) for each in pids), "none is left")
        await service.start()
        async with Api(service.url, token) as api:
            await lists_all(api, press)
            await until(lambda: all_left(api), "everything has left", every=0.2)


async def all_left(api: Api) -> bool:
    return not (await api.call("GET", "/messages", status="queued", limit=1))["items"]


async def connection_refused(service: Service) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", service.port)
    except ConnectionRefusedError:
        return True
    writer.close()
    return False


def loaded(pid: int) -> bool:
    """Whether the process waits for a packet: until it is its turn."""
    return "wait_for_more_packets" in Path(f"/proc/{pid}/wchan").read_text()


async def test_a_first_start_makes_everything_and_serves(tmp_path: Path) -> None:
    service = Service(tmp_path, "--workers", str(WORKERS), durable=True)
    async with running(service):
        token = service.key("test")
        async with Api(service.url, token) as api:
            press = await a_press(service, api, token)
            assert {each.status for each in await press.at_once(4)} == {201}
            assert len(fronts_of(service)) == WORKERS - 1


async def slowly_begun(service: Service, token: str, body: Mapping[str, Any]) -> "asyncio.Task[int]":
    """A message most of whose body has come; the rest comes `SLOWLY`, and then its status is known."""
    content, now = json.dumps(body).encode(), asyncio.get_running_loop().time
    reader, writer = await asyncio.open_connection("127.0.0.1", service.port)
    head = f"POST /messages HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
    writer.write(f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content[:-1])
    await writer.drain()
    over = now() + SLOWLY

    async def ended() -> int:
        await until(lambda: now() > over, "the time is over", every=0.1)
        writer.write(content[-1:])
        status = int((await reader.readline()).split()[1])
        writer.close()
        return status

    return asyncio.create_task(ended())


async def reloaded(service: Service, times: int = 1) -> None:
    await until(
        lambda: service.log.read_text().count('"reload_ended"') >= times, "a reload is over", limit=PATIENCE * 3
    )


async def test_a_reload_under_load_replaces_all_fronts_and_breaks_no_connection(tmp_path: Path) -> None:
    async with own(tmp_path) as service:
        token = service.key("test")
        async with Api(service.url, token) as api, Api(service.url, token) as resting:
            await api.call("GET", "/messages", limit=1)
            press, rests = await a_press(service, api, token), await a_press(service, resting, token)
            before = fronts_of(service)
            async with rests.resting() as again, press.pressing():
                await more(press)
                begun = [await slowly_begun(service, token, press.body) for _ in range(4)]  # at any of the fronts
                os.kill(service.pid, signal.SIGHUP)
                os.kill(service.pid, signal.SIGHUP)
                await reloaded(service)
                assert [await each for each in begun] == [201] * 4
                await more(press)
                await again()
            after = fronts_of(service)
            assert len(after) == WORKERS - 1
            assert not set(before) & set(after)
            assert {each.status for each in press.answers + rests.answers} == {201}
            assert "close" in {each.headers.get("Connection") for each in press.answers}
            await lists_all(api, press)
        logged = [json.loads(line)["message"] for line in service.log.read_text().splitlines()]
        assert logged.count("reload_begun") == 1
        assert not {"front_ended", "front_silent", "front_leaves_slowly"} & set(logged)

        # Another is told to begin, and dies; then all are to end while it goes on.
        os.kill(service.pid, signal.SIGHUP)
        await until(lambda: set(fronts_of(service)) - set(after), "one is begun")
        os.kill((set(fronts_of(service)) - set(after)).pop(), signal.SIGKILL)
        await until(lambda: '"reload_stopped"' in service.log.read_text(), "the reload is over")
        assert fronts_of(service) == after
        os.kill(service.pid, signal.SIGHUP)
        await until(lambda: set(fronts_of(service)) - set(after), "one is begun")
        pids = fronts_of(service)
        assert await asyncio.to_thread(service.end, signal.SIGTERM) == 0
        assert not any(is_front(each) for each in pids)
