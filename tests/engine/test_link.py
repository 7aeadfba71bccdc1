"""The link between two processes: order, bounds, ends, and what it writes to the log."""

import asyncio
import json
import socket

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.captured import capture_logs
from tests.waiting import until

from recado.engine import link
from recado.engine.link import LONGEST_FRAME, MOST_UNREAD, Link

PATIENCE = 30.0  # seconds


class End:
    """What one end heard."""

    def __init__(self):
        self.heard = []
        self.losses = 0
        self.link = None

    def lost(self):
        self.losses += 1

    async def over(self, one):
        takes = {"said": self.heard.append, "refused": self.refuse}
        self.link = await Link.over(one, takes, lost=self.lost)
        return self

    def refuse(self, said):
        raise ValueError(f"not taken: {said}")


@pytest.fixture
async def ends():
    ours, theirs = socket.socketpair()
    pair = await End().over(ours), await End().over(theirs)
    yield pair
    for each in pair:
        each.link.close()


@pytest.fixture
async def raw():
    """An end, and the socket at the other one."""
    ours, theirs = socket.socketpair()
    end = await End().over(ours)
    yield end, theirs
    end.link.close()
    theirs.close()


async def test_frames_come_in_order_in_both_directions(ends):
    one, other = ends
    for n in range(500):
        assert one.link.give("said", n)
        assert other.link.give("said", {"of": [n, None, "ção\n"]})
    await until(lambda: len(one.heard) == len(other.heard) == 500, "all frames came")
    assert other.heard == list(range(500))
    assert one.heard == [{"of": [n, None, "ção\n"]} for n in range(500)]


async def test_who_says_much_waits_until_it_is_read(raw):
    end, theirs = raw
    theirs.setblocking(False)
    await end.link.room()
    part = "a" * (LONGEST_FRAME - 1_024)
    assert end.link.give("said", part)
    waits = asyncio.ensure_future(end.link.room())
    await asyncio.sleep(0)
    assert not waits.done()
    loop, got = asyncio.get_running_loop(), 0
    while got < len(part):
        got += len(await loop.sock_recv(theirs, 64 * 1024))
    await asyncio.wait_for(waits, PATIENCE)
    assert end.link.give("said", part)
    waits = asyncio.ensure_future(end.link.room())
    await asyncio.sleep(0)
    theirs.close()
    await asyncio.wait_for(waits, PATIENCE)  # the other end is gone, and reads nothing any more


SAID = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc\n"), inner, max_size=3),
    max_leaves=12,
)


@given(said=st.lists(SAID, max_size=8), data=st.data())
def test_any_split_of_the_bytes_gives_the_same_frames(said, data):
    content = b"".join(b"said %s\n" % orjson.dumps(each) for each in said)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=10)))
    heard = []

    async def take():
        end = Link({"said": heard.append}, lost=lambda: heard.append("lost"))
        for begins, ends in zip([0, *cuts], [*cuts, len(content)], strict=True):
            end.data_received(content[begins:ends])

    asyncio.run(take())
    assert heard == said


@pytest.mark.parametrize("content", [b"unknown 1\n", b"\n", b"said\x001\n"])
async def test_what_is_no_frame_ends_the_link_and_is_told_once(raw, content):
    end, other = raw
    other.sendall(b"said 1\n" + content + b"said 2\n")
    await until(lambda: end.losses, "the loss is told")
    other.close()
    assert (end.heard, end.losses) == ([1], 1)
    assert not end.link.give("said", 3)


async def test_a_frame_that_is_too_long_ends_the_link(raw):
    end, other = raw
    loop = asyncio.get_running_loop()
    other.setblocking(False)
    content = b"said " + b"1" * (LONGEST_FRAME + MOST_UNREAD)
    with pytest.raises(OSError):  # noqa: PT011 - whichever the kernel says of an end that is gone
        await loop.sock_sendall(other, content)
    assert (end.heard, end.losses) == ([], 1)


async def test_a_giver_is_told_of_a_frame_that_is_too_long_and_the_link_goes_on(ends):
    one, other = ends
    assert not one.link.give("said", "1" * LONGEST_FRAME)
    assert one.link.give("said", "1" * (LONGEST_FRAME - len('said ""\n')))
    assert one.link.give("said", "short")
    await until(lambda: other.heard[-1:] == ["short"], "the short one came")
    assert len(other.heard) == 2
    assert one.link.dropped == 1
    assert (one.losses, other.losses) == (0, 0)


async def test_for_an_end_that_does_not_read_so_much_is_kept_and_no_more(raw):
    end, other = raw
    text = "1" * (LONGEST_FRAME // 4)
    given, refused = 0, 0
    for _ in range(3 * MOST_UNREAD // len(text)):
        if end.link.give("said", text):
            given += 1
        else:
            refused += 1
        await asyncio.sleep(0)  # a turn, in which it is written
    assert refused == end.link.dropped > 0
    assert MOST_UNREAD <= given * len(text) <= MOST_UNREAD + 4 * LONGEST_FRAME  # what the kernel took comes to it
    # It reads again: everything that was taken comes, whole and in order, and there is room again.
    other.setblocking(False)
    came = b""
    while came.count(b"\n") < given:
        came += await asyncio.wait_for(asyncio.get_running_loop().sock_recv(other, 2**20), PATIENCE)
    assert {len(json.loads(line.partition(b" ")[2])) for line in came.splitlines()} == {len(text)}
    assert end.link.give("said", 1)


async def test_within_one_turn_no_more_is_kept_either(ends):
    one, _ = ends
    text = "1" * (LONGEST_FRAME - 100)
    assert sum(one.link.give("said", text) for _ in range(40)) <= MOST_UNREAD // len(text) + 1


async def test_a_taker_that_fails_ends_no_other_frame_and_its_log_has_no_content(ends):
    one, other = ends
    with capture_logs() as events:
        one.link.give("said", 1)
        one.link.give("refused", "+5511912345678")
        one.link.give("said", 2)
        await until(lambda: len(other.heard) == 2, "the others came")
    assert [(each["event"], each["kind"], each["error"]) for each in events] == [
        ("frame_not_taken", "refused", "ValueError")
    ]
    assert "12345678" not in repr(events)
    assert (other.heard, other.losses) == ([1, 2], 0)


async def test_the_end_of_one_side_is_told_to_the_other_and_not_to_itself(ends):
    one, other = ends
    one.link.give("said", 1)
    await until(lambda: other.heard, "it came")
    one.link.close()
    one.link.close()
    await until(lambda: other.losses, "the loss is told")
    assert (one.losses, other.losses) == (0, 1)
    assert not one.link.give("said", 2)
    assert not other.link.give("said", 2)


async def test_what_json_cannot_say_harms_nothing(ends):
    one, other = ends
    with pytest.raises(TypeError):
        one.link.give("said", object())
    assert one.link.give("said", 1)
    await until(lambda: other.heard == [1], "the next one came")
    assert link.MOST_UNREAD > link.LONGEST_FRAME
