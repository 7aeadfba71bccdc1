"""A cluster loses machines and processes under load: cells come back elsewhere, and what was accepted leaves once.

Four nodes of Ray on this machine, two cells, and a provider whose record says what left. What is reported here is how
long a cell was away. `CLUSTER_ROUNDS`: how often each thing happens (1).
"""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.cluster.machines import Machine, Machines, place_by
from tests.crash.evidence import is_uncertain
from tests.crash.stage import COINS, SimulatedStage
from tests.crash.verdict import tightest
from tests.fronts.processes import Press
from tests.program import Api, Refused, free_port
from tests.standing_connection import StandingConnection
from tests.two_cells import Cells, made_cells
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.alone]

ROUNDS = int(os.environ.get("CLUSTER_ROUNDS", "1"))
PACE = 60
IN_FLIGHT = 6  # calls that an end may leave in doubt, each with an answer within 20 ms
CALLERS = 4
PATIENCE = {"a": 3.0, "b": 40.0}  # seconds of a caller: whoever asks a machine that stands still hears nothing
BACK_WITHIN = 90.0  # seconds, however busy the machine; what it took is printed


@dataclass
class Sent:
    """What one cell is asked to send, by whom."""

    key: str
    body: dict[str, Any]
    accepted: set[str]


@dataclass
class Installation:
    """A cluster with two cells, `a` and `b`, whose numbers send through one provider."""

    machines: Machines
    stage: SimulatedStage
    cells: Cells
    sent: dict[str, Sent]

    def entry_besides(self, machine: Machine) -> Machine:
        return next(each for each in self.machines.all if each is not machine and each.entry_runs)

    async def settled(self) -> None:
        """Everything has left; what was accepted is there, left once, and within the pace of its number."""
        times = Counter(request.id for request in self.stage.requests())
        for cell, sent in self.sent.items():
            machine = await self.machines.placed(cell)
            async with Api(self.entry_besides(machine).url, sent.key) as api:

                async def all_left(api: Api = api) -> bool:
                    if (await api.call("GET", "/messages", status="queued", limit=1))["items"]:
                        return False
                    sending = (await api.call("GET", "/messages", status="sending", limit=100))["items"]
                    return all([is_uncertain(await api.call("GET", f"/messages/{each['id']}")) for each in sending])

                await until(all_left, "every message has left", every=0.5)
                messages = [message async for message in api.pages("/messages")]
            times = Counter(request.id for request in self.stage.requests())
            known = {message["id"] for message in messages}
            assert sent.accepted <= known
            never = {message["id"] for message in messages if message["status"] == "sending"} - set(times)
            assert len(never) <= IN_FLIGHT * ROUNDS * len(ENDINGS)
            assert known - never <= set(times)
            called = [datetime.fromisoformat(message["sentAt"]) for message in messages if message.get("sentAt")]
            closest = tightest(called, PACE)
            assert closest is None or closest >= timedelta(milliseconds=999)  # `sentAt` shows no more
        assert [message_id for message_id, count in times.items() if count > 1] == []


@pytest.fixture(scope="module")
async def installation(
    postgres: dict[str, Any], maker: StandingConnection, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Installation]:
    folder = tmp_path_factory.mktemp("cluster")
    async with AsyncExitStack() as stack:
        cells = await stack.enter_async_context(made_cells(postgres, maker, folder, "ABC"))
        stage = SimulatedStage(folder, seed=93, protocol="bridge", shares={})
        stage.service.settings.update(cells.keys)
        provider = {name: value for name, value in stage.service.settings.items() if "CHATAPP" in name}
        settings = {f"RECADO_{name}": value for name, value in {**cells.keys, **provider}.items()}
        machines = Machines(
            folder,
            {
                **cells.urls, **settings, "RECADO_SSRF_ALLOW_CIDRS": "127.0.0.0/8",
                "RECADO_BASE_URL": f"http://127.0.0.1:{free_port()}",
            },
        )  # fmt: skip
        cells.add_both()
        stage.others = [stage.provider]
        await stage.start_others()
        stack.callback(stage.provider.end, signal.SIGKILL)
        stack.callback(machines.wipe)
        await machines.start()
        installation = Installation(machines, stage, cells, {})
        for place, cell in enumerate("ab"):
            await machines.placed(cell)
            installation.sent[cell] = await _sender(installation, cell, place)
        yield installation


async def _sender(installation: Installation, cell: str, place: int) -> Sent:
    """An organization of the cell with a number that sends; all that is asked goes through entries."""
    stage = installation.stage
    stage.service.settings["DATABASE_URL"] = installation.cells.urls[f"CELL_{cell.upper()}"]

    def made() -> str:
        org = stage.service.command("org", "create", "--name", f"Acme {cell}", "--json")["id"]
        of_it = ("--env", "live", "--org", org)
        stage.service.command("wallet", "credit", *of_it, "--coins", str(COINS), "--reference", "begin", "--json")
        return stage.service.key("live", org=org)

    key = await asyncio.to_thread(made)
    async with Api(installation.machines.all[place].url, key) as api:
        sender = await stage.sender(api, place, PACE)
    body = {
        "numberId": sender.number_id, "to": "+5511912345678", "type": "template", "templateId": sender.template_id,
        "templateVars": ["Ana"],
    }  # fmt: skip
    return Sent(key, body, set())


class Load:
    """Callers of both cells, through an entry that stays."""

    def __init__(self, installation: Installation, entry: Machine) -> None:
        self._installation = installation
        self.presses = {
            cell: Press(entry.url, sent.key, "/messages", sent.body, patience=PATIENCE[cell])
            for cell, sent in installation.sent.items()
        }
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> "Load":
        for press in self.presses.values():
            await self._stack.enter_async_context(press.pressing(CALLERS))
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._stack.aclose()
        for cell, press in self.presses.items():
            self._installation.sent[cell].accepted |= {each.body["id"] for each in press.accepted()}

    async def more(self, cell: str, count: int) -> None:
        press = self.presses[cell]
        before = len(press.accepted())
        await until(lambda: len(press.accepted()) >= before + count, f"{cell} accepts more", limit=BACK_WITHIN)

    def away(self, cell: str, since: float) -> float:
        """Seconds from then until it accepted what was asked after it had failed to."""
        press = self.presses[cell]
        failed = [each.ended for each in press.answers if each.status != 201 and each.ended >= since]
        return min(each.ended for each in press.accepted(min(failed))) - since if failed else 0.0

    def undisturbed(self, cell: str) -> None:
        assert [(each.status, each.body) for each in self.presses[cell].answers if each.status != 201] == []


async def test_each_entry_answers_for_both_cells(installation: Installation) -> None:
    first, second = [await installation.machines.placed(cell) for cell in "ab"]
    assert first is not second  # Ray spreads them
    for machine in installation.machines.all:
        for sent in installation.sent.values():
            async with Api(machine.url, sent.key) as api:
                assert [each["id"] for each in (await api.call("GET", "/numbers"))["items"]] == [sent.body["numberId"]]
    # Nothing secret is an argument of anything, nor known to Ray: it shows names of cells and of variables only.
    secrets = [*installation.cells.keys.values(), *installation.cells.urls.values(), *installation.stage.secrets]
    for machine in (installation.machines.head, *installation.machines.all):
        for pid in machine.processes():
            try:
                line = Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
            except OSError:
                continue
            assert not [each for each in secrets if each in line], line
    for log in installation.machines.session.rglob("*"):
        if log.is_file() and not log.is_symlink():
            content = log.read_bytes()
            assert not [each for each in secrets if each.encode() in content], log


@dataclass(frozen=True)
class Ending:
    """Something that befalls the cell `a` under load. `end`: makes it happen, on that machine; processes that stand
    still from then on.
    """

    end: Callable[[Installation, Machine], Awaitable[list[int] | None]]
    elsewhere: bool = False  # the cell comes back on another machine
    loses_machine: bool = False
    service_ends: bool = True
    of_all: bool = False  # other cells have it, too


async def machine_killed(_: Installation, machine: Machine) -> None:
    machine.kill()


async def machine_stands_still(_: Installation, machine: Machine) -> list[int]:
    return machine.stand_still()


async def node_told_to_end(_: Installation, machine: Machine) -> None:
    machine.end_node()


def signalled(number: signal.Signals, find: Callable[[Machine], int | None]) -> Any:
    async def end(_: Installation, machine: Machine) -> None:
        pid = find(machine)
        assert pid is not None
        os.kill(pid, number)

    return end


def told_to(*command: str) -> Any:
    async def end(installation: Installation, machine: Machine) -> None:
        told_at = installation.entry_besides(machine)  # from any machine of the cluster
        print(await asyncio.to_thread(told_at.command, "cells", *command))

    return end


async def postgres_killed(installation: Installation, _: Machine) -> None:
    """One process of it, upon which it ends all others, and recovers."""
    connection = await asyncpg.connect(installation.cells.urls["CELL_A"])
    pid = await connection.fetchval("select pid from pg_stat_activity where backend_type = 'checkpointer'")
    os.kill(pid, signal.SIGKILL)
    await until(connection.is_closed, "it has ended its sessions")


def service(machine: Machine) -> int | None:
    return machine.service_of("a")


def actor(machine: Machine) -> int | None:
    return machine.actor_of("a")


ENDINGS = {
    "its machine is killed": Ending(machine_killed, elsewhere=True, loses_machine=True),
    "its machine stands still, and goes on": Ending(machine_stands_still, elsewhere=True, loses_machine=True),
    "its node is told to end": Ending(node_told_to_end, elsewhere=True, loses_machine=True),
    "its service is killed": Ending(signalled(signal.SIGKILL, service)),
    "its service stands still": Ending(signalled(signal.SIGSTOP, service)),
    "its actor is killed": Ending(signalled(signal.SIGKILL, actor)),
    "it is told to restart": Ending(told_to("restart", "a")),
    "it is told to go elsewhere": Ending(told_to("relocate", "a"), elsewhere=True),
    "PostgreSQL is killed": Ending(postgres_killed, service_ends=False, of_all=True),
}


@pytest.mark.parametrize("what", ENDINGS)
async def test_a_cell_comes_back_when(installation: Installation, what: str) -> None:
    for _ in range(ROUNDS):
        await _end(installation, what, ENDINGS[what])


async def _end(installation: Installation, what: str, ending: Ending) -> None:
    machines = installation.machines
    left = await machines.placed("a")
    apart = left.service_of("b") is None
    now = asyncio.get_running_loop().time
    async with Load(installation, installation.entry_besides(left)) as load:
        for cell in "ab":
            await load.more(cell, 50)
        was = left.service_of("a")
        assert was is not None
        at = now()
        stopped = await ending.end(installation, left) or []

        def over() -> bool:
            if ending.elsewhere:
                return any(each is not left and each.service_of("a") for each in machines.all)
            return not ending.service_ends or not is_running(was)

        await until(over, "it has come to pass", limit=BACK_WITHIN)
        changed = now()
        await until(
            lambda: any(each.ended > changed for each in load.presses["a"].accepted()), "a accepts again",
            limit=BACK_WITHIN,
        )  # fmt: skip
        for cell in "ab":
            await load.more(cell, 50)
        away = load.away("a", at)
        for pid in stopped:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        if ending.service_ends:
            await until(lambda: not is_running(was), "the service that was left ends", limit=BACK_WITHIN)
        await load.more("a", 50)
    print(f"{what}: seen after {changed - at:.1f} s, a accepts after {away:.1f} s")
    if apart and not ending.of_all:
        load.undisturbed("b")
    if ending.elsewhere:
        assert (await machines.placed("a")) is not left
    if ending.loses_machine:
        left.kill()
        await machines.again(left)
    await installation.settled()


async def test_a_cell_goes_to_the_machine_that_is_named(installation: Installation) -> None:
    machines = installation.machines
    left = await machines.placed("a")
    wanted = next(each for each in machines.all if each is not left and each.service_of("b") is None)
    told_at = installation.entry_besides(wanted)
    said = await asyncio.to_thread(told_at.command, "cells", "relocate", "a", "--to", wanted.ip)
    assert said["url"].startswith(f"http://{wanted.ip}:")
    assert await machines.placed("a") is wanted
    assert place_by(told_at, "a") == said["url"]


async def test_a_cell_that_leaves_the_map_ends_in_the_cluster_and_may_come_back(installation: Installation) -> None:
    machines, cells = installation.machines, installation.cells
    for times in (1, 2):
        await asyncio.to_thread(cells.add, "c")
        await machines.placed("c")
        await asyncio.to_thread(cells.said, "remove", "c")

        def ended(times: int = times) -> bool:
            logs = [each.log.read_text() for each in machines.all]
            said = all(sum('"cell_ended"' in line for line in log.splitlines()) == times for log in logs)
            return said and machines.with_service("c") is None

        await until(ended, "each entry has seen its end", limit=BACK_WITHIN)
    for cell in "ab":
        await machines.placed(cell)


async def test_a_head_that_is_begun_again_and_knows_nothing_has_all_made_anew(installation: Installation) -> None:
    machines = installation.machines
    for cell in "ab":
        await machines.placed(cell)
    machines.head.kill()
    began = time.monotonic()
    # Ray takes the nodes of other machines, which are on this one, for a head that runs already, and for where it was.
    (machines.session / "ray_current_cluster").unlink()
    await machines.head.start_node(machines.port, machines.session)
    for each in machines.all:
        await each.node_again(machines.port, machines.session)
    # The entries stay: each has to see that what it had joined is no more.
    for cell, sent in installation.sent.items():
        await machines.placed(cell)
        for each in machines.all:
            async with Api(each.url, sent.key) as api:

                async def answered(api: Api = api) -> bool:
                    try:
                        return bool(await api.call("GET", "/numbers"))
                    except Refused:
                        return False

                await until(answered, f"the entry {each.name} finds {cell}", limit=BACK_WITHIN)
    print(f"head begun anew: every entry found both cells {time.monotonic() - began:.1f} s after it was killed")


async def test_cells_go_on_for_a_while_without_the_head(installation: Installation) -> None:
    machines = installation.machines
    machine = await machines.placed("a")
    async with Load(installation, installation.entry_besides(machine)) as load:
        for cell in "ab":
            await load.more(cell, 20)
        machines.head.kill()
        killed = time.monotonic()
        for cell in "ab":
            await load.more(cell, 100)
        print(f"head killed: both cells had accepted 100 more {time.monotonic() - killed:.1f} s after it")
    for cell in "ab":
        load.undisturbed(cell)
    # An entry ends in order without Ray, too.
    for each in machines.all:
        assert each.end_entry() == 0


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
