"""What the tests of a folder share: one process of the run takes them all, and it ends with the last of them.

A fixture of the session is made once in each process, and stays until that ends. Divided file by file, every process
would start each folder's service, and all of them would look for work in their databases until the end of the run.
"""

import re
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

_ROOT = Path(__file__).parent.parent
_SHARED = re.compile(r'^@pytest.fixture\(scope="session"\)\ndef (service|served)\(', re.MULTILINE)


@cache
def shared_service(folder: Path) -> str:
    """The fixture of the session by which a folder's conftest starts a service for its tests; empty without one."""
    conftest = folder / "conftest.py"
    found = _SHARED.search(conftest.read_text()) if conftest.exists() else None
    return found[1] if found else ""


@cache
def taken_together(file: str) -> str:
    """The folder of a file of tests when they share that folder's service, or the file itself."""
    folder = file.rpartition("/")[0]
    service = shared_service(_ROOT / folder)
    has_its_own = f"\ndef {service}(" in (_ROOT / file).read_text()
    return folder if service and not has_its_own else file


class ByService(LoadFileScheduling):
    """Divides a run into files, and into the folders whose files share a service."""

    def _split_scope(self, nodeid: str) -> str:
        return taken_together(super()._split_scope(nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ByService | None:
    return ByService(config, log) if config.getvalue("dist") == "loadfile" else None


# The end of what was made for a folder --------------------------------------------------------------------------------

_made: list[tuple[pytest.FixtureDef[Any], Any]] = []


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: Any) -> Generator[None, object, object]:
    if fixturedef.scope == "session" and fixturedef.baseid:
        _made.append((fixturedef, request))
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Generator[None, object, object]:
    result = yield
    left = [made for made in _made if nextitem is not None and not _within(nextitem.nodeid, made[0].baseid)]
    for fixturedef, request in reversed(left):
        _made.remove((fixturedef, request))
        fixturedef.finish(request)
    return result


def _within(nodeid: str, base: str) -> bool:
    return nodeid.startswith((f"{base}/", f"{base}::"))
