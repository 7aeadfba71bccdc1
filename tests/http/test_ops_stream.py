"""The stream of operators: what has changed, to whom, and for how long (C34.1)."""

import asyncio
from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from tests.http.conftest import ADMIN_TOKEN

from recado.domain.core.errors import Problem, Unavailable
from recado.engine.clock import VirtualClock
from recado.http.routes.ops import stream as module
from recado.http.routes.ops.stream import Feed, OperatorStream
from recado.http.wire.byte_budget import ANSWERS, DEFAULT, ByteBudget
from recado.http.wire.outlet import Outlet, chunk
from recado.storage.core.shares.callers import SERVICE, working_for
from recado.storage.ops.scope import INSTALLATION, Scope

MINE, OTHERS = Scope("org_1", "live"), Scope("org_2", "live")


class Looked:
    """Samples that tests set; `looks`: whose numbers were looked at."""

    def __init__(self) -> None:
        self.items: dict[str, dict[str, bytes]] = {kind: {} for kind in module.KINDS}
        self.looks: list[Scope] = []
        self.away = False
        self.slow: dict[Scope, asyncio.Event] = {}  # whose numbers are there only then
        for kind in module.KINDS:
            name = f"first_{kind}" if kind in ("numbers", "actors") else kind
            setattr(self, name, Kind(self, kind))


class Kind:
    """One of them."""

    def __init__(self, looked: Looked, kind: str) -> None:
        self.looked = looked
        self.kind = kind

    async def get(self, scope: Scope) -> list[tuple[str, bytes]]:
        if self.looked.away:
            raise Unavailable("away")
        if self.kind == "numbers":
            self.looked.looks.append(scope)
            if scope in self.looked.slow:
                await self.looked.slow[scope].wait()
        return list(self.looked.items[self.kind].items())


class Viewer:
    """Reads a stream by hand."""

    def __init__(self, events: AsyncGenerator[bytes]) -> None:
        self.events = events
        self.got: list[bytes] = []
        self.ended = False
        self.task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for piece in self.events:
            self.got.append(piece)
        self.ended = True

    async def leaves(self) -> None:
        self.task.cancel()
        await asyncio.wait([self.task])
        await self.events.aclose()

    def told(self) -> list[tuple[str, Any]]:
        """Kind and data of each event since the last call."""
        text, self.got = b"".join(self.got).decode(), []
        found = []
        for block in text.split("\n\n"):
            lines = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
            if "event" in lines:
                found.append((lines["event"], orjson.loads(lines["data"])))
            self.last_id = lines.get("id", getattr(self, "last_id", None))
        return found


class Open(Outlet):
    """An outlet whose client takes everything, while it is `free`."""

    def __init__(self) -> None:
        super().__init__()
        self.free = True
        self.gone = False
        self.pushed: list[bytes] = []

    def push(self, framed: bytes, most: int) -> bool:
        assert most == module.MEMORY
        if self.free:
            self.pushed.append(framed)
        return self.free

    @property
    def left(self) -> bool:
        return self.gone


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(datetime(2026, 1, 31, 12, tzinfo=UTC))


@pytest.fixture(autouse=True)
def long_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever other tests of the process have made of them."""
    monkeypatch.setattr(module, "LONGEST", 300.0)


@pytest.fixture
def looked() -> Looked:
    return Looked()


@pytest.fixture
async def hub(clock: VirtualClock, looked: Any) -> Any:
    made = OperatorStream(looked, clock=clock, random_bytes=lambda count: b"r" * count)
    yield made
    await made.stop()


async def test_a_viewer_hears_everything_first_and_then_what_changes(clock: Any, looked: Any, hub: Any) -> None:
    looked.items["numbers"] = {"num_1": b'{"n":1}', "num_2": b'{"n":2}'}
    viewer = Viewer(hub.events(MINE, None))
    await clock.settle()
    first = viewer.told()
    assert [kind for kind, _ in first] == list(module.KINDS)
    assert first[0][1] == {"items": [{"n": 1}, {"n": 2}], "gone": [], "whole": True}
    await clock.advance(1)
    assert viewer.told() == []
    looked.items["numbers"] = {"num_2": b'{"n":3}'}
    looked.items["actors"] = {"recado": b'{"path":"recado"}'}
    await clock.advance(1)
    assert viewer.told() == [
        ("numbers", {"items": [{"n": 3}], "gone": ["num_1"], "whole": False}),
        ("actors", {"items": [{"path": "recado"}], "gone": [], "whole": False}),
    ]
    await viewer.leaves()


async def test_one_look_a_second_serves_all_and_there_is_none_when_nobody_looks(
    clock: Any, looked: Any, hub: Any
) -> None:
    viewers = [Viewer(hub.events(MINE, None)) for _ in range(3)]
    await clock.settle()
    for _ in range(4):
        await clock.advance(1)
    assert looked.looks == [MINE] * 5
    for viewer in viewers:
        await viewer.leaves()
    await clock.advance(5)
    assert looked.looks == [MINE] * 5


async def test_the_looks_for_all_take_nothing_of_the_share_of_whoever_came_first(
    clock: Any, looked: Any, hub: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    callers = []

    class Noting:
        async def get(self, scope: Scope) -> list[tuple[str, bytes]]:
            callers.append(working_for.get())
            return []

    monkeypatch.setitem(hub._looks, "numbers", Noting())
    working_for.set("org_1")
    viewers = [Viewer(hub.events(scope, None)) for scope in (MINE, OTHERS)]
    await clock.settle()
    assert callers == [SERVICE, SERVICE]
    for viewer in viewers:
        await viewer.leaves()


async def test_a_viewer_hears_of_its_own_scope_alone(clock: Any, looked: Any, hub: Any) -> None:
    viewers = [Viewer(hub.events(scope, None)) for scope in (MINE, OTHERS, INSTALLATION)]
    await clock.settle()
    assert set(looked.looks) == {MINE, OTHERS, INSTALLATION}
    for viewer in viewers:
        await viewer.leaves()


async def test_a_scope_that_takes_long_to_look_at_keeps_the_others_waiting_for_nothing(
    clock: Any, looked: Any, hub: Any
) -> None:
    seen = looked.slow[OTHERS] = asyncio.Event()
    slow, viewer = Viewer(hub.events(OTHERS, None)), Viewer(hub.events(MINE, None))
    await clock.settle()
    viewer.told()
    for number in range(3):
        looked.items["numbers"] = {"num_1": b'{"n":%d}' % number}
        await clock.advance(1)
        assert [data["items"] for _, data in viewer.told()] == [[{"n": number}]]
    assert looked.looks.count(OTHERS) == 1  # which is under way
    assert slow.told() == []
    seen.set()
    await clock.settle()
    assert [kind for kind, _ in slow.told()] == list(module.KINDS)
    await clock.advance(1)
    assert looked.looks.count(OTHERS) == 2
    await slow.leaves()
    await viewer.leaves()


async def test_it_stops_while_a_look_takes_long(clock: Any, looked: Any, hub: Any) -> None:
    looked.slow[MINE] = asyncio.Event()
    viewer = Viewer(hub.events(MINE, None))
    await clock.settle()
    await hub.stop()
    await viewer.leaves()
    assert looked.looks == [MINE]


async def test_what_is_told_later_goes_past_the_tasks_of_viewers_and_is_one_chunk_for_all(
    clock: Any, looked: Any, hub: Any
) -> None:
    outlets = [Open() for _ in range(3)]
    viewers = [Viewer(hub.events(MINE, None, outlet)) for outlet in outlets]
    await clock.settle()
    first = b"".join(viewers[0].got)
    assert b'"whole":true' in first
    assert [outlet.pushed for outlet in outlets] == [[], [], []]
    looked.items["numbers"] = {"num_1": b'{"n":1}'}
    for _ in range(module.HEARTBEAT + 1):
        await clock.advance(1)
    event = b'event: numbers\ndata: {"items":[{"n":1}],"gone":[],"whole":false}\nid: ' + b"72" * 8 + b"-1\n\n"
    for outlet in outlets:
        assert outlet.pushed == [chunk(event), chunk(b":\n\n")]
        assert outlet.pushed[0] is outlets[0].pushed[0]
    for viewer in viewers:
        assert b"".join(viewer.got) == first
        await viewer.leaves()


async def test_a_viewer_whose_client_takes_nothing_is_told_by_its_task_and_then_at_once_again(
    clock: Any, looked: Any, hub: Any
) -> None:
    outlet = Open()
    viewer = Viewer(hub.events(MINE, None, outlet))
    await clock.settle()
    viewer.told()
    for number, free in enumerate((True, False, True)):
        outlet.free = free
        looked.items["numbers"] = {"num_1": b"%d" % number}
        await clock.advance(1)
    assert [told.partition(b'"items":[')[2][:1] for told in outlet.pushed] == [b"0", b"2"]
    assert [data["items"] for _, data in viewer.told()] == [[1]]
    await viewer.leaves()


async def test_a_viewer_who_cannot_be_told_is_let_go_and_the_others_are_told(
    clock: Any, looked: Any, hub: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> bool:
        raise RuntimeError

    outlets = [Open() for _ in range(2)]
    viewers = [Viewer(hub.events(MINE, None, outlet)) for outlet in outlets]
    await clock.settle()
    monkeypatch.setattr(outlets[0], "push", fail)
    for number in range(2):
        looked.items["numbers"] = {"num_1": b"%d" % number}
        await clock.advance(1)
    assert [viewer.ended for viewer in viewers] == [True, False]
    assert len(outlets[1].pushed) == 2
    await viewers[1].leaves()


@pytest.mark.parametrize("away", [False, True])
async def test_who_has_left_makes_room_at_the_next_look_also_without_news(
    clock: Any, looked: Any, hub: Any, away: bool
) -> None:
    outlets = [Open() for _ in range(module.VIEWERS_OF_AN_ORGANIZATION)]
    viewers = [Viewer(hub.events(MINE, None, outlet)) for outlet in outlets]
    await clock.settle()
    with pytest.raises(Problem):
        hub.admit("org_1")
    outlets[0].gone, looked.away = True, away
    await clock.advance(1)
    assert [viewer.ended for viewer in viewers] == [True, False, False, False, False]
    hub.admit("org_1")
    for viewer in viewers[1:]:
        await viewer.leaves()


async def test_what_was_missed_while_the_task_still_sent_is_told_by_it(clock: Any, looked: Any, hub: Any) -> None:
    outlet = Open()
    events = hub.events(MINE, None, outlet)
    await anext(events)
    taking = asyncio.create_task(anext(events))
    await clock.settle()
    assert b'"whole":true' in await taking
    for number in range(2):
        looked.items["numbers"] = {"num_1": b"%d" % number}
        await clock.advance(1)
    assert outlet.pushed == []
    viewer = Viewer(events)
    await clock.settle()
    await clock.advance(1)
    assert [data["items"] for _, data in viewer.told()] == [[0], [1]]
    await viewer.leaves()


async def test_who_comes_back_hears_what_was_missed(clock: Any, looked: Any, hub: Any) -> None:
    viewer = Viewer(hub.events(MINE, None))
    await clock.settle()
    looked.items["numbers"] = {"num_1": b"1"}
    await clock.advance(1)
    viewer.told()
    await viewer.leaves()
    looked.items["numbers"] = {"num_1": b"1", "num_2": b"2"}
    await clock.advance(30)
    again = Viewer(hub.events(MINE, viewer.last_id))
    await clock.settle()
    assert again.told() == [("numbers", {"items": [2], "gone": [], "whole": False})]
    await again.leaves()


@pytest.mark.parametrize(
    "last_id", [None, "", "x", "72" * 8, "72" * 8 + "-99", "00" * 8 + "-0", "72" * 8 + "-" + "9" * 16]
)
async def test_an_id_that_says_nothing_here_begins_anew(clock: Any, looked: Any, hub: Any, last_id: str | None) -> None:
    viewer = Viewer(hub.events(MINE, last_id))
    await clock.settle()
    assert [data["whole"] for _, data in viewer.told()] == [True] * len(module.KINDS)
    await viewer.leaves()


async def test_without_news_a_heartbeat_shows_that_the_connection_stands(clock: Any, looked: Any, hub: Any) -> None:
    viewer = Viewer(hub.events(MINE, None))
    await clock.settle()
    viewer.told()
    for _ in range(module.HEARTBEAT + 1):
        await clock.advance(1)
    assert viewer.got == [b":\n\n"]
    await viewer.leaves()


async def test_nothing_says_that_it_is_live_while_looks_fail(clock: Any, looked: Any, hub: Any) -> None:
    looked.away = True
    viewer = Viewer(hub.events(MINE, None))
    await clock.settle()
    for _ in range(module.HEARTBEAT + 1):
        await clock.advance(1)
    assert viewer.got == []
    looked.away = False
    await clock.advance(1)
    assert viewer.got[0] == b"retry: 2000\n\n"
    assert [data["whole"] for _, data in viewer.told()] == [True] * len(module.KINDS)
    looked.away = True
    for _ in range(module.HEARTBEAT + 1):
        await clock.advance(1)
    assert viewer.got == []
    looked.away = False
    await clock.advance(1)
    assert viewer.got == [b":\n\n"]
    await viewer.leaves()


async def test_it_ends_when_looks_fail_for_long(clock: Any, looked: Any, hub: Any) -> None:
    looked.away = True
    viewer = Viewer(hub.events(MINE, None))
    await clock.settle()
    for _ in range(int(module.LONGEST_FAILING) + 2):
        await clock.advance(1)
    assert (viewer.got, viewer.ended) == ([], True)


async def test_one_without_time_ends_before_a_look(hub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LONGEST", 0.0)  # as the walk over all operations has it, which reads every answer
    assert [piece async for piece in hub.events(MINE, None)] == []


async def test_it_ends_after_five_minutes(clock: Any, looked: Any, hub: Any) -> None:
    viewer = Viewer(hub.events(MINE, None))
    await clock.settle()
    for _ in range(int(module.LONGEST) + 2):
        await clock.advance(1)
    assert viewer.ended


async def test_viewers_are_bounded_in_all_and_of_an_organization(
    clock: Any, looked: Any, hub: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "VIEWERS", 7)
    viewers = [Viewer(hub.events(MINE, None)) for _ in range(module.VIEWERS_OF_AN_ORGANIZATION)]
    await clock.settle()
    with pytest.raises(Problem) as refused:
        hub.admit("org_1")
    assert (refused.value.code, refused.value.headers["Retry-After"]) == ("RATE_LIMITED", "30")
    viewers += [Viewer(hub.events(OTHERS, None)) for _ in range(2)]
    await clock.settle()
    with pytest.raises(Unavailable):
        hub.admit("org_3")
    await viewers.pop().leaves()
    hub.admit("org_3")
    for viewer in viewers:
        await viewer.leaves()


async def test_the_administrator_has_half_of_the_places(
    clock: Any, looked: Any, hub: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "VIEWERS_OF_THE_ADMINISTRATOR", 2)
    viewers = [Viewer(hub.events(INSTALLATION, None)) for _ in range(2)]
    await clock.settle()
    with pytest.raises(Problem) as refused:
        hub.admit("")
    assert (refused.value.code, refused.value.headers["Retry-After"]) == ("RATE_LIMITED", "30")
    hub.admit("org_1")
    await viewers.pop().leaves()
    hub.admit("")
    await viewers.pop().leaves()


def test_as_many_viewers_as_a_caller_may_have_fit_into_what_it_may_leave_unread() -> None:
    assert ByteBudget(DEFAULT // 2, ANSWERS).share >= module.VIEWERS_OF_THE_ADMINISTRATOR * module.MEMORY


async def test_who_comes_a_few_looks_later_shares_the_whole_of_who_came_first(
    clock: Any, looked: Any, hub: Any
) -> None:
    looked.items["numbers"] = {"num_1": b"1"}
    first = Viewer(hub.events(MINE, None))
    await clock.settle()
    whole = first.told()
    last = Viewer(hub.events(MINE, None))
    for number in range(2, module.WHOLE_FOR + 4):
        looked.items["numbers"] = {"num_1": b"%d" % number}
        await clock.advance(1)
        if number == module.WHOLE_FOR:
            later = Viewer(hub.events(MINE, None))
            await clock.settle()
    assert last.told()[: len(module.KINDS)] == whole
    told = later.told()
    assert [data["items"] for kind, data in told if kind == "numbers"] == [[n] for n in range(1, module.WHOLE_FOR + 4)]
    assert [data["whole"] for _, data in told] == [True] * 4 + [False] * (module.WHOLE_FOR + 2)
    latest = Viewer(hub.events(MINE, None))
    await clock.advance(1)
    assert [(data["whole"], data["items"]) for kind, data in latest.told() if kind == "numbers"] == [
        (True, [module.WHOLE_FOR + 3])
    ]
    for viewer in (first, last, later, latest):
        await viewer.leaves()


async def test_a_slow_viewer_is_let_go(clock: Any, looked: Any, hub: Any) -> None:
    events = hub.events(MINE, None)
    quick = Viewer(hub.events(MINE, None))
    await anext(events)
    taking = asyncio.create_task(anext(events))
    await clock.settle()
    assert b'"whole":true' in await taking
    for number in range(module.REMEMBERED + 2):
        looked.items["numbers"] = {"num_1": b"%d" % number}
        await clock.advance(1)
    slow = Viewer(events)
    await clock.settle()
    await clock.advance(1)
    assert (slow.ended, slow.got) == (True, [])
    await quick.leaves()


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED_BYTES", 10_000)

    async def fill() -> Feed:
        feed = Feed("f" * 16)
        for number in range(50):
            feed.look({"numbers": [("num_1", b"%d" % number * 1_000)]})
        return feed

    feed = asyncio.run(fill())
    assert feed._bytes <= 10_000
    assert feed.since(0) is None
    assert feed.since(feed.number) == []
    assert len(feed.since(feed.number - 1) or ()) == 1


async def test_it_is_served_as_events_until_the_viewer_leaves(api: Any) -> None:
    headers = {"Authorization": f"Bearer {api.token()}"}
    async with api.session.get(f"{api.base}/v2/ops/stream", headers=headers) as answer:
        assert (answer.status, answer.headers["Content-Type"]) == (200, "text/event-stream")
        assert answer.headers["Cache-Control"] == "no-store"
        lines = []
        async for line in answer.content:
            lines.append(line.decode().strip())
            if line.startswith(b"id: "):
                break
    data = {lines[n].removeprefix("event: "): orjson.loads(lines[n + 1][6:]) for n in range(len(lines)) if lines[n].startswith("event")}  # fmt: skip  # noqa: E501
    assert [each["numberId"] for each in data["numbers"]["items"]] == [api.organizations[0].number.id]
    assert data["throughput"]["items"][0]["numbers"] == 1


async def test_the_administrator_looks_at_everything(api: Any) -> None:
    headers = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    async with api.session.get(f"{api.base}/v2/ops/stream", headers=headers) as answer:
        async for line in answer.content:
            if line.startswith(b"data: "):
                assert len(orjson.loads(line[6:])["items"]) == 2
                break
