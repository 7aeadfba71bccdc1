"""What one check found, in a line."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found about its subject, in one line that says what to do.

    `parts`: what the line sums up; programs are told these in its place.
    """

    subject: str
    verdict: Verdict
    text: str
    parts: tuple["Finding", ...] = ()


def ok(subject: str, text: str) -> Finding:
    """All is well."""
    return Finding(subject, Verdict.OK, text)


def warning(subject: str, text: str) -> Finding:
    """It works, and somebody should look at it."""
    return Finding(subject, Verdict.WARNING, text)


def failure(subject: str, text: str) -> Finding:
    """It does not work, or will not."""
    return Finding(subject, Verdict.FAILURE, text)
