"""What comes in from the hosted API: one table of changes, strict shapes, and the signature."""

import orjson
import pytest
from tests.channels.chatapp.cloud_changes import (
    A_STATUS,
    INCOMING,
    METADATA,
    SECONDS,
    body_of,
    change,
    message,
    preference,
    status,
)

from recado.channels.chatapp import cloud_callbacks
from recado.channels.core.errors import MalformedCallback
from recado.channels.core.events import Inbound, Status


def test_one_odd_status_among_many_loses_no_other() -> None:
    value = {"metadata": METADATA, "statuses": [A_STATUS, 7, {**A_STATUS, "id": "p-2"}], "messages": [None]}

    with pytest.raises(MalformedCallback) as refusal:
        cloud_callbacks.events(body_of(change("messages", value), preference()))

    assert [getattr(event, "provider_message_id", None) for event in refusal.value.events] == ["p-1", "p-2", None]
    assert refusal.value.where == "entry[0].changes[0].value.statuses[1]"


def test_half_an_emoji_in_a_persons_words_loses_no_report() -> None:
    words = body_of(message("text", text={"body": "half of one: CUT"}), status()).replace(b"CUT", rb"\ud83d")

    heard, reported = cloud_callbacks.events(words)

    assert isinstance(heard, Inbound)
    assert heard.payload == {"text": {"body": "half of one: \ufffd"}}
    assert reported == INCOMING[0][1][0]


def test_events_keep_their_order_over_entries_and_changes() -> None:
    entries = [
        {"id": "waba-1", "time": SECONDS, "changes": [status(id=f"p-{place}"), status(id=f"q-{place}")]}
        for place in range(3)
    ]

    events = cloud_callbacks.events(orjson.dumps({"object": cloud_callbacks.OBJECT, "entry": entries}))

    assert [event.provider_message_id for event in events if isinstance(event, Status)] == [
        "p-0", "q-0", "p-1", "q-1", "p-2", "q-2",
    ]  # fmt: skip
