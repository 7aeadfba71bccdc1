"""What an idempotency key meets when its request begins (C6.2): values shared by the store and the interface."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Started:
    """The key is new, or was freed: this request runs and must finish or release it."""


@dataclass(frozen=True, slots=True)
class InProgress:
    """The first request with this key still runs."""


@dataclass(frozen=True, slots=True)
class Reused:
    """The key was used with another request: the fingerprints differ."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The first request was answered: its `status`, and what is kept of the answer (JSON)."""

    status: int
    answer: bytes


Beginning = Started | InProgress | Reused | Stored
