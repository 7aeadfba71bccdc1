"""A journey as callers write it, and all that happens around one execution of it: what both readers of it walk through.

Times that the world sets have microseconds of their own, so that no two things happen at the same moment.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo


@dataclass(frozen=True)
class Fate:
    """What becomes of a message. `obstacle`: it cannot be made. `ends`: accepted, failed, expired or unknown.

    `queued`: until its dispatch, or until it expires. `settled`: from the dispatch until its end is known; None: the
    end stays unknown. `signals`: from the dispatch.
    """

    obstacle: str | None = None
    ends: str = "accepted"
    queued: timedelta = timedelta(0)
    settled: timedelta | None = timedelta(0)
    signals: Mapping[str, timedelta] = field(default_factory=dict)


@dataclass(frozen=True)
class Window:
    """Quiet from `start` to `end`, `HH:MM` on the clock of the zone."""

    start: str
    end: str
    zone: ZoneInfo


@dataclass(frozen=True)
class Scenario:
    """`events`: customer events of the contact. `calls`: status and seconds of each call of a webhook step.

    `failures`: how often each step fails for an internal cause. `earlier`: messages of other journeys to the contact.
    `leaves`: when the contact refuses (`opt_out`) or is deleted (`contato_excluido`). `inactive`: since when no webhook
    can be called.
    """

    execution: str
    starts: datetime
    first: str
    steps: Mapping[str, Mapping[str, Any]]
    zone: ZoneInfo
    contact: Mapping[str, Any]
    entry: Mapping[str, Any] = field(default_factory=dict)
    goal: str | None = None
    windows: Sequence[Window] = ()
    cap: tuple[int, int] | None = None
    earlier: Sequence[datetime] = ()
    fates: Mapping[str, Fate] = field(default_factory=dict)
    events: Sequence[tuple[str, datetime]] = ()
    calls: Mapping[str, Sequence[tuple[int | None, int]]] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)
    inactive: datetime | None = None
    leaves: tuple[str, datetime] | None = None
    test: bool = False
    hurried: bool = False


@dataclass(frozen=True)
class Told:
    """One line of the trail. `said`: the text of what was sent, or why it was not."""

    step: str
    result: str
    at: datetime
    said: str = ""


@dataclass(frozen=True)
class Walked:
    """A whole path."""

    trail: list[Told]
    status: str
    reason: str
    at: datetime
