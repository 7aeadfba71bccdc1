"""What comes in from the hosted API: one table of changes, strict shapes, and the signature."""

import hashlib
import hmac
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.channels.chatapp.cloud_changes import (
    A_STATUS,
    AT,
    INCOMING,
    MALFORMED,
    METADATA,
    SECONDS,
    body_of,
    change,
    message,
    preference,
    status,
)
from tests.channels.chatapp.cloud_news import NEWS

from recado.channels.chatapp import cloud_callbacks
from recado.channels.chatapp.cloud import Cloud
from recado.channels.provider import (
    Event,
    Inbound,
    MalformedCallback,
    Status,
    event_from_json,
    event_to_json,
)


@pytest.mark.parametrize(("json", "events"), INCOMING + NEWS)
def test_a_change_of_the_api_is_read(json: dict[str, Any], events: list[Event]) -> None:
    assert cloud_callbacks.events(body_of(json)) == events


@pytest.mark.parametrize("event", [event for _, events in INCOMING + NEWS for event in events])
def test_an_event_survives_its_row(event: Event) -> None:
    assert event_from_json(orjson.loads(orjson.dumps(event_to_json(event)))) == event


@pytest.mark.parametrize(("item", "where"), MALFORMED)
def test_a_change_of_another_shape_is_refused_by_its_place_and_the_others_are_kept(item: Any, where: str) -> None:
    with pytest.raises(MalformedCallback) as refusal:
        cloud_callbacks.events(body_of(item, status()))

    assert refusal.value.where == where
    assert refusal.value.events == tuple(INCOMING[0][1])


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


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"null", b"[]", b"{}", b'{"entry": {}}', b'{"entry": null}', b'{"entry": [7]}', b"\xff"],
)
def test_a_body_of_another_shape_is_refused_whole(body: bytes) -> None:
    with pytest.raises(MalformedCallback) as refusal:
        cloud_callbacks.events(body)

    assert refusal.value.events == ()


def test_events_keep_their_order_over_entries_and_changes() -> None:
    entries = [
        {"id": "waba-1", "time": SECONDS, "changes": [status(id=f"p-{place}"), status(id=f"q-{place}")]}
        for place in range(3)
    ]

    events = cloud_callbacks.events(orjson.dumps({"object": cloud_callbacks.OBJECT, "entry": entries}))

    assert [event.provider_message_id for event in events if isinstance(event, Status)] == [
        "p-0", "q-0", "p-1", "q-1", "p-2", "q-2",
    ]  # fmt: skip


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, each in inner for place in places(each, (*path, key)))]


def replaced(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    if not path:
        return new
    copy: Any = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = replaced(copy[path[0]], path[1:], new)
    return copy


# Near misses: a true change in which one value, anywhere, was replaced by anything.
NEAR = st.sampled_from([json for json, _ in INCOMING + NEWS]).flatmap(
    lambda json: st.builds(lambda path, new: replaced(json, path, new), st.sampled_from(places(json)), JSON)
)


@given(
    st.binary(max_size=200)
    | JSON.map(orjson.dumps)
    | st.lists(NEAR | JSON, max_size=4).map(lambda items: body_of(*items))
    | JSON.map(lambda entry: orjson.dumps({"entry": entry}))
)
def test_whatever_a_callback_holds_it_is_read_or_refused_as_malformed(body: bytes) -> None:
    try:
        events = cloud_callbacks.events(body)
    except MalformedCallback as refusal:
        events = list(refusal.events)
    for event in events:
        stored = orjson.dumps(event_to_json(event))
        assert b"\\u0000" not in stored, "PostgreSQL would refuse the row"
        assert event_from_json(orjson.loads(stored)) == event


def test_a_printed_event_holds_nobody_s_number_or_words() -> None:
    printed = repr([event for _, events in INCOMING + NEWS for event in events])

    for personal in ("87654321", "Ana", "body", "900000000"):
        assert personal not in printed


async def test_a_callback_is_believed_by_its_signature_alone(cloud_to: Any, fake_bridge: Any) -> None:
    cloud: Cloud = await cloud_to(fake_bridge.url)
    body = body_of(status())
    digest = hmac.new(b"app-secret-77aa", body, hashlib.sha256).hexdigest()
    signed = {"x-hub-signature-256": f"sha256={digest}"}

    assert cloud.verify_callback(signed, body, AT)
    assert not cloud.verify_callback(signed, body + b" ", AT)
    assert not cloud.verify_callback({"X-Hub-Signature-256": digest}, body, AT)
    assert not cloud.verify_callback({"X-Hub-Signature-256": f"sha1={digest}"}, body, AT)
    assert not cloud.verify_callback({"X-Hub-Signature-256": "sha256=é" + "\udcff"}, body, AT)
    assert not cloud.verify_callback({"X-Hub-Signature-256": "s" * 10_000}, body, AT)
    assert not cloud.verify_callback({}, body, AT)
    assert cloud.parse_callback(signed, body) == INCOMING[0][1]
