"""The storages of binaries: files, and buckets at two servers that were written by others."""

import asyncio
import errno
import io
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, ClassVar
from urllib.parse import parse_qsl, urlsplit

import aiohttp
import pytest
from aiobotocore import session
from botocore.exceptions import ClientError
from moto.server import ThreadedMotoServer
from tests.channels.email.certificates import Authority
from tests.program import free_port
from tests.waiting import until
from yarl import URL

from recado.domain.core.errors import Problem
from recado.storage.blobs import local, request_bodies, s3
from recado.storage.blobs.blobs import BlobMissing, Blobs, HashedFile, end_of_month, new_key
from recado.storage.blobs.local import LocalBlobs
from recado.storage.blobs.request_bodies import FURTHER, FileBody
from recado.storage.blobs.s3 import PART, S3Blobs, S3Bucket
from recado.storage.blobs.signed_links import SignedLinks
from recado.storage.core.gathered import nameless_file
from recado.storage.core.shares.fair_places import FairPlaces
from recado.storage.core.shares.fair_threads import OF_ONE, THREADS

NOW = datetime(2026, 1, 31, tzinfo=UTC)
KEY = "org_1/test/media/2026/01/0123456789abcdef0123456789abcdef"
SHOWN = "attachment; filename=\"a b.png\"; filename*=UTF-8''a%20b.png"
LINKS = SignedLinks("http://here", b"k" * 32)


async def given(content: bytes, *, piece: int = 100_000, breaks: bool = False) -> AsyncIterator[bytes]:
    for at in range(0, len(content), piece):
        yield content[at : at + piece]
    if breaks:
        raise ConnectionResetError


async def read(blobs: Blobs, key: str, first: int, length: int) -> bytes:
    return b"".join([piece async for piece in blobs.read(key, first, length)])


def bucket(port: int) -> S3Bucket:
    return S3Bucket(
        name="media", region="eu-west-1", endpoint=f"http://127.0.0.1:{port}", access_key_id="AKID12345",
        secret_access_key="SECRET12345",
    )  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _models_are_read_once() -> Iterator[None]:
    """By one session, which keeps them: to read what there is of S3 takes longer than most of these tests."""
    one = session.get_session()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(session, "get_session", lambda: one)
        yield


@pytest.fixture(scope="module")
def moto() -> Iterator[int]:
    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    try:
        yield server.get_host_and_port()[1]
    finally:
        server.stop()


@pytest.fixture(scope="module")
def rclone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """It checks every signature."""
    folder, port = tmp_path_factory.mktemp("rclone"), free_port()
    (folder / "media").mkdir()
    command = [str(Path(sys.executable).parent / "rclone"), "serve", "s3", str(folder), "--addr", f"127.0.0.1:{port}"]
    options = ["--auth-key", "AKID12345,SECRET12345", "--vfs-cache-mode", "writes", "--cache-dir", str(folder / "c")]
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen([*command, *options], stdout=log, stderr=log)
        try:
            yield port
        finally:
            server.terminate()
            server.wait(20)


@pytest.fixture
async def in_files(tmp_path: Path) -> AsyncIterator[LocalBlobs]:
    blobs = LocalBlobs(tmp_path / "media", LINKS)
    await blobs.start()
    yield blobs
    await blobs.stop()


@pytest.fixture
async def at_moto(moto: int) -> AsyncIterator[S3Blobs]:
    blobs = S3Blobs(bucket(moto))
    await blobs.start()
    where = {"LocationConstraint": "eu-west-1"}
    with suppress(ClientError):  # it is there since the first test
        await blobs._ready().create_bucket(Bucket="media", CreateBucketConfiguration=where)
    yield blobs
    await blobs.stop()


@pytest.fixture
async def at_rclone(rclone: int) -> AsyncIterator[S3Blobs]:
    blobs = S3Blobs(bucket(rclone))
    await blobs.start()

    async def there() -> bool:
        try:
            await blobs.check()
        except Problem:
            return False
        return True

    await until(there, "the server is there", every=0.1)
    yield blobs
    await blobs.stop()


@pytest.fixture(params=["in_files", "at_moto", "at_rclone"])
def blobs(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


async def test_what_is_written_is_read_in_parts_and_deleted(blobs: Blobs) -> None:
    for size in (1, 70_000, PART, PART + 123_456):
        content = os.urandom(size)
        await blobs.write(KEY, given(content))
        assert await read(blobs, KEY, 0, size) == content
        assert await read(blobs, KEY, size // 2, size - size // 2) == content[size // 2 :]
    await blobs.check()
    await blobs.delete(KEY)
    await blobs.delete(KEY)
    with pytest.raises(BlobMissing):
        await read(blobs, KEY, 0, 1)


@pytest.mark.parametrize("size", [1_000, 2 * PART + 1])
async def test_of_what_breaks_off_nothing_is_kept(blobs: Blobs, size: int) -> None:
    key = f"{KEY[:-1]}{size % 10}"
    with pytest.raises(ConnectionResetError):
        await blobs.write(key, given(bytes(size), breaks=True))
    with pytest.raises(BlobMissing):
        await read(blobs, key, 0, 1)
    if isinstance(blobs, S3Blobs):
        uploads = await blobs._ready().list_multipart_uploads(Bucket="media")
        assert uploads.get("Uploads", []) == []
    elif isinstance(blobs, LocalBlobs):
        assert [path for path in blobs._folder.rglob("*") if path.is_file()] == []


async def test_a_writer_who_goes_away_leaves_nothing(in_files: LocalBlobs) -> None:
    began = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        yield bytes(3_000_000)
        began.set()
        await asyncio.Event().wait()

    writing = asyncio.create_task(in_files.write(KEY, endless()))
    await began.wait()
    writing.cancel()
    await asyncio.wait([writing])
    assert [path for path in in_files._folder.rglob("*") if path.is_file()] == []


async def test_one_organization_leaves_threads_to_another(
    in_files: LocalBlobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = KEY.replace("org_1", "org_2")
    assert theirs != KEY
    for key in (KEY, theirs):
        await in_files.write(key, given(b"content"))
    gate, read_file, held = threading.Event(), local._read, []

    def waits(path: Path, first: int, length: int) -> bytes:
        if "org_1" in path.parts:
            held.append(path)
            gate.wait(60)
        return read_file(path, first, length)

    monkeypatch.setattr(local, "_read", waits)
    readers = []
    try:
        for _ in range(3):  # those who go away leave their threads at work
            for each in readers:
                each.cancel()
            readers += [asyncio.create_task(read(in_files, KEY, 0, 7)) for _ in range(2 * THREADS)]
            await until(lambda: len(held) >= OF_ONE, "its threads are at work")
            async with asyncio.timeout(60):
                assert await read(in_files, theirs, 0, 7) == b"content"
    finally:
        gate.set()
        await asyncio.gather(*readers, return_exceptions=True)
    assert await read(in_files, KEY, 0, 7) == b"content"


@pytest.mark.parametrize("call", ["open", "write"])
async def test_a_writer_who_goes_away_closes_no_file_under_a_thread(
    in_files: LocalBlobs, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A descriptor that is closed while a thread writes to it may be another connection's by then."""
    real: Any = getattr(os, call)
    began, goes_on = threading.Event(), threading.Event()
    came_to: list[OSError | None] = []

    def slow(*args: Any) -> Any:
        if came_to or not threading.current_thread().name.startswith("media"):
            return real(*args)
        came_to.append(None)
        done = real(*args) if call == "open" else None
        began.set()
        goes_on.wait(10)
        try:
            return real(*args) if done is None else done
        except OSError as error:
            came_to[0] = error
            raise

    monkeypatch.setattr(os, call, slow)
    writing = asyncio.create_task(in_files.write(KEY, given(bytes(3_000_000))))
    await asyncio.to_thread(began.wait, 10)
    writing.cancel()
    await asyncio.wait([writing], timeout=0.1)
    goes_on.set()
    await asyncio.wait([writing])
    await in_files.stop()
    assert came_to == [None]
    opened = [Path(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")]
    assert [path for path in opened if path.is_symlink() and str(in_files._folder) in str(path.readlink())] == []
    assert [path for path in in_files._folder.rglob("*") if path.is_file()] == []


async def test_a_process_that_was_killed_leaves_nothing_behind_the_next_start(tmp_path: Path) -> None:
    left = tmp_path / ".partial" / "half"
    left.parent.mkdir()
    left.write_bytes(b"half")
    blobs = LocalBlobs(tmp_path, LINKS)
    await blobs.start()
    assert not left.exists()
    await blobs.stop()


async def test_a_signed_address_of_a_bucket_opens_and_a_tampered_one_does_not(at_rclone: S3Blobs) -> None:
    content = os.urandom(5_000)
    await at_rclone.write(KEY, given(content))
    url = await at_rclone.signed_url(KEY, "image/png", SHOWN, datetime.now(UTC))
    said = dict(parse_qsl(urlsplit(url).query))
    assert (said["X-Amz-Expires"], said["X-Amz-Algorithm"]) == ("5400", "AWS4-HMAC-SHA256")
    assert (said["response-content-type"], said["response-content-disposition"]) == ("image/png", SHOWN)
    async with aiohttp.ClientSession() as session:
        async with session.get(URL(url, encoded=True), headers={"Range": "bytes=10-19"}) as answer:
            assert await answer.read() == content[10:20]  # rclone calls a part 200
        for old, new in (("image%2Fpng", "text%2Fhtml"), ("5400", "9400"), ("Signature=", "Signature=0")):
            assert old in url
            async with session.get(URL(url.replace(old, new, 1), encoded=True)) as answer:
                assert answer.status == 403


async def test_a_storage_that_is_not_there_is_502(in_files: LocalBlobs) -> None:
    nowhere = S3Blobs(bucket(free_port()))
    await nowhere.start()
    try:
        with pytest.raises(Problem) as failed:
            await nowhere.write(KEY, given(b"x"))
        assert (failed.value.status, failed.value.code) == (502, "STORAGE_FAILED")
    finally:
        await nowhere.stop()
    (in_files._folder / "org_1").write_bytes(b"a file in the place of a folder")
    with pytest.raises(Problem) as failed:
        await in_files.write(KEY, given(b"x"))
    assert failed.value.code == "STORAGE_FAILED"


def test_a_signed_link_opens_until_its_time_and_for_what_it_says() -> None:
    expires = int(NOW.timestamp()) + 5_400
    url = urlsplit(LINKS.url(KEY, "image/png", SHOWN, expires))
    said = dict(parse_qsl(url.query))
    assert url.path == f"/storage/{KEY}"
    given_values = (KEY, said["exp"], said["ct"], said["cd"], said["sig"])
    assert LINKS.opens(*given_values, NOW)
    assert not LINKS.opens(*given_values, NOW + timedelta(seconds=5_400))
    for place in range(5):
        changed = [*given_values]
        changed[place] += "0"
        assert not LINKS.opens(*changed, NOW)
    assert not SignedLinks("http://here", b"j" * 32).opens(*given_values, NOW)
    assert not LINKS.opens(KEY, "x", "", "", "é", NOW)


def test_a_key_tells_nothing_of_the_file() -> None:
    assert new_key("org_1", "test", "media", NOW, lambda size: bytes(size)) == f"org_1/test/media/2026/01/{'0' * 32}"


async def test_a_place_that_is_gone_fails_who_writes_as_a_storage_does(in_files: LocalBlobs, tmp_path: Path) -> None:
    async def given_when_it_goes() -> AsyncIterator[bytes]:
        yield b"x"
        shutil.rmtree(tmp_path / "media")
        yield b"y"

    with pytest.raises(Problem, match="STORAGE_FAILED"):
        await in_files.write(KEY, given_when_it_goes())


async def test_a_bucket_that_is_gone_fails_who_writes_as_a_storage_does(moto: int) -> None:
    blobs = S3Blobs(replace(bucket(moto), name="gone"))
    await blobs.start()
    try:
        for size in (1, PART + 1):
            with pytest.raises(Problem, match="STORAGE_FAILED"):
                await blobs.write(KEY, given(os.urandom(size)))
        with pytest.raises(Problem, match="STORAGE_FAILED"):
            await blobs.delete(KEY)
    finally:
        await blobs.stop()


async def test_one_organization_leaves_connections_to_another(
    at_moto: S3Blobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(at_moto, "_places", FairPlaces(4, each=2, most_waiting=10))
    theirs = KEY.replace("org_1", "org_2")
    for key in (KEY, theirs):
        await at_moto.write(key, given(bytes(10 * 1024 * 1024)))
    readers = [at_moto.read(KEY, 0, 10 * 1024 * 1024) for _ in range(2)]
    try:
        for each in readers:  # each takes its time, and has its connection until it is done
            await anext(each)
        another = asyncio.create_task(read(at_moto, KEY, 0, 1))
        assert await read(at_moto, theirs, 0, 7) == bytes(7)
        assert not another.done()
        await readers[0].aclose()
        assert await another == bytes(1)
    finally:
        for each in readers:
            await each.aclose()


async def test_a_file_on_the_same_disk_gets_its_name_and_is_not_copied(in_files: LocalBlobs, tmp_path: Path) -> None:
    content = os.urandom(3_000_000)
    with nameless_file(str(tmp_path)) as file:
        file.write(content)
        file.seek(0)
        await in_files.write(KEY, given(b"not read"), hashed(file, content))
        place = in_files._folder / KEY
        assert (os.fstat(file.fileno()).st_ino, place.stat().st_mode & 0o777) == (place.stat().st_ino, 0o600)
    assert await read(in_files, KEY, 0, len(content)) == content
    await in_files.delete(KEY)
    assert not place.exists()


@pytest.mark.parametrize("reason", [errno.EXDEV, errno.ENOENT, errno.EPERM, None])
async def test_a_file_that_cannot_be_named_where_it_is_is_copied(
    reason: int | None, in_files: LocalBlobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        assert reason is not None, "what has no descriptor is not named"
        raise OSError(reason, os.strerror(reason))

    monkeypatch.setattr(local.os, "link", fails)
    with io.BytesIO(b"content") if reason is None else tempfile.TemporaryFile(dir=tmp_path) as file:
        await in_files.write(KEY, given(b"content"), hashed(file, b"content"))
    assert await read(in_files, KEY, 0, 7) == b"content"


async def test_a_full_disk_refuses_a_file_that_is_to_be_named(
    in_files: LocalBlobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(local.os, "link", fails)
    with tempfile.TemporaryFile(dir=tmp_path) as file, pytest.raises(Problem, match="STORAGE_FAILED"):
        await in_files.write(KEY, given(b"content"), hashed(file, b"content"))
    assert [path for path in in_files._folder.rglob("*") if path.is_file()] == []


@pytest.fixture(params=["at_moto", "at_rclone"])
def in_bucket(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue(request.param)


def nameless(content: bytes, folder: Path) -> IO[bytes]:
    file = nameless_file(str(folder))
    file.write(content)
    return file


def hashed(file: IO[bytes], content: bytes) -> HashedFile:
    return HashedFile(file, sha256(content).hexdigest())


async def uploads_of(blobs: S3Blobs) -> list[Any]:
    try:
        under_way = await blobs._ready().list_multipart_uploads(Bucket="media")
    except ClientError as error:  # what rclone answers until the first one was begun
        if error.response["Error"]["Code"] != "NoSuchUpload":
            raise
        return []
    return list(under_way.get("Uploads", []))


async def test_a_file_goes_into_a_bucket_in_one_request_that_is_signed_with_its_hash(
    in_bucket: S3Blobs, tmp_path: Path
) -> None:
    signed = list[str]()

    def note(request: Any, **_: Any) -> None:
        signed.append(request.headers["X-Amz-Content-SHA256"].decode())

    in_bucket._ready().meta.events.register("before-send.s3.PutObject", note)
    for size in (1_000, 2 * FURTHER + 123_456):
        content = os.urandom(size)
        with nameless(content, tmp_path) as file:
            await in_bucket.write(KEY, given(b"not read"), hashed(file, content))
        assert await read(in_bucket, KEY, 0, size) == content
        assert signed.pop() == sha256(content).hexdigest()
        assert not signed


@pytest.mark.parametrize("size", [1_000, PART + 1])
async def test_what_is_not_signed_with_its_hash_is_refused_and_leaves_nothing(
    at_rclone: S3Blobs, size: int, tmp_path: Path
) -> None:
    key = f"{KEY[:-1]}d"

    def tampers(request: Any, **_: Any) -> None:
        request.headers["X-Amz-Content-SHA256"] = "0" * 64

    for call in ("UploadPart", "PutObject"):
        at_rclone._ready().meta.events.register(f"before-send.s3.{call}", tampers)
    content = bytes(size)
    with nameless(content, tmp_path) as file:
        for given_file in (None, hashed(file, content)):
            with pytest.raises(Problem, match="STORAGE_FAILED"):
                await at_rclone.write(key, given(content), given_file)
            with pytest.raises(BlobMissing):
                await read(at_rclone, key, 0, 1)
    assert await uploads_of(at_rclone) == []


@pytest.mark.parametrize("size", [1_000, PART + 7])
async def test_what_comes_without_a_file_is_hashed_by_threads(
    at_rclone: S3Blobs, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    hash_pieces, signed, by = request_bodies._digest_of, set[str](), set[threading.Thread]()

    def note(request: Any, **_: Any) -> None:
        signed.add(request.headers["X-Amz-Content-SHA256"].decode())

    def hashes(pieces: Any) -> str:
        by.add(threading.current_thread())
        return hash_pieces(pieces)

    monkeypatch.setattr(request_bodies, "_digest_of", hashes)
    for call in ("UploadPart", "PutObject"):
        at_rclone._ready().meta.events.register(f"before-send.s3.{call}", note)
    content = os.urandom(size)
    await at_rclone.write(KEY, given(content))
    assert signed == {sha256(content[at : at + PART]).hexdigest() for at in range(0, size, PART)}
    assert by
    assert threading.main_thread() not in by
    assert await read(at_rclone, KEY, 0, size) == content


async def test_what_comes_without_a_file_may_be_empty(in_bucket: S3Blobs) -> None:
    await in_bucket.write(KEY, given(b""))
    found = await in_bucket._ready().head_object(Bucket="media", Key=KEY)
    assert found["ContentLength"] == 0


async def test_a_file_in_memory_goes_into_a_bucket_as_it_comes(in_bucket: S3Blobs) -> None:
    await in_bucket.write(KEY, given(b"content"), hashed(io.BytesIO(b"content"), b"content"))
    assert await read(in_bucket, KEY, 0, 7) == b"content"


async def test_a_file_that_ends_too_early_leaves_nothing_in_a_bucket(
    in_bucket: S3Blobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(s3, "_size", lambda _: 2 * FURTHER)
    key, content = f"{KEY[:-1]}b", bytes(FURTHER + 1)
    with nameless(content, tmp_path) as file, pytest.raises(Problem, match="STORAGE_FAILED"):
        await in_bucket.write(key, given(b""), hashed(file, content))
    with pytest.raises(BlobMissing):
        await read(in_bucket, key, 0, 1)
    assert await uploads_of(in_bucket) == []


class Limit(asyncio.Timeout):
    """A time that somebody has for something. `running`: those that are not over, the innermost last."""

    running: ClassVar[list["Limit"]] = []

    async def __aenter__(self) -> "Limit":
        self.running.append(self)
        self.task = asyncio.current_task()
        await super().__aenter__()
        return self

    async def __aexit__(self, *how: Any) -> bool | None:
        self.running.remove(self)
        return await super().__aexit__(*how)


@pytest.fixture
def unanswered(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Awaitable[None]]:
    """A call without an answer: the time that it has is over at once, and none that calls beside it have."""

    def limit(seconds: float | None) -> Limit:
        return Limit(None if seconds is None else asyncio.get_running_loop().time() + seconds)

    async def call(**_: Any) -> None:
        [*_, of_it] = [each for each in Limit.running if each.task is asyncio.current_task()]
        of_it.reschedule(0)
        await asyncio.Event().wait()

    monkeypatch.setattr(asyncio, "timeout", limit)
    return call


async def test_a_storage_that_stands_still_holds_nobody_up_for_long(
    at_rclone: S3Blobs, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, unanswered: Callable[..., Awaitable[None]]
) -> None:
    abort = at_rclone._ready().abort_multipart_upload
    for call in ("upload_part", "abort_multipart_upload", "put_object"):
        monkeypatch.setattr(at_rclone._ready(), call, unanswered)
    with pytest.raises(Problem, match="STORAGE_FAILED"):
        async with asyncio.timeout(60):
            await at_rclone.write(KEY, given(b"content"))
    with pytest.raises(Problem, match="STORAGE_FAILED"):
        async with asyncio.timeout(60):
            await at_rclone.write(f"{KEY[:-1]}c", given(bytes(PART)))
    content = b"content"
    with nameless(content, tmp_path) as file, pytest.raises(Problem, match="STORAGE_FAILED"):
        async with asyncio.timeout(60):
            await at_rclone.write(KEY, given(b""), hashed(file, content))
    assert len(await uploads_of(at_rclone)) == 1
    monkeypatch.setattr(at_rclone._ready(), "abort_multipart_upload", abort)
    await at_rclone.delete(KEY)
    assert len(await uploads_of(at_rclone)) == 1
    await at_rclone.delete(f"{KEY[:-1]}c")
    assert await uploads_of(at_rclone) == []


@pytest.mark.parametrize(
    "call",
    ["create_multipart_upload", "complete_multipart_upload", "delete_object", "list_multipart_uploads", "head_bucket"],
)
async def test_no_call_waits_for_ever_for_an_answer_that_trickles(
    call: str,
    at_rclone: S3Blobs,
    monkeypatch: pytest.MonkeyPatch,
    unanswered: Callable[..., Awaitable[None]],
) -> None:
    """Each byte of it comes before the client has waited too long for one."""

    async def asks() -> None:
        async with asyncio.timeout(60):
            match call:
                case "create_multipart_upload" | "complete_multipart_upload":
                    await at_rclone.write(KEY, given(bytes(PART)))
                case "head_bucket":
                    await at_rclone.check()
                case _:
                    await at_rclone.delete(KEY)

    with monkeypatch.context() as slow:
        slow.setattr(at_rclone._ready(), call, unanswered)
        with pytest.raises(Problem, match="STORAGE_FAILED"):
            await asks()
    assert await uploads_of(at_rclone) == []


@pytest.mark.parametrize(
    ("call", "code"), [("list_multipart_uploads", "AccessDenied"), ("abort_multipart_upload", "NoSuchUpload")]
)
async def test_what_is_left_of_an_upload_keeps_no_binary_from_being_deleted(
    at_rclone: S3Blobs, call: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not every key may look for it, and it may have gone meanwhile; whatever else fails is tried again."""

    async def refuses(**_: Any) -> None:
        raise ClientError({"Error": {"Code": answered}}, call)

    client = at_rclone._ready()
    upload = {"Bucket": "media", "Key": KEY}
    upload["UploadId"] = (await client.create_multipart_upload(**upload))["UploadId"]
    await at_rclone.write(KEY, given(b"content"))
    with monkeypatch.context() as refused:
        refused.setattr(client, call, refuses)
        answered = "SlowDown"
        with pytest.raises(Problem, match="STORAGE_FAILED"):
            await at_rclone.delete(KEY)
        answered = code
        await at_rclone.delete(KEY)
    with pytest.raises(BlobMissing):
        await read(at_rclone, KEY, 0, 1)
    await at_rclone.delete(KEY)
    assert await uploads_of(at_rclone) == []


async def test_of_what_was_written_to_its_end_nothing_else_is_looked_for(at_rclone: S3Blobs) -> None:
    asked = list[str]()
    at_rclone._ready().meta.events.register("before-send.s3", lambda request, **_: asked.append(request.method))
    await at_rclone.write(KEY, given(b"content"))
    asked.clear()
    await at_rclone.delete(KEY, written=True)
    assert asked == ["DELETE"]
    with pytest.raises(BlobMissing):
        await read(at_rclone, KEY, 0, 1)
    await at_rclone.delete(KEY)
    assert asked[-2:] == ["DELETE", "GET"]


async def test_an_upload_whose_beginning_was_tried_again_leaves_no_other(
    at_rclone: S3Blobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin = at_rclone._ready().create_multipart_upload

    async def twice(**at: Any) -> Any:
        await begin(**at)  # its answer was lost
        answer = await begin(**at)
        return {**answer, "ResponseMetadata": {**answer["ResponseMetadata"], "RetryAttempts": 1}}

    monkeypatch.setattr(at_rclone._ready(), "create_multipart_upload", twice)
    content = os.urandom(PART + 1)
    await at_rclone.write(KEY, given(content))
    assert await uploads_of(at_rclone) == []
    assert await read(at_rclone, KEY, 0, len(content)) == content


def test_the_month_of_a_key_ends_when_the_next_one_begins() -> None:
    for made, end in (
        (NOW, datetime(2026, 2, 1, tzinfo=UTC)),
        (NOW.replace(month=12), datetime(2027, 1, 1, tzinfo=UTC)),
    ):
        assert end_of_month(new_key("org_1", "test", "media", made, os.urandom)) == end


@pytest.fixture
def unsendable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The file system does not send by itself, and the system has nothing of a file in memory."""

    def refuses(*_: int) -> int:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))

    monkeypatch.setattr(request_bodies, "_send", refuses)
    monkeypatch.setattr(request_bodies, "read_cached", lambda *_: None)


@pytest.mark.parametrize("step", ["_send", "_read"])
async def test_who_goes_away_while_a_file_goes_into_a_bucket_leaves_it_to_no_thread(
    step: str, at_rclone: S3Blobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """A descriptor that is closed while a thread has it may be another file's by then."""
    if step == "_read":
        request.getfixturevalue("unsendable")
    began, goes_on, does, late = threading.Event(), threading.Event(), getattr(request_bodies, step), list[bool]()

    def slow(*arguments: int) -> Any:
        began.set()
        goes_on.wait(10)
        late.append(file.closed)
        return does(*arguments)

    monkeypatch.setattr(request_bodies, step, slow)

    async def write() -> None:
        with file:
            await at_rclone.write(KEY, given(b""), hashed(file, content))

    content = bytes(2 * PART)
    file = nameless(content, tmp_path)
    writing = asyncio.create_task(write())
    await asyncio.to_thread(began.wait, 10)
    writing.cancel()
    await asyncio.wait([writing], timeout=0.1)
    goes_on.set()
    await asyncio.wait([writing])
    assert writing.cancelled()
    assert late
    assert not any(late)
    assert await uploads_of(at_rclone) == []


@pytest.mark.usefixtures("unsendable")
async def test_what_does_not_go_by_itself_is_read_by_threads_and_written(in_bucket: S3Blobs, tmp_path: Path) -> None:
    content = os.urandom(2 * request_bodies.SENT + 7)
    with nameless(content, tmp_path) as file:
        await in_bucket.write(KEY, given(b""), hashed(file, content))
    assert await read(in_bucket, KEY, 0, len(content)) == content


async def test_a_file_goes_by_itself_to_a_storage_without_tls_and_is_read_for_one_with_it(
    at_rclone: S3Blobs, rclone: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever stands before the storage with a certificate passes on what comes."""
    sent, send = list[int](), request_bodies._send

    def note(*arguments: int) -> int:
        sent.append(send(*arguments))
        return sent[-1]

    monkeypatch.setattr(request_bodies, "_send", note)
    authority = Authority(tmp_path)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(authority.file))
    context = authority.server("127.0.0.1")
    passes = await asyncio.start_server(partial(pass_on, rclone), "127.0.0.1", 0, ssl=context)
    port = passes.sockets[0].getsockname()[1]
    behind_tls = S3Blobs(replace(bucket(port), endpoint=f"https://127.0.0.1:{port}"))
    await behind_tls.start()
    content = os.urandom(FURTHER + 7)
    try:
        with nameless(content, tmp_path) as file:
            for blobs, went in ((at_rclone, len(content)), (behind_tls, 0)):
                sent.clear()
                await blobs.write(KEY, given(b""), hashed(file, content))
                assert sum(sent) == went
                assert await read(blobs, KEY, 0, len(content)) == content
                await blobs.delete(KEY)
    finally:
        await behind_tls.stop()
        passes.close()


async def pass_on(
    port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, most: Callable[[int], bool] | None = None
) -> None:
    """What comes goes to the server, and its answers back; until `most` has enough of it."""
    there, back = await asyncio.open_connection("127.0.0.1", port)
    answers = asyncio.create_task(pipe(there, writer))
    came = 0
    while piece := await reader.read(65_536):
        came += len(piece)
        if most is not None and most(came):
            break
        back.write(piece)
        await back.drain()
    answers.cancel()
    for each in (writer, back):
        each.close()


async def pipe(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while piece := await source.read(65_536):
        target.write(piece)
        await target.drain()


async def test_a_file_that_was_left_is_read_no_more(at_rclone: S3Blobs, tmp_path: Path) -> None:
    content = bytes(2 * request_bodies.SENT)
    with nameless(content, tmp_path) as file:
        body = FileBody(at_rclone._threads, "org_1", hashed(file, content), len(content), lambda: None)
        await body.leave()
        with pytest.raises(OSError, match="Bad file descriptor"):
            await anext(aiter(body))


async def test_a_file_on_its_way_is_told_of_once_for_so_many_bytes_however_often_it_is_sent(
    at_rclone: S3Blobs, tmp_path: Path
) -> None:
    told, gone, content = list[int](), list[int](), bytes(2 * FURTHER + 7)
    with nameless(content, tmp_path) as file:
        body = FileBody(
            at_rclone._threads, "org_1", hashed(file, content), len(content), lambda: told.append(sum(gone))
        )
        for _ in range(2):
            gone.clear()
            async for piece in body:
                gone.append(len(piece))
            body.seek(0)
            assert sum(gone) == len(body)
        assert told == [FURTHER, 2 * FURTHER]
        await body.leave()


async def test_the_time_of_a_file_begins_again_with_so_many_bytes(
    at_rclone: S3Blobs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def stops(**call: Any) -> None:
        monkeypatch.setattr(s3, "_SENT", 0.1)
        gone = 0
        async for piece in call["Body"]:
            gone += len(piece)
            if gone > FURTHER:
                await asyncio.Event().wait()

    content = bytes(2 * FURTHER)
    monkeypatch.setattr(at_rclone._ready(), "put_object", stops)
    with nameless(content, tmp_path) as file, pytest.raises(Problem, match="STORAGE_FAILED"):
        async with asyncio.timeout(s3._SENT / 2):
            await at_rclone.write(KEY, given(b""), hashed(file, content))


async def test_a_file_that_breaks_on_its_way_is_sent_again_from_its_beginning(at_rclone: S3Blobs, rclone: int) -> None:
    broken = list[int]()

    def enough(came: int) -> bool:
        """The first connection that brings 3 MB ends."""
        if came > 3_000_000 and not broken:
            broken.append(came)
            return True
        return False

    passes = await asyncio.start_server(partial(pass_on, rclone, most=enough), "127.0.0.1", 0)
    blobs = S3Blobs(bucket(passes.sockets[0].getsockname()[1]))
    await blobs.start()
    content = os.urandom(FURTHER + 7)
    try:
        with nameless_file(None) as file:
            file.write(content)
            await blobs.write(KEY, given(b""), hashed(file, content))
        assert len(broken) == 1
        assert await read(at_rclone, KEY, 0, len(content)) == content
    finally:
        await blobs.stop()
        passes.close()
