"""An import outlives the process that writes it, and the command that hands it in follows it (C12.7.6, C35)."""

import asyncio
import io
import json
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import pytest
from tests import forked
from tests.program import Api, Service, running
from tests.waiting import until

from recado.engine.clock import SystemClock
from recado.storage.embedded.embedded import EmbeddedPostgres

ROWS = 60_000  # long enough to be killed twice
TWICE = 500  # rows whose contact comes again at the end of the file
BAD = 30


@pytest.fixture
async def own(tmp_path: Path) -> AsyncIterator[Service]:
    """A service that the test may kill."""
    async with running(Service(tmp_path)) as service:
        yield service


def table() -> str:
    """ROWS rows: BAD of them are none, and the last TWICE name contacts of the first ones."""
    distinct = ROWS - TWICE - BAD
    rows = [f"+55119{n:08},Contact {n},c{n}@example.com,a|b" for n in range(distinct)]
    rows[100:100] = [f"none,Bad {n},," for n in range(BAD)]
    rows += [f"+55119{n:08},Again {n},," for n in range(TWICE)]
    return "phone,name,email,tags\n" + "\n".join(rows)


@pytest.mark.long
async def test_a_killed_import_goes_on_and_writes_every_row_once(own: Service) -> None:
    token = await asyncio.to_thread(own.key, "test")
    async with Api(own.url, token) as api, aiohttp.ClientSession() as session:
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "text/csv"}
        async with session.post(
            f"{own.url}/contacts/import", data=io.BytesIO(table().encode()), headers=headers
        ) as answer:
            accepted = await answer.json()
        assert (answer.status, accepted["total"], accepted["status"]) == (202, ROWS, "processing")
        path = f"/contacts/imports/{accepted['id']}"

        async def under_way() -> Any:
            latest = await api.call("GET", path)
            assert latest["status"] == "processing", "the import was through before it could be killed"
            return latest["processed"] >= 2_000

        kills = 0
        for _ in range(2):
            await until(under_way, "some blocks are written")
            own.end(signal.SIGKILL)
            kills += 1
            await own.start()

        async def through() -> Any:
            latest = await api.call("GET", path)
            return latest if latest["status"] != "processing" else None

        result = await until(through, "the import is through", limit=90, every=0.2)
        assert kills == 2
        assert result["status"] == "completed"
        distinct = ROWS - TWICE - BAD
        counts = {name: result[name] for name in ("processed", "created", "updated", "unchanged", "failed")}
        assert counts == {
            "processed": ROWS, "created": distinct, "updated": TWICE, "unchanged": 0, "failed": BAD,
        }  # fmt: skip
        assert [error["row"] for error in result["errors"]] == list(range(101, 101 + BAD))
    server = EmbeddedPostgres(own.data_dir, clock=SystemClock())
    arguments = await server.start()
    connection = await asyncpg.connect(**arguments)
    try:
        assert await connection.fetchval("select count(*) from contacts") == distinct
        assert await connection.fetchval("select count(*) from contacts where name like 'Again %'") == TWICE
        assert await connection.fetchval("select count(*) from contact_import_blocks") == 0
    finally:
        await connection.close()
        await server.stop()


@pytest.fixture
def handed_in(service: Service, token: str, tmp_path: Path) -> Any:
    """Run `recado contacts import` on a file of that name and text."""

    def run(name: str, text: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
        file = tmp_path / name
        file.write_text(text, "utf-8")
        command = ["contacts", "import", str(file), "--url", service.url, "--key-from", "A_KEY", *arguments]
        environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "A_KEY": token}
        return forked.run(command, env=environment, cwd=tmp_path, timeout=60)

    return run


def test_the_command_waits_until_every_row_is_written(handed_in: Any) -> None:
    rows = "\n".join(f"(21) 9{n:04}-0000;Row {n}" for n in range(2_100))
    done = handed_in("many.csv", f"phone;name\n{rows}\n", "--default-country", "BR", "--tag", "many", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert (result["status"], result["processed"], result["created"]) == ("completed", 2_100, 2_100)
    again = handed_in("many.csv", f"phone;name\n{rows}\n", "--default-country", "BR", "--tag", "many")
    assert again.returncode == 0
    assert again.stdout == (
        "completed: 2,100 rows, 0 created, 0 updated, 2,100 unchanged, 0 failed, 0 consents ignored\n"
    )


def test_bad_rows_are_told_and_make_the_status_one(handed_in: Any) -> None:
    done = handed_in("rows.ndjson", '{"phone": "+5521988880001"}\n{"phone": "x"}\n', "--mode", "upsert")
    assert done.returncode == 1
    assert "1 created" in done.stdout
    assert "PHONE_INVALID" in done.stdout


@pytest.mark.parametrize(
    ("name", "text", "arguments", "said"),
    [
        ("rows.txt", "phone\n", (), "say it with --format"),
        ("rows.csv", "name\n", (), "refused with 422 IMPORT_INVALID: No column is named phone."),
        ("rows.csv", "phone\n", ("--list", "lst_x"), "refused with 422 REFERENCE_NOT_FOUND"),
        ("rows.csv", "phone\n", ("--key-from", "ANOTHER"), "there is no API key in ANOTHER"),
        ("rows.csv", "phone\n", ("--url", "nowhere"), "'nowhere' is no address of an API"),
        (
            "rows.csv",
            "phone\n",
            ("--url", "http://127.0.0.1:1"),
            "nothing answers at 127.0.0.1:1: 'recado serve' starts",
        ),
    ],
)
def test_what_cannot_be_done_is_one_line_that_says_why(
    handed_in: Any, name: str, text: str, arguments: Any, said: str
) -> None:
    done = handed_in(name, text, *arguments)
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) == 1
    assert said in done.stderr
