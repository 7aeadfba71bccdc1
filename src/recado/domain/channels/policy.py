"""What one channel differs by, as data: the pipeline asks the policy of a message's channel, and names no channel."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import reduce
from typing import Any, Final, NamedTuple

from recado.domain.billing.prices import Price
from recado.domain.channels.address import AddressKind
from recado.domain.core.machine import Machine
from recado.domain.dispatch.gates import GateTable
from recado.domain.messages.message import (
    Cause,
    FailureCode,
    GenericStatus,
    MessageEvent,
    MessageStatus,
    Priority,
    Report,
)


class SenderKind(StrEnum):
    """What a message leaves from."""

    NUMBER = "number"
    ACCOUNT = "account"  # social
    ROUTE = "route"


_EVERYWHERE: Final = frozenset(code.value for code in FailureCode)

SENDER_FIELD: Final[Mapping[SenderKind, str | None]] = {
    SenderKind.NUMBER: "numberId",
    SenderKind.ACCOUNT: "socialAccountId",
    SenderKind.ROUTE: None,
}
"""The field by which callers name it; None: by nothing but the channel's own fields."""


Reports = Mapping[tuple[MessageStatus, Report], tuple[MessageEvent, ...]]
"""What a report means in a state: the events, in order. A report leads to the same state from wherever it moves."""


class ReportGuard(NamedTuple):
    """What a kind of report does. `leads_to`: None where the channel knows no such report.

    `leaves`: the states that it moves a message from; `revives`: those only after an unknown outcome.
    """

    leads_to: MessageStatus | None
    leaves: tuple[MessageStatus, ...]
    revives: tuple[MessageStatus, ...]


class Obeys(NamedTuple):
    """What a message obeys until it leaves: decided when it is made, and stored with its place in the queue."""

    window: bool
    consent: bool
    quiet_hours: bool


class MessageFacts(NamedTuple):
    """What an event says of its message by its channel. `content`: of one that came in; `details`: as in its row."""

    recipient: str
    details: Mapping[str, Any]
    units: int
    failure_code: str | None
    content: Mapping[str, Any] | None


class OnwardRoute(NamedTuple):
    """The way on of a message that does not leave by its first one. `details`: what changes in its own."""

    route: str
    details: Mapping[str, Any]
    units: int


class TakenPrice(NamedTuple):
    """What a departure takes of the price that is held: coins, the units that they count as, and of which kind.

    `adjusted`: what is charged besides as an adjustment, given back when negative; None: nothing was captured before.
    """

    coins: int
    units: int
    price_kind: str | None
    adjusted: int | None = None


class Ways(NamedTuple):
    """The prices of messages that may leave by one of two ways, of which the dearer is held (C17), by their details.

    `other_kind`: what a unit of the other way counts for; None: there is none. `priced`: the details with both prices;
    `dearer`: of such.
    """

    other_kind: Callable[[Mapping[str, Any]], str | None]
    priced: Callable[[Mapping[str, Any], Price, Price | None], Mapping[str, Any]]
    dearer: Callable[[Mapping[str, Any]], int]


class Carried(NamedTuple):
    """What a message says to the adapters of the channel that carries it."""

    payload: Mapping[str, Any]
    details: Mapping[str, Any]


class Deadline(NamedTuple):
    """What is due for one message that has left, and when. `holds_rest`: as `AfterSent` says."""

    kind: str
    due_at: datetime
    holds_rest: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AfterSent:
    """What is due for messages that have left, unless they move on before, and what becomes of them else.

    `delay`: after its departure, by what the channel knows of the message; None: not for this one. `event`, `cause`:
    what happens to it then; without an event the channel has a handler of its own, or, `elsewhere`, a service.
    `holds_rest`: what a departure does not capture of the message's price stays held until then (C25.2).
    """

    delay: Callable[[Mapping[str, Any]], timedelta | None]
    event: MessageEvent | None = None
    cause: Cause | None = None
    holds_rest: bool = False
    elsewhere: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The policy of `channel`. `addresses`: the kinds of its people's; `scope`: what a key needs to send in batches.

    `machine`: its states. `gates`: what holds its messages, in order.

    What is asked of a draft gets its type, its category and its priority. The category is that of its template, or what
    a channel without templates tells its messages apart by, as a route; None: it has none.

    `needs_window`: it leaves only while the recipient's window is open (C15.2.2). `subject_to_consent`: a refusal keeps
    it from leaving (C12.5.4). `obeys_quiet_hours`: it waits for their end (C14.5). `ttl`: how long it may wait after it
    is due when it names no `ttlSeconds`. `price_kind`: what it counts for; True: the sender's owner pays the provider
    directly (C25.2.6).
    `reports`: what a provider's reports mean; a pair that is missing is late, repeated or backward. On a message whose
    send is not settled each first makes it sent (C29.2). `late_reports`: what they mean, besides, for a message that
    failed by unknown outcome, and is believed to have left by a positive one (C15.4).
    `refusals`: codes by which its providers refuse, or report a failure, besides those of every channel (C15.4).
    `unanswered`: what a message fails with whose call had no answer, and of which nothing was heard for a day.
    `answered`: those of them whose answer a repeat of the request gets as well (C6.2).
    `events`: what a subscription is told when a message reaches a state; `received`: of what people send (C23.3); None:
    nobody is told.
    `tells`: what its events say besides what those of any message do, by the status that their name ends with (C23.6);
    None: the error of a failure, and the payload of what came in.
    `clicked`: of what people click in its messages; None: the links of its messages stay as they are (C27.1).
    `opens_window`: that opens a window of 24 hours (C28.2). `answers_opt_outs`: whoever opts out there by a keyword is
    answered, where the organization has words for that (C28.3). `nobody_there`: codes of failures by which a provider
    says for good that it cannot reach the recipient (C13.2).
    `shown`: its states that callers of the generic view see as another (C15.1); the others show as they are.
    `after_sent`: what is due for a message that has left, by its kind.
    `direct`: its callers wait for the provider's answer, and the content of a message is not stored (C10.2).
    `generic`: its messages are in the generic view (C1.11).
    `default_route`: of senders that are routes, the one that people write to.
    `heard_as`: the channel that what people answer is stored with; None: its own (C28.1).
    `carriers`: the routes whose messages leave through the gateways of another channel, which that is; `carried` says
    what its adapters get of payload and details. `onward`: where a message goes on that a provider refused, by its
    details and the code; None: nowhere. `taken`: what a departure takes of the price, by the details; None: all of it.
    `ways`: how both prices are told of messages that may leave by another way.
    """

    channel: str
    sender: SenderKind
    addresses: tuple[AddressKind, ...]
    scope: str
    machine: Machine[MessageStatus, MessageEvent]
    reports: Reports
    late_reports: Reports
    gates: GateTable
    needs_window: Callable[[str], bool]
    subject_to_consent: Callable[[str | None], bool]
    obeys_quiet_hours: Callable[[str, str | None, Priority], bool]
    ttl: Callable[[str | None, Priority], timedelta]
    price_kind: Callable[[str | None, bool], str]
    unanswered: Cause
    events: Mapping[MessageStatus, str]
    received: str | None
    opens_window: bool
    answers_opt_outs: bool
    nobody_there: frozenset[str]
    clicked: str | None = None
    shown: Mapping[MessageStatus, GenericStatus] = field(default_factory=dict)
    after_sent: Mapping[str, AfterSent] = field(default_factory=dict)
    refusals: frozenset[str] = frozenset()
    answered: frozenset[str] = frozenset()
    direct: bool = False
    generic: bool = True
    tells: Callable[[str, MessageFacts], Mapping[str, Any]] | None = None
    default_route: str | None = None
    heard_as: str | None = None
    carriers: Mapping[str, str] = field(default_factory=dict)
    carried: Callable[[Mapping[str, Any], Mapping[str, Any]], Carried] | None = None
    onward: Callable[[Mapping[str, Any], str], OnwardRoute | None] | None = None
    taken: Callable[[Mapping[str, Any]], TakenPrice | None] | None = None
    ways: Ways | None = None

    def obeys(self, kind: str, category: str | None, priority: Priority) -> Obeys:
        """What a message of this type obeys, of this category."""
        return Obeys(
            self.needs_window(kind),
            self.subject_to_consent(category),
            self.obeys_quiet_hours(kind, category, priority),
        )

    def failure_code(self, code: str | None) -> str:
        """What a provider's code is stored as: itself where the channel knows it, else `provider_error` (C15.4)."""
        return code if code in _EVERYWHERE or code in self.refusals else FailureCode.PROVIDER_ERROR.value

    def deadlines(self, details: Mapping[str, Any] | None, sent_at: datetime) -> Sequence[Deadline]:
        """What is due for a message that left then. `details`: what the channel alone knows of it."""
        if not self.after_sent:
            return ()
        delays = [(kind, due, due.delay(details or {})) for kind, due in self.after_sent.items()]
        return [Deadline(kind, sent_at + delay, due.holds_rest) for kind, due, delay in delays if delay is not None]

    def report_moves(
        self, status: MessageStatus, report: Report, *, uncertain: bool = False
    ) -> tuple[MessageEvent, ...]:
        """The events that a report means for a message; none when it moves nothing. `uncertain`: its outcome is."""
        late = self.late_reports.get((status, report), ()) if uncertain else ()
        return self.reports.get((status, report), late)

    def report_guard(self, report: Report) -> ReportGuard:
        """The guard of a statement that moves messages by such a report."""
        end: MessageStatus | None = None
        for (state, each), events in (*self.reports.items(), *self.late_reports.items()):
            if each is report:
                end = reduce(self.machine.move, events, state)
        leaves, revives = (
            tuple(state for state, each in table if each is report) for table in (self.reports, self.late_reports)
        )
        return ReportGuard(end, leaves, revives)
