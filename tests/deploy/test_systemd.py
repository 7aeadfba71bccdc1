"""The units of systemd, as systemd's own tools judge them."""

import asyncio
import ctypes
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.acceptance.sandbox.customer import Customer, phone
from tests.program import Api, Service, running
from tests.required import only_where

UNITS = sorted((Path(__file__).parents[2] / "deploy" / "systemd").glob("*.service"))
EXPOSURE = 20
"""Tenths: at most so open, of 100; without any hardening a service has some 95."""

PR_SET_NO_NEW_PRIVS, PR_SET_MDWE, PR_GET_MDWE = 38, 65, 66
CONFINE = f"""
import ctypes, os, sys
system = ctypes.CDLL(None)
for what in ({PR_SET_NO_NEW_PRIVS}, {PR_SET_MDWE}):
    if system.prctl(what, 1, 0, 0, 0):
        sys.exit("the kernel refuses")
os.execv(sys.executable, [sys.executable, "-m", "recado", *sys.argv[1:]])
"""
"""What NoNewPrivileges= and MemoryDenyWriteExecute= do, for the program and all that it starts."""


def analyzed(*arguments: str | Path) -> "subprocess.CompletedProcess[str]":
    program = shutil.which("systemd-analyze")
    if program is None:
        pytest.skip("systemd-analyze is not installed (Debian: systemd)")
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60, check=False)


def written(folder: Path, text: str) -> Path:
    unit = folder / "recado.service"
    unit.write_text(text)
    return unit


@pytest.mark.parametrize("file", UNITS, ids=lambda file: file.stem)
def test_systemd_understands_every_line(file: Path, tmp_path: Path) -> None:
    text = file.read_text("utf-8").replace("/opt/recado/.venv/bin", str(Path(sys.executable).parent))
    done = analyzed("verify", written(tmp_path, text))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    unknown = analyzed("verify", written(tmp_path, text.replace("UMask", "Umsk")))
    assert "'Umsk'" in unknown.stderr


def test_the_units_of_a_cluster_have_the_environment_of_its_page() -> None:
    page = (UNITS[0].parents[2] / "docs" / "cluster.md").read_text("utf-8")
    for unit in (each for each in UNITS if each.stem in ("recado-ray", "recado-cluster")):
        (line,) = re.findall(r"^Environment=(.*)$", unit.read_text("utf-8"), flags=re.MULTILINE)
        assert [each for each in line.split() if f"\n{each}\n" not in page] == []


@pytest.mark.parametrize("file", UNITS, ids=lambda file: file.stem)
def test_the_service_may_do_little_beside_its_work(file: Path, tmp_path: Path) -> None:
    shut = analyzed("security", "--offline=yes", f"--threshold={EXPOSURE}", "--no-pager", file)
    assert shut.returncode == 0, shut.stdout
    open_to_all = re.sub(r"^UMask=.*?^$", "", file.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    done = analyzed(
        "security", "--offline=yes", f"--threshold={EXPOSURE}", "--no-pager", written(tmp_path, open_to_all)
    )
    assert done.returncode != 0


class Confined(Service):
    starts_with = (sys.executable, "-c", CONFINE)


@only_where(ctypes.CDLL(None).prctl(PR_GET_MDWE, 0, 0, 0, 0) >= 0, "kernels before 6.3 leave this to systemd's filter")
@pytest.mark.long
async def test_the_service_works_where_no_memory_is_both_written_and_run(tmp_path: Path) -> None:
    async with running(Confined(tmp_path, SANDBOX_TIME_SCALE="0")) as service:
        assert await asyncio.to_thread(is_confined, service.pid)
        token = await asyncio.to_thread(service.key, "test")
        async with Api(service.url, token) as api:
            customer = await Customer.arrive(api)
            await customer.reaches(await customer.send(phone()), "read")
            people = [{"phone": f"+5511{900_000_000 + place}", "name": "x" * 60} for place in range(1_000)]
            await api.call("POST", "/contacts/import", {"contacts": people})  # so large that another process reads it


def is_confined(pid: int) -> bool:
    """Whether the process may gain no privileges any more, which is the part of it that the kernel shows."""
    return "NoNewPrivs:\t1" in Path(f"/proc/{pid}/status").read_text()
