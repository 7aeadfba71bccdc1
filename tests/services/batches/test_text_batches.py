"""Batches of texts on channels whose messages leave by a route: what they share, for each of these (C15.5)."""

import random
from datetime import UTC, datetime
from functools import partial
from typing import Any
from unittest.mock import AsyncMock, Mock

import orjson
import pytest

from recado.domain.links.tracked import MessageLinks
from recado.domain.messages.message import Priority
from recado.services.batches.batch_draft import BatchDraft
from recado.services.batches.channel_batches import Tracked
from recado.services.batches.rcs_batches import RcsBatches
from recado.services.batches.sms_batches import SmsBatches
from recado.services.batches.text_batches import STEP, TextBatches
from recado.services.messages.rcs_content import RcsForm
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


async def test_that_nobody_sends_the_sms_in_place_of_rcs_refuses_no_batch_before_its_recipients_are_looked_at() -> None:
    organizations = Mock(of_caller=AsyncMock(return_value=Mock(held_ms=0, require_granted_for_marketing=False)))
    draft = BatchDraft(
        organization_id="org_1", env="test", channel="rcs", sender_id="", type="text", priority=Priority.BULK,
        payload={"text": {"body": "Hello"}, "fallback": {"text": "Hello"}}, details=RcsForm().asked,
    )  # fmt: skip
    for sms_in, lacks in ((["test"], None), (["live"], "sms")):
        terms = await RcsBatches(organizations, sms_in=sms_in, **SHARED).terms(draft, datetime.now(UTC))
        assert terms.lacks == lacks
