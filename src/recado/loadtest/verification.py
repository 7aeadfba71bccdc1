"""The check at the end of a load test: everything accepted left once, and no number went faster than its limit."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from recado.domain.core.counting import counted

LEFT = frozenset({"sent", "delivered", "read"})


@dataclass(frozen=True, slots=True)
class ListedMessage:
    """One message as the API lists it. `reason`: the code of its last error."""

    id: str
    sender: str
    status: str
    created_at: datetime
    sent_at: datetime | None
    reason: str | None = None


@dataclass(slots=True)
class NumberFigures:
    """One number, or a channel without: messages that left, and the most in any sliding second beside its limit."""

    number_id: str
    per_second: int | None
    left: int
    peak: int


@dataclass(slots=True)
class Verification:
    """The outcome; `problems` is empty when everything is as it must be.

    By the service's clock are `seconds_to_sent`, since each message was made, and `sent_at`, since the first one was.
    """

    left: int = 0
    seconds_to_sent: list[float] = field(default_factory=list)
    sent_at: list[float] = field(default_factory=list)
    numbers: list[NumberFigures] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def verify(
    accepted: Iterable[str],
    rows: Iterable[ListedMessage],
    limits: Mapping[str, int | None],
    *,
    unanswered: int,
    repeated_ids: int = 0,
) -> Verification:
    """Compare what was accepted with what the service lists.

    `limits`: messages a second by number, None where that is not known. `unanswered`: requests without an answer, each
    of which may have become a message. `repeated_ids`: answers that named an id that an earlier one had named.
    """
    outcome = Verification()
    listed: dict[str, ListedMessage] = {}
    twice = 0
    for row in rows:
        twice += row.id in listed
        listed[row.id] = row
    promised = set(accepted)
    first = min((row.created_at for row in listed.values()), default=None)
    departures: dict[str, list[float]] = {sender: [] for sender in limits}
    elsewhere: Counter[str] = Counter()
    for row in listed.values():
        if row.status in LEFT and row.sent_at is not None and first is not None:
            outcome.left += 1
            outcome.sent_at.append((row.sent_at - first).total_seconds())
            outcome.seconds_to_sent.append((row.sent_at - row.created_at).total_seconds())
            departures.setdefault(row.sender, []).append(row.sent_at.timestamp() * 1_000)
        elif row.id in promised:
            elsewhere[row.status if row.reason is None else f"{row.status} ({row.reason})"] += 1
    missing = len(promised - listed.keys())
    strangers = len(listed.keys() - promised)
    if missing:
        outcome.problems.append(f"{counted(missing, 'accepted message is', 'accepted messages are')} not listed")
    if repeated_ids:
        outcome.problems.append(f"{counted(repeated_ids, 'answer')} repeated the id of another message")
    if twice:
        outcome.problems.append(f"{counted(twice, 'message is', 'messages are')} listed twice")
    if strangers > unanswered:
        foreign = counted(strangers, "message was", "messages were")
        outcome.problems.append(f"{foreign} not sent by this test; {counted(unanswered, 'request')} had no answer")
    outcome.problems += [
        f"{counted(count, 'accepted message')} did not leave: {status}" for status, count in elsewhere.items()
    ]
    for sender, moments in departures.items():
        per_second = limits.get(sender, 0)
        figures = NumberFigures(sender, per_second, len(moments), busiest_second(moments))
        outcome.numbers.append(figures)
        if per_second is not None and figures.peak > per_second:
            outcome.problems.append(
                f"{sender} sent {counted(figures.peak, 'message')} within a second; its limit is {per_second}"
            )
    return outcome


def busiest_second(moments: Sequence[float]) -> int:
    """Return the most departures within any sliding second; `moments` are milliseconds, in any order.

    Departures 999 ms apart or more do not share a second: the service paces by a clock that never steps, and the wall
    clock that stamps departures may be slewed against it.
    """
    ordered = sorted(round(moment) for moment in moments)
    most = start = 0
    for end, moment in enumerate(ordered):
        while moment - ordered[start] >= 999:
            start += 1
        most = max(most, end - start + 1)
    return most
