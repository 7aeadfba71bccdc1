"""Suppressions: addresses that get no e-mail any more, whatever they consent to (C10.5)."""

from enum import StrEnum

from recado.domain.contacts.contact import email_key

_SIMULATED = "suppressionlist"


class SuppressionReason(StrEnum):
    """Why an address is suppressed."""

    BOUNCE = "bounce"  # a report that it does not exist
    COMPLAINT = "complaint"  # a report that its person called a message unwanted
    MANUAL = "manual"  # a caller


def always_suppressed(address: str, simulator_domain: str) -> bool:
    """Whether it is the address of the simulator that is suppressed without an entry; a label may follow it."""
    local, _, domain = email_key(address).rpartition("@")
    return domain == simulator_domain and local.partition("+")[0] == _SIMULATED
