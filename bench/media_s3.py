"""Uploads to a storage that speaks S3: those of several organizations at once through the service, beside the same
bytes put straight into the same server, in turns, by as many clients in requests of the same size.
"""

import asyncio
import http.client
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials

from bench.harness import POLL, Figure, Process, Say, against, free_port, peak, running
from bench.recado_process import READY, Api, recado
from bench.uploads import (
    UPLOAD,
    Together,
    a_pdf,
    median_of,
    memory,
    ready_callers,
    settled,
    together,
    upload,
    upload_all,
)

CALLERS = 30  # organizations: of 16 a file is stored at a time, meanwhile those of the others come
FILES = 2  # of each: while the first ones come there is nothing to store, for as long as C31 has each organization wait
ROUNDS = 3
LEAST = 0.7
BUCKET, REGION = "media", "us-east-1"
KEY_ID, SECRET = "AKID12345", "SECRET12345"


async def uploads_to_s3(say: Say, folder: Path) -> list[Figure]:
    """From the first byte sent to the last answer."""
    async with _rclone(folder) as server:
        settings = {
            "RECADO_STORAGE": "s3", "RECADO_S3_BUCKET": BUCKET, "RECADO_S3_REGION": REGION,
            "RECADO_S3_ENDPOINT": server.url, "RECADO_S3_ACCESS_KEY_ID": KEY_ID, "RECADO_S3_SECRET_ACCESS_KEY": SECRET,
        }  # fmt: skip
        async with running(recado(folder, **settings), READY) as service, Api(service) as api:
            callers = await ready_callers(service, (api.token, (await api.sender("media")).number_id), CALLERS)
            return await _in_turns(say, service, server, callers)


async def _in_turns(say: Say, service: Process, server: "_Rclone", callers: Sequence[tuple[str, str]]) -> list[Figure]:
    content = a_pdf(UPLOAD)
    ours, straight = list[Together](), list[Together]()
    used_by_one = used_together = 0
    for turn in range(ROUNDS):
        say(f"media: uploads of {UPLOAD / 1e6:g} MB to S3, round {turn + 1} of {ROUNDS}")
        before = settled(service)
        await asyncio.to_thread(upload, service, *callers[0], content)
        used_by_one = max(used_by_one, peak(service.pid) - before)
        before = settled(service)
        ours.append(await upload_all(service, callers, content, FILES))
        used_together = max(used_together, peak(service.pid) - before)
        server.forget()
        straight.append(await server.put_all(content))
        server.forget()
    paces = [each.pace for each in ours], [each.pace for each in straight]
    return [
        against(f"– to S3, of {CALLERS} organizations at once, beside the storage's own pace", *paces, "MB/s", LEAST),
        Figure("– processor time of the service for a MB", f"{median_of(ours, 'server'):.2f} ms"),
        Figure("– that of a plain client of the storage", f"{median_of(straight, 'clients'):.2f} ms"),
        Figure("– that of the storage, which has the same processors", f"{median_of(straight, 'server'):.2f} ms"),
        memory(used_together),
        memory(used_by_one, "– memory of one upload alone"),
    ]


class _Rclone:
    """`rclone serve s3`, which checks every signature, but not the hash of the content that is signed."""

    def __init__(self, pid: int, port: int, folder: Path) -> None:
        self.pid = pid
        self.port = port
        self._folder = folder
        self.url = f"http://127.0.0.1:{port}"

    async def put_all(self, content: bytes) -> Together:
        """As those of `upload_all`, and no faster than the server takes them."""
        clients = [partial(self._put, f"straight/{turn}", content) for turn in range(CALLERS)]
        return await together(self.pid, clients, content, FILES)

    def forget(self) -> None:
        """Give the disk back what its files take: those of a round are 6 GB."""
        for path in self._folder.rglob("*"):
            if path.is_file():
                path.unlink()

    def _put(self, key: str, content: bytes) -> None:
        """Whole, as the service does."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        path = f"/{BUCKET}/{key}"
        request = AWSRequest("PUT", self.url + path, data=content)
        S3SigV4Auth(Credentials(KEY_ID, SECRET), "s3", REGION).add_auth(request)
        connection.request("PUT", path, body=content, headers=dict(request.headers.items()))
        answer = connection.getresponse()
        told = answer.read()
        connection.close()
        if answer.status != 200:
            raise RuntimeError(f"PUT {path} answered {answer.status}: {told.decode()[:300]}")


@asynccontextmanager
async def _rclone(folder: Path) -> AsyncIterator[_Rclone]:
    port, kept = free_port(), folder / "s3"
    (kept / BUCKET).mkdir(parents=True)
    child = await asyncio.create_subprocess_exec(
        str(Path(sys.executable).parent / "rclone"), "serve", "s3", str(kept), "--addr", f"127.0.0.1:{port}",
        "--auth-key", f"{KEY_ID},{SECRET}", "--vfs-cache-mode", "off", "--config", os.devnull,
    )  # fmt: skip
    try:
        await _listens(port)
        yield _Rclone(child.pid, port, kept)
    finally:
        child.terminate()
        await child.wait()


async def _listens(port: int) -> None:
    async with asyncio.timeout(20):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionError:
                await asyncio.sleep(POLL)
            else:
                writer.close()
                return
