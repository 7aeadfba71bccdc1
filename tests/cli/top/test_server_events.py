"""Server-sent events come in pieces of any size."""

from hypothesis import given
from hypothesis import strategies as st

from recado.cli.top.server_events import ServerEvents

STREAM = (
    b"retry: 2000\n\n:\n\nevent: numbers\ndata: {\"items\":[]}\nid: f-1\n\ndata: a\ndata: b\n\n"
    b"event: throughput\ndata:1\nid: f-2\n\n"
)  # fmt: skip
EVENTS = [("numbers", b'{"items":[]}'), ("message", b"a\nb"), ("throughput", b"1")]


@given(sizes=st.lists(st.integers(1, 40), min_size=1))
def test_however_they_are_cut_the_events_are_the_same(sizes: list[int]) -> None:
    events, found, at = ServerEvents("f-0"), [], 0
    while at < len(STREAM):
        size = sizes[at % len(sizes)]
        found += list(events.feed(STREAM[at : at + size]))
        at += size
    assert found == EVENTS
    assert (events.last_id, events.retry) == ("f-2", 2.0)


def test_an_event_that_is_not_whole_is_not_told_and_its_id_not_taken() -> None:
    events = ServerEvents("f-0")
    assert list(events.feed(b"event: numbers\ndata: 1\nid: f-1\n")) == []
    assert events.last_id == "f-0"
    assert list(events.feed(b"\n")) == [("numbers", b"1")]
