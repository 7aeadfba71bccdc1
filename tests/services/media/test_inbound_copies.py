"""Copies of what people send: five attempts, and nothing of one that fails (C8.3.1)."""

import asyncio

import pytest
from tests.media_files import HTML, PNG
from tests.services.media.conftest import NOW, ORGANIZATION, Shelf, refused, unreachable
from tests.waiting import until

from recado.domain.core.ids import MESSAGE
from recado.storage.core.crypto import Tampered
from recado.storage.media import inbound_media
from recado.storage.media.inbound_media import Expected, InboundMedia

PAUSES = (10, 60, 600, 3_600)


async def came(shelf: Shelf, content: bytes = PNG, organization: str = ORGANIZATION) -> str:
    message_id, reference = shelf.ids.new(MESSAGE), f"ref-{len(shelf.provider.holds)}"
    shelf.provider.holds[reference] = content
    sender_id = shelf.numbers.known[0].id
    expected = Expected(organization, "test", "chatapp", message_id, sender_id, reference, "image/png", None)
    await inbound_media.expect(shelf.db, [expected], shelf.clock.now())
    return message_id


async def found(shelf: Shelf, message_id: str) -> InboundMedia:
    media = await inbound_media.get(shelf.db, ORGANIZATION, "test", message_id, shelf.clock.now())
    assert media is not None
    return media


async def left(shelf: Shelf) -> int:
    await shelf.sweep.work()
    return len(shelf.files())


async def test_a_copy_is_made_and_its_type_read(shelf: Shelf) -> None:
    message_id = await came(shelf, HTML)
    await shelf.copies.work()
    media = await found(shelf, message_id)
    assert (media.stored_type, media.size, media.stored_at) == ("text/html", len(HTML), NOW)
    assert [path.read_bytes() for path in shelf.files()] == [HTML]
    assert await left(shelf) == 1


async def test_the_attempts_come_at_their_times_and_then_no_more(shelf: Shelf) -> None:
    message_id = await came(shelf)
    shelf.provider.fails.extend([unreachable()] * 6)
    for attempts, pause in enumerate((*PAUSES, 100_000), start=1):
        await shelf.copies.work()
        assert (await found(shelf, message_id)).attempts == attempts
        await shelf.clock.advance(pause - 1)
        await shelf.copies.work()
        assert (await found(shelf, message_id)).attempts == attempts
        await shelf.clock.advance(1)
    await shelf.copies.work()
    assert ((await found(shelf, message_id)).attempts, len(shelf.provider.fails)) == (5, 1)
    assert await left(shelf) == 0


async def test_an_attempt_after_a_failure_succeeds(shelf: Shelf) -> None:
    message_id = await came(shelf)
    shelf.provider.fails.append(unreachable())
    await shelf.copies.work()
    await shelf.clock.advance(10)
    await shelf.copies.work()
    assert (await found(shelf, message_id)).stored_type == "image/png"


async def test_a_number_whose_secret_cannot_be_read_keeps_no_other_waiting(shelf: Shelf) -> None:
    garbled, other = await came(shelf), await came(shelf)
    shelf.provider.fails.append(Tampered("num_1", "altered"))
    await shelf.copies.work()
    assert [(await found(shelf, each)).attempts for each in (garbled, other)] == [1, 1]
    assert len(shelf.files()) == 1


async def test_what_the_provider_no_longer_has_is_given_up_at_once(shelf: Shelf) -> None:
    message_id = await came(shelf)
    shelf.provider.fails.append(refused("not_found"))
    await shelf.copies.work()
    await shelf.clock.advance(100_000)
    await shelf.copies.work()
    assert (await found(shelf, message_id)).attempts == 1


async def test_a_file_that_is_shorter_than_was_said_is_not_kept(shelf: Shelf) -> None:
    message_id = await came(shelf)
    shelf.provider.said_size = 5
    await shelf.copies.work()
    assert (await found(shelf, message_id)).blob_key is None
    assert await left(shelf) == 0


async def test_an_erased_message_keeps_no_copy(shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose write came to its end: the storage need not look for what a writer left."""
    told, delete = list[bool](), shelf.blobs.delete

    async def noted(key: str, *, written: bool = False) -> None:
        told.append(written)
        await delete(key)

    monkeypatch.setattr(shelf.blobs, "delete", noted)
    message_id = await came(shelf)
    await shelf.copies.work()
    await inbound_media.erase(shelf.db, ORGANIZATION, "test", [message_id])
    assert await left(shelf) == 0
    assert told == [True]
    assert await inbound_media.get(shelf.db, ORGANIZATION, "test", message_id, shelf.clock.now()) is None


async def test_one_organization_with_many_leaves_places_to_another(shelf: Shelf) -> None:
    for _ in range(20):
        await came(shelf)
    await came(shelf, organization="org_000000000000000000001")
    due = await inbound_media.due(shelf.db, shelf.clock.now(), 8, 2)
    assert sorted(each.organization_id for each in due) == [ORGANIZATION] * 2 + ["org_000000000000000000001"]


async def test_no_number_of_older_ones_hides_those_of_another(shelf: Shelf) -> None:
    message_id, sender_id = shelf.ids.new(MESSAGE), shelf.numbers.known[0].id
    many = [
        Expected(ORGANIZATION, "test", "chatapp", f"{message_id}{n}", sender_id, "ref", "image/png", None)
        for n in range(1_500)
    ]
    await inbound_media.expect(shelf.db, many, shelf.clock.now())
    await shelf.clock.advance(1)
    await came(shelf, organization="org_000000000000000000001")
    due = await inbound_media.due(shelf.db, shelf.clock.now(), 8, 2)
    assert sorted(each.organization_id for each in due) == [ORGANIZATION] * 2 + ["org_000000000000000000001"]


async def test_a_copy_that_takes_its_time_keeps_no_other_waiting(shelf: Shelf) -> None:
    slow = await came(shelf)
    others = [await came(shelf) for _ in range(3)]
    goes_on = shelf.provider.holds_back["ref-0"] = asyncio.Event()
    working = asyncio.create_task(shelf.copies.work())

    async def copied() -> bool:
        return all([(await found(shelf, each)).blob_key is not None for each in others])

    await until(copied, "the others are copied")
    assert (await found(shelf, slow)).blob_key is None
    goes_on.set()
    await working
    assert (await found(shelf, slow)).blob_key is not None


@pytest.mark.parametrize("months", [12])
async def test_copies_go_after_a_year(shelf: Shelf, months: int) -> None:
    await came(shelf)
    await shelf.copies.work()
    await shelf.clock.advance(months * 31 * 86_400)
    shelf.until[0] = shelf.clock.now()
    assert await left(shelf) == 0
    assert await shelf.count("inbound_media") == 0
