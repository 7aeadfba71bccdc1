"""Suppressions: addresses that get no e-mail any more, whatever they consent to (C10.5)."""

from enum import StrEnum
from typing import Final

from recado.domain.contacts.contact import email_key

SUPPRESSED: Final = "suppressionlist"
"""The local part of the simulator's address that is suppressed without an entry."""


class SuppressionReason(StrEnum):
    """Why an address is suppressed."""

    BOUNCE = "bounce"  # a report that it does not exist
    COMPLAINT = "complaint"  # a report that its person called a message unwanted
    MANUAL = "manual"  # a caller


def always_suppressed(address: str, simulator_domain: str) -> bool:
    """Whether it is the address of the simulator that is suppressed without an entry; a label may follow it."""
    return simulated(address, simulator_domain) == SUPPRESSED


def tells_nothing(address: str, simulator_domain: str) -> bool:
    """Whether what comes back of an address changes nothing for the next e-mail: the simulator's, without a label.

    One with a label is suppressed by them as any other (C10.2.8).
    """
    local, _, domain = email_key(address).rpartition("@")
    return domain == simulator_domain and "+" not in local


def simulated(address: str, simulator_domain: str) -> str | None:
    """The local part of an address of the simulator, in lower case and without its label; None of any other address."""
    local, _, domain = email_key(address).rpartition("@")
    return local.partition("+")[0] if domain == simulator_domain else None
