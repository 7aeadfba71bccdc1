"""Uploads are kept when storage and provider have them, and leave nothing otherwise (C8.2)."""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer
from tests.media_files import PDF, PNG, ogg
from tests.services.media.conftest import NOW, ORGANIZATION, Accounts, Shelf, number, refused, unreachable, upload
from yarl import URL

from recado.channels.core.provider import Account
from recado.channels.http.outbound_http import OutboundHttp
from recado.domain.core.errors import Problem
from recado.domain.media.media_types import MIB
from recado.domain.messages.message import Priority
from recado.services.media import media_use, new_blobs
from recado.services.media.media_use import SentMedia, named_media
from recado.services.messages.chatapp_rules import check_media
from recado.services.messages.draft import MessageDraft
from recado.storage.blobs.blobs import new_key, storage_failed
from recado.storage.media import kept_blobs, media
from recado.storage.media.kept_blobs import KeptBlob

PAYLOAD = {"kind": "image", "media": {"id": ""}}


async def test_an_upload_is_stored_and_given_to_the_provider(shelf: Shelf) -> None:
    made = await shelf.uploads.take(await shelf.sender(), upload(PNG))
    assert shelf.provider.taken == [("phone-0", PNG)]
    assert [path.read_bytes() for path in shelf.files()] == [PNG]
    kept = await media.get(shelf.db, ORGANIZATION, "test", made.id)
    assert kept is not None
    assert (kept.provider_ids, kept.expires_at) == ({made.number_id: "theirs-1"}, NOW + timedelta(days=30))


@pytest.mark.parametrize("error", [refused(), unreachable()])
async def test_what_the_provider_does_not_take_is_not_kept(shelf: Shelf, error: Exception) -> None:
    shelf.provider.fails.append(error)
    with pytest.raises(Problem) as failed:
        await shelf.uploads.take(await shelf.sender(), upload(PNG))
    assert failed.value.status == 502
    assert (shelf.files(), await shelf.count("media"), await shelf.count("blobs")) == ([], 0, 0)


async def test_what_the_storage_does_not_take_never_reaches_the_provider_and_goes_though_it_was_taken_late(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, keys = shelf.blobs.write, list[str]()

    async def fails(key: str, *_: Any) -> None:
        keys.append(key)
        raise storage_failed()

    with monkeypatch.context() as failing:
        failing.setattr(shelf.blobs, "write", fails)
        with pytest.raises(Problem, match="STORAGE_FAILED"):
            await shelf.uploads.take(await shelf.sender(), upload(PNG))
    assert (shelf.provider.taken, shelf.files(), await shelf.count("media")) == ([], [], 0)

    async def content() -> AsyncIterator[bytes]:
        yield PNG

    await write(keys[0], content())  # what did not answer has it after it was deleted
    await shelf.clock.advance(2 * 3_600)
    shelf.until[0] = shelf.clock.now()
    await shelf.sweep.work()
    assert (shelf.files(), await shelf.count("blobs")) == ([], 0)


async def test_a_provider_that_never_answers_is_given_up_by_its_caller_and_nothing_stays(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = asyncio.Event()

    async def silent(*_: Any, **__: Any) -> str:
        asked.set()
        await asyncio.Event().wait()
        return ""

    monkeypatch.setattr(shelf.provider, "upload_media", silent)
    taking = asyncio.create_task(shelf.uploads.take(await shelf.sender(), upload(PNG)))
    await asked.wait()
    taking.cancel()
    await asyncio.wait([taking])
    assert (shelf.files(), await shelf.count("media"), await shelf.count("blobs")) == ([], 0, 0)


async def test_an_upload_whose_organization_leaves_for_another_database_meanwhile_is_refused_and_leaves_nothing(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(*_: Any, **__: Any) -> str:
        await shelf.db.execute("delete from blobs")  # as a move takes it
        return "theirs-1"

    monkeypatch.setattr(shelf.provider, "upload_media", slow)
    with pytest.raises(Problem) as failed:
        await shelf.uploads.take(await shelf.sender(), upload(PNG))
    assert failed.value.status == 503
    assert (shelf.files(), await shelf.count("media")) == ([], 0)


async def test_what_a_storage_does_not_delete_soon_holds_nobody_up_and_goes_later(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(_: str, *, written: bool) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(new_blobs, "DELETED_WITHIN", 0.05)
    shelf.provider.fails.append(refused())
    with monkeypatch.context() as standing_still:
        standing_still.setattr(shelf.blobs, "delete", silent)
        with pytest.raises(Problem):
            async with asyncio.timeout(60):
                await shelf.uploads.take(await shelf.sender(), upload(PNG))
    assert (len(shelf.files()), await shelf.count("media"), await shelf.count("blobs")) == (1, 0, 1)
    await shelf.sweep.work()
    assert (shelf.files(), await shelf.count("blobs")) == ([], 0)


async def test_what_a_provider_has_enough_of_before_its_end_is_closed_when_it_answers(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = list[str]()

    async def content(*_: Any) -> AsyncGenerator[bytes]:
        try:
            yield PNG[:8]
            yield PNG[8:]
            seen.append("its end")
        finally:
            seen.append("closed")

    async def enough(_: Account, content: AsyncIterator[bytes], **__: Any) -> str:
        seen.append(f"{len(await anext(content))} bytes")
        return "theirs-1"

    monkeypatch.setattr(shelf.provider, "upload_media", enough)
    sender = await shelf.sender()
    kept = await shelf.uploads.take(sender, upload(PNG))
    await shelf.use.hand_over(sender, kept, content())
    assert seen[-2:] == ["8 bytes", "closed"]


async def test_a_provider_that_does_not_answer_while_an_upload_is_still_read_is_a_502(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed, left = asyncio.Event(), asyncio.Event()

    async def content() -> AsyncGenerator[bytes]:
        try:
            yield PNG
            await asyncio.Event().wait()  # a storage that is slow
        finally:
            closed.set()

    async def says_nothing(_: web.BaseRequest) -> web.Response:
        await left.wait()
        return web.Response()

    async def sent(_: Account, content: AsyncIterator[bytes], **__: Any) -> str:
        await http.post(URL(str(server.make_url("/"))), content, {})
        return "theirs-1"

    sender = await shelf.sender()
    kept = await shelf.uploads.take(sender, upload(PNG))
    monkeypatch.setattr(shelf.provider, "upload_media", sent)
    monkeypatch.setattr(media_use, "SECONDS", 0.05)
    http = OutboundHttp()
    await http.start()
    async with RawTestServer(says_nothing) as server:
        with pytest.raises(Problem) as failed:
            await shelf.use.hand_over(sender, kept, content())
        await asyncio.wait_for(closed.wait(), 10)
        left.set()
        await http.stop()
    assert failed.value.code == "PROVIDER_TIMEOUT"


async def test_a_wrong_type_is_refused_before_anything_is_stored(shelf: Shelf) -> None:
    for content, code in ((PDF, "MEDIA_TYPE_MISMATCH"), (b"", "VALIDATION_ERROR"), (b"\0", "MEDIA_TYPE_NOT_ALLOWED")):
        with pytest.raises(Problem) as failed:
            await shelf.uploads.take(await shelf.sender(), upload(content))
        assert failed.value.code == code
    assert (shelf.files(), await shelf.count("blobs")) == ([], 0)


@pytest.mark.parametrize(
    ("channel", "sender_id", "account"),
    [("chatapp", number(1).id, "phone-1"), ("social", Accounts.known.id, Accounts.known.external_account_id)],
)
async def test_another_number_or_account_is_given_it_once_at_its_first_use(
    shelf: Shelf, channel: str, sender_id: str, account: str
) -> None:
    made = await shelf.uploads.take(await shelf.sender(), upload(PNG))
    other = await shelf.use.senders.get(channel, (ORGANIZATION, "test", sender_id))
    assert other is not None
    named = named_media("media", {"kind": "image", "media": {"id": made.id}})
    assert named is not None
    found = await shelf.use.check("chatapp", ORGANIZATION, "test", named)
    assert await asyncio.gather(*(shelf.use.ready(other, found) for _ in range(5))) == ["theirs-2"] * 5
    assert shelf.provider.taken == [("phone-0", PNG), (account, PNG)]
    again = await shelf.use.check("chatapp", ORGANIZATION, "test", named)
    assert await shelf.use.ready(other, again) == "theirs-2"
    assert shelf.use.at_hand(ORGANIZATION, "test", other.id, named)
    assert len(shelf.provider.taken) == 2


async def test_a_message_that_is_checked_makes_no_upload_at_its_provider(shelf: Shelf) -> None:
    made = await shelf.uploads.take(await shelf.sender(), upload(PNG))
    other = shelf.numbers.known[1]
    draft = MessageDraft(
        organization_id=ORGANIZATION, env="test", channel="chatapp", sender_id=other.id, to="+5511987654321",
        type="media", priority=Priority.NORMAL, payload={"kind": "image", "media": {"id": made.id}},
    )  # fmt: skip
    await check_media(shelf.use, draft, other, None, sends=True)
    assert shelf.provider.taken == [("phone-0", PNG)]


async def test_media_is_refused_where_no_provider_of_the_number_takes_any(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await shelf.uploads.take(await shelf.sender(), upload(PNG))
    other = shelf.numbers.known[1]
    named = named_media("media", {"kind": "image", "media": {"id": made.id}})
    assert named is not None
    found = await shelf.use.check("chatapp", ORGANIZATION, "test", named)
    monkeypatch.setattr(shelf.use, "_media_for", lambda channel, env: None)
    with pytest.raises(Problem, match="DEPENDENCY_FAILED"):
        shelf.use.check_provider("chatapp", "test", other.id, found)
    shelf.use.check_provider("chatapp", "test", made.number_id, found)  # it has been given


@pytest.mark.parametrize(
    ("content", "declared", "kind"), [(PNG, "image/png", "image"), (ogg(), "audio/ogg", "document")]
)
async def test_what_no_header_has_stands_there_as_a_document(
    shelf: Shelf, content: bytes, declared: str, kind: str
) -> None:
    made = await shelf.uploads.take(await shelf.sender(), upload(content, declared))
    header = {"media": {"id": made.id}}
    named = named_media("interactive", {"interactive": {"type": "button", "header": header}})
    assert named is not None
    await shelf.use.check("chatapp", ORGANIZATION, "test", named)
    sent = await shelf.use.sent_as("chatapp", ORGANIZATION, "test", made.number_id or "", named)
    assert sent == SentMedia("theirs-1", kind)


async def test_media_of_others_and_expired_media_is_not_there(shelf: Shelf) -> None:
    made = await shelf.uploads.take(await shelf.sender(), upload(PNG))
    named = named_media("media", {"kind": "image", "media": {"id": made.id}})
    assert named is not None
    for organization, env in (("org_000000000000000000001", "test"), (ORGANIZATION, "live")):
        with pytest.raises(Problem, match="MEDIA_NOT_FOUND"):
            await shelf.use.check("chatapp", organization, env, named)
    await shelf.clock.advance(30 * 86_400)
    with pytest.raises(Problem, match="MEDIA_NOT_FOUND"):
        await shelf.use.check("chatapp", ORGANIZATION, "test", named)
    assert (
        await shelf.use.sent_as("chatapp", ORGANIZATION, "test", made.number_id, named) == "the media is no longer kept"
    )


async def test_what_is_past_its_time_goes_by_a_clock_that_something_speaks_for(shelf: Shelf) -> None:
    await shelf.uploads.take(await shelf.sender(), upload(PNG))
    await shelf.clock.advance(31 * 86_400)
    await shelf.sweep.work()
    assert len(shelf.files()) == 1
    shelf.until[0] = shelf.clock.now()
    await shelf.sweep.work()
    assert (shelf.files(), await shelf.count("media"), await shelf.count("blobs")) == ([], 0, 0)


async def test_what_was_written_to_its_end_is_known_to_be_when_it_goes(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of all else the storage looks for what a writer left."""
    told, delete, write = list[bool](), shelf.blobs.delete, shelf.blobs.write

    async def noted(key: str, *, written: bool = False) -> None:
        told.append(written)
        if fails:
            raise storage_failed()
        await delete(key)

    async def breaks(*given: Any) -> None:
        await write(*given)
        raise storage_failed()

    monkeypatch.setattr(shelf.blobs, "delete", noted)
    fails = False
    await shelf.uploads.take(await shelf.sender(), upload(PNG))
    shelf.provider.fails.append(refused())
    with pytest.raises(Problem):
        await shelf.uploads.take(await shelf.sender(), upload(PNG))
    assert told == [True]
    monkeypatch.setattr(shelf.blobs, "write", breaks)
    fails = True
    with pytest.raises(Problem):
        await shelf.uploads.take(await shelf.sender(), upload(PNG))
    assert told.pop() is False
    left = KeptBlob(ORGANIZATION, "test", new_key(ORGANIZATION, "test", "media", NOW, os.urandom))
    await kept_blobs.note(shelf.db, left, NOW)  # and then its process was killed
    fails = False
    await shelf.clock.advance(30 * 86_400)
    shelf.until[0] = shelf.clock.now()
    told.clear()
    await shelf.sweep.work()
    assert told == [False, False, True]  # abandoned, only noted, kept
    assert (shelf.files(), await shelf.count("blobs")) == ([], 0)


async def test_what_a_social_account_takes_a_number_may_be_too_small_for(shelf: Shelf) -> None:
    large = PNG + bytes(5 * MIB)
    with pytest.raises(Problem, match="MEDIA_TOO_LARGE"):
        await shelf.uploads.take(await shelf.sender(), upload(large))
    account = await shelf.sender("social", Accounts.known.id)
    made = await shelf.uploads.take(account, upload(large))
    assert (made.number_id, made.social_account_id) == (None, Accounts.known.id)
    assert made.provider_ids == {Accounts.known.id: "theirs-1"}
    named = named_media("media", {"kind": "image", "media": {"id": made.id}})
    assert named is not None
    assert await shelf.use.check("social", ORGANIZATION, "test", named) == made
    with pytest.raises(Problem, match="at most 5,242,880 of kind image"):
        await shelf.use.check("chatapp", ORGANIZATION, "test", named)
    as_document = named_media("media", {"kind": "document", "media": {"id": made.id}})
    assert as_document is not None
    assert await shelf.use.check("chatapp", ORGANIZATION, "test", as_document) == made
