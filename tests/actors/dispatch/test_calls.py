"""What a call tells besides its outcome (C28.4), and whom it gives its place."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import AsyncMock, Mock

import pytest
from tests.captured import capture_logs
from tests.channels.accounts import chatapp_account
from tests.post import LETTERS, POST, REPORT

from recado.actors.dispatch.call_room import CallRoom
from recado.actors.dispatch.calls import Calls, Departure
from recado.actors.dispatch.gateway import Gateway
from recado.actors.dispatch.lane_context import LaneContext
from recado.channels.core.events import Preference
from recado.channels.core.provider import Accepted, NoPlace, Outcome, Refused, Retry, Unknown
from recado.channels.core.references import NamedBy
from recado.domain.channels.email import EMAIL
from recado.domain.channels.policies import POLICIES
from recado.domain.channels.policy import Deadline
from recado.domain.channels.source import Source
from recado.domain.core.errors import Unavailable
from recado.domain.dispatch.leases import Lease, endless
from recado.domain.messages.message import Cause
from recado.engine.clock import VirtualClock
from recado.services.dispatch.row import NewPayload, Row
from recado.services.ops.activity import Activity
from recado.storage.dispatch.begun_calls import _FENCED, BegunCalls

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
ACCOUNT = chatapp_account()


def sending(**parts: Any) -> Any:
    """What calls need of it."""
    return SimpleNamespace(activity=Activity(VirtualClock(NOW)), lease=endless(), **parts)


class Provider:
    """Answers every send with one outcome."""

    name = "cloud"
    looked_up_by: frozenset[NamedBy] = frozenset()

    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome

    async def send(self, *_: Any) -> Outcome:
        return self.outcome


class Waiting(Provider):
    """Answers when it may."""

    def __init__(self, outcome: Outcome, may: asyncio.Event) -> None:
        super().__init__(outcome)
        self._may = may

    async def send(self, *_: Any) -> Outcome:
        await self._may.wait()
        return self.outcome


def calls_with(stopped: Any, settle: AsyncMock | None = None) -> Calls:
    return Calls(
        sending(settle=settle or AsyncMock()), clock=VirtualClock(NOW), expect=lambda at: None, stopped=stopped
    )


def departure(outcome: Outcome, room: CallRoom | None = None) -> Departure:
    row = SimpleNamespace(
        id="msg_1",
        organization_id="org_1",
        env="live",
        channel="chatapp",
        sender_id="num_1",
        recipient="+5511987650001",
        type="text",
        payload=None,
        template_vars=None,
        details=None,
        totaled=True,
        attempts=0,
        claimed_at=NOW,
    )
    gateway = Gateway(VirtualClock(NOW), room or CallRoom(), channel="chatapp")
    return Departure(cast("Row", row), NOW, gateway, cast("Any", Provider(outcome)), ACCOUNT, None, 0)


async def call(outcome: Outcome, stopped: Any) -> Outcome | None:
    """Make one call, and answer what became of it when everything that follows is done."""
    ended: list[Outcome | None] = []
    calls = calls_with(stopped)
    calls.begin(departure(outcome), lambda _, what: ended.append(what))
    await calls.stop()
    return ended[0]


async def test_who_stopped_marketing_at_the_provider_is_told_of() -> None:
    told: list[tuple[Source, Preference]] = []

    async def stopped(source: Source, event: Preference) -> None:
        told.append((source, event))

    await call(Refused("opted_out", "stopped"), stopped)
    assert told == [(Source("chatapp", "cloud", "live"), Preference("pn-1", "+5511987650001", True, NOW))]
    for other in (Refused("policy_blocked", "no"), Retry()):
        await call(other, stopped)
    assert len(told) == 1


async def test_what_is_due_after_a_departure_is_settled_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(POLICIES, POST, LETTERS)
    settle = AsyncMock()
    calls, letter, message = calls_with(None, settle), departure(Accepted("1")), departure(Accepted("2"))
    letter.row.id, letter.row.channel, letter.row.details = "msg_2", POST, {"hours": 2}
    for each in (letter, message):
        calls.begin(each, lambda *_: None)
    await calls.stop()
    settled = {each.args[0].id: each.args[0].deadlines for each in settle.await_args_list}
    assert settled == {"msg_2": [Deadline(REPORT, NOW + timedelta(hours=2), holds_rest=True)], "msg_1": ()}


class KnowingProvider(Provider):
    """Knows its answer at once: nobody asks it to send."""

    async def send(self, *_: Any) -> Outcome:
        raise AssertionError

    def outcome_of(self, *_: Any) -> Outcome | None:
        return self.outcome


def known(outcome: Outcome) -> Departure:
    made = departure(outcome)
    made.provider = cast("Any", KnowingProvider(outcome))
    return made


async def test_what_the_provider_says_at_once_is_told_when_it_is_committed() -> None:
    loop = asyncio.get_running_loop()
    commit: asyncio.Future[None] = loop.create_future()
    put, ended = Mock(return_value=commit), list[Outcome | None]()
    calls = Calls(
        sending(put=put),
        clock=VirtualClock(NOW),
        expect=lambda at: None,
    )
    calls.begin(known(Accepted("1")), lambda _, what: ended.append(what))
    assert (len(calls), ended) == (1, [])
    stopping = asyncio.create_task(calls.stop())
    commit.set_result(None)
    await stopping
    assert (len(calls), ended) == (0, [Accepted("1")])


@pytest.mark.parametrize("late", [False, True])
async def test_what_was_said_at_once_waits_for_a_database_that_is_away(late: bool) -> None:
    commit: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    commit.set_exception(Unavailable())
    put = Mock(return_value=commit) if late else Mock(side_effect=Unavailable())
    settle, ended = AsyncMock(), list[Outcome | None]()
    calls = Calls(
        sending(put=put, settle=settle),
        clock=VirtualClock(NOW),
        expect=lambda at: None,
    )
    calls.begin(known(Accepted("1")), lambda _, what: ended.append(what))
    await calls.stop()
    assert ended == [Accepted("1")]
    assert [each.args[0].id for each in settle.await_args_list] == ["msg_1"]


@pytest.mark.parametrize("outcome", [Refused("policy_blocked", "no"), Retry(), Unknown()])
async def test_an_unusual_answer_at_once_is_settled_as_one_that_was_waited_for(outcome: Outcome) -> None:
    at_once, waited, ended = AsyncMock(), AsyncMock(), list[Outcome | None]()
    for settle, each in ((at_once, known(outcome)), (waited, departure(outcome))):
        each.provider.idempotent = False  # type: ignore[misc]
        calls = calls_with(None, settle)
        calls.begin(each, lambda _, what: ended.append(what))
        await calls.stop()
    assert ended == [outcome, outcome]
    assert [repr(each) for each in at_once.await_args_list] == [repr(each) for each in waited.await_args_list]


async def test_a_refusal_that_cannot_be_noted_harms_no_call() -> None:
    outcome = Refused("opted_out", "stopped")

    async def stopped(source: Source, event: Preference) -> None:
        raise LookupError(event.phone)

    with capture_logs() as logs:
        assert await call(outcome, stopped) == outcome
    assert logs == [
        {"event": "refusal_not_noted", "log_level": "warning", "message_id": "msg_1", "error": "LookupError"}
    ]


async def test_a_number_that_fails_when_it_is_given_room_harms_neither_the_call_that_ended_nor_the_next_in_line() -> (
    None
):
    ended: list[Outcome | None] = []
    resumed: list[str] = []
    calls, room = calls_with(stopped=None), CallRoom(2)
    calls.begin(departure(Accepted("wamid-1"), room), lambda _, outcome: ended.append(outcome))

    def fails() -> None:
        resumed.append("first")
        raise LookupError

    assert not room.has_place(ACCOUNT, fails)
    assert not room.has_place(ACCOUNT, lambda: resumed.append("second"))
    with capture_logs() as logs:
        await calls.stop()
    assert ended == [Accepted("wamid-1")]
    assert resumed == ["first", "second"]
    assert [(each["event"], each["error"]) for each in logs] == [("departure_failed", "LookupError")]


async def test_calls_of_one_environment_take_no_room_of_the_same_account_in_the_other() -> None:
    """A business account belongs to one organization in each environment, and not to the same one."""
    shared: Any = SimpleNamespace()
    context = LaneContext(shared, shared, shared, shared, 0.0)
    live, test = context.room("chatapp", "live"), context.room("chatapp", "test")
    calls, most = calls_with(stopped=None), live.each
    calls.begin(departure(Accepted("wamid-1"), live), lambda _, __: None)
    for _ in range(most - 1):
        live.take(ACCOUNT)
    assert not live.has_place(ACCOUNT, lambda: None)
    assert test.has_place(replace(ACCOUNT, env="test", organization_id="org_2"), lambda: None)
    await calls.stop()
    assert live.has_place(ACCOUNT, lambda: None)


class Made:
    """Makes the content of e-mails, or does not."""

    def __init__(self, content: object, clock: VirtualClock, seconds: float) -> None:
        self.content = content
        self.open = 0
        self._clock, self._seconds = clock, seconds

    @asynccontextmanager
    async def __call__(self, row: Any) -> AsyncIterator[object]:
        if isinstance(self.content, Exception):
            raise self.content
        await self._clock.advance(self._seconds)
        self.open += 1
        yield self.content
        self.open -= 1


def noted_by_owner(begun: BegunCalls) -> bool:
    """Whether the next owner finds a note of the message's call; the file stays open for us."""
    fenced = begun.fence(1, NOW)
    assert fenced is not None
    former = fenced.read()
    assert former is not None
    begun._map[_FENCED] = 0  # type: ignore[index] # only looked at
    return not former.never_began("msg_1", NOW)


@pytest.mark.parametrize("content", ["a body", NewPayload({"media": 1})])
async def test_a_call_is_noted_when_its_content_is_at_hand(tmp_path: Path, content: object) -> None:
    """A process that is killed while media still go to the provider has surely sent nothing."""
    begun, clock, noted = BegunCalls(tmp_path, boot="boot", notes=4), VirtualClock(NOW), list[tuple[str, bool]]()
    begun.open(1, NOW)

    @asynccontextmanager
    async def made(_: Any) -> AsyncIterator[object]:
        noted.append(("made", noted_by_owner(begun)))
        yield content

    async def send(*_: Any) -> Outcome:
        noted.append(("sent", noted_by_owner(begun)))
        return Accepted("1")

    calls = Calls(sending(settle=AsyncMock()), clock=clock, expect=lambda at: None, begun=begun, contents={EMAIL: made})
    each = departure(Accepted("1"))
    each.row.channel = EMAIL
    each.provider = cast("Any", SimpleNamespace(name="post", looked_up_by=frozenset(), send=send))
    assert calls.begin(each, lambda *_: None)
    await calls.stop()
    assert noted == [("made", False), ("sent", True)]


async def test_nobody_is_called_whose_content_came_after_the_numbers_were_taken(tmp_path: Path) -> None:
    begun, ended = BegunCalls(tmp_path, boot="boot", notes=4), list[Outcome | None]()
    begun.open(1, NOW)

    @asynccontextmanager
    async def made(_: Any) -> AsyncIterator[object]:
        assert begun.fence(1, NOW) is not None
        yield NewPayload({"media": 1})

    calls = Calls(
        sending(settle=AsyncMock()), clock=VirtualClock(NOW), expect=lambda at: None, begun=begun,
        contents={EMAIL: made},
    )  # fmt: skip
    each = departure(Accepted("1"))
    each.row.channel = EMAIL
    assert calls.begin(each, lambda _, outcome: ended.append(outcome))
    other = departure(Accepted("1"))
    other.row.id, other.row.channel = "msg_2", EMAIL
    await calls.settled(lambda row: True)
    assert ended == [NoPlace()]
    assert not calls.begin(other, lambda *_: None)
    await calls.stop()


class Taking(Provider):
    """Notes what it is given; it would know its answer at once."""

    def __init__(self, outcome: Outcome, made: Made) -> None:
        super().__init__(outcome)
        self.given: list[tuple[Any, int]] = []
        self._made = made

    async def send(self, message: Any, *_: Any) -> Outcome:
        self.given.append((message.details, self._made.open))
        return self.outcome

    def outcome_of(self, *_: Any) -> Outcome:
        return self.outcome


async def call_of_made(
    content: object, details: Any = None, *, seconds: float = 0.0, lease: Lease | None = None
) -> tuple[Outcome | None, list[tuple[Any, int]]]:
    """A call for a message of which `content` is made, in so many seconds."""
    clock = VirtualClock(NOW)
    made = Made(content, clock, seconds)
    work = sending(settle=AsyncMock())
    if lease is not None:
        work.lease = lease
    calls = Calls(work, clock=clock, expect=lambda at: None, contents={EMAIL: made})
    each = departure(Accepted("1"))
    each.row.channel, each.row.details = EMAIL, details
    provider = Taking(Accepted("1"), made)
    each.provider = cast("Any", provider)
    ended: list[Outcome | None] = []
    calls.begin(each, lambda _, what: ended.append(what))
    await calls.stop()
    assert made.open == 0
    return ended[0], provider.given


async def test_what_a_row_does_not_hold_is_made_for_the_time_of_its_call() -> None:
    ended, given = await call_of_made("a body", {"subject": "s"})
    assert ended == Accepted("1")
    assert given == [({"subject": "s", "content": "a body"}, 1)]


@pytest.mark.parametrize(
    ("content", "outcome"),
    [
        (Cause("suppressed", "the address is suppressed"), Refused("suppressed", "the address is suppressed")),
        (Unavailable("later"), NoPlace()),
        (ValueError("broken"), Retry()),
    ],
)
async def test_nobody_is_called_where_no_content_can_be_made(content: object, outcome: Outcome) -> None:
    with capture_logs() as lines:
        assert await call_of_made(content) == (outcome, [])
    assert [line["error"] for line in lines if line["event"] == "content_not_made"] == (
        ["ValueError"] if outcome == Retry() else []
    )


async def test_media_that_come_late_wait_for_their_turn_again() -> None:
    """A thousand messages may wait for one file: they leave at their pace, and not all at once."""
    media = NewPayload({"media": 1})
    assert (await call_of_made(media, seconds=0.2))[0] == Accepted("1")
    assert await call_of_made(media, seconds=0.3) == (NoPlace(), [])


async def test_nobody_is_called_when_the_lease_ended_meanwhile() -> None:
    assert await call_of_made("a body", lease=Lease(lambda: 0.0)) == (NoPlace(), [])


async def test_content_that_came_with_the_message_is_not_made_again() -> None:
    ended, given = await call_of_made(ValueError("asked"), {"content": "given"})
    assert (ended, given) == (Accepted("1"), [])


async def test_whoever_gives_a_number_up_waits_for_its_calls_alone() -> None:
    calls, answers = calls_with(None), {each: asyncio.Event() for each in ("num_1", "num_2")}
    for number, answer in answers.items():
        each = departure(Accepted("1"))
        each.row.id, each.row.sender_id = f"msg of {number}", number
        each.provider = cast("Any", Waiting(Accepted("1"), answer))
        assert calls.begin(each, lambda *_: None)
    giving_up = asyncio.ensure_future(calls.settled(lambda row: row.sender_id == "num_1"))
    await asyncio.sleep(0)
    assert not giving_up.done()
    answers["num_1"].set()
    await giving_up
    assert len(calls) == 1
    answers["num_2"].set()
    await calls.stop()
