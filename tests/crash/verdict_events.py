"""What must be true of webhooks after the crashes: every event once in the database, and told to the endpoint. Pure."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from tests.crash.evidence import Evidence, is_withdrawn
from tests.crash.rows import Untold
from tests.crash.stage import BACKOFF

# The service looks for what is due each second; the rest is for a loaded machine.
MADE_WITHIN = 5.0  # seconds
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
    if message.get("channel") == "sms":
        return _events_of_sms(message), set()
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


def _events_of_sms(message: Mapping[str, Any]) -> set[str]:
    """An SMS tells its end only (C16.3)."""
    match message["status"]:
        case "delivered":
            return {"sms.delivered"}
        case "failed" if not is_withdrawn(message):
            return {"sms.undelivered" if message.get("sentAt") else "sms.failed"}
    return set()


def untold(evidence: Evidence) -> Iterable[str]:
    """What the endpoint does not know, or the service does not know that it knows."""
    arrived = {arrival.event_id for arrival in evidence.arrivals}
    for event in evidence.rows.events:
        if event.id not in arrived:
            yield f"{event.id}, {event.type} of {event.message_id}, never reached the endpoint"
    late = [each.told for each in evidence.rows.untold if not _waits(each)]
    if late:
        yield f"{len(late)} deliveries are still to be made: {'; '.join(late[:3])}"


def _waits(delivery: Untold) -> bool:
    """Whether its next attempt is not due, after the pause that follows so many refused ones (C23.3.3).

    The endpoint fails about one attempt in eighty: of some three thousand rounds one has a delivery that fails four
    times in a row, and the fifth attempt comes a minute later, which is longer than a round has.
    """
    if delivery.pause is None:
        return False
    pause = BACKOFF * 4.0 ** (delivery.attempts - 1)
    return delivery.due_in > -MADE_WITHIN and abs(delivery.pause - pause) <= pause / 10 + 0.001  # stamped to the ms


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
