"""The gates that a queued message passes before it leaves: pure rules, and the table that a channel makes of them.

A gate of the sender or of a class is asked once for many rows; a gate of the message's own is asked for each row.
The same table moves the messages, lets them go again and explains to a caller why one waits (C14.6): a gate more is an
entry more. One that nothing but a change lets go also needs what has changed in `overtaken.sql`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Flag, auto
from typing import Final, Protocol
from zoneinfo import ZoneInfo

from recado.domain.dispatch.quiet_hours import QuietHours, quiet_overlap, quiet_until
from recado.domain.messages.message import BULK, CLASSES, Cause, WaitReason
from recado.domain.senders.number import NumberStatus, QualityRating
from recado.domain.templates.template import TemplateStatus

FOREVER = datetime.max.replace(tzinfo=UTC)  # until something changes: nobody knows when


@dataclass(frozen=True, slots=True)
class Hold:
    """The message waits. `until`: when it is worth looking again, `FOREVER` until something changes."""

    reason: WaitReason
    until: datetime = FOREVER


@dataclass(frozen=True, slots=True)
class Fail(Cause):
    """The message can leave no more, and why."""


@dataclass(frozen=True, slots=True)
class SenderState:
    """What the gates know of a sender and its organization. `held_ms`: past time on hold of both together.

    Only numbers and accounts are more than connected, and only numbers have a quality.
    """

    status: NumberStatus
    quality: QualityRating
    operator_paused_at: datetime | None
    suspended: bool
    suspended_at: datetime | None
    held_ms: int
    quiet: QuietHours | None
    zone: ZoneInfo

    def held_since(self, reason: WaitReason) -> datetime | None:
        """Since when it is held for this, where that is stored."""
        if reason is WaitReason.OPERATOR_PAUSED:
            return self.operator_paused_at
        return self.suspended_at if reason is WaitReason.ORGANIZATION_SUSPENDED else None

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


OwnCheck = Callable[[SenderState, datetime, Asked], Hold | Fail | None]


class Release(Flag):
    """What lets the messages of a gate go again."""

    MOMENT = auto()
    """The moment until which they are held."""
    SENDER = auto()
    """A change of the sender or of its organization."""
    TEMPLATE = auto()
    """A change of the template."""
    OWNER = auto()
    """Their batch is resumed."""


@dataclass(frozen=True, slots=True)
class SenderGate:
    """Holds every message of the sender. `check` is None where its lane counts or times it itself."""

    reason: WaitReason
    release: Release
    check: Callable[[SenderState, datetime], Hold | None] | None
    force_passes: bool = False


@dataclass(frozen=True, slots=True)
class ClassGate:
    """Holds a whole class of the sender; a forced message, which goes ahead of its class, is asked by itself."""

    reason: WaitReason
    release: Release
    klass: int
    check: Callable[[SenderState, datetime], Hold | None]
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


def _operator_paused(state: SenderState, now: datetime) -> Hold | None:
    return None if state.operator_paused_at is None else Hold(WaitReason.OPERATOR_PAUSED)


def _suspended(state: SenderState, now: datetime) -> Hold | None:
    return Hold(WaitReason.ORGANIZATION_SUSPENDED) if state.suspended else None


def _owner_paused(state: SenderState, now: datetime, asked: Asked) -> Hold | None:
    return Hold(WaitReason.OWNER_PAUSED) if asked.owner_holds else None


def _quiet(state: SenderState, now: datetime) -> Hold | None:
    if state.quiet is None:
        return None
    until = quiet_until(state.quiet, state.zone, now)
    return None if until is None else Hold(WaitReason.QUIET_HOURS, until)


def _quiet_for_one(state: SenderState, now: datetime, asked: Asked) -> Hold | None:
    return _quiet(state, now) if asked.obeys_quiet_hours else None


_R, _BY = WaitReason, Release
OPERATOR_PAUSED: Final = SenderGate(_R.OPERATOR_PAUSED, _BY.SENDER, _operator_paused)
ORGANIZATION_SUSPENDED: Final = SenderGate(_R.ORGANIZATION_SUSPENDED, _BY.SENDER, _suspended)
OWNER_PAUSED: Final = MessageGate(_R.OWNER_PAUSED, _BY.OWNER, _owner_paused)
QUIET_BULK: Final = ClassGate(_R.QUIET_HOURS, _BY.MOMENT | _BY.SENDER, BULK, _quiet, force_passes=True)
"""For channels whose bulk all obeys quiet hours: the class is held as one."""
QUIET_HOURS: Final = MessageGate(
    _R.QUIET_HOURS, _BY.MOMENT | _BY.SENDER, _quiet_for_one, force_passes=True, replies_pass=True
)
SLOWED_DOWN: Final = SenderGate(_R.NUMBER_PAUSED, _BY.MOMENT, None)
NO_CONNECTION: Final = SenderGate(_R.NO_CONNECTION, _BY.MOMENT, None)
RATE: Final = SenderGate(_R.RATE, _BY.MOMENT, None, force_passes=True)


class GateTable:
    """The gates of one channel, in the order in which they hold (C14.5). Before all of them a message is due.

    `asks_template`: one of them asks for the template of a message, which is its number's. `counted_by_the_lane`: from
    that place on only the lane knows what holds the whole sender. `gated_classes`: those that may be held as one.
    `held_by_sender`: what a change of the sender or of
    its organization may let go. `held_without_moment`: what nothing but a change lets go; when the process died between
    the two, somebody has to look. `passed_by_force`: of what is waited for, what forcing a message puts aside.
    """

    __slots__ = (
        "_of_class",
        "_of_sender",
        "_own",
        "_place",
        "asks_template",
        "counted_by_the_lane",
        "gated_classes",
        "gates",
        "held_by_sender",
        "held_without_moment",
        "passed_by_force",
    )

    def __init__(self, *gates: Gate) -> None:
        self.gates = gates
        self._place = {gate.reason: place for place, gate in reversed(tuple(enumerate(gates)))}
        self.counted_by_the_lane = min(
            self._place[gate.reason] for gate in gates if isinstance(gate, SenderGate) and gate.check is None
        )
        self.asks_template = any(Release.TEMPLATE in gate.release for gate in gates)
        self._of_sender = tuple(gate.check for gate in gates if isinstance(gate, SenderGate) and gate.check is not None)
        self._of_class = tuple(
            tuple(gate.check for gate in gates if isinstance(gate, ClassGate) and gate.klass == klass)
            for klass, _ in enumerate(CLASSES)
        )
        self.gated_classes = tuple(klass for klass, checks in enumerate(self._of_class) if checks)
        # What is asked of a message alone: by `force`, by whether it needs a window, and by class.
        self._own = tuple(
            tuple(
                tuple(self._own_checks(klass, replies=replies, force=force) for klass, _ in enumerate(CLASSES))
                for replies in (False, True)
            )
            for force in (False, True)
        )
        # Those that hold one message by itself, in its row: its own, and of a forced one those of its class.
        in_rows = [
            gate
            for gate in gates
            if isinstance(gate, MessageGate) or (isinstance(gate, ClassGate) and not gate.force_passes)
        ]
        self.held_by_sender = _reasons(gate for gate in in_rows if Release.SENDER in gate.release)
        self.held_without_moment = _reasons(gate for gate in in_rows if Release.MOMENT not in gate.release)
        # Its moment is no gate: forcing makes a message due.
        self.passed_by_force = (WaitReason.SCHEDULED, *_reasons(gate for gate in gates if gate.force_passes))

    def sender_hold(self, state: SenderState, now: datetime) -> Hold | None:
        """What holds every message of the sender: the operator, a suspension, its state."""
        for check in self._of_sender:
            hold = check(state, now)
            if hold is not None:
                return hold
        return None

    def class_hold(self, state: SenderState, klass: int, now: datetime) -> Hold | None:
        """What holds a whole class of the sender: quiet hours, a flag and low quality stop `bulk`."""
        for check in self._of_class[klass]:
            hold = check(state, now)
            if hold is not None:
                return hold
        return None

    def message_gate(self, state: SenderState, now: datetime, asked: Asked, *, force: bool) -> Hold | Fail | None:
        """What holds or ends this message alone. None: it may leave as far as its own gates go."""
        for check in self._own[force][asked.needs_window][asked.klass]:
            verdict = check(state, now, asked)
            if verdict is not None:
                return verdict
        return None

    def place_of(self, reason: WaitReason) -> int:
        """Which comes first of what holds a message. What is no gate of the channel holds before all of them."""
        return self._place.get(reason, -1)

    def first_hold(self, state: SenderState, now: datetime, asked: Asked, *, force: bool) -> Hold | None:
        """The first gate of all scopes that holds a message by what is known without counting (C14.6).

        A message that its own gate ends waits for no other of its own any more, only for its turn.
        """
        ended = False
        for gate in self.gates:
            if (force and gate.force_passes) or (ended and isinstance(gate, MessageGate)):
                continue
            verdict = _ask(gate, state, now, asked)
            if isinstance(verdict, Hold):
                return verdict
            ended = ended or verdict is not None
        return None

    def _own_checks(self, klass: int, *, replies: bool, force: bool) -> tuple[OwnCheck, ...]:
        found = (_own_check(gate, klass, replies=replies, force=force) for gate in self.gates)
        return tuple(check for check in found if check is not None)


def _reasons(gates: Iterable[Gate]) -> tuple[WaitReason, ...]:
    return tuple(dict.fromkeys(gate.reason for gate in gates))


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
            return lambda state, now, asked: check(state, now)
    return None


def _ask(gate: Gate, state: SenderState, now: datetime, asked: Asked) -> Hold | Fail | None:
    match gate:
        case SenderGate():
            return None if gate.check is None else gate.check(state, now)
        case ClassGate():
            return gate.check(state, now) if gate.klass == asked.klass else None
        case MessageGate():
            if gate.check is None or (asked.needs_window and gate.replies_pass):
                return None
            return gate.check(state, now, asked)


def expires_at(
    state: SenderState,
    now: datetime,
    *,
    due_at: datetime,
    ttl: timedelta,
    held_base_ms: int,
    obeys_quiet_hours: bool,
) -> datetime:
    """When the time to live runs out, the time held and the quiet hours so far not counted (C14.5, TTL)."""
    held = timedelta(milliseconds=max(0, state.held_total_ms(now) - held_base_ms))
    quiet = timedelta()
    if obeys_quiet_hours and state.quiet is not None and due_at < now:
        quiet = quiet_overlap(state.quiet, state.zone, due_at, now)
    return due_at + ttl + held + quiet
