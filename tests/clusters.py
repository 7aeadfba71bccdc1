"""Clusters for the servers that tests start: copies of one that was made once, has the schema, and waits for no disk.

What a first start makes of an empty folder, and that commits wait for the disk, is tested where this is not used.
"""

import asyncio
import atexit
import functools
import shutil
import subprocess
from pathlib import Path
from tempfile import mkdtemp

from recado.engine.clock import SystemClock
from recado.storage.core.connections.postgres import Database
from recado.storage.core.upkeep.migrate import migrate
from recado.storage.core.upkeep.partitions import ensure_partitions
from recado.storage.embedded.cluster import Cluster
from recado.storage.embedded.embedded import EmbeddedPostgres
from recado.storage.embedded.service_folder import locate, service_folder


def give_cluster(data_dir: Path) -> None:
    """Put a new cluster into a data folder that has none; nobody uses the folder yet."""
    cluster = Cluster(locate(data_dir)).folder
    if not cluster.exists():
        subprocess.run(["cp", "--archive", _made(), cluster], check=True)


@functools.cache
def _made() -> Path:
    """A cluster whose database has the schema and this month's partitions; it is there until the process ends."""
    folder = Path(mkdtemp(prefix="recado-cluster-"))
    atexit.register(shutil.rmtree, folder)
    cluster = Cluster(locate(folder / "data"))
    elsewhere = service_folder(folder / "data")
    if elsewhere is not None:
        atexit.register(shutil.rmtree, elsewhere)
    cluster.create()
    with (cluster.folder / "postgresql.auto.conf").open("a") as settings:
        settings.write("fsync = off\n")
    asyncio.run(_migrated(folder / "data"))
    return cluster.folder


async def _migrated(data_dir: Path) -> None:
    clock = SystemClock()
    server = EmbeddedPostgres(data_dir, clock=clock)
    database = Database(await server.start(), clock=clock)
    try:
        await database.start()
        await migrate(database)
        await ensure_partitions(database, clock.now())
    finally:
        await database.stop()
        await server.stop()
