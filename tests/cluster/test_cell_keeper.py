"""What keeps a cell's service running, with stand-ins for the service that are processes of their own."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path

import pytest
from structlog.testing import CapturingLogger
from tests.waiting import until

from recado.cluster import cell_keeper
from recado.cluster.cell_keeper import CellKeeper
from recado.cluster.cell_service import CellService, NotHere, lacking

STAND_IN = """
import http.server, sys
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
    def log_message(self, *_):
        pass
host, _, port = sys.argv[sys.argv.index("--listen") + 1].rpartition(":")
print(" ".join(sys.argv[1:]), file=open(sys.argv[sys.argv.index("--data-dir") + 1] + ".begun", "a"))
http.server.HTTPServer((host, int(port)), Answers).serve_forever()
"""


def environment(folder: Path, **more: str) -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if not name.startswith("RECADO_")},
        "CELL_A_URL": "postgresql://user:secret@127.0.0.1/a", "RECADO_ENCRYPTION_KEYS": "k", "RECADO_INDEX_KEY": "i",
        "RECADO_CURSOR_KEY": "c", "RECADO_DATA_DIR": str(folder), "RECADO_STORAGE": "s3", "RECADO_CLUSTER": "auto",
        "RECADO_LISTEN": "127.0.0.1:1", **more,
    }  # fmt: skip


def service(folder: Path, program: str = STAND_IN) -> CellService:
    return CellService("a", "CELL_A_URL", "127.0.0.1", environment(folder), [sys.executable, "-c", program])


def begun(folder: Path) -> list[str]:
    """The arguments of each life."""
    file = folder / "a.begun"
    return file.read_text().splitlines() if file.exists() else []


class Lives:
    """A service whose processes can be ended after the test."""

    def __init__(self, made: CellService) -> None:
        self.url, self.answers = made.url, made.answers
        self._begin = made.begin
        self._begun: list[subprocess.Popen[bytes]] = []

    def begin(self, *, take_over: bool) -> "subprocess.Popen[bytes]":
        self._begun.append(process := self._begin(take_over=take_over))
        return process

    def end(self) -> None:
        for process in self._begun:
            process.kill()
            process.wait()


class Over(Exception):
    """The test is: nobody stops a keeper otherwise, which ends with its process."""


@contextmanager
def kept(made: CellService, shorter: Callable[[float], float] = lambda seconds: seconds) -> Iterator[CellKeeper]:
    """`shorter`: how long it waits, of what it wants."""
    over = threading.Event()

    def wait(seconds: float) -> None:
        if over.wait(shorter(seconds)):
            raise Over

    def run() -> None:
        with suppress(Over):
            keeper.run()

    lives = Lives(made)
    keeper = CellKeeper("a", lives, monotonic=time.monotonic, wait=wait, chance=random.Random(1))
    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield keeper
    finally:
        over.set()
        thread.join()
        lives.end()
        made.close()


def running(made: CellService) -> int | None:
    """The process that listens on its port."""
    found = subprocess.run(["pgrep", "-f", "--", f"--listen 127.0.0.1:{made.port} "], capture_output=True, text=True)
    return int(found.stdout.split()[0]) if found.stdout else None


async def test_a_service_is_begun_again_on_its_port_and_takes_over_only_the_first_time(tmp_path: Path) -> None:
    made = service(tmp_path)
    with kept(made) as keeper:
        await until(lambda: keeper.place.url == made.url, "it answers")
        first = running(made)
        assert first is not None
        os.kill(first, signal.SIGKILL)
        await until(lambda: keeper.place.url is None, "that it ended is seen")
        assert keeper.place.trouble == "its service ended with status -9"
        await until(lambda: keeper.place.url == made.url, "it answers again")
        second = running(made)
        assert second not in (None, first)
    lives = begun(tmp_path)
    assert [f"--listen 127.0.0.1:{made.port} --data-dir {tmp_path}/a" in each for each in lives] == [True, True]
    assert [each.endswith(" --take-over") for each in lives] == [True, False]


async def test_one_that_stands_still_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_keeper, "SILENT_FOR", 0.5)
    monkeypatch.setattr(cell_keeper, "ASK_EVERY", 0.1)
    monkeypatch.setattr("recado.cluster.cell_service.ANSWERS_WITHIN", 0.3)
    made = service(tmp_path)
    with kept(made) as keeper:
        await until(lambda: keeper.place.url, "it answers")
        first = running(made)
        assert first is not None
        os.kill(first, signal.SIGSTOP)
        await until(lambda: running(made) not in (None, first) and keeper.place.url, "another answers")


async def test_one_that_is_told_to_restart_stops_in_order_and_is_begun_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = CapturingLogger()
    monkeypatch.setattr(cell_keeper, "log", log)
    made = service(tmp_path)
    pauses: list[float] = []

    def shorter(seconds: float) -> float:
        pauses.append(seconds)
        return seconds

    with kept(made, shorter) as keeper:
        await until(lambda: keeper.place.url, "it answers")
        before = keeper.place.life
        keeper.restart()
        await until(lambda: keeper.place.life > before and keeper.place.url == made.url, "another one answers there")
        assert max(pauses) <= cell_keeper.LOOK_EVERY  # no failure, and no pause for one
    told = ["service_begun", "service_answers", "service_told_to_stop", "service_stopped"]
    assert [(each.method_name, *each.args) for each in log.calls] == [("info", each) for each in (*told, *told[:2])]
    assert [each.endswith(" --take-over") for each in begun(tmp_path)] == [True, False]


@pytest.mark.parametrize("deaf", [False, True], ids=["at once", "not by itself"])
async def test_one_that_is_told_to_end_stays_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deaf: bool) -> None:
    monkeypatch.setattr(cell_keeper, "ENDS_WITHIN", 0.5)
    made = service(tmp_path, "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" * deaf + STAND_IN)
    with kept(made) as keeper:
        await until(lambda: keeper.place.url, "it answers")
        keeper.end()
        await until(lambda: keeper.place.ended, "it has ended")
        assert (keeper.place.url, running(made)) == (None, None)
    assert len(begun(tmp_path)) == 1


async def test_one_that_always_ends_is_begun_ever_more_slowly(tmp_path: Path) -> None:
    pauses: list[float] = []

    def shorter(seconds: float) -> float:
        if seconds <= cell_keeper.LOOK_EVERY:
            return seconds
        pauses.append(seconds)
        return 0.0

    with kept(service(tmp_path, "raise SystemExit(3)"), shorter) as keeper:
        await until(lambda: len(pauses) > 7, "it was begun seven times")
        assert keeper.place.trouble == "its service ended with status 3"
    assert all(later >= earlier * 1.2 for earlier, later in pairwise(pauses[:5]))
    assert max(pauses) <= cell_keeper.AGAIN.ceiling


@pytest.mark.parametrize("lacks", [False, True], ids=["always ends", "lacks a variable"])
def test_one_that_never_answers_is_left_to_another_machine(tmp_path: Path, lacks: bool) -> None:
    variable = "CELL_Z_URL" if lacks else "CELL_A_URL"
    made = CellService("a", variable, "127.0.0.1", environment(tmp_path), ["false"])
    passed = 0.0

    def wait(seconds: float) -> None:
        nonlocal passed
        passed += seconds
        threading.Event().wait(min(seconds, 0.001))

    keeper = CellKeeper("a", made, monotonic=lambda: passed, wait=wait, chance=random.Random(1))
    thread = threading.Thread(target=keeper.run, daemon=True)
    thread.start()
    thread.join(60)
    made.close()
    assert not thread.is_alive()
    assert passed >= cell_keeper.GIVES_UP_AFTER
    assert keeper.place.url is None


async def test_the_service_ends_with_the_process_that_began_it(tmp_path: Path) -> None:
    """However that ends: nothing of it can run then."""
    begins = (
        "import signal, sys\nfrom pathlib import Path\nfrom tests.cluster.test_cell_keeper import service\n"
        "made = service(Path(sys.argv[1]))\nprint(made.begin(take_over=True).pid, flush=True)\nsignal.pause()"
    )
    parent = subprocess.Popen([sys.executable, "-c", begins, tmp_path], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    await until(lambda: begun(tmp_path), "the service runs")
    parent.kill()
    parent.wait()
    parent.stdout.close()
    await until(
        lambda: not Path(f"/proc/{child}/cmdline").exists() or not Path(f"/proc/{child}/cmdline").read_bytes(),
        "it ends",
    )


def test_it_gets_the_database_of_its_cell_in_its_environment_and_nothing_secret_as_argument(tmp_path: Path) -> None:
    shows = (
        "import json, os, sys; print(json.dumps([sys.argv, dict(os.environ)]), file=open(sys.argv[4] + '.shown', 'w'))"
    )
    made = service(tmp_path, shows)
    process = made.begin(take_over=False)
    arguments = [str(each) for each in process.args]  # type: ignore[union-attr]
    assert process.wait() == 0
    made.close()

    shown, its = json.loads((tmp_path / "a.shown").read_text())
    assert its["RECADO_DATABASE_URL"] == "postgresql://user:secret@127.0.0.1/a"
    assert not its.keys() & {"RECADO_CLUSTER", "RECADO_LISTEN", "RECADO_DATA_DIR"}
    assert not [each for each in (*arguments, *shown) if "secret" in each]


@pytest.mark.parametrize(
    ("without", "said"),
    [
        ("CELL_A_URL", "CELL_A_URL is not set"),
        ("RECADO_INDEX_KEY", "RECADO_INDEX_KEY is not set"),
        ("RECADO_DATA_DIR", "RECADO_DATA_DIR is not a folder from the root"),
        ("RECADO_STORAGE", "media would stay on one machine"),
    ],
)
def test_a_machine_that_lacks_something_says_what(tmp_path: Path, without: str, said: str) -> None:
    given = environment(tmp_path)
    del given[without]
    assert said in str(lacking(given, "CELL_A_URL"))
    made = CellService("a", "CELL_A_URL", "127.0.0.1", given, ["false"])
    with pytest.raises(NotHere, match=said):
        made.begin(take_over=True)
    made.close()
