"""The standing of a wallet: from what is available, what was, and the threshold its owner set (C25.2)."""

from enum import StrEnum
from typing import Final

from recado.domain.core.machine import Machine

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


class WalletEvent(StrEnum):
    """What a change of `available` or of the threshold means."""

    FELL_LOW = "fell_low"  # below the threshold, by holds, charges or another threshold
    RAN_OUT = "ran_out"  # nothing is available any more
    CAME_IN = "came_in"  # a credit or a release, too little to recover
    RECOVERED = "recovered"  # a credit or a release, or another threshold


WALLET_MACHINE: Final = Machine(
    "wallet",
    {
        (WalletStatus.OK, WalletEvent.FELL_LOW): WalletStatus.LOW,
        (WalletStatus.OK, WalletEvent.RAN_OUT): WalletStatus.DEPLETED,
        (WalletStatus.LOW, WalletEvent.RAN_OUT): WalletStatus.DEPLETED,
        (WalletStatus.LOW, WalletEvent.RECOVERED): WalletStatus.OK,
        (WalletStatus.DEPLETED, WalletEvent.CAME_IN): WalletStatus.LOW,
        (WalletStatus.DEPLETED, WalletEvent.RECOVERED): WalletStatus.OK,
    },
    initial={"opened in live": WalletStatus.DEPLETED, "opened in test": WalletStatus.OK},
)


def status_of(before: WalletStatus, available: int, threshold: int) -> WalletStatus:
    """The status after `available` or the threshold changed. A threshold of 0 means never `low`.

    A wallet that was low or depleted is ok again only at 110 % of the threshold: one that wavers around the threshold
    tells of it once.
    """
    event = _event(before, available, threshold)
    return before if event is None else WALLET_MACHINE.move(before, event)


def _event(before: WalletStatus, available: int, threshold: int) -> WalletEvent | None:
    if available <= 0:
        return None if before is WalletStatus.DEPLETED else WalletEvent.RAN_OUT
    if before is WalletStatus.OK:
        return WalletEvent.FELL_LOW if available < threshold else None
    if available * 10 >= threshold * 11:
        return WalletEvent.RECOVERED
    return WalletEvent.CAME_IN if before is WalletStatus.DEPLETED else None


def crossing(before: WalletStatus, after: WalletStatus) -> str | None:
    """The event that the move from `before` to `after` is, if any: each at most once per crossing."""
    if after is WalletStatus.DEPLETED and before is not WalletStatus.DEPLETED:
        return DEPLETED
    if after is WalletStatus.LOW and before is WalletStatus.OK:
        return LOW_BALANCE
    return None
