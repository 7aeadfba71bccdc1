"""The launcher, with a small program for an owner: which ends it follows, what it tells and holds, how little it is."""

import json
import os
import pty
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.waiting import until

from recado.fronts import launcher
from recado.fronts.launcher import FIRST

ROOT = Path(__file__).parents[2]
# Each life is a line of `lives`; what happens in it is told in `told`. The first one is begun by `launch`.
OWNER = """
import os, select, signal, socket, sys
folder, told = sys.argv[1], sys.argv[-1]
def tell(*words):
    with open(folder + "/told", "a") as file:
        file.write(" ".join(map(str, words)) + "\\n")
restarts, (*_, control, address) = 0, told.split(",")
if "--first" not in sys.argv:
    control = int(address)  # behind the id of the launcher: the address comes when it is its turn
    held = [each for each in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + each)]
    sockets = [each for each in held if int(each) > 2 and os.readlink("/proc/self/fd/" + each).startswith("socket")]
    if sockets != [str(control)]:
        sys.exit("it has more than its control: " + " ".join(sockets))
control = socket.socket(fileno=int(control))
if "--first" not in sys.argv:
    if os.path.exists(folder + "/frail"):
        control.send(b"waits")
    said, descriptors, _, _ = socket.recv_fds(control, 64, 8)
    if said == b"last":
        if os.path.exists(folder + "/frail"):
            os.remove(folder + "/frail")
            os.kill(os.getpid(), signal.SIGTERM)
        tell("last")
        sys.exit(0)
    (address,) = descriptors
    restarts = int(said.partition(b" ")[2])
listening = socket.socket(fileno=int(address))
with open(folder + "/lives") as file:
    life = file.read().splitlines()[restarts].split()
tell("begun", restarts, os.getpid())
signal.signal(signal.SIGHUP, lambda *_: tell("reload"))
def stop(*_):
    control.send(b"final")
    tell("stopped")
    os._exit(3)
for word in life:
    if word == "serves":
        signal.signal(signal.SIGTERM, stop)
        listening.listen()
        control.send(b"ready")
        tell("serves")
        while True:
            try:
                with listening.accept()[0] as client:
                    if client.recv(1) == b"?":
                        client.send(b"%d" % restarts)
                    else:
                        break
            except InterruptedError:
                pass
    elif word == "serves-once":
        listening.listen()
        control.send(b"ready")
        tell("serves")
    elif word == "gate":
        os.read(os.open(folder + "/orphans", os.O_RDONLY), 1)
    elif word == "stops":
        control.send(b"final")
        listening.close()
        os.read(os.open(folder + "/orphans", os.O_RDONLY), 1)
    elif word == "deaf":
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    elif word == "taken":
        control.send(b"taken")
    elif word == "slow":  # for longer than it may be silent in the test that wants it
        for _ in range(25):
            select.select([], [], [], 0.1)
            control.send(b"starts")
    elif word == "still":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif word == "final":
        control.send(b"final")
    elif word == "orphan":
        if os.fork() == 0:
            os.read(os.open(folder + "/orphans", os.O_RDONLY), 1)
            os._exit(0)
    elif word == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    else:
        os._exit(int(word))
"""
BEGIN = """
import os, socket, sys
from recado.cli.launched import launch, launcher
folder, form, program, terminal = sys.argv[1:]
launcher.__file__ = program
if terminal:
    os.open(terminal, os.O_RDWR)  # the first process of a session has it from then on
address = socket.create_server(("127.0.0.1", 0))
with open(folder + "/port", "w") as file:
    file.write(str(address.getsockname()[1]))
command = [sys.executable, "-I", "-S", folder + "/owner", folder]
owner = launch([address], command, standby=False, as_json=form == "json", level="info")
mine = [owner._control.fileno(), owner.listening[0].fileno()]
for each in mine:
    os.set_inheritable(each, True)
os.execv(command[0], [*command, "--first", ",".join(map(str, mine))])
"""


class Launched:
    """A launcher and its owners."""

    def __init__(self, folder: Path, lives: tuple[str, ...], form: str, program: str, terminal: str) -> None:
        self._folder = folder
        (folder / "owner").write_text(OWNER)
        (folder / "lives").write_text("\n".join(lives))
        os.mkfifo(folder / "orphans")
        self.process = subprocess.Popen(
            [sys.executable, "-c", BEGIN, str(folder), form, program, terminal],
            stderr=subprocess.PIPE, cwd=ROOT, start_new_session=True,
        )  # fmt: skip

    def told(self) -> list[list[str]]:
        try:
            return [line.split() for line in (self._folder / "told").read_text().splitlines()]
        except FileNotFoundError:
            return []

    async def serves(self, times: int = 1) -> int:
        """The id of the owner that serves as the one of so many."""
        await until(lambda: self.told().count(["serves"]) == times, "it serves")
        return [int(each[-1]) for each in self.told() if each[0] == "begun"][-1]

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", int((self._folder / "port").read_text())), timeout=60.0)

    def asked(self) -> int:
        """How often an owner was begun again, as the one that answers says."""
        with self.connect() as asking:
            asking.send(b"?")
            return int(asking.recv(8))

    def ended(self) -> tuple[int, list[Any]]:
        """Its exit status, and the lines of its log."""
        _, log = self.process.communicate(timeout=60.0)
        return self.process.returncode, log.decode().splitlines()


def state_of(pid: int) -> str:
    """As the kernel names it."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def hasty(folder: Path, limit: str, shorter: str) -> str:
    """The launcher with a limit that is over sooner: the path of its program."""
    text = Path(launcher.__file__).read_text()
    assert limit in text
    program = folder / "hasty.py"
    program.write_text(text.replace(limit, shorter))
    return str(program)


Launch = Callable[..., Launched]


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launch]:
    made: list[Launched] = []

    def begin(*lives: str, form: str = "json", program: str = launcher.__file__, terminal: str = "") -> Launched:
        made.append(Launched(tmp_path, lives, form, program, terminal))
        return made[-1]

    yield begin
    for each in made:
        with suppress(ProcessLookupError):
            os.killpg(each.process.pid, signal.SIGKILL)
        each.process.communicate()


async def test_an_owner_that_died_is_followed_by_another_and_who_asks_meanwhile_is_answered(launch: Launch) -> None:
    launched = launch("serves", "serves 1", "final 7")
    owner = await launched.serves()
    assert launched.asked() == 0
    os.kill(launched.process.pid, signal.SIGSTOP)  # there is no owner until it goes on
    os.kill(owner, signal.SIGKILL)
    await until(lambda: "Z" in Path(f"/proc/{owner}/stat").read_text().rpartition(")")[2], "it is dead")
    with launched.connect() as asking:
        asking.send(b"?")
        os.kill(launched.process.pid, signal.SIGCONT)
        assert asking.recv(8) == b"1"
    await launched.serves(2)
    with launched.connect() as asking:  # it ends with status 1, as of a defect
        asking.send(b"!")
        status, log = launched.ended()
    lines = [json.loads(line) for line in log]
    assert status == 7
    assert [each["message"] for each in lines] == ["owner_died", "owner_begun"] * 2
    assert [each.get("status", each.get("restarts")) for each in lines] == [-9, 1, 1, 2]
    assert [each["next_in"] for each in lines if "next_in" in each] == [FIRST, 2 * FIRST]


@pytest.mark.parametrize(
    ("life", "status"), [("1", 1), ("final 1", 1), ("78", 78), ("killed", -signal.SIGKILL)], ids=str
)
def test_a_service_that_has_not_served_yet_ends_as_its_owner_does(launch: Launch, life: str, status: int) -> None:
    launched = launch(life)
    assert launched.ended() == (status, [])
    # One that was killed had begun a database, maybe.
    assert launched.told() == [launched.told()[0], *([["last"]] if life == "killed" else [])]


async def test_an_owner_that_stands_still_in_its_start_is_killed_and_a_slow_one_is_not(
    launch: Launch, tmp_path: Path
) -> None:
    program = hasty(tmp_path, "SAYS_EVERY, SAYS_WITHIN = 5.0, 60.0", "SAYS_EVERY, SAYS_WITHIN = 0.1, 2.0")
    launched = launch("serves", "taken slow still", "serves", program=program)
    os.kill(await launched.serves(), signal.SIGKILL)
    await launched.serves(2)
    assert launched.asked() == 2
    launched.process.send_signal(signal.SIGTERM)
    status, log = launched.ended()
    assert status == 3
    lines = [json.loads(line) for line in log]
    told = ["owner_died", "owner_begun", "owner_silent", "owner_died", "owner_begun"]
    assert [each["message"] for each in lines] == told
    assert lines[3]["lived"] >= 4.4  # it was slow for 2.5 s, and still for 2


async def test_the_first_owner_may_not_stand_still_in_its_start_either(launch: Launch, tmp_path: Path) -> None:
    program = hasty(tmp_path, "SAYS_EVERY, SAYS_WITHIN = 5.0, 60.0", "SAYS_EVERY, SAYS_WITHIN = 0.1, 0.5")
    launched = launch("taken still", program=program)
    status, log = launched.ended()
    assert status == -signal.SIGKILL
    assert [json.loads(line)["message"] for line in log] == ["owner_silent"]
    assert launched.told()[-1] == ["last"]


async def test_a_first_owner_that_never_says_a_word_has_its_time_too(launch: Launch, tmp_path: Path) -> None:
    program = hasty(tmp_path, "owner.begun_at + LOADS_WITHIN", "owner.begun_at + 0.5")
    status, log = launch("still", program=program).ended()
    assert status == -signal.SIGKILL
    assert [json.loads(line)["message"] for line in log] == ["owner_silent"]


async def test_a_stop_is_the_owners_and_a_reload_is_told_to_it(launch: Launch) -> None:
    launched = launch("serves")
    await launched.serves()
    launched.process.send_signal(signal.SIGHUP)
    await until(lambda: ["reload"] in launched.told(), "it was told")
    launched.process.send_signal(signal.SIGTERM)
    assert launched.ended() == (3, [])
    assert launched.told()[-1] == ["stopped"]
    with pytest.raises(ConnectionRefusedError):
        launched.connect()


@pytest.mark.parametrize("frail", [False, True])
async def test_a_stop_while_there_is_no_owner_ends_it(launch: Launch, tmp_path: Path, frail: bool) -> None:
    """Also when whoever waits to be the next owner is killed by the same."""
    launched = launch("serves", *["1"] * 20, form="console")
    os.kill(await launched.serves(), signal.SIGKILL)
    await until(lambda: len([each for each in launched.told() if each[0] == "begun"]) >= 3, "others have failed")
    if frail:
        (tmp_path / "frail").touch()
        await until(lambda: len([each for each in launched.told() if each[0] == "begun"]) >= 5, "others have failed")
    launched.process.send_signal(signal.SIGINT)
    status, log = launched.ended()
    assert status in (0, 1)  # of none, or of one that has just begun
    assert launched.told()[-1] == ["last"]  # what the one before has left was stopped
    assert not (tmp_path / "frail").exists()
    assert "[error    ] owner_died " in log[0]
    waits = [float(line.partition("next_in=")[2].split()[0]) for line in log if "owner_died" in line]
    assert waits == [FIRST * 2**each for each in range(len(waits))]


async def test_a_terminal_that_is_closed_while_there_is_no_owner_is_a_stop(launch: Launch) -> None:
    person, program = pty.openpty()
    launched = launch("serves", *["1"] * 20, terminal=os.ttyname(program))
    os.kill(await launched.serves(), signal.SIGKILL)
    await until(lambda: len([each for each in launched.told() if each[0] == "begun"]) >= 3, "others have failed")
    launched.process.send_signal(signal.SIGHUP)  # a reload says nothing to nobody
    await until(lambda: len([each for each in launched.told() if each[0] == "begun"]) >= 4, "it goes on")
    os.close(program)
    os.close(person)
    assert launched.ended()[0] in (0, 1)  # of none, or of one that has just begun
    assert launched.told()[-1] == ["last"]


async def test_a_next_owner_that_stands_still_is_killed_and_another_begun(launch: Launch, tmp_path: Path) -> None:
    # Only the first of them has little time: how soon the other one takes up its turn is the machine's affair.
    program = hasty(tmp_path, "else LOADS_WITHIN)", "else 1.0 if restarts == 1 else LOADS_WITHIN)")
    launched = launch("serves", "still", "serves", program=program)
    os.kill(await launched.serves(), signal.SIGKILL)
    await launched.serves(2)
    assert launched.asked() == 2
    launched.process.send_signal(signal.SIGTERM)
    status, log = launched.ended()
    assert status == 3
    told = ["owner_died", "owner_begun", "owner_silent", "owner_died", "owner_begun"]
    assert [json.loads(line)["message"] for line in log] == told


@pytest.mark.long
async def test_time_in_which_the_launcher_stands_still_as_well_is_not_the_owners(
    launch: Launch, tmp_path: Path
) -> None:
    program = hasty(tmp_path, "TAKES_WITHIN, LOADS_WITHIN = 10.0, 120.0", "TAKES_WITHIN, LOADS_WITHIN = 5.0, 5.0")
    launched = launch("serves", "gate serves", program=program)
    os.kill(await launched.serves(), signal.SIGKILL)
    await until(lambda: [each[1] for each in launched.told() if each[0] == "begun"] == ["0", "1"], "another begins")
    both = (launched.process.pid, int(launched.told()[-1][-1]))
    for each in both:
        os.kill(each, signal.SIGSTOP)
    frozen = time.monotonic()
    await until(lambda: time.monotonic() > frozen + 6.0, "its time is over", every=0.1)
    for each in both:
        os.kill(each, signal.SIGCONT)
        await until(lambda: time.monotonic() > frozen + 7.5, "the launcher has looked", every=0.1)
    with (tmp_path / "orphans").open("w") as gate:
        gate.write(".")
    await launched.serves(2)
    launched.process.send_signal(signal.SIGTERM)
    status, log = launched.ended()
    assert status == 3
    assert [json.loads(line)["message"] for line in log] == ["owner_died", "owner_begun"]


@pytest.mark.parametrize("life", ["serves", "still"], ids=["after it served", "in its start"])
async def test_an_owner_that_stands_still_when_it_is_to_stop_is_killed_and_what_it_left_stopped(
    launch: Launch, tmp_path: Path, life: str
) -> None:
    # Who stops what it left, which is begun then, has its whole time.
    still = "open(f'/proc/{self.pid}/stat').read().rpartition(')')[2].split()[0] == 'T'"
    program = hasty(
        tmp_path, "time.monotonic() + STOPS_WITHIN", f"time.monotonic() + (0.5 if {still} else STOPS_WITHIN)"
    )
    launched = launch(life, program=program)
    if life == "serves":
        os.kill(await launched.serves(), signal.SIGSTOP)
    await until(lambda: launched.told() and state_of(int(launched.told()[0][-1])) == "T", "it stands still")
    launched.process.send_signal(signal.SIGTERM)
    status, log = launched.ended()
    assert status == -signal.SIGKILL
    assert [json.loads(line)["message"] for line in log] == ["owner_silent"]
    assert launched.told()[-1] == ["last"]


@pytest.mark.parametrize("status", [launcher.OTHER_LAUNCHER, 2])
async def test_a_program_of_another_form_than_its_launcher_ends_the_service_which_says_why(
    launch: Launch, status: int
) -> None:
    launched = launch("serves", str(status))
    os.kill(await launched.serves(), signal.SIGKILL)
    ended, log = launched.ended()
    assert ended == status
    last = json.loads(log[-1])
    assert last["message"] == "owner_of_other_program"
    assert "restart the service" in last["reason"]


async def test_a_next_owner_is_stopped_by_what_it_does_not_ignore_while_it_loads(launch: Launch) -> None:
    launched = launch("serves", "deaf serves")
    os.kill(await launched.serves(), signal.SIGKILL)
    await launched.serves(2)
    launched.process.send_signal(signal.SIGINT)
    assert launched.ended()[0] == 3


async def test_who_connects_while_an_owner_stops_that_was_told_itself_is_refused(
    launch: Launch, tmp_path: Path
) -> None:
    launched = launch("serves-once stops 0")
    await launched.serves()

    def refused() -> bool:
        try:
            launched.connect().close()
        except ConnectionRefusedError:
            return True
        return False

    await until(refused, "the launcher has let the address go")
    with (tmp_path / "orphans").open("w") as gate:
        gate.write(".")
    assert launched.ended() == (0, [])


async def test_an_owner_ends_with_its_launcher(launch: Launch) -> None:
    launched = launch("serves")
    owner = await launched.serves()
    launched.process.kill()
    assert launched.process.wait(60.0) == -signal.SIGKILL
    await until(lambda: not runs(owner), "the owner has ended")


async def test_it_has_next_to_no_memory_and_no_thread_and_takes_up_orphans(launch: Launch, tmp_path: Path) -> None:
    launched = launch("orphan serves", "serves")
    os.kill(await launched.serves(), signal.SIGKILL)
    await launched.serves(2)
    folder = Path(f"/proc/{launched.process.pid}")
    children = folder / "task" / str(launched.process.pid) / "children"
    assert len(children.read_text().split()) == 2  # an owner, and the orphan of the one before
    with (tmp_path / "orphans").open("w") as gate:
        gate.write(".")
    await until(lambda: len(children.read_text().split()) == 1, "it has taken up its end")
    status = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
    assert status["Threads"].strip() == "1"
    assert int(status["VmRSS"].split()[0]) < 16_000  # kB
    assert "site-packages" not in (folder / "maps").read_text()


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
