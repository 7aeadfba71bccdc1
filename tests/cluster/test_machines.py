"""A cluster loses machines and processes under load: cells come back elsewhere, and what was accepted leaves once.

Four nodes of Ray on this machine, two cells, and a provider whose record says what left. What is reported here is how
long a cell was away. `CLUSTER_ROUNDS`: how often each thing happens (1).
"""

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.cluster.machines import Machine, Machines
from tests.crash.evidence import is_uncertain
from tests.crash.stage import COINS, SimulatedStage
from tests.crash.verdict import tightest
from tests.fronts.processes import Press
from tests.program import Api, free_port
from tests.standing_connection import StandingConnection
from tests.two_cells import Cells, made_cells
from tests.waiting import until

pytestmark = [pytest.mark.long, pytest.mark.alone]

ROUNDS = int(os.environ.get("CLUSTER_ROUNDS", "1"))
PACE = 60
IN_FLIGHT = 6  # calls that an end may leave in doubt, each with an answer within 20 ms
CALLERS = 4
PATIENCE = {"a": 3.0, "b": 40.0}  # seconds of a caller: whoever asks a machine that stands still hears nothing
BACK_WITHIN = 60.0  # seconds, however busy the machine; what it took is printed


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
            assert len(never) <= IN_FLIGHT * ROUNDS * 5
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
        cells = await stack.enter_async_context(made_cells(postgres, maker, folder))
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


@pytest.mark.parametrize("stands_still", [False, True], ids=["is killed", "stands still, and goes on"])
async def test_a_cell_comes_back_elsewhere_when_its_machine(installation: Installation, stands_still: bool) -> None:
    for _ in range(ROUNDS):
        await _lose(installation, stands_still)


async def _lose(installation: Installation, stands_still: bool) -> None:
    machines = installation.machines
    lost = await machines.placed("a")
    apart = lost.service_of("b") is None
    entry = installation.entry_besides(lost)
    async with Load(installation, entry) as load:
        for cell in "ab":
            await load.more(cell, 50)
        service = lost.service_of("a")
        assert service is not None
        at = asyncio.get_running_loop().time()
        stopped = lost.stand_still() if stands_still else []
        if not stands_still:
            lost.kill()
        served_by = await until(
            lambda: next((each for each in machines.all if each is not lost and each.service_of("a")), None),
            "the service is begun elsewhere", limit=BACK_WITHIN,
        )  # fmt: skip
        begun = asyncio.get_running_loop().time() - at
        await until(
            lambda: any(each.ended > at + begun for each in load.presses["a"].accepted()), "a accepts again",
            limit=BACK_WITHIN,
        )  # fmt: skip
        for cell in "ab":
            await load.more(cell, 50)
        away = load.away("a", at)
        if stands_still:
            for pid in stopped:
                try:
                    os.kill(pid, signal.SIGCONT)
                except ProcessLookupError:
                    continue
            await until(lambda: not is_running(service), "the service that was left ends", limit=BACK_WITHIN)
            await load.more("a", 50)
    print(
        f"machine {'stood still' if stands_still else 'killed'}: service begun elsewhere after {begun:.1f} s, "
        f"a accepts after {away:.1f} s"
    )
    assert served_by is not lost
    if apart:
        load.undisturbed("b")
    lost.kill()
    await machines.again(lost)
    await installation.settled()


@pytest.mark.parametrize("what", ["service killed", "service stands still", "actor killed"])
async def test_a_cell_comes_back_when_of_it_the(installation: Installation, what: str) -> None:
    for _ in range(ROUNDS):
        await _end(installation, what)


async def _end(installation: Installation, what: str) -> None:
    machines = installation.machines
    machine = await machines.placed("a")
    entry = installation.entry_besides(machine)
    async with Load(installation, entry) as load:
        await load.more("a", 50)
        service, actor = machine.service_of("a"), machine.actor_of("a")
        assert service is not None
        assert actor is not None
        at = asyncio.get_running_loop().time()
        match what:
            case "service killed":
                os.kill(service, signal.SIGKILL)
            case "service stands still":
                os.kill(service, signal.SIGSTOP)
            case _:
                os.kill(actor, signal.SIGKILL)
        await until(lambda: not is_running(service), "the service ends", limit=BACK_WITHIN)
        ended = asyncio.get_running_loop().time()
        await until(
            lambda: any(each.began > ended for each in load.presses["a"].accepted()), "a accepts again",
            limit=BACK_WITHIN,
        )  # fmt: skip
        for cell in "ab":
            await load.more(cell, 50)
        print(f"{what}: a accepts after {load.away('a', at):.1f} s")
    if (await machines.placed("b")) is not machine:
        load.undisturbed("b")
    await installation.settled()


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
