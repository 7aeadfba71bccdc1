"""Batches of texts on channels whose messages leave by a route: what they share, for each of these (C15.5)."""

import random
from functools import partial
from typing import Any
from unittest.mock import Mock

import orjson
import pytest

from recado.domain.links.tracked import MessageLinks
from recado.services.batches.channel_batches import Tracked
from recado.services.batches.rcs_batches import RcsBatches
from recado.services.batches.sms_batches import SmsBatches
from recado.services.batches.text_batches import STEP, TextBatches
from recado.storage.batches.batch_rows import Recipients

URL = "https://shop.example/"
SHARED: dict[str, Any] = {
    "sends_in": ["test"],
    "links": partial(MessageLinks, "https://l.co", random.Random(5).randbytes),
}
SMS = SmsBatches(Mock(), **SHARED), '{"route":"premium","untracked":{"transliterate":false}}'
RCS = RcsBatches(Mock(), sms_in=["test"], **SHARED), '{"route":"easy_rcs"}'


def recipients(details: str, count: int, replaces: list[str] | None = None) -> Recipients:
    payload = orjson.dumps({"text": {"body": f"See {URL}"}}).decode()
    return Recipients(
        [f"+55119876{place:05}" for place in range(count)], [*range(count)], [None] * count, [None] * count,
        payloads=[payload] * count, replaces=replaces, details=[details] * count, units=[1, *([2] * (count - 1))],
    )  # fmt: skip


def made(batches: TextBatches[Any], given: Recipients, replaced: Any) -> tuple[int, Tracked]:
    """In how many steps, and what each is told."""
    work, steps = batches.tracked(None, given, replaced), 1
    while True:
        try:
            next(work)
        except StopIteration as done:
            return steps, done.value
        steps += 1


@pytest.mark.parametrize(("batches", "details"), [SMS, RCS])
def test_a_block_is_told_its_texts_in_steps_each_with_links_of_its_own(batches: TextBatches[Any], details: str) -> None:
    steps, told = made(batches, recipients(details, 2 * STEP + 1), {})
    assert steps == 3
    assert told.recipients.units is None
    codes = {link.code for each in told.links for link in each}
    assert len(codes) == len(told.links) == 2 * STEP + 1


@pytest.mark.parametrize(("batches", "details", "units"), [(*SMS, [1, 2]), (*RCS, None)])
def test_what_is_sent_again_says_what_the_old_one_did_with_other_links(
    batches: TextBatches[Any], details: str, units: list[int] | None
) -> None:
    links = MessageLinks("https://l.co", random.Random(9).randbytes)
    text = links.in_text(f"It was {URL}")
    given = recipients(details, 2, ["msg_1", "msg_2"])
    given.payloads = [orjson.dumps({"text": {"body": text}}).decode()] * 2
    _, told = made(batches, given, {"msg_1": links.rows})
    assert told.recipients.units == units  # an RCS message begins by RCS, whatever carried the old one
    first, second = [orjson.loads(each or "")["text"]["body"] for each in told.recipients.payloads or ()]
    assert second == text
    assert first != text
    assert [len(each) for each in told.links] == [1, 0]
