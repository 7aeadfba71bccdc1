"""docs/deployment.md: its way back to a moment, as it is written, and its figures."""

import asyncio
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp

import asyncpg
import pytest
from tests.acceptance.sandbox.customer import Customer, phone
from tests.program import Api, Refused, Service
from tests.waiting import until

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "deployment.md").read_text("utf-8")


def chapter(heading: str) -> str:
    return PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


WHERE, ONCE, BASE, CLEAN, BACK = re.findall(r"```sh\n(.*?)```", chapter("Back to a moment"), re.DOTALL)


def test_figures_are_those_of_the_benchmarks() -> None:
    table = (ROOT / "docs" / "benchmarks.md").read_text("utf-8").partition("<!-- end of the table -->")[0]
    figures = re.findall(r"^\| .* \| ([\d,]+) \|$", chapter("Sizing"), re.MULTILINE)
    assert len(figures) == 6
    assert [figure for figure in figures if f" {figure} /s" not in table] == []


@pytest.fixture
def archive() -> Iterator[Path]:
    """Where the server may write, whichever user it runs as."""
    folder = Path(mkdtemp(prefix="recado-archive-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder / "kept"
    shutil.rmtree(folder)


@pytest.mark.long
@pytest.mark.parametrize("to_its_end", [False, True])
async def test_the_database_comes_back_to_a_moment_or_to_its_end_as_the_page_says(
    to_its_end: bool, tmp_path: Path, archive: Path
) -> None:
    service = Service(tmp_path, SANDBOX_TIME_SCALE="0")

    async def pasted(block: str) -> str:
        """What the block prints; the service is ended and started beside it."""
        script = f'set -eu\nsystemctl() {{ :; }}\nrunuser() {{ shift 3; "$@"; }}\n{WHERE}\n{block}'
        script = script.replace("/var/lib/recado/data", str(service.data_dir)).replace(
            "/var/backups/recado", str(archive)
        )
        script = script.replace("/opt/recado/.venv/bin", str(Path(sys.executable).parent))
        script = script.replace("/opt/recado", str(ROOT))
        done = await asyncio.to_thread(
            subprocess.run, ["bash", "-c", script], capture_output=True, text=True, timeout=120, check=False,
            cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"
        return done.stdout

    async def restart() -> None:
        await asyncio.to_thread(service.end, signal.SIGTERM)
        await service.start()

    try:
        await service.start()
        token = await asyncio.to_thread(service.key, "test")
        await pasted(ONCE)
        await restart()
        async with Api(service.url, token) as api:
            customer = await Customer.arrive(api)
            kept = [await customer.reaches(await customer.send(phone()), "read")]
            await pasted(BASE)
            kept.append(await customer.reaches(await customer.send(phone()), "read"))
            moment = await one(service, "select clock_timestamp()::text")
            lost = await customer.reaches(await customer.send(phone()), "read")
        written = await one(service, "select pg_walfile_name(pg_switch_wal())")

        async def archived() -> bool:
            return (archive / "wal" / f"{written}.gz").exists()

        await until(archived, "the log is archived")
        await pasted(CLEAN)
        service.end(signal.SIGKILL)
        await service.end_postgres(signal.SIGQUIT)

        today = next(archive.glob("base-*")).name
        back = BACK.replace("base-2026-11-22", today).replace("2026-11-22 10:15:00+00", moment)
        await pasted(re.sub(r"recovery_target_time.*\n", "", back) if to_its_end else back)
        await service.start()
        async with Api(service.url, token) as api:
            for message in kept:
                assert (await api.call("GET", f"/messages/{message['id']}"))["status"] == "read"
            assert await there(api, lost["id"]) == to_its_end
            again = Customer(api, customer.number_id, customer.template_id)
            await again.reaches(await again.send(phone()), "read")
        assert await one(service, "select timeline_id::text from pg_control_checkpoint()") == "2"
    finally:
        await service.wipe()


async def there(api: Api, message_id: str) -> bool:
    try:
        await api.call("GET", f"/messages/{message_id}")
    except Refused as refused:
        if refused.status != 404:
            raise
        return False
    return True


async def one(service: Service, sql: str) -> str:
    connection = await asyncpg.connect(**service.cluster().connect_arguments)
    try:
        return str(await connection.fetchval(sql))
    finally:
        await connection.close()


@pytest.mark.parametrize("there", ["nothing", "the same", "another"])
def test_a_file_of_the_log_is_archived_once_and_never_over_another(there: str, tmp_path: Path) -> None:
    log, kept = tmp_path / "0001", tmp_path / "kept"
    log.write_bytes(b"log" * 1000)
    kept.mkdir()
    run = [ROOT / "deploy" / "archive" / "archive-wal", kept, log, "0001"]
    if there != "nothing":
        subprocess.run(run, check=True)
    if there == "another":
        log.write_bytes(b"other" * 1000)
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert (done.returncode, "is another" in done.stderr) == ((1, True) if there == "another" else (0, False))
    unpacked = subprocess.run(["gunzip", "--stdout", kept / "0001.gz"], capture_output=True, check=True).stdout
    assert unpacked == b"log" * 1000
    assert [each.name for each in kept.iterdir()] == ["0001.gz"]
