"""What comes in, over every adapter: tables of items, strict shapes, and signatures."""

import pickle
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.channels.conformance.adapters import ALL
from tests.channels.conformance.tried import Callbacks, Tried

from recado.channels.core.errors import MalformedCallback
from recado.channels.core.event_json import event_from_json, event_to_json
from recado.channels.core.events import CallbackEvent, Payment
from recado.channels.core.refusals import codes_of
from recado.domain.channels.policies import POLICIES
from recado.engine.clock import VirtualClock

SOURCES = [(tried, tried.callbacks) for tried in ALL if tried.callbacks is not None]
ITEMS = [(tried, source, item, events) for tried, source in SOURCES for item, events in source.items]
ODD = [(tried, source, item, where) for tried, source in SOURCES for item, where in source.odd]
UNREAD = [(tried, body) for tried, source in SOURCES for body in source.unread]
EVENTS = [event for _, _, _, events in ITEMS for event in events]
CODES = frozenset[str]().union(*map(codes_of, POLICIES))
NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
PERSONAL = ("87654321", "900000000", "Ana", "body")

each = pytest.mark.parametrize(("tried", "source"), SOURCES, ids=[tried.name for tried, _ in SOURCES])


def adapter_of(tried: Tried) -> Any:
    """Not started: who reads callbacks calls nobody."""
    return tried.make("http://127.0.0.1:1", VirtualClock(NOW), 1.0)


def read(tried: Tried, body: bytes) -> list[CallbackEvent]:
    return list(adapter_of(tried).parse_callback({"Content-Type": "application/json"}, body))


@pytest.mark.parametrize(("tried", "source", "item", "events"), ITEMS)
def test_an_item_of_the_protocol_is_read(
    tried: Tried, source: Callbacks, item: Any, events: list[CallbackEvent]
) -> None:
    assert read(tried, source.body_of(item)) == list(events)


@pytest.mark.parametrize("event", [event for event in EVENTS if not isinstance(event, Payment)])
def test_an_event_survives_its_row(event: Any) -> None:
    row = event_to_json(event)

    assert event_from_json(orjson.loads(orjson.dumps(row)), CODES) == event
    assert None not in row.values()


@pytest.mark.parametrize(("tried", "source", "item", "where"), ODD)
def test_an_item_of_another_shape_is_refused_by_its_place_and_the_others_are_kept(
    tried: Tried, source: Callbacks, item: Any, where: str
) -> None:
    good, events = source.items[0]

    with pytest.raises(MalformedCallback) as refusal:
        read(tried, source.body_of(item, good))

    assert refusal.value.where == where
    assert refusal.value.events == tuple(events)


@pytest.mark.parametrize(("tried", "body"), UNREAD)
def test_a_body_of_another_shape_is_refused_whole(tried: Tried, body: bytes) -> None:
    with pytest.raises(MalformedCallback) as refusal:
        read(tried, body)

    assert refusal.value.events == ()


@each
def test_a_callback_is_read_alike_where_there_is_no_adapter(tried: Tried, source: Callbacks) -> None:
    body = source.body_of(*(item for item, _ in source.items))
    apart = pickle.loads(pickle.dumps(adapter_of(tried).parse_callback))

    assert list(apart({"Content-Type": "application/json"}, body)) == read(tried, body)


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


def near(item: Any) -> st.SearchStrategy[Any]:
    """Near misses: a true item in which up to two values, anywhere, were replaced by anything."""
    one = st.builds(lambda path, new: replaced(item, path, new), st.sampled_from(places(item)), JSON)
    return one | one.flatmap(
        lambda item: st.builds(lambda path, new: replaced(item, path, new), st.sampled_from(places(item)), JSON)
    )


@each
@given(data=st.data())
def test_whatever_a_callback_holds_it_is_read_or_refused_as_malformed(
    tried: Tried, source: Callbacks, data: st.DataObject
) -> None:
    items = st.lists(st.sampled_from([item for item, _ in source.items]).flatmap(near) | JSON, max_size=4)
    body = data.draw(
        st.binary(max_size=200)
        | JSON.map(orjson.dumps)
        | items.map(lambda given: source.body_of(*given))
        | JSON.map(lambda inner: orjson.dumps(dict.fromkeys(("entry", "events"), inner)))
    )
    try:
        events = read(tried, body)
    except MalformedCallback as refusal:
        events = list(refusal.events)
    for event in events:
        if isinstance(event, Payment):
            assert event.status == "canceled" or event.amount_cents is not None
            continue
        stored = orjson.dumps(event_to_json(event))
        assert b"\\u0000" not in stored, "PostgreSQL would refuse the row"
        assert event_from_json(orjson.loads(stored)) is not None


def test_a_printed_event_holds_nobody_s_number_or_words() -> None:
    printed = repr(EVENTS)

    for personal in PERSONAL:
        assert personal not in printed


@each
def test_a_callback_is_believed_by_its_signature_alone(tried: Tried, source: Callbacks, clock: VirtualClock) -> None:
    adapter, at = adapter_of(tried), clock.now()
    body = source.body_of(source.items[0][0])
    signed = source.signed(body, at)

    for cased in (str.lower, str.upper, str):
        headers = {cased(name): value for name, value in signed.items()}
        assert adapter.verify_callback(headers, body, at)
        assert adapter.verify_callback(headers, body, at + timedelta(seconds=299))
        assert not adapter.verify_callback(headers, body + b" ", at)
    assert not adapter.verify_callback({}, body, at)
    for odd in ("", "s" * 10_000, "é\udcff"):
        assert not adapter.verify_callback(dict.fromkeys(signed, odd), body, at)
    for forged in source.forged(body, at):
        assert not adapter.verify_callback(forged, body, at)


@each
def test_who_does_not_know_what_the_provider_knows_gets_no_answer(tried: Tried, source: Callbacks) -> None:
    query = {"hub.mode": "subscribe", "hub.challenge": "7", "hub.verify_token": "guessed"}

    assert adapter_of(tried).answer_challenge(query) is None
