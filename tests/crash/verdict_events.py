"""What must be true of webhooks after the crashes: every event once in the database, and told to the endpoint. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from tests.crash.evidence import Evidence

SENT, DELIVERED, READ, FAILED = "message.sent", "message.delivered", "message.read", "message.failed"


def event_violations(evidence: Evidence) -> Iterable[str]:
    """Everything that is wrong, one line each."""
    yield from _written(evidence)
    yield from untold(evidence)
    yield from _made_up(evidence)
    if evidence.rows.dropped:
        yield f"{evidence.rows.dropped} deliveries were given up"


def _written(evidence: Evidence) -> Iterable[str]:
    """Each message has the events of what happened to it, each of them once (C23.3)."""
    written: dict[str, Counter[str]] = defaultdict(Counter)
    for event in evidence.rows.events:
        written[event.message_id][event.type] += 1
    for message_id, message in evidence.messages.items():
        has = written.pop(message_id, Counter[str]())
        needs, may = _events_of(message)
        for wanted in needs - has.keys():
            yield f"{message_id} is {message['status']} and has no event {wanted}"
        for other in has.keys() - needs - may:
            yield f"{message_id} is {message['status']} and has an event {other}"
        yield from (f"{message_id} has {count} events {name}" for name, count in has.items() if count > 1)
    yield from (f"there are events of {message_id}, which does not exist" for message_id in written)


def _events_of(message: Mapping[str, Any]) -> tuple[set[str], set[str]]:
    """What has certainly happened to a message, and what may have."""
    match message["status"]:
        case "sent":
            return {SENT}, set()
        case "delivered":
            return {SENT, DELIVERED}, set()
        case "read":
            return {SENT, READ}, {DELIVERED}  # "read" may come first, and "delivered" is too late then
        case "failed":
            return ({SENT, FAILED}, set()) if message.get("sentAt") else ({FAILED}, set())
    return set(), set()


def untold(evidence: Evidence) -> Iterable[str]:
    """What the endpoint does not know, or the service does not know that it knows."""
    arrived = {arrival.event_id for arrival in evidence.arrivals}
    for event in evidence.rows.events:
        if event.id not in arrived:
            yield f"{event.id}, {event.type} of {event.message_id}, never reached the endpoint"
    if evidence.rows.untold:
        first = "; ".join(evidence.rows.untold[:3])
        yield f"{len(evidence.rows.untold)} deliveries are still to be made: {first}"


def _made_up(evidence: Evidence) -> Iterable[str]:
    """Nothing arrives that a receiver would refuse, and nothing that did not happen."""
    written = {event.id: event for event in evidence.rows.events}
    for arrival in evidence.arrivals:
        yield from (f"{arrival.event_id} arrived, and {fault}" for fault in arrival.faults)
        event = written.get(arrival.event_id)
        if event is None:
            yield f"{arrival.event_id} arrived, and is not in the database"
        elif (event.type, event.message_id) != (arrival.type, arrival.message_id):
            yield f"{arrival.event_id} told {arrival.type} of {arrival.message_id}, not what was written"
