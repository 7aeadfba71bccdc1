"""What commits tell is counted: totals, senders, connections (C34.1)."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from recado.domain.messages.message import Cause
from recado.engine.clock import VirtualClock
from recado.services.ops import activity as module
from recado.services.ops.activity import Activity, ConnectionKey
from recado.storage.dispatch.settlements import Departed, Failed

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def departed(clock: VirtualClock, took: float = 0.02, gateway: str | None = None, sender: str = "num_1") -> Departed:
    now = clock.now()
    sent_at = now - timedelta(seconds=took)
    return Departed("org_1", "live", "chatapp", "msg_1", sender, "theirs", sent_at, None, None, now, gateway=gateway)


def failed(clock: VirtualClock, code: str = "rejected", sender: str | None = "num_1") -> Failed:
    cause = Cause(code, "the provider says so")
    return Failed("org_1", "live", "chatapp", "msg_2", cause, clock.now(), False, sender_id=sender)


def test_departures_count_for_their_channel_their_sender_and_their_connection() -> None:
    clock = VirtualClock(NOON)
    seen = Activity(clock)
    by_gateway = replace(departed(clock, gateway="gateway_a", sender="sms:live:a"), channel="sms")
    seen.departed([departed(clock), departed(clock, 1.5), by_gateway])
    assert seen.sent == {"chatapp": 2, "sms": 1}
    sender = seen.sender("num_1")
    assert sender is not None
    assert sender.lately(seen.minute) == (2, 0, 0)
    assert seen.sender("sms:live:a") is None  # organizations share its name
    own = seen.connections[ConnectionKey("org_1", "live", "chatapp", None)]
    assert (len(own), own.percentiles(1.0)) == (2, [1_500])
    assert len(seen.connections[ConnectionKey("org_1", "live", "sms", "gateway_a")]) == 1


def test_failures_count_by_channel_and_code_and_with_their_sender() -> None:
    clock = VirtualClock(NOON)
    seen = Activity(clock)
    seen.ended([failed(clock), failed(clock, "expired"), failed(clock, sender=None)])
    assert seen.failed == {("chatapp", "rejected"): 2, ("chatapp", "expired"): 1}
    sender = seen.sender("num_1")
    assert sender is not None
    assert sender.errors(seen.minute) == {"rejected": 1, "expired": 1}
    assert [(each.message_id, each.code) for each in sender.hour.failures] == [
        ("msg_2", "expired"),
        ("msg_2", "rejected"),
    ]
    assert "provider says" not in repr(sender.hour.failures)


def test_a_call_that_was_not_taken_counts_with_its_connection() -> None:
    clock = VirtualClock(NOON)
    seen = Activity(clock)
    key = ConnectionKey("org_1", "live", "chatapp", None)
    seen.call_failed(key, clock.now() - timedelta(seconds=15))
    assert (seen.connections[key].success_rate(), seen.connections[key].percentiles(0.5)) == (0.0, [15_000])


async def test_queues_are_noted_and_who_was_idle_for_an_hour_is_forgotten() -> None:
    clock = VirtualClock(NOON)
    seen = Activity(clock)
    seen.departed([departed(clock), departed(clock, sender="num_2")])
    await seen.waits({"num_2": 5})
    sender = seen.sender("num_2")
    assert sender is not None
    assert sender.hour.series(seen.minute)[-1].queued == 5
    await clock.advance(3_600)
    await seen.waits({"num_2": 1})
    assert seen.sender("num_1") is None
    assert seen.sender("num_2") is not None


def test_senders_and_connections_are_bounded(monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "MOST_SENDERS", 3)
    monkeypatch.setattr(module, "MOST_CONNECTIONS", 3)
    clock = VirtualClock(NOON)
    seen = Activity(clock)
    for number in range(5):
        seen.departed([departed(clock, sender=f"num_{number}")])
        seen.call_failed(ConnectionKey(f"org_{number}", "live", "chatapp", None), clock.now())
    assert [number for number in range(5) if seen.sender(f"num_{number}")] == [2, 3, 4]
    assert len(seen.connections) == 3
