"""Media: how fast a large file goes through the service, beside the pace that C31 allows its organization, and those of
several organizations, beside the disk itself and beside a server that only receives; the same to a storage that speaks
S3, beside its own pace; many downloads at once, beside a bare aiohttp application that gives the same file; and what
each takes of memory meanwhile.
"""

import asyncio
import base64
import os
import time
from functools import partial
from pathlib import Path
from typing import cast

import uvloop

from bench.harness import Figure, Process, Say, against, peak, running, scratch
from bench.media_s3 import uploads_to_s3
from bench.recado_process import READY, Api, recado
from bench.uploads import (
    BLOCK,
    PDF,
    PDF_TYPE,
    UPLOAD,
    Together,
    a_pdf,
    at_once,
    median_of,
    memory,
    processor,
    ready_callers,
    settled,
    upload,
    upload_all,
)  # fmt: skip
from recado.http.wire.body_pace import AT_ONCE as AT_ONCE_OF_ONE
from recado.http.wire.body_pace import BYTES_A_SECOND

DOWNLOAD = 5_000_000
AT_ONCE = 200
CALLERS = 30  # organizations: two fewer than bodies may be here at once
ROUNDS = 3
LEAST = 0.7
PERSON = "+5511987650000"


async def run(say: Say) -> list[Figure]:
    """In turns, each with the file in the disk's cache."""
    async with (
        scratch() as folder,
        running(recado(folder), READY) as service,
        Api(service) as api,
    ):
        file = folder / "file.pdf"
        file.write_bytes(a_pdf(DOWNLOAD))
        receives = ("-m", "bench.receiver", "--port", "{port}", "--folder", str(folder))
        async with (
            running(Process(folder, "bare", "-m", "bench.files", "--port", "{port}", "--file", str(file)), "/") as bare,
            running(Process(folder, "receiver", *receives), "/") as receiver,
        ):
            number = (await api.sender("media")).number_id
            uploads = await _uploads(say, service, receiver, api, number)
            downloads = await _downloads(say, service, bare, api, number, file)
    async with scratch() as folder:
        return [*uploads, *await uploads_to_s3(say, folder), *downloads]


async def _uploads(say: Say, service: Process, receiver: Process, api: Api, number: str) -> list[Figure]:
    """From the first byte sent to the last answer, which comes when the file is stored and the provider has it."""
    content = a_pdf(UPLOAD)
    callers = await ready_callers(service, (api.token, number), CALLERS)
    one, together, bare, disk = list[float](), list[Together](), list[Together](), list[float]()
    used_by_one = used_together = 0
    for turn in range(ROUNDS):
        say(f"media: uploads of {UPLOAD / 1e6:g} MB, round {turn + 1} of {ROUNDS}")
        before = settled(service)
        one.append(UPLOAD / await asyncio.to_thread(upload, service, *callers[0], content) / 1e6)
        used_by_one = max(used_by_one, peak(service.pid) - before)
        before = settled(service)
        together.append(await upload_all(service, callers, content))
        used_together = max(used_together, peak(service.pid) - before)
        bare.append(await upload_all(receiver, callers, content))
        disk.append(await _write_all(service.data_dir, content))
    allowed = UPLOAD / ((UPLOAD - AT_ONCE_OF_ONE) / BYTES_A_SECOND) / 1e6
    paces = [each.pace for each in together]
    return [
        against(f"upload of {UPLOAD / 1e6:g} MB, beside the pace of an organization", one, [allowed], "MB/s", LEAST),
        memory(used_by_one),
        against(f"– of {CALLERS} organizations at once, beside the disk", paces, disk, "MB/s", LEAST),
        against("– beside all of their paces", paces, [CALLERS * allowed], "MB/s", None),
        against(
            "– beside a server that only reads, hashes and writes", paces, [each.pace for each in bare], "MB/s", LEAST
        ),
        processor("– processor time of the service for a MB, beside that of this server", together, bare),
        Figure("– that of the clients, who have the same processors", f"{median_of(together, 'clients'):.2f} ms"),
        memory(used_together),
    ]


async def _write_all(folder: Path, content: bytes) -> float:
    """MB a second: the same bytes in as many files at once, until the disk has all of them."""
    places = [folder / f"plain-{turn}" for turn in range(CALLERS)]
    began = time.perf_counter()
    await at_once([partial(_write, place, content) for place in places])
    took = time.perf_counter() - began
    for place in places:
        place.unlink()
    return CALLERS * len(content) / took / 1e6


def _write(place: Path, content: bytes) -> None:
    with place.open("wb", buffering=0) as file, memoryview(content) as whole:
        for at in range(0, len(content), BLOCK):
            file.write(whole[at : at + BLOCK])
        os.fsync(file.fileno())


async def _downloads(say: Say, service: Process, bare: Process, api: Api, number: str, file: Path) -> list[Figure]:
    """All begin at once; each has a connection of its own."""
    message = await _received(service, api, number, file)
    ours: list[float] = []
    bound: list[float] = []
    used = 0
    for turn in range(ROUNDS):
        say(f"media: {AT_ONCE} downloads, round {turn + 1} of {ROUNDS}")
        before = settled(service)
        ours.append(await _all(service, f"/messages/{message}/media", api.token))
        used = max(used, peak(service.pid) - before)
        bound.append(await _all(bare, "/file", api.token))
    name = f"{AT_ONCE} downloads of {DOWNLOAD / 1e6:g} MB at once"
    return [against(name, ours, bound, "MB/s", None), memory(used)]


async def _received(service: Process, api: Api, number: str, file: Path) -> str:
    """A message that came, whose stored copy is the file: the sandbox takes none that is as large."""
    media = {"mimeType": PDF_TYPE, "dataBase64": base64.b64encode(PDF).decode()}
    came = {"channel": "chatapp", "numberId": number, "from": PERSON, "media": media}
    message: str = (await api.call("POST", "/v2/sandbox/inbound", came))["messageId"]
    while "mediaStorage" not in await api.call("GET", f"/messages/{message}"):
        await asyncio.sleep(0.05)
    database = await service.database()
    key = await database.fetchval(
        "update inbound_media set size = $2 where message_id = $1 returning blob_key", message, DOWNLOAD
    )
    await database.close()
    (service.data_dir / "media" / key).write_bytes(file.read_bytes())
    return message


async def _all(process: Process, path: str, token: str) -> float:
    """MB a second of all together."""
    head = f"GET {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"

    async def together() -> float:
        began = time.perf_counter()
        await asyncio.gather(*(_one(process.port, head.encode()) for _ in range(AT_ONCE)))
        return AT_ONCE * DOWNLOAD / (time.perf_counter() - began) / 1e6

    return await asyncio.to_thread(uvloop.run, together())


async def _one(port: int, head: bytes) -> None:
    download = _Download(head)
    await asyncio.get_running_loop().create_connection(lambda: download, "127.0.0.1", port)
    await download.over
    if not download.begin.startswith(b"HTTP/1.1 200 ") or download.count < DOWNLOAD:
        raise RuntimeError(f"a download broke off after {download.count} bytes: {download.begin[:300]!r}")


class _Download(asyncio.Protocol):
    """Counts what comes until the server closes the connection."""

    def __init__(self, head: bytes) -> None:
        self._head = head
        self.begin = b""
        self.count = 0
        self.over = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        cast("asyncio.Transport", transport).write(self._head)  # uvloop's is one in all but its class

    def data_received(self, data: bytes) -> None:
        self.begin = self.begin or data
        self.count += len(data)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.over.done():
            self.over.set_result(None)
