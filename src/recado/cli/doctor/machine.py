"""The checks of the machine: the address, a running service, the disk, descriptors, the interpreter."""

import resource
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import aiohttp

from recado.cli.doctor.finding import Finding, failure, ok, warning
from recado.config.settings import Settings
from recado.descriptors import WANTED, Descriptors, attainable
from recado.interpreter import Build, this_build
from recado.storage.embedded.cluster import LARGEST_WAL
from recado.storage.embedded.service_folder import service_folder

_TIMEOUT: Final = 5.0  # seconds
_LITTLE_ROOM: Final = LARGEST_WAL + 2 * 2**30  # bytes
_NO_ROOM: Final = 512 * 2**20


async def address(settings: Settings) -> list[Finding]:
    """Whether the service answers at its address, and whether another program has it."""
    listen = settings.listen
    where = f"{listen.host}:{listen.port}"
    if listen.port == 0:
        return [ok("address", "any free port is taken")]
    url = f"http://{_host_of(settings)}:{listen.port}"
    timeout = aiohttp.ClientTimeout(total=_TIMEOUT)
    try:
        async with aiohttp.ClientSession(timeout=timeout) as session:
            async with session.get(f"{url}/healthz") as answer:
                ours = answer.headers.get("X-Request-Id", "").startswith("req_")
            if not ours:
                return [failure("address", f"another program listens on {where}: stop it, or choose another address")]
            async with session.get(f"{url}/readyz") as answer:
                ready = answer.status == 200
    except aiohttp.ClientConnectorError:
        return [_free(listen.host, listen.port)]
    except (TimeoutError, aiohttp.ClientError, OSError) as error:
        return [failure("address", f"what listens on {where} does not answer ({type(error).__name__})")]
    if not ready:
        return [failure("service", f"runs on {where}, and cannot take work: the checks of the database say why")]
    return [ok("service", f"runs on {where}, and takes work")]


def machine(settings: Settings) -> Iterator[Finding]:
    """The interpreter, room on the disk, and how many files and connections the service may open."""
    yield interpreter(this_build())
    yield _disk(settings)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    here, usual = Descriptors.of(attainable(most)), Descriptors.of(WANTED)
    if here.calls != usual.calls:
        text = (
            f"at most {most} open files, so {here.outbound} calls to a provider at a time, {here.push} for push and"
            f" {here.webhooks} to webhooks: raise it (ulimit -Hn, LimitNOFILE={WANTED}) for {usual.outbound},"
            f" {usual.push} and {usual.webhooks}"
        )
        yield warning("limits", text)
    else:
        yield ok("limits", f"up to {'any number of' if most == resource.RLIM_INFINITY else most} open files")


def interpreter(build: Build) -> Finding:
    """Whether Python is as fast as it can be."""
    if build.optimised:
        return ok("python", f"{build}")
    text = (
        f"{build}: one that is built with both takes 11 to 19 % less processor time. Install it (on Debian and Ubuntu:"
        " apt-get install python3 python3-venv), and let 'make clean run' make the virtual environment of it"
    )
    return warning("python", text)


def _free(host: str, port: int) -> Finding:
    """Whether the address can be listened on; nobody answers there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            return failure("address", f"{host}:{port} cannot be listened on ({error.strerror}): choose another")
    return ok("address", f"the service is to listen on {host}:{port}, which is free")


def _host_of(settings: Settings) -> str:
    host = {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(settings.listen.host, settings.listen.host)  # noqa: S104
    return f"[{host}]" if ":" in host else host


def _disk(settings: Settings) -> Finding:
    folder = service_folder(settings.data_dir) or settings.data_dir
    place = _existing(folder)
    free = shutil.disk_usage(place).free
    text = f"{free / 2**30:.1f} GiB free at {place}"
    if free < _NO_ROOM:
        return failure("disk", f"{text}: make room, PostgreSQL stops without")
    if free < _LITTLE_ROOM:
        return warning("disk", f"{text}: make room")
    return ok("disk", text)


def _existing(folder: Path) -> Path:
    """The folder, or the nearest one above it that is there."""
    folder = folder.absolute()
    while not folder.is_dir():
        folder = folder.parent
    return folder
