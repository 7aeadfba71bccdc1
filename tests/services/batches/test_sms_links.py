"""Links of SMS batches, drawn when a block becomes messages, also where short links are longer by then (C27.1)."""

import asyncio
import random
from functools import partial
from unittest.mock import Mock

import orjson

from recado.domain.links.tracked import MessageLinks
from recado.domain.messages.sms_text import measure
from recado.engine.steps import in_steps
from recado.services.batches.channel_batches import Tracked
from recado.services.batches.sms_batches import SmsBatches
from recado.storage.batches.batch_rows import Recipients

SHORT, LONG = "https://l.co", "https://links.example.com"
FULL = "x" * 1_500 + " https://shop.example/"  # 10 segments with a short link, and 11 with one that is longer


def batches(base: str) -> SmsBatches:
    return SmsBatches(Mock(), sends_in=["test"], links=partial(MessageLinks, base, random.Random(5).randbytes))


def told(*texts: str) -> Recipients:
    """Recipients as a batch with `shortenLinks` stores them until they become messages."""
    details = '{"route":"premium","encoding":"GSM-7","length":1,"untracked":{"transliterate":false}}'
    count = len(texts)
    payloads: list[str | None] = [orjson.dumps({"text": {"body": text}}).decode() for text in texts]
    return Recipients(
        [f"+551198765432{place}" for place in range(count)], [*range(count)], [None] * count, [None] * count,
        payloads=payloads, units=[1] * count, details=[details] * count,
    )  # fmt: skip


def tracked(base: str, recipients: Recipients) -> Tracked:
    found: Tracked | None = asyncio.run(in_steps(batches(base).tracked(None, recipients, {})))
    assert found is not None
    return found


def test_a_text_that_its_links_make_too_long_by_now_is_left_out_and_the_others_go_on() -> None:
    recipients = told("see https://a.example/", FULL, "and https://b.example/")
    assert measure(FULL, shorten=lambda _: f"{SHORT}/l/00000000").segments == 10
    before = tracked(SHORT, recipients)
    assert (before.recipients.phones, before.left_out) == (recipients.phones, {})
    now = tracked(LONG, recipients)
    assert (now.recipients.phones, now.left_out) == (recipients.phones[::2], {"TEXT_TOO_LONG": 1})
    assert [[url for _, url in each] for each in now.links] == [["https://a.example/"], ["https://b.example/"]]
    assert now.recipients.payloads is not None
    for payload, each in zip(now.recipients.payloads, now.links, strict=True):
        assert each[0].code in (payload or "")
