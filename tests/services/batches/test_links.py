"""Links in messages of a batch: stored in the commit of their block, and drawn again when a code is taken (C27.1)."""

from collections.abc import Iterator
from typing import Any

import pytest
from tests.services.batches.conftest import Workshop
from tests.services.batches.counting import checked

from recado.domain.batches.batch import BLOCK
from recado.domain.channels.chatapp import CHATAPP
from recado.domain.core.steps import Steps
from recado.domain.links.tracked import TrackedLink
from recado.services.batches.channel_batches import Replaced, Tracked
from recado.storage.batches.batch_rows import Recipients
from recado.storage.links.tracked_links import CodeTaken

URL = "https://shop.example/"


class Links:
    """A channel of whose blocks the first recipient has a link; `drawn`: the codes that come next.

    `too_long`: its second recipient is told more than there is room for, by now.
    """

    def __init__(self) -> None:
        self.drawn: Iterator[str] = iter(())
        self.too_long = False

    def tracked(self, payload: str | None, recipients: Recipients, replaced: Replaced) -> Steps[Tracked | None]:
        yield from ()
        left_out = {}
        if self.too_long:
            recipients, left_out = recipients.only([0, *range(2, len(recipients))]), {"TEXT_TOO_LONG": 1}
        return Tracked(recipients, [[TrackedLink(next(self.drawn), URL)], *[[]] * (len(recipients) - 1)], left_out)


@pytest.fixture
async def links(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> Links:
    await workshop.db.execute("truncate tracked_links")
    found = Links()
    monkeypatch.setattr(workshop.maker._channels[CHATAPP], "tracked", found.tracked)
    return found


async def stored(workshop: Workshop) -> dict[str, Any]:
    """The batches of the links, by their codes."""
    rows = await workshop.db.fetch(
        "select code, url, batch_id from tracked_links t join messages m on m.id = t.message_id"
    )
    assert {row["url"] for row in rows} == {URL}
    return {row["code"]: row["batch_id"] for row in rows}


async def test_a_code_that_another_message_has_is_drawn_again(workshop: Workshop, links: Links) -> None:
    links.drawn = iter(["AAAAAAAA", "AAAAAAAA", "BBBBBBBB"])
    first, second = [await workshop.made(workshop.draft()) for _ in range(2)]
    assert await stored(workshop) == {"AAAAAAAA": first.id, "BBBBBBBB": second.id}
    assert [len(await workshop.queue(batch)) for batch in (first, second)] == [3, 3]


async def test_a_later_block_has_links_too_and_waits_when_another_has_their_code(
    workshop: Workshop, links: Links
) -> None:
    links.drawn = iter(["AAAAAAAA", "AAAAAAAA", "BBBBBBBB"])
    batch = await workshop.made(workshop.draft(BLOCK + 1))
    with pytest.raises(CodeTaken):
        await workshop.maker.make_next(batch.key)
    assert len(await workshop.queue(batch)) == BLOCK
    assert await workshop.maker.make_next(batch.key) == 0
    assert await stored(workshop) == {"AAAAAAAA": batch.id, "BBBBBBBB": batch.id}


async def test_whose_text_is_too_long_with_its_link_is_left_out_and_the_batch_goes_on(
    workshop: Workshop, links: Links
) -> None:
    links.drawn = iter(["AAAAAAAA", "BBBBBBBB"])
    batch = await workshop.made(workshop.draft(BLOCK + 3))
    links.too_long = True
    assert await workshop.maker.make_next(batch.key) == 0
    assert len(await workshop.queue(batch)) == BLOCK + 2
    found = await checked(workshop, batch)
    assert (found.accepted, found.skipped, found.skipped_reasons) == (BLOCK + 2, 1, {"TEXT_TOO_LONG": 1})
