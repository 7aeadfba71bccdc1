"""Inbound messages as a bridge reports them, from its callback to contact and event (C28.1, C29.5)."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, get_args

import orjson
import pytest
from tests.services.inbound.live_number import Line, live_number
from tests.waiting import until

from recado.channels.chatapp.bridge import Bridge
from recado.channels.core.events import CallbackEvent, Event, Payment
from recado.domain.core.errors import Unavailable
from recado.domain.core.timestamps import format_timestamp
from recado.engine.clock import SystemClock
from recado.services.inbound import callbacks
from recado.services.inbound.receipts import KINDS
from recado.storage.core.connections.postgres import Database
from recado.storage.core.turn import others_run
from recado.storage.messages import receipts
from recado.storage.ops import ops
from recado.storage.ops.ops import Backlogs

SUBSCRIBE = """
insert into webhook_subscriptions
    (organization_id, id, env, url, secret_cipher, secret_version, events, include_pii, max_attempts, backoff_seconds,
    status, revision, updated_at)
values ($1, 'wbh_1', 'live', 'https://there.test', 's', 1, array['*'], false, 8, 30, 'active', 1, now())
"""


@pytest.fixture
async def line(database: Database) -> AsyncIterator[Line]:
    number = await live_number(database)
    await database.execute(SUBSCRIBE, number.organization_id)
    made_line = Line(database, number, SystemClock())
    await made_line.callbacks.start()
    yield made_line
    await made_line.callbacks.stop()
    await made_line.workers.stop()


async def test_a_body_is_read_with_what_was_kept_with_it(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[tuple[dict[str, str], bytes]] = []

    def parse_callback(self: Bridge, headers: Mapping[str, str], body: bytes) -> list[Event]:
        read.append((dict(headers), body))
        return []

    monkeypatch.setattr(Bridge, "parse_callback", parse_callback)
    await line.callbacks.take("chatapp", "bridge", b"<xml>", {"Content-Type": "text/xml"})
    await line.worked_off()
    assert read == [({"Content-Type": "text/xml"}, b"<xml>")]


async def test_a_body_is_a_repeat_at_one_path_only(line: Line) -> None:
    for channel in ("chatapp", "chatapp", "payments"):
        await line.callbacks.take(channel, "bridge", b'{"events": []}', {})
    stored = await line.db.fetch("select channel from callbacks order by id")
    assert [row["channel"] for row in stored] == ["chatapp", "payments"]


async def test_every_kind_of_event_has_one_handler(line: Line) -> None:
    handlers = line.callbacks._handlers
    assert {*handlers, Payment} == set(get_args(CallbackEvent))
    assert {kind for kind, handler in handlers.items() if handler is None} == set(KINDS)


async def test_a_message_makes_a_contact_and_both_are_told(line: Line) -> None:
    await line.arrive(line.inbound("hello", "in-1"), line.inbound("hello again", "in-2", quoted="in-1"))
    (contact,) = await line.db.fetch("select id, env, source, chatapp_profile_name from contacts")
    assert tuple(contact)[1:] == ("live", "webhook", "Ana")
    first, _ = [row[0] for row in await line.db.fetch("select id from messages order by id")]
    told = await line.told()
    assert [type_ for type_, _ in told] == ["contact.created", "message.received", "message.received"]
    assert [data for _, data in told[1:]] == [
        {"contact": {"id": contact["id"], "created": True}},
        {"contact": {"id": contact["id"], "created": False}, "inReplyTo": first},
    ]


@pytest.mark.parametrize(("organization_id", "answers"), [(None, True), ("org_" + "9" * 21, False)])
async def test_a_message_that_quotes_one_of_the_organization_s_own_answers_it(
    line: Line, organization_id: str | None, answers: bool
) -> None:
    number = line.number
    await line.db.execute(
        "insert into provider_messages (reference, account, adapter, organization_id, env, channel, message_id) "
        "values ('p-1', $1, 'bridge', $2, 'live', 'chatapp', 'msg_1')",
        number.phone_number_id,
        organization_id or number.organization_id,
    )
    await line.arrive(line.inbound("hello", "in-1", quoted="p-1"), line.inbound("hello", "in-2", quoted="p-2"))
    told = [data for type_, data in await line.told() if type_ == "message.received"]
    assert [each.get("inReplyTo") for each in told] == ["msg_1" if answers else None, None]


async def test_a_repeated_callback_changes_nothing(line: Line) -> None:
    stop = line.inbound("stop", "in-1")
    await line.arrive(stop)
    before = await line.told()
    assert {type_ for type_, _ in before} == {
        "contact.created",
        "message.received",
        "contact.consent_changed",
        "contact.opted_out",
    }
    await line.arrive(stop)
    await line.arrive(stop, line.inbound("stop", "in-1", profileName="Bia"))
    assert await line.told() == before
    counted = "select (select count(*) from messages), (select count(*) from contact_consents)"
    assert [tuple(row) for row in await line.db.fetch(counted)] == [(1, 1)]
    assert await line.db.fetchval("select chatapp_profile_name from contacts") == "Ana"


async def test_a_preference_opts_out(line: Line) -> None:
    await line.arrive(line.inbound("hello", "in-1"))
    await line.arrive(
        {
            "kind": "preference",
            "account": line.number.phone_number_id,
            "phone": "+5511987650001",
            "stopped": True,
            "at": format_timestamp(line.clock.now()),
        }
    )
    stored = await line.db.fetch("select opt_in_status, opt_in_source from contacts")
    assert [tuple(row) for row in stored] == [("denied", "provider")]
    assert (await line.told())[-1][0] == "contact.opted_out"


async def test_reports_and_messages_of_one_callback_are_both_applied(line: Line) -> None:
    report = {
        "kind": "status",
        "status": "delivered",
        "at": format_timestamp(line.clock.now()),
        "providerMessageId": "out-1",
        "account": line.number.phone_number_id,
    }
    await line.arrive(report, line.inbound("stop", "in-1"))
    assert await line.db.fetchval("select count(*) from parked_reports") == 1
    assert await line.db.fetchval("select opt_in_status from contacts") == "denied"


async def test_a_body_of_many_events_is_read_apart_and_applied_in_parts(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    applied: list[int] = []
    take_in = line.receipts.take_in

    async def taking(executor: Any, source: Any, events: Sequence[Any]) -> None:
        open_ones = await line.db.fetchval("select count(*) from callbacks where processed_at is null")
        assert open_ones == 1, "the mark comes with the last part"
        applied.append(len(events))
        await take_in(executor, source, events)

    monkeypatch.setattr(line.receipts, "take_in", taking)
    monkeypatch.setattr("recado.services.inbound.callbacks.MOST_EVENTS", 300)
    monkeypatch.setattr("recado.services.inbound.callbacks.OF_OTHERS", 100)
    report = {"kind": "status", "status": "sent", "at": format_timestamp(line.clock.now()), "account": "unknown"}
    reports = [{**report, "providerMessageId": f"out-{n}"} for n in range(700)]
    texts = [line.inbound("hello", f"in-{n}") for n in range(4)]
    await line.arrive(*reports, {"kind": "nonsense"}, *texts)
    assert applied == [300, 300, 102, 2]
    assert line.workers.idle == 1
    assert await line.db.fetchval("select count(*) from parked_reports") == 700
    assert await line.db.fetchval("select count(*) from messages") == 4
    assert await line.db.fetchval("select failure from callbacks") == "malformed: events[700].kind"


@pytest.mark.parametrize("room", [0, 70_000], ids=["beside others", "apart"])
async def test_a_stop_waits_for_the_transaction_under_way_and_the_rest_of_a_body_is_taken_in_after_the_next_start(
    line: Line, monkeypatch: pytest.MonkeyPatch, room: int
) -> None:
    monkeypatch.setattr(callbacks, "MOST_EVENTS", 2 * callbacks.OF_OTHERS)
    take_in, began, goes_on = line.receipts.take_in, asyncio.Event(), asyncio.Event()
    parts = 0

    async def held(*arguments: Any) -> None:
        nonlocal parts
        parts += 1
        began.set()
        await goes_on.wait()
        await take_in(*arguments)

    monkeypatch.setattr(line.receipts, "take_in", held)
    events = [line.inbound("hello", f"in-{place}") for place in range(7)]
    async with asyncio.timeout(60):
        await line.callbacks.take("chatapp", "bridge", orjson.dumps({"events": events}) + b" " * room, {})
        await began.wait()
        stopping = asyncio.create_task(line.callbacks.stop())
        await others_run()
        assert not stopping.done()
        goes_on.set()
        await stopping
    received = "select count(*) from messages"
    assert (parts, await line.db.fetchval(received)) == (1, 2)
    await line.callbacks.start()
    await line.worked_off()
    assert (parts, await line.db.fetchval(received)) == (5, 7)


async def test_a_body_that_takes_long_keeps_waiting_what_is_of_its_source_alone(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on, find = asyncio.Event(), line.workers.find

    async def slow(finds: Any, body: bytes, /, *, caller: str) -> Any:
        if line.workers.takes_long(body):
            await goes_on.wait()
        return await find(finds, body, caller=caller)

    async def others() -> bool:
        rows = await line.db.fetch("select channel from callbacks where processed_at is not null order by id")
        assert "chatapp" not in [row["channel"] for row in rows]
        return len(rows) == 2

    looked_after: list[int] = []
    look = receipts.open_callbacks

    async def looking(*given: Any, after: int, **more: Any) -> Any:
        looked_after.append(after)
        return await look(*given, after=after, **more)

    monkeypatch.setattr(receipts, "open_callbacks", looking)
    monkeypatch.setattr(line.workers, "find", slow)
    large = b'{"events": []' + b" " * 70_000 + b"}"
    for channel, body in (("chatapp", large), ("chatapp", b'{"events": []}'), ("sms", b"{}")):
        await line.callbacks.take(channel, "bridge", body, {})
    await line.callbacks.take("email", "bridge", b"{}", {})
    await until(others, "those of other sources are worked off")
    assert await ops.backlogs(line.db) == Backlogs(deliveries=0, callbacks=2, large_callbacks=1)
    newest = await line.db.fetchval("select max(id) from callbacks where channel = 'chatapp'")
    await until(lambda: looked_after[-1] >= newest, "looks do not go through what waits")
    goes_on.set()
    await line.worked_off()


async def test_a_body_that_cannot_be_read_apart_waits_and_is_set_aside_at_last(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    tries: list[str] = []

    async def busy(find: Any, body: bytes, /, *, caller: str) -> Any:
        tries.append(caller)
        raise Unavailable

    monkeypatch.setattr(line.workers, "find", busy)
    monkeypatch.setattr("recado.services.inbound.postponed_callbacks.FIRST_PAUSE", 0.0)
    monkeypatch.setattr("recado.services.inbound.postponed_callbacks.MOST_UNREAD", 2)
    await line.arrive(line.inbound("hello", "in-1"))
    assert set(tries) == {"chatapp/bridge"}
    assert await line.db.fetchval("select failure from callbacks") == "Unavailable"
