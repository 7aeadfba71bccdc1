"""How Python was built, and which of several `make run` takes."""

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from bench.report import machine as benched_machine

from recado.cli.doctor.finding import Verdict
from recado.cli.doctor.machine import interpreter
from recado.interpreter import NEWEST, OLDEST, Build, build_of, this_build

ROOT = Path(__file__).parents[1]
FIND_PYTHON = ROOT / "tools" / "find-python"
PLAIN = ("posix_prefix", "venv")
DEBIANS = ("deb_system", "posix_local", *PLAIN)


@pytest.mark.parametrize(
    ("variables", "schemes", "optimised"),
    [
        ({"CONFIG_ARGS": "'--prefix=/opt' '--enable-shared'", "PY_CFLAGS": "-O3 -Wall"}, PLAIN, (False, False)),
        ({"CONFIG_ARGS": "'--enable-optimizations' '--with-lto'"}, PLAIN, (True, True)),
        ({"CONFIG_ARGS": "'--enable-optimizations' '--with-lto=full'"}, PLAIN, (True, True)),
        ({"CONFIG_ARGS": "'--enable-optimizations' '--without-lto'"}, PLAIN, (True, False)),
        ({"CONFIG_ARGS": "", "PY_CFLAGS_NODIST": "-fprofile-use -flto=auto"}, PLAIN, (True, True)),
        ({"CONFIG_ARGS": "'--prefix=/usr'", "PY_CFLAGS": "-O2"}, DEBIANS, (True, True)),  # it records neither
        ({}, PLAIN, (False, False)),
    ],
)
def test_a_build_is_told_by_what_it_records(
    variables: dict[str, Any], schemes: tuple[str, ...], optimised: tuple[bool, bool]
) -> None:
    build = build_of("3.11.2", variables, schemes)
    assert (build.pgo, build.lto) == optimised
    assert build.optimised is all(optimised)


@pytest.mark.parametrize(
    ("build", "verdict", "told"),
    [
        (Build("3.11.2", pgo=True, lto=True), Verdict.OK, "3.11.2 (PGO and LTO)"),
        (Build("3.12.1", pgo=True, lto=False), Verdict.WARNING, "3.12.1 (PGO): one that is built with both"),
        (Build("3.13.0", pgo=False, lto=False), Verdict.WARNING, "apt-get install python3 python3-venv"),
    ],
)
def test_the_doctor_says_which_build_it_is_and_what_to_do(build: Build, verdict: Verdict, told: str) -> None:
    found = interpreter(build)
    assert (found.subject, found.verdict) == ("python", verdict)
    assert told in found.text


def test_the_page_of_benchmarks_names_the_build() -> None:
    assert f"; Python {this_build()}, aiohttp " in benched_machine()


class Interpreters:
    """A path of two folders with programs that answer as interpreters would."""

    def __init__(self, folder: Path) -> None:
        self.folders = (folder / "first", folder / "second with a space")
        for each in self.folders:
            each.mkdir()

    def add(self, name: str, optimisations: int, *, folder: int = 0, status: int = 0) -> Path:
        program = self.folders[folder] / name
        program.write_text(f"#!/bin/sh\necho {optimisations} '{program}'\nexit {status}\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return program

    def found(self) -> "subprocess.CompletedProcess[str]":
        path = os.pathsep.join(map(str, self.folders))
        return subprocess.run(
            ["/bin/sh", str(FIND_PYTHON)], env={"PATH": path}, capture_output=True, text=True, check=False
        )


@pytest.fixture
def interpreters(tmp_path: Path) -> Interpreters:
    return Interpreters(tmp_path)


def test_an_optimised_interpreter_is_preferred_wherever_it_stands_in_the_path(interpreters: Interpreters) -> None:
    interpreters.add("python3.11", 0)
    interpreters.add("python3.12", 1)
    best = interpreters.add("python3.11", 2, folder=1)
    assert interpreters.found().stdout == f"{best}\n"


def test_among_equals_the_oldest_version_and_the_first_of_the_path_is_taken(interpreters: Interpreters) -> None:
    interpreters.add("python3.12", 0)
    interpreters.add("python3.11", 0, folder=1)
    first = interpreters.add("python3.11", 0)
    assert interpreters.found().stdout == f"{first}\n"


def test_what_does_not_run_or_is_no_program_is_passed_over(interpreters: Interpreters) -> None:
    interpreters.add("python3.11", 2, status=127)  # a version manager's shim without a version behind it
    (interpreters.folders[0] / "python3.12").write_text("no program")
    (interpreters.folders[0] / "python3.13").mkdir()
    good = interpreters.add("python3", 0)
    assert interpreters.found().stdout == f"{good}\n"


def test_an_interpreter_without_venv_is_named(interpreters: Interpreters) -> None:
    program = interpreters.add("python3", 2, status=4)
    found = interpreters.found()
    assert (found.returncode, found.stdout) == (1, "")
    assert f"Found {program}, but without the venv module" in found.stderr


def test_where_there_is_none_the_versions_are_named(interpreters: Interpreters) -> None:
    interpreters.add("python3", 2, status=3)
    found = interpreters.found()
    assert (found.returncode, found.stdout) == (1, "")
    oldest, newest = (".".join(map(str, version)) for version in (OLDEST, NEWEST))
    assert f"Recado needs Python {oldest} to {newest}" in found.stderr
    names = [f"python3.{minor}" for minor in range(OLDEST[1], NEWEST[1] + 1)]
    assert f"names='{' '.join(names)} python3 python'" in FIND_PYTHON.read_text("utf-8")


def test_the_interpreter_of_an_environment_answers_with_the_one_that_it_was_made_of(tmp_path: Path) -> None:
    wrapper = tmp_path / "python3"
    wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    wrapper.chmod(0o755)
    found = subprocess.run(
        ["/bin/sh", str(FIND_PYTHON)], env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=False
    )
    assert Path(found.stdout.strip()).resolve() == Path(sys.executable).resolve()
    assert not found.stdout.startswith(str(Path(sys.prefix)))
