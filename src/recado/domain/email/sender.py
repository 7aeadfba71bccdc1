"""Senders of e-mail: what one leaves from, how it proves to be its organization's, and how it stands (C10.4)."""

import re
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from recado.domain.core.machine import Machine

MAX_SENDERS: Final = 50  # of an environment
ASKED_AGAIN_AFTER: Final = timedelta(seconds=10)
CHECKED_EVERY: Final = timedelta(hours=24)
MOST_MISSES: Final = 3  # daily checks in a row that a verified sender may fail, this one included

MOST_PARENTS: Final = 8  # domains above one that are asked for
IDENTITIES_A_DAY: Final = MAX_SENDERS  # that a provider is told for an organization, within 24 hours

LONGEST_DOMAIN: Final = 240  # characters: the names of its records are longer
_DOMAIN = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?")


class EmailSenderStatus(StrEnum):
    """Only `verified` sends."""

    PENDING = "pending"
    VERIFIED = "verified"
    FAILED = "failed"


class EmailSenderEvent(StrEnum):
    """What a look at its proofs says. The comments name who looks."""

    FOUND = "found"  # a caller, or the daily check
    MISSING = "missing"  # a caller, or the daily check for the first or second time in a row
    LOST = "lost"  # the daily check, for the third time in a row


_S = EmailSenderStatus
_E = EmailSenderEvent

EMAIL_SENDER_MACHINE: Final = Machine(
    "e-mail sender",
    {
        (_S.PENDING, _E.FOUND): _S.VERIFIED,
        (_S.PENDING, _E.MISSING): _S.FAILED,
        (_S.FAILED, _E.FOUND): _S.VERIFIED,
        (_S.FAILED, _E.MISSING): _S.FAILED,
        (_S.VERIFIED, _E.FOUND): _S.VERIFIED,
        (_S.VERIFIED, _E.MISSING): _S.VERIFIED,
        (_S.VERIFIED, _E.LOST): _S.FAILED,
    },
    initial={"created": _S.PENDING, "created in test": _S.VERIFIED},
)


@dataclass(frozen=True, slots=True)
class DnsRecord:
    """What an organization enters at its name server. `found`: whether it stood there when somebody last looked."""

    type: str
    name: str
    value: str
    found: bool = False


@dataclass(frozen=True, slots=True)
class SenderLook:
    """What a look found. `records`: all that is wanted at the name server; `proven`: whether e-mail may leave, None
    where that was not told.

    `untold`: the provider knows neither the domain nor anything that covers it, and can be told.
    """

    records: tuple[DnsRecord, ...]
    proven: bool | None
    untold: bool = False


def domain_of(text: str) -> str | None:
    """A domain in lower case, without the dot at its end; None when it is none that mail leaves from."""
    found = text.lower().removesuffix(".")
    return found if len(found) <= LONGEST_DOMAIN and _DOMAIN.fullmatch(found) else None


def domain_of_address(address: str) -> str | None:
    """The domain of an address; None when that is none that mail leaves from."""
    return domain_of(address.rpartition("@")[2])


def parents_of(domain: str) -> tuple[str, ...]:
    """The domains above one that may belong to its owner, the nearest first: of two labels at least."""
    labels = domain.split(".")
    above = [".".join(labels[first:]) for first in range(1, len(labels) - 1)]
    return tuple(above[-MOST_PARENTS:])
