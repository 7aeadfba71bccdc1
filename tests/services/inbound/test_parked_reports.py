"""Reports that wait for their message: one that can never be applied holds up no other, and ends (C29.5)."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from tests.captured import capture_logs
from tests.services.inbound.live_number import Line, live_number

from recado.channels.core.event_json import event_to_json
from recado.channels.core.events import Status
from recado.domain.channels.source import Source
from recado.domain.core.errors import Unavailable
from recado.domain.core.ids import MESSAGE
from recado.engine.clock import SystemClock, VirtualClock
from recado.storage.core.connections.postgres import Database

BRIDGE = Source("chatapp", "bridge", "live")
PARK = """
insert into parked_reports (channel, adapter, env, organization_id, sender_id, event, retry_at, give_up_at)
values ('chatapp', 'bridge', 'live', $1, $2, $3, $4, $5)
"""


SENT = """
insert into messages (
    organization_id, env, channel, id, direction, status, type, sender_id, recipient, recipient_hash, class, force,
    updated_at, sent_at
) values ($1, $5, 'chatapp', $2, 'outbound', 'sent', 'text', $3, '+5511987650001', 1, 1, false, $4, $4)
"""


KNOWN = """
insert into provider_messages (reference, account, adapter, organization_id, env, channel, message_id)
values ($1, $2, 'bridge', $3, 'live', 'chatapp', $4)
"""


class Parked:
    """Reports on messages of a live number, none of which is known."""

    def __init__(self, line: Line, clock: VirtualClock) -> None:
        self.line, self.clock = line, clock
        self.now: datetime = clock.now()

    async def park(self, event: dict[str, Any], *, gives_up_in: float = 300) -> None:
        due = self.now - timedelta(seconds=1)
        give_up_at = self.now + timedelta(seconds=gives_up_in)
        number = self.line.number
        await self.line.db.execute(PARK, number.organization_id, number.id, event, due, give_up_at)

    def report(self, name: str) -> dict[str, Any]:
        return event_to_json(Status("delivered", self.now, name, account=self.line.number.phone_number_id))

    async def arrive(self, *reports: Status, source: Source = BRIDGE) -> None:
        async with self.line.receipts.transaction() as connection:
            await self.line.receipts.take_in(connection, source, reports)

    async def retry(self) -> None:
        await self.line.receipts.retry_parked()

    async def waiting(self) -> dict[str | None, float]:
        """Seconds that each still waits, by what it is about."""
        rows = await self.line.db.fetch("select event ->> 'providerMessageId', retry_at from parked_reports")
        return {row[0]: (row[1] - self.now).total_seconds() for row in rows}


@pytest.fixture
async def parked(database: Database) -> Parked:
    clock = VirtualClock(SystemClock().now())
    return Parked(Line(database, await live_number(database), clock), clock)


async def test_a_report_that_fails_alone_is_put_off_and_the_others_are_tried(parked: Parked) -> None:
    await parked.park({"kind": "of another time"})
    for name in ("a", "b"):
        await parked.park(parked.report(name))
    with capture_logs() as logs:
        await parked.retry()
    waiting = await parked.waiting()
    assert waiting.pop(None) == 60
    assert set(waiting) == {"a", "b"}
    assert all(seconds > 0 for seconds in waiting.values())
    assert [(entry["event"], entry["error"]) for entry in logs] == [("report_put_off", "MalformedCallback")]


async def test_a_report_that_still_fails_when_its_time_is_over_goes(parked: Parked) -> None:
    await parked.park({"kind": "of another time"}, gives_up_in=0)
    await parked.park(parked.report("a"), gives_up_in=0)
    await parked.retry()
    assert await parked.waiting() == {}


async def test_while_the_database_is_away_no_report_is_put_off(parked: Parked, monkeypatch: pytest.MonkeyPatch) -> None:
    await parked.park(parked.report("a"))

    async def away(*_: Any) -> None:
        raise Unavailable("away")

    with monkeypatch.context() as patched:
        patched.setattr(parked.line.db, "fetchval", away)
        patched.setattr("recado.storage.messages.receipts.take_parked", away)
        with pytest.raises(Unavailable):
            await parked.retry()
    assert await parked.waiting() == {"a": -1}


async def test_while_the_database_refuses_writes_no_report_is_put_off(
    parked: Parked, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def finds_no_room(executor: Any, reports: Sequence[object]) -> None:
        if reports:
            await executor.execute("do $$ begin raise exception using errcode = '53100'; end $$")

    await parked.park(parked.report("a"))
    with monkeypatch.context() as full:
        full.setattr(parked.line.receipts, "apply", finds_no_room)
        with capture_logs() as logs, pytest.raises(Unavailable):
            await parked.retry()
    assert await parked.waiting() == {"a": -1}
    assert not [entry for entry in logs if entry["event"] == "report_put_off"]


async def test_a_report_of_an_unknown_number_and_message_keeps_its_ten_minutes(parked: Parked) -> None:
    reference = parked.line.ids.new(MESSAGE)
    await parked.arrive(Status("delivered", parked.now, "p-1", reference, account="nobody's"))
    assert await parked.waiting() == {"p-1": 1}
    await parked.clock.advance(599)
    await parked.retry()
    assert len(await parked.waiting()) == 1
    await parked.clock.advance(599)
    with capture_logs() as logs:
        await parked.retry()
    assert await parked.waiting() == {}
    assert [entry["event"] for entry in logs] == ["reports_dropped"]


async def test_a_report_that_waits_finds_the_number_that_comes_to_be_known(parked: Parked) -> None:
    line = parked.line
    await parked.arrive(Status("delivered", parked.now, "p-1", account="later"))
    await line.db.execute("update sender_owners set account = 'later'")
    await parked.clock.advance(2)
    await parked.retry()
    assert await line.db.fetchval("select sender_id from parked_reports") == line.number.id


@pytest.mark.parametrize("by_ours", [True, False])
@pytest.mark.parametrize(("names_account", "is_known"), [(True, False), (False, False), (False, True)])
async def test_a_report_finds_its_message_by_our_reference_when_its_account_does_not_tell_whose_it_is(
    parked: Parked, by_ours: bool, names_account: bool, is_known: bool
) -> None:
    """The number is gone, or the report names none: then our id is looked up (C29.2)."""
    line, message_id = parked.line, parked.line.ids.new(MESSAGE)
    account = line.number.phone_number_id
    await line.db.execute(SENT, line.number.organization_id, message_id, line.number.id, parked.now, "live")
    reference = message_id if by_ours else "p-1"
    await line.db.execute(KNOWN, reference, account, line.number.organization_id, message_id)
    if not is_known:
        await line.db.execute("delete from sender_owners")
    for told in ("other", account if names_account else None):
        report = Status("delivered", parked.now, "p-1", message_id, account=told)
        await parked.arrive(report)
        moved = told != "other" and (by_ours or names_account)
        status = await line.db.fetchval("select status from messages where id = $1", message_id)
        assert status == ("delivered" if moved else "sent")


async def test_a_report_that_names_the_message_of_another_than_the_provider_s_id_does_moves_neither(
    parked: Parked,
) -> None:
    line, ids = parked.line, [parked.line.ids.new(MESSAGE) for _ in range(2)]
    for message_id in ids:
        await line.db.execute(SENT, line.number.organization_id, message_id, line.number.id, parked.now, "live")
    account = line.number.phone_number_id
    await line.db.execute(KNOWN, "p-1", account, line.number.organization_id, ids[0])
    await line.db.execute("delete from sender_owners")
    await parked.arrive(Status("delivered", parked.now, "p-1", ids[1], account=account))
    assert {row[0] for row in await line.db.fetch("select status from messages")} == {"sent"}


async def test_reports_of_several_sources_are_tried_again_at_once_each_where_it_came_from(parked: Parked) -> None:
    line, now, sandbox = parked.line, parked.now, Source("chatapp", "sandbox", "test")
    ids = {"live": line.ids.new(MESSAGE), "test": line.ids.new(MESSAGE)}
    owners = "insert into sender_owners select 'test', account, organization_id, sender_id, channel from sender_owners"
    await line.db.execute(owners)
    account = line.number.phone_number_id
    for source in (BRIDGE, sandbox):
        await parked.arrive(Status("read", now, "p-1", ids[source.env], account=account), source=source)
    assert await line.db.fetchval("select count(*) from parked_reports") == 2
    for env, message_id in ids.items():
        await line.db.execute(SENT, line.number.organization_id, message_id, line.number.id, now, env)
    await parked.clock.advance(1)
    await parked.retry()
    assert [*map(tuple, await line.db.fetch("select env, status from messages order by env"))] == [
        ("live", "read"),
        ("test", "read"),
    ]
    assert await parked.waiting() == {}


async def test_a_report_that_names_nothing_is_dropped(parked: Parked) -> None:
    with capture_logs() as logs:
        await parked.arrive(Status("delivered", parked.now, "p-1"), Status("delivered", parked.now, "p-2"))
    assert await parked.waiting() == {}
    assert [(entry["event"], entry["count"]) for entry in logs] == [("report_without_number", 2)]


async def test_a_report_that_waited_keeps_a_code_that_only_its_channel_knows(parked: Parked) -> None:
    line, now, message_id = parked.line, parked.now, parked.line.ids.new(MESSAGE)
    source, organization_id = Source("sms", "bridge", "live"), line.number.organization_id
    await line.db.execute(
        "insert into sender_owners values ('live', 'gateway_a', $1, 'a route', 'sms')", organization_id
    )
    failed = Status("failed", now, "p-1", message_id, "invalid_number", account="gateway_a")
    await parked.arrive(failed, source=source)
    await line.db.execute(SENT.replace("chatapp", "sms"), organization_id, message_id, "a route", now, "live")
    await parked.clock.advance(1)
    await parked.retry()
    row = await line.db.fetchrow("select status, failure_code from messages where id = $1", message_id)
    assert row is not None
    assert tuple(row) == ("undelivered", "invalid_number")


@pytest.mark.parametrize(
    ("names", "account", "known", "gateway"),
    [
        (["a"], "shared", None, "a"),
        (["a", "b"], "b", None, "b"),
        (["a", "b"], "shared", None, None),
        (["a", "b"], "b", "a", "a"),
        ([], "b", None, None),
    ],
)
async def test_a_report_says_which_gateway_its_message_left_through_where_nothing_else_does(
    parked: Parked, names: list[str], account: str, known: str | None, gateway: str | None
) -> None:
    line = parked.line
    message_id = line.ids.new(MESSAGE)
    organization_id = line.number.organization_id
    await line.db.execute(SENT, organization_id, message_id, line.number.id, parked.now, "live")
    await line.db.execute("update messages set gateway = $2 where id = $1", message_id, known)
    await line.db.execute(KNOWN, "p-1", account, organization_id, message_id)
    line.receipts._gateways = {BRIDGE: names}
    await parked.arrive(Status("delivered", parked.now, "p-1", account=account))
    row = await line.db.fetchrow("select status, gateway from messages where id = $1", message_id)
    assert tuple(row or ()) == ("delivered", gateway)
