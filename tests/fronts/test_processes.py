"""The processes of fronts, which can begin before there is anything to tell them; a small program stands for one."""

import os
import secrets
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recado.config.secrets import Keys, load_keys
from recado.config.settings import Settings
from recado.fronts import processes
from recado.fronts.frames import FrontBeginning
from recado.fronts.processes import FrontProcesses
from recado.fronts.program import program_on_disk

PROGRAM = "this one"
NOW = datetime(2026, 3, 1, tzinfo=UTC)
# It says which number it is, and which process, over each descriptor that it got.
FRONT = f"""#!{sys.executable}
import os, socket, sys
from recado.fronts.processes import beginning_from
assert sys.argv[1:] == ["-P", "-m", "recado.fronts.front", "{PROGRAM}"]
with socket.socket(fileno=os.dup(0)) as told:
    beginning = beginning_from(told)
if beginning is not None:
    for each in (beginning.link, beginning.gives, *beginning.listening, beginning.limits):
        assert not os.get_inheritable(each)
        os.write(each, f"{{beginning.number}} {{os.getpid()}};".encode())
"""


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FrontProcesses]:
    program = tmp_path / "front"
    program.write_text(FRONT)
    program.chmod(0o700)
    monkeypatch.setattr(processes.sys, "executable", str(program))
    made = FrontProcesses(PROGRAM)
    yield made
    made.keep(0)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Keys:
    return load_keys(Settings(data_dir=tmp_path_factory.mktemp("keys")))


def beginning(keys: Keys) -> FrontBeginning:
    return FrontBeginning(
        owner=os.getpid(), settings=Settings(), keys=keys, server={}, sessions="", number=1, program=PROGRAM,
        present=(NOW, 0.0), link=0, gives=0, listening=(), limits=0, salt=secrets.token_bytes(8),
    )  # fmt: skip


def heard(made: FrontProcesses, keys: Keys, number: int) -> tuple[int, list[bytes]]:
    """Begin a front; its process id, and what it said over each descriptor that it was to get."""
    pipes = [os.pipe() for _ in range(5)]
    link, gives, *listening, limits = given = [writing for _, writing in pipes]
    told = replace(beginning(keys), number=number, link=link, gives=gives, listening=tuple(listening), limits=limits)
    process = made.begin(told, given)
    for each in given:
        os.close(each)
    said = []
    for reading, _ in pipes:
        with os.fdopen(reading, "rb") as pipe:
            said.append(pipe.read())
    assert process.wait(30) == 0
    return process.pid, said


def early(made: FrontProcesses) -> list["subprocess.Popen[bytes]"]:
    return [process for process, _ in made._early]


def test_one_that_began_early_is_told_its_beginning_with_its_descriptors(made: FrontProcesses, keys: Keys) -> None:
    made.begin_early(2)
    waiting = [each.pid for each in early(made)]
    for number in (1, 2, 3):  # the last one is begun now
        pid, said = heard(made, keys, number)
        assert said == [f"{number} {pid};".encode()] * 5
        assert (pid in waiting) == (number < 3)


def test_those_that_are_not_needed_end(made: FrontProcesses) -> None:
    made.begin_early(3)
    first, *others = early(made)
    made.keep(1)
    assert [each.returncode for each in others] == [-signal.SIGKILL] * 2
    assert first.poll() is None
    made.keep(0)
    made.keep(0)
    assert first.returncode == -signal.SIGKILL


def test_one_that_ended_meanwhile_is_not_taken(made: FrontProcesses, keys: Keys) -> None:
    made.begin_early(1)
    (dead,) = early(made)
    dead.kill()
    dead.wait()
    pid, said = heard(made, keys, 1)
    assert said[0] == f"1 {pid};".encode()


def test_one_that_cannot_be_told_is_ended(made: FrontProcesses, keys: Keys) -> None:
    made.begin_early(1)
    (process,) = early(made)
    with pytest.raises(OSError, match="Bad file descriptor"):
        made.begin(beginning(keys), [1_000_000])
    assert process.returncode == -signal.SIGKILL


def test_where_none_can_begin_early_the_start_goes_on(made: FrontProcesses, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes.sys, "executable", "/nowhere")
    made.begin_early(2)
    assert early(made) == []


@pytest.mark.long
def test_a_front_whose_owner_wants_it_no_more_ends_without_a_word(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is the program that its owner was at first, whatever a library has added to the owner's folders since."""
    made = FrontProcesses(program_on_disk())
    (tmp_path / "later-1.0.dist-info").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    made.begin_early(1)
    ((process, told),) = made._early
    told.close()
    assert process.wait(60.0) == 0
    assert capfd.readouterr().err == ""
