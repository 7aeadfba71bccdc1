"""What an idempotency key meets when its request begins (C6.2): values shared by the store and the interface."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Generic, TypeVar

T = TypeVar("T")

LOCK: Final = timedelta(seconds=60)
"""That a key is held without an answer: no request runs so long (C31); that of a process that died is free after it."""
LONG_LOCK: Final = timedelta(seconds=120)
"""The same of an upload of media, whose answer may take 90 s."""


@dataclass(frozen=True, slots=True)
class KeyHeld:
    """The key is new, or was freed: this request runs, and must finish or release it.

    `begun_at` tells this hold of the key from a later one: who lost the key no longer touches it.
    """

    organization_id: str
    env: str
    key_hash: bytes
    begun_at: datetime


@dataclass(frozen=True, slots=True)
class InProgress:
    """The first request with this key still runs."""


@dataclass(frozen=True, slots=True)
class Reused:
    """The key was used with another request: the fingerprints differ."""


@dataclass(frozen=True, slots=True)
class AnswerStored:
    """The first request was answered: its `status`, and what is kept of the answer (JSON)."""

    status: int
    answer: bytes


@dataclass(frozen=True, slots=True)
class KeptInCommit(Generic[T]):
    """A key whose request is committed together with those of others: `answer` makes of its outcome what is kept."""

    held: KeyHeld
    answer: Callable[[T], AnswerStored]


@dataclass(frozen=True, slots=True)
class Erased:
    """The first request was answered with `status`; the answer showed a contact that is deleted (C12.6)."""

    status: int
    subject_id: str


@dataclass(frozen=True, slots=True)
class AnswerLost:
    """The work of the first request is committed, and no answer was kept: something was cut off in between.

    `made`: what the work noted of itself.
    """

    made: str | None = None


Beginning = KeyHeld | InProgress | Reused | AnswerStored | Erased | AnswerLost
