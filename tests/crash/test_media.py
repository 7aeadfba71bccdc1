"""Kills while media is uploaded and copied: nothing is lost, and no file stays of which nobody knows (C8.2.7, C8.3.1).

The hosted API lives in the test, so that what it holds outlives every kill.
"""

import asyncio
import hashlib
import hmac
import os
import random
import signal
import time
from collections.abc import Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import orjson
import pytest
from aiohttp import web
from tests.crash.stoppable import StoppableServer
from tests.media_files import PNG
from tests.program import Api, Service
from tests.waiting import until

pytestmark = pytest.mark.alone

EACH = 60  # uploads, and messages with media
LENGTH = 200_000  # bytes; a copy is many steps
AT_ONCE = 3
KILLS = 6
NUMBER, BUSINESS, APP_SECRET = "106540352242922", "102290129340398", "a secret of the application"
ROUNDS = int(os.environ.get("CRASH_ROUNDS", "1"))
FIRST_SEED = int(os.environ.get("CRASH_SEED", "20"))


class Moment(StrEnum):
    """Where the service is killed."""

    HALF_TAKEN = "the provider has half of an upload"
    TAKEN = "the provider has an upload, and has not answered"
    ANSWERED = "the provider has answered"
    HALF_GIVEN = "the provider has given half of what a person sent"
    GIVEN = "the provider has given all of it"


class HostedApi(StoppableServer):
    """Takes uploads, gives what people sent."""

    def __init__(self, people_sent: dict[str, bytes]) -> None:
        super().__init__()
        self.people_sent = people_sent
        self.taken: list[bytes] = []

    def routes(self) -> Sequence[web.RouteDef]:
        return (
            web.get("/content/{id}", self._content),
            web.get("/v24.0/{id}{edge:.*}", self._object),
            web.post("/v24.0/{id}/media", self._media),
            web.post("/v24.0/{id}{edge:.*}", self._done),
        )

    async def _object(self, request: web.Request) -> web.Response:
        content = self.people_sent.get(request.match_info["id"])
        if content is None:
            return web.json_response({"code_verification_status": "VERIFIED", "data": [{}]})
        address = f"{self.url}/content/{request.match_info['id']}"
        return web.json_response({"url": address, "mime_type": "image/png", "file_size": len(content)})

    async def _done(self, request: web.Request) -> web.Response:
        await request.read()
        return web.json_response({"success": True})

    async def _media(self, request: web.Request) -> web.StreamResponse:
        body = b""
        async for chunk in request.content.iter_any():
            body += chunk
            if len(body) > LENGTH // 2:
                await self.at(Moment.HALF_TAKEN)
        self.taken.append(body)
        await self.at(Moment.TAKEN)
        return await self.answer(request, {"id": f"9{len(self.taken):015}"}, Moment.ANSWERED)

    async def _content(self, request: web.Request) -> web.StreamResponse:
        content = self.people_sent[request.match_info["id"]]
        answer = web.StreamResponse(headers={"Content-Type": "image/png", "Content-Length": str(len(content))})
        await answer.prepare(request)
        await answer.write(content[: LENGTH // 2])
        await self.at(Moment.HALF_GIVEN)
        await answer.write(content[LENGTH // 2 :])
        await answer.write_eof()
        await self.at(Moment.GIVEN)
        return answer


class Round:
    """Uploads and messages with media amid kills. `uploaded`: by the id that was answered."""

    def __init__(self, folder: Path, api: HostedApi, uploads: list[bytes]) -> None:
        self.folder = folder
        self.provider = api
        self.uploaded: dict[str, bytes] = {}
        self.service = Service(
            folder, ADAPTER_CHATAPP="cloud", CLOUD_URL=f"{api.url}/v24.0", CLOUD_APP_SECRET=APP_SECRET,
            CLOUD_VERIFY_TOKEN="a token to verify with", LOG_LEVEL="debug",
        )  # fmt: skip
        # So many may begin: each kill has its share, and meets some of both.
        self._may_upload, self._may_receive = asyncio.Semaphore(0), asyncio.Semaphore(0)
        self._uploads = iter(uploads)
        self._messages = iter(list(api.people_sent))

    async def run(self, moments: list[Moment]) -> None:
        await self.service.start()
        self.token = await asyncio.to_thread(self.service.key, "live")
        async with Api(self.service.url, self.token) as api:
            number = await api.number(NUMBER, access_token="a token of the number", business=BUSINESS)
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session:
            work = [asyncio.create_task(self._upload(session, number["id"])) for _ in range(AT_ONCE)]
            work.append(asyncio.create_task(self._receive(session)))
            for moment in moments:
                self.provider.arm(moment)
                for _ in range(EACH // len(moments)):
                    self._may_upload.release()
                    self._may_receive.release()
                await until(self.provider.reached.is_set, f"{moment}")
                self.service.end(signal.SIGKILL)
                self.provider.arm(None)
                await self.service.start()
            await asyncio.gather(*work)

    async def _upload(self, session: aiohttp.ClientSession, number_id: str) -> None:
        """What got no answer is uploaded once more."""
        url = f"{self.service.url}/numbers/{number_id}/media/binary"
        headers = {
            "Authorization": f"Bearer {self.token}", "Content-Type": "application/octet-stream",
            "x-filename": "dot.png", "x-content-type": "image/png",
        }  # fmt: skip
        for content in self._uploads:
            await self._may_upload.acquire()
            media_id = await self._comes_through(session, url, content, headers, 201, "mediaId")
            self.uploaded[media_id] = content

    async def _receive(self, session: aiohttp.ClientSession) -> None:
        """Callbacks come again until they are taken."""
        url = f"{self.service.url}/v2/callbacks/chatapp/cloud"
        for reference in self._messages:
            await self._may_receive.acquire()
            body = callback(reference)
            digest = hmac.new(APP_SECRET.encode(), body, hashlib.sha256).hexdigest()
            headers = {"X-Hub-Signature-256": f"sha256={digest}", "Content-Type": "application/json"}
            await self._comes_through(session, url, body, headers, 200, None)

    async def _comes_through(
        self, session: aiohttp.ClientSession, url: str, body: bytes, headers: dict[str, str], wanted: int, member: Any
    ) -> str:
        async def answered() -> str | None:
            try:
                async with session.post(url, data=body, headers=headers) as answer:
                    text = await answer.read()
                    assert answer.status in (wanted, 502, 503), text
                    return None if answer.status != wanted else orjson.loads(text)[member] if member else "taken"
            except (aiohttp.ClientError, ConnectionError):
                return None

        return str(await until(answered, "it comes through", every=0.05))

    def files(self) -> dict[str, bytes]:
        """What is in the storage, by key."""
        folder = self.service.data_dir / "media"
        return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def callback(reference: str) -> bytes:
    """A person sends a picture; each reference is another message."""
    message = {
        "from": f"55119{reference[-8:]}", "id": f"wamid.{reference}", "timestamp": str(int(time.time())),
        "type": "image", "image": {"id": reference, "mime_type": "image/png"},
    }  # fmt: skip
    person = {"wa_id": message["from"], "profile": {"name": "Ana"}}
    value = {"metadata": {"phone_number_id": NUMBER}, "contacts": [person], "messages": [message]}
    entry = {"id": BUSINESS, "changes": [{"field": "messages", "value": value}]}
    return orjson.dumps({"object": "whatsapp_business_account", "entry": [entry]})


def pictures(draw: random.Random) -> Iterator[bytes]:
    while True:
        yield PNG + draw.randbytes(LENGTH)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + ROUNDS))
async def test_wherever_the_service_dies_media_is_there_once_and_no_file_is_nobodys(seed: int, tmp_path: Path) -> None:
    draw = random.Random(seed)
    picture = pictures(draw)
    moments = [*Moment, *draw.choices(list(Moment), k=KILLS - len(Moment))]
    draw.shuffle(moments)
    uploads = [next(picture) for _ in range(EACH)]
    sent = {f"8{n:015}": next(picture) for n in range(EACH)}
    async with HostedApi(sent).listening() as provider:
        done = Round(tmp_path, provider, uploads)
        try:
            await done.run(moments)
            database = await asyncpg.connect(**done.service.cluster().connect_arguments)
            try:
                await judge(done, database, uploads, sent)
            finally:
                await database.close()
        finally:
            await done.service.wipe()


async def judge(done: Round, database: Any, uploads: list[bytes], sent: dict[str, bytes]) -> None:
    async def copied() -> bool:
        return bool(await database.fetchval("select count(*) = $1 from inbound_media where blob_key is not null", EACH))

    await until(copied, "all that came is copied", every=0.1)
    known = {row["key"] for row in await database.fetch("select key from blobs")}
    assert set(done.files()) <= known, "a file is nobody's"
    # Whatever nobody stored a record of goes within the hour: it is that hour.
    await database.execute("update blobs set delete_at = 'epoch' where delete_at < now() + interval '1 day'")
    done.service.end(signal.SIGKILL)
    await done.service.start()

    async def swept() -> bool:
        return not await database.fetchval("select count(*) from blobs where delete_at = 'epoch'")

    await until(swept, "what was left is deleted", every=0.1)
    files = done.files()
    kept = {row["id"]: row for row in await database.fetch("select id, blob_key, sha256, size from media")}
    came = await database.fetch(
        "select i.reference, i.blob_key, i.size, m.id, m.media_storage from inbound_media i join messages m"
        " on m.organization_id = i.organization_id and m.env = i.env and m.id = i.message_id"
    )
    assert sorted(done.uploaded.values()) == sorted(uploads)
    assert done.uploaded.items() <= {id_: files[row["blob_key"]] for id_, row in kept.items()}.items()
    for row in kept.values():
        assert hashlib.sha256(files[row["blob_key"]]).hexdigest() == row["sha256"]
        assert files[row["blob_key"]] in uploads
    assert len(kept) - EACH <= AT_ONCE * KILLS, "more than the answers that were lost"
    assert {row["reference"]: files[row["blob_key"]] for row in came} == sent
    assert all(row["media_storage"] is not None for row in came)
    assert await database.fetchval("select count(*) from messages where direction = 'inbound'") == EACH
    assert len(files) == len(kept) + len(came), "a file has no record"
