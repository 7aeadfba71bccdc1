"""The standing of a wallet: from what is available, what was, and the threshold its owner set (C25.2)."""

from enum import StrEnum
from typing import Final

DEFAULT_THRESHOLD: Final = 100_000  # coins
SANDBOX_COINS: Final = 1_000_000_000  # of a new organization in test (C2.2)
MOST_BALANCE: Final = 2**53 - 1
"""No balance or threshold is larger: beyond, numbers of JSON are not exact everywhere (C25.2.1)."""

LOW_BALANCE: Final = "wallet.low_balance"
DEPLETED: Final = "wallet.depleted"


class WalletStatus(StrEnum):
    """What `available` says about the wallet."""

    OK = "ok"
    LOW = "low"  # below the threshold, or not yet a tenth above it again
    DEPLETED = "depleted"  # nothing is available


def status_of(before: WalletStatus, available: int, threshold: int) -> WalletStatus:
    """The status after `available` or the threshold changed. A threshold of 0 means never `low`.

    A wallet that was low or depleted is ok again only at 110 % of the threshold: one that wavers around the threshold
    tells of it once.
    """
    if available <= 0:
        return WalletStatus.DEPLETED
    if available < threshold:
        return WalletStatus.LOW
    if before is WalletStatus.OK or available * 10 >= threshold * 11:
        return WalletStatus.OK
    return WalletStatus.LOW


def crossing(before: WalletStatus, after: WalletStatus) -> str | None:
    """The event that the move from `before` to `after` is, if any: each at most once per crossing."""
    if after is WalletStatus.DEPLETED and before is not WalletStatus.DEPLETED:
        return DEPLETED
    if after is WalletStatus.LOW and before is WalletStatus.OK:
        return LOW_BALANCE
    return None
