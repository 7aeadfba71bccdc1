"""What many tests share: an embedded server for each process of the run, a fresh migrated database for each test."""

import asyncio
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import asyncpg
import pytest
import structlog
from tests import deadlines, folders, judged_alone, order
from tests import system_postgres as packaged
from tests.alone import pytest_ignore_collect, pytest_itemcollected  # noqa: F401 - hooks of this run
from tests.clusters import give_cluster
from tests.emptied import POOL_SIZE, TEMPLATE, Emptied, emptied
from tests.examples import use_profile
from tests.required import (  # noqa: F401 - hooks of this run
    pytest_collection_modifyitems,
    pytest_make_collect_report,
    pytest_runtest_makereport,
)
from tests.standing_connection import StandingConnection, standing_connection

from recado.engine.clock import SystemClock
from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep.migrate import migrate
from recado.storage.core.upkeep.partitions import ensure_partitions
from recado.storage.embedded.embedded import EmbeddedPostgres
from recado.storage.embedded.service_folder import locate, service_folder

use_profile()

ON_SYSTEM_POSTGRES = "RECADO_TESTS_ON_SYSTEM_POSTGRES"  # 1: not on the embedded server but on the system's

_MEMORY = Path("/dev/shm")
_ROOM = 2 * 2**30  # bytes: the databases of a run take a tenth of it


def pytest_configure(config: pytest.Config) -> None:
    """Hooks of a conftest below the root are not told of fixtures of the session; and two have the same name."""
    config.pluginmanager.register(folders)
    config.pluginmanager.register(deadlines)
    config.pluginmanager.register(order)
    config.pluginmanager.register(judged_alone)
    # A shell has what it runs in the background ignore Ctrl-C, and so would each program to which a test sends one.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collecting makes millions of objects that stay.

    To look through them again and again takes a quarter of its time, and later most of the time of each test that asks
    the collector for what it left.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    """What sets up the log of the process would take their lines from tests that come later."""
    before = structlog.get_config()["wrapper_class"]
    yield
    assert structlog.get_config()["wrapper_class"] is before, "this test set up the log, and put nothing back"


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """The connect arguments of the run's one server; its database `recado_template` is migrated and has partitions.

    Nobody will miss what it loses in a power cut: it waits for no disk. The tests of durability start their own.
    """
    with ExitStack() as stack:
        if os.environ.get(ON_SYSTEM_POSTGRES) == "1":
            arguments = stack.enter_context(packaged_server(superuser=True))
            place = ""
        else:
            data_dir = tmp_path_factory.mktemp("data")
            memory = stack.enter_context(_in_memory())
            arguments = stack.enter_context(embedded_server(data_dir))
            place = asyncio.run(_tablespace(arguments, memory, locate(data_dir).uid)) if memory else ""
        asyncio.run(_prepare(arguments, place))
        yield arguments


@contextmanager
def embedded_server(data_dir: Path) -> Iterator[dict[str, Any]]:
    give_cluster(data_dir)
    server = EmbeddedPostgres(data_dir, clock=SystemClock())
    with asyncio.Runner() as runner:
        try:
            yield runner.run(server.start())
        finally:
            runner.run(server.stop())
            _forget_cluster(data_dir)


@contextmanager
def _in_memory() -> Iterator[Path | None]:
    """A folder of files that are kept in memory, where the system has room for them.

    Making a database makes a thousand files: on a disk that takes longer than most of the tests that ask for one.
    """
    if not _MEMORY.is_dir() or shutil.disk_usage(_MEMORY).free < _ROOM:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="recado-tests-", dir=_MEMORY) as folder:
        yield Path(folder)


async def _tablespace(arguments: dict[str, Any], folder: Path, uid: int) -> str:
    """What follows `create database` to have it in the folder: it, and whatever is made from it."""
    os.chown(folder, uid, -1)
    await _execute(arguments, f"create tablespace memory location '{folder}'")
    return "tablespace memory"


@contextmanager
def packaged_server(*, superuser: bool = False) -> Iterator[dict[str, Any]]:
    programs = packaged.binaries()
    if programs is None:
        pytest.skip("no PostgreSQL of the system's packages is installed (Debian: postgresql)")
    with packaged.serving(programs, superuser=superuser) as arguments:
        yield arguments


# The server would count the rows of many tests every few seconds, and what the planner is told costs the database that
# tests share (tests/emptied.py). Vacuuming goes on.
_COUNTS_NOTHING = "alter system set autovacuum_analyze_threshold = 2147483647"


async def _prepare(arguments: dict[str, Any], place: str) -> None:
    """Make the template of the server's own database, which is empty, or has the schema already (tests/clusters.py)."""
    clock = SystemClock()
    made = f"create database {TEMPLATE} template {arguments['database']} {place}"
    for statement in (_COUNTS_NOTHING, "select pg_reload_conf()", made):
        await _execute({**arguments, "database": "postgres"}, statement)
    template = Database({**arguments, "database": TEMPLATE}, clock=clock)
    await template.start()
    await migrate(template)
    await ensure_partitions(template, clock.now())
    await template.stop()


@pytest.fixture(scope="session")
def maker(postgres: dict[str, Any]) -> Iterator[StandingConnection]:
    """Makes and drops the databases of tests."""
    with standing_connection(postgres) as connection:
        yield connection


@pytest.fixture(scope="session")
async def emptied_database(postgres: dict[str, Any], maker: StandingConnection) -> AsyncIterator[Emptied]:
    with emptied(postgres, "recado_tests", maker) as database:
        yield database


@pytest.fixture
async def database(emptied_database: Emptied) -> AsyncIterator[Database]:
    """A started `Database` on an empty database with the schema and this month's partitions."""
    await emptied_database.empty()
    db = Database(emptied_database.arguments, clock=SystemClock(), pool_size=POOL_SIZE, hot_size=4)
    await db.start()
    try:
        yield db
    finally:
        await db.stop()


@pytest.fixture(scope="session")
def system_postgres() -> Iterator[dict[str, Any]]:
    """The connect arguments of an empty database on a server of the system's packages; its owner is no superuser."""
    with packaged_server() as arguments:
        yield arguments


@pytest.fixture
def data_dir(tmp_path: Path) -> Iterator[Path]:
    """A data folder under a home that is closed to others; what its embedded server kept elsewhere is removed."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    yield home / "data"
    _forget_cluster(home / "data")


@pytest.fixture
async def own_server(data_dir: Path) -> AsyncIterator[EmbeddedPostgres]:
    """A started embedded server that a test may restart and kill."""
    server = EmbeddedPostgres(data_dir, clock=SystemClock())
    await server.start()
    yield server
    await server.stop()


def _forget_cluster(data_dir: Path) -> None:
    folder = service_folder(data_dir)
    if folder is not None:
        shutil.rmtree(folder)


async def _execute(arguments: dict[str, Any], sql: str) -> None:
    connection = await asyncpg.connect(**arguments)
    try:
        await connection.execute(sql)
    finally:
        await connection.close()
