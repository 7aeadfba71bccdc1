"""What a round leaves behind for its judges, and the readings of it that they share. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tests.crash.endpoint import Arrival
from tests.crash.rows import Rows
from tests.crash.traffic import Letter, Mailing, Sender

from recado.simulator.behaviour import Given
from recado.simulator.record import Request

PUT_OFF = (Given.SLOW_DOWN, Given.CODED)  # all error codes of these rounds ask for another try

# What the provider's death leaves in doubt (C32). A call ends after 15 s without an answer: one that the death cut off
# had begun since. An answer is noted before it is written, and a connection that broke is noticed at the next turn of
# the loop: milliseconds, but for a loaded machine. A claim is 50 ms older than its call.
CALLED_BEFORE = timedelta(seconds=16)
ANSWER_ON_ITS_WAY = timedelta(milliseconds=500)
CLAIMED_BEFORE = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Kill:
    """The death of the service at `at`. `claimed`: messages that were claimed, whose call had begun, and that were not
    settled then, since when.
    """

    at: datetime
    claimed: Mapping[str, datetime]


@dataclass(frozen=True, slots=True)
class Evidence:
    """`messages`: what the API lists, by id, each with `waiting` when it is `sending`.

    `requests`: under the ids of messages; `submits`: where that is not how the provider's record has them, as it does.
    `provider_kills`, `database_deaths`: when those died, or a connection of the provider; `arrivals`: what the webhook
    endpoint recorded. `at_once`: calls that may be under way, None where only the paces say. `stops`: when a process
    of the service stood still for a while.
    """

    letters: Sequence[Letter]
    messages: Mapping[str, Mapping[str, Any]]
    requests: Sequence[Request]
    kills: Sequence[Kill]
    senders: Sequence[Sender]
    provider_kills: Sequence[datetime] = ()
    rows: Rows = field(default_factory=Rows)
    arrivals: Sequence[Arrival] = ()
    mailings: Sequence[Mailing] = ()
    database_deaths: Sequence[datetime] = ()
    submits: Sequence[Request] = ()
    at_once: int | None = None
    stops: Sequence[datetime] = ()

    def in_doubt(self) -> set[str]:
        """The messages whose call was under way when either side of it died."""
        mine = {message_id for kill in self.kills for message_id in kill.claimed}
        theirs = {message_id for died in self.provider_kills for message_id in self.cut(died) | self.unheard(died)}
        return mine | theirs

    def cut(self, died: datetime) -> set[str]:
        """The messages whose answer the provider's death may have cut off."""
        return {
            request.id
            for request in self.requests
            if died - CALLED_BEFORE <= request.at <= died
            and (request.answered_at is None or died - ANSWER_ON_ITS_WAY <= request.answered_at <= died)
        }

    def unheard(self, died: datetime) -> set[str]:
        """What stayed claimed from around the provider's death without a request on its record since the claim."""
        latest = {request.id: request.at for request in self.requests}
        return {
            message_id
            for message_id, at in self.rows.claimed.items()
            if died - CLAIMED_BEFORE <= at <= died + ANSWER_ON_ITS_WAY
            and (message_id not in latest or latest[message_id] < at)
        }


def is_uncertain(message: Mapping[str, Any]) -> bool:
    """Whether the service says that it does not know what became of the message."""
    waiting = message.get("waiting") or {}
    return bool(message["status"] == "sending" and waiting.get("reason") == "uncertain")


def is_withdrawn(message: Mapping[str, Any]) -> bool:
    """Whether it was taken out of the queue, as its channel tells that."""
    return message["status"] == "archived" or str(message.get("lastError")).startswith("withdrawn")


def by_message(requests: Iterable[Request]) -> dict[str, list[Request]]:
    """The requests for each message, in their order."""
    found: dict[str, list[Request]] = defaultdict(list)
    for request in requests:
        found[request.id].append(request)
    return found
