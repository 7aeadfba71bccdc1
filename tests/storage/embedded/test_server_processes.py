"""Who of a PostgreSQL server is there."""

import os
import signal
from pathlib import Path

import pytest
from tests.storage.embedded.test_embedded import OtherProcess
from tests.waiting import until

from recado.storage.embedded.server_processes import any_of, children, is_server
from recado.storage.embedded.service_folder import locate


@pytest.mark.long
async def test_a_child_that_a_killed_server_left_is_one_of_its_cluster(data_dir: Path) -> None:
    other = OtherProcess(data_dir)
    pid = await other.server_pid()
    folder = locate(data_dir).folder / "cluster"
    await other.kill()  # nobody starts the server again
    child = children(pid)[0]
    os.kill(child, signal.SIGSTOP)
    os.kill(pid, signal.SIGKILL)
    await until(lambda: not is_server(pid, folder), "the server is gone")
    assert any_of(folder)
    os.kill(child, signal.SIGKILL)
    await until(lambda: not any_of(folder), "its children are gone")
    assert not any_of(data_dir)
