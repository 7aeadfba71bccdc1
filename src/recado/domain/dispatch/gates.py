"""The gates that a queued message passes before it leaves: a table of pure rules in the order of C14.5.

A gate of the sender or of a class is asked once for many rows; a gate of the message's own is asked for each row.
The same table moves the messages, lets them go again and explains to a caller why one waits (C14.6): a gate more is an
entry more.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Flag, auto
from typing import Final, Protocol
from zoneinfo import ZoneInfo

from recado.domain.dispatch.quiet_hours import QuietHours, quiet_overlap, quiet_until
from recado.domain.messages.message import BULK, CLASSES, CRITICAL, FailureCode, WaitReason
from recado.domain.senders.number import NumberStatus, QualityRating
from recado.domain.templates.template import TemplateStatus

FOREVER = datetime.max.replace(tzinfo=UTC)  # until something changes: nobody knows when


@dataclass(frozen=True, slots=True)
class Hold:
    """The message waits. `until`: when it is worth looking again, `FOREVER` until something changes."""

    reason: WaitReason
    until: datetime = FOREVER


@dataclass(frozen=True, slots=True)
class Fail:
    """The message can leave no more."""

    code: FailureCode
    text: str


@dataclass(frozen=True, slots=True)
class Standing:
    """What the gates know of a number and its organization. `held_ms`: past time on hold of both together."""

    status: NumberStatus
    quality: QualityRating
    operator_paused_at: datetime | None
    suspended: bool
    suspended_at: datetime | None
    held_ms: int
    quiet: QuietHours | None
    zone: ZoneInfo

    def held_total_ms(self, now: datetime) -> int:
        """Time that queued messages stood still through no fault of theirs, up to now, in milliseconds."""
        running = timedelta()
        for since in (self.operator_paused_at, self.suspended_at):
            if since is not None and since < now:
                running += now - since
        return self.held_ms + int(running.total_seconds() * 1000)


class TemplateFacts(Protocol):
    """What the gates know of a template; a deleted one has no facts."""

    @property
    def status(self) -> TemplateStatus: ...


@dataclass(slots=True)  # not frozen: one is made for each row
class Asked:
    """What the gates of a message's own ask of it.

    `needs_window` and `obeys_quiet_hours`: as was decided when it was made. `template` is None where the message has
    none, and for one that was deleted. `owner_holds`: its batch is paused.
    """

    klass: int
    needs_window: bool
    obeys_quiet_hours: bool
    template: TemplateFacts | None
    owner_holds: bool = False


OwnCheck = Callable[[Standing, datetime, Asked], Hold | Fail | None]


class Release(Flag):
    """What lets the messages of a gate go again."""

    MOMENT = auto()
    """The moment until which they are held."""
    SENDER = auto()
    """A change of the number or of its organization."""
    TEMPLATE = auto()
    """A change of the template."""
    OWNER = auto()
    """Their batch is resumed."""


@dataclass(frozen=True, slots=True)
class SenderGate:
    """Holds every message of the number. `check` is None where the number's actor counts or times it itself."""

    reason: WaitReason
    release: Release
    check: Callable[[Standing], Hold | None] | None
    force_passes: bool = False


@dataclass(frozen=True, slots=True)
class ClassGate:
    """Holds a whole class of the number; a forced message, which goes ahead of its class, is asked by itself."""

    reason: WaitReason
    release: Release
    klass: int
    check: Callable[[Standing, datetime], Hold | None]
    force_passes: bool = False


@dataclass(frozen=True, slots=True)
class MessageGate:
    """Holds or ends one message, and its row says so. `check` is None where it counts what passes (tier, pair).

    `replies_pass`: it does not ask what leaves only in an open window.
    """

    reason: WaitReason
    release: Release
    check: OwnCheck | None
    force_passes: bool = False
    replies_pass: bool = False


Gate = SenderGate | ClassGate | MessageGate

_NOT_SENDING = frozenset({NumberStatus.PENDING, NumberStatus.AVAILABLE, NumberStatus.DISCONNECTED})
_TEMPLATE_GONE = frozenset({TemplateStatus.REJECTED, TemplateStatus.DISABLED})
TEMPLATE_WAITS = frozenset(TemplateStatus) - _TEMPLATE_GONE - {TemplateStatus.APPROVED}
"""States of a template in which its messages wait."""


def _operator_paused(standing: Standing) -> Hold | None:
    return None if standing.operator_paused_at is None else Hold(WaitReason.OPERATOR_PAUSED)


def _suspended(standing: Standing) -> Hold | None:
    return Hold(WaitReason.ORGANIZATION_SUSPENDED) if standing.suspended else None


def _owner_paused(standing: Standing, now: datetime, asked: Asked) -> Hold | None:
    return Hold(WaitReason.OWNER_PAUSED) if asked.owner_holds else None


def _quiet(standing: Standing, now: datetime) -> Hold | None:
    if standing.quiet is None:
        return None
    until = quiet_until(standing.quiet, standing.zone, now)
    return None if until is None else Hold(WaitReason.QUIET_HOURS, until)


def _quiet_for_one(standing: Standing, now: datetime, asked: Asked) -> Hold | None:
    return _quiet(standing, now) if asked.obeys_quiet_hours else None


def _template_state(standing: Standing, now: datetime, asked: Asked) -> Hold | Fail | None:
    template = asked.template
    status = None if template is None else template.status
    if status is TemplateStatus.APPROVED:
        return None
    if status is None or status in _TEMPLATE_GONE:
        return Fail(FailureCode.TEMPLATE_UNAVAILABLE, "the template was rejected, disabled or deleted")
    return Hold(WaitReason.TEMPLATE_STATE)


def _out_of_service(standing: Standing) -> Hold | None:
    return Hold(WaitReason.NUMBER_STATE) if standing.status in _NOT_SENDING else None


def _flagged(standing: Standing, now: datetime) -> Hold | None:
    return Hold(WaitReason.NUMBER_STATE) if standing.status is NumberStatus.FLAGGED else None


def _flagged_for_others(standing: Standing, now: datetime, asked: Asked) -> Hold | None:
    if standing.status is NumberStatus.FLAGGED and asked.klass != CRITICAL:
        return Hold(WaitReason.NUMBER_STATE)
    return None


def _red(standing: Standing, now: datetime) -> Hold | None:
    return Hold(WaitReason.QUALITY) if standing.quality is QualityRating.RED else None


_R, _BY = WaitReason, Release
GATES: Final[tuple[Gate, ...]] = (
    SenderGate(_R.OPERATOR_PAUSED, _BY.SENDER, _operator_paused),
    SenderGate(_R.ORGANIZATION_SUSPENDED, _BY.SENDER, _suspended),
    MessageGate(_R.OWNER_PAUSED, _BY.OWNER, _owner_paused),
    ClassGate(_R.QUIET_HOURS, _BY.MOMENT | _BY.SENDER, BULK, _quiet, force_passes=True),
    MessageGate(_R.QUIET_HOURS, _BY.MOMENT | _BY.SENDER, _quiet_for_one, force_passes=True, replies_pass=True),
    MessageGate(_R.TEMPLATE_STATE, _BY.TEMPLATE, _template_state, replies_pass=True),
    SenderGate(_R.NUMBER_STATE, _BY.SENDER, _out_of_service),
    ClassGate(_R.NUMBER_STATE, _BY.SENDER, BULK, _flagged),
    MessageGate(_R.NUMBER_STATE, _BY.SENDER, _flagged_for_others, replies_pass=True),
    ClassGate(_R.QUALITY, _BY.SENDER, BULK, _red),
    MessageGate(_R.TIER_LIMIT, _BY.MOMENT | _BY.SENDER, None),
    SenderGate(_R.NUMBER_PAUSED, _BY.MOMENT, None),
    SenderGate(_R.NO_CONNECTION, _BY.MOMENT, None),
    SenderGate(_R.DAILY_LIMIT, _BY.MOMENT | _BY.SENDER, None),
    MessageGate(_R.PAIR_LIMIT, _BY.MOMENT, None),
    SenderGate(_R.RATE, _BY.MOMENT, None, force_passes=True),
)
"""The gates of chat-app in the order of C14.5. Before all of them a message is due, and in its time to live."""

PLACE: Final = {gate.reason: place for place, gate in reversed(tuple(enumerate(GATES)))}
"""Which gate comes first, of those that hold a message."""
COUNTED_BY_THE_ACTOR: Final = min(
    PLACE[gate.reason] for gate in GATES if isinstance(gate, SenderGate) and not gate.check
)
"""From here on only the number's actor knows what holds the whole number."""

_OF_SENDER: Final = tuple(gate.check for gate in GATES if isinstance(gate, SenderGate) and gate.check is not None)
_OF_CLASS: Final = tuple(
    tuple(gate.check for gate in GATES if isinstance(gate, ClassGate) and gate.klass == klass)
    for klass, _ in enumerate(CLASSES)
)


def _own_check(gate: Gate, klass: int, *, replies: bool, force: bool) -> OwnCheck | None:
    """How the gate is asked of one message. None: it is not, or not alone.

    A forced message goes ahead of its class: what holds that, and is not passed by force, is asked of it alone.
    """
    if force and gate.force_passes:
        return None
    match gate:
        case MessageGate() if not (replies and gate.replies_pass):
            return gate.check
        case ClassGate(check=check) if force and gate.klass == klass:
            return lambda standing, now, asked: check(standing, now)
    return None


def _own_checks(klass: int, *, replies: bool, force: bool) -> tuple[OwnCheck, ...]:
    found = (_own_check(gate, klass, replies=replies, force=force) for gate in GATES)
    return tuple(check for check in found if check is not None)


_OWN: Final = tuple(
    tuple(
        tuple(_own_checks(klass, replies=replies, force=force) for klass, _ in enumerate(CLASSES))
        for replies in (False, True)
    )
    for force in (False, True)
)
"""What is asked of a message alone: by `force`, by whether it needs a window, and by class."""

_IN_ROWS: Final = tuple(
    gate for gate in GATES if isinstance(gate, MessageGate) or (isinstance(gate, ClassGate) and not gate.force_passes)
)
"""The gates that hold one message by itself, in its row: its own, and of a forced one those of its class."""
HELD_BY_SENDER: Final = tuple(dict.fromkeys(gate.reason for gate in _IN_ROWS if Release.SENDER in gate.release))
"""What a change of the number or of its organization may let go."""
HELD_WITHOUT_MOMENT: Final = tuple(
    dict.fromkeys(gate.reason for gate in _IN_ROWS if Release.MOMENT not in gate.release)
)
"""What nothing but a change lets go: when the process died between the two, somebody has to look."""
PASSED_BY_FORCE: Final = (
    WaitReason.SCHEDULED,  # no gate: forcing makes a message due
    *dict.fromkeys(gate.reason for gate in GATES if gate.force_passes),
)
"""Of what is waited for, what forcing a message puts aside."""


def number_hold(standing: Standing) -> Hold | None:
    """What holds every message of the number: the operator, a suspension, the number's state."""
    for check in _OF_SENDER:
        hold = check(standing)
        if hold is not None:
            return hold
    return None


def class_hold(standing: Standing, klass: int, now: datetime) -> Hold | None:
    """What holds a whole class of the number: quiet hours, a flag and low quality stop `bulk`."""
    for check in _OF_CLASS[klass]:
        hold = check(standing, now)
        if hold is not None:
            return hold
    return None


def message_gate(standing: Standing, now: datetime, asked: Asked, *, force: bool) -> Hold | Fail | None:
    """What holds or ends this message alone. None: it may leave as far as its own gates go."""
    for check in _OWN[force][asked.needs_window][asked.klass]:
        verdict = check(standing, now, asked)
        if verdict is not None:
            return verdict
    return None


def first_hold(standing: Standing, now: datetime, asked: Asked, *, force: bool) -> Hold | None:
    """The first gate of all scopes that holds a message by what is known without counting (C14.6).

    A message that its own gate ends waits for no other of its own any more, only for its turn.
    """
    ended = False
    for gate in GATES:
        if (force and gate.force_passes) or (ended and isinstance(gate, MessageGate)):
            continue
        verdict = _ask(gate, standing, now, asked)
        if isinstance(verdict, Hold):
            return verdict
        ended = ended or verdict is not None
    return None


def _ask(gate: Gate, standing: Standing, now: datetime, asked: Asked) -> Hold | Fail | None:
    match gate:
        case SenderGate():
            return None if gate.check is None else gate.check(standing)
        case ClassGate():
            return gate.check(standing, now) if gate.klass == asked.klass else None
        case MessageGate():
            if gate.check is None or (asked.needs_window and gate.replies_pass):
                return None
            return gate.check(standing, now, asked)


def expires_at(
    standing: Standing,
    now: datetime,
    *,
    due_at: datetime,
    ttl: timedelta,
    held_base_ms: int,
    obeys_quiet_hours: bool,
) -> datetime:
    """When the time to live runs out, the time held and the quiet hours so far not counted (C14.5, TTL)."""
    held = timedelta(milliseconds=max(0, standing.held_total_ms(now) - held_base_ms))
    quiet = timedelta()
    if obeys_quiet_hours and standing.quiet is not None and due_at < now:
        quiet = quiet_overlap(standing.quiet, standing.zone, due_at, now)
    return due_at + ttl + held + quiet
