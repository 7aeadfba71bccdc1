"""A top-up: coins that were asked for and are paid for, or not in time (C25.1)."""

from datetime import timedelta
from enum import StrEnum
from typing import Final

from recado.domain.core.machine import Machine

COINS_PER_CENT: Final = 100  # 10,000 coins are BRL 1.00 (C25.2.1)
LEAST_CENTS: Final = 1_000
MOST_COINS: Final = 1_000_000_000_000  # of one top-up or credit
MOST_CENTS: Final = MOST_COINS // COINS_PER_CENT
WAITS: Final = timedelta(days=7)  # for its payment


class TopUpStatus(StrEnum):
    """Only a `pending` one waits for a payment."""

    PENDING = "pending"  # asked for; its payment reference is out
    PAID = "paid"  # its coins are in the balance
    EXPIRED = "expired"  # nobody paid in seven days
    CANCELED = "canceled"  # by the payment provider


class TopUpEvent(StrEnum):
    """What happens to a top-up. The comments name who says so."""

    PAY = "pay"  # payment provider's callback, or the administrator's credit with its payment reference
    EXPIRE = "expire"  # seven days have passed
    CANCEL = "cancel"  # payment provider's callback


TOP_UP_MACHINE: Final = Machine(
    "top-up",
    {
        (TopUpStatus.PENDING, TopUpEvent.PAY): TopUpStatus.PAID,
        (TopUpStatus.PENDING, TopUpEvent.EXPIRE): TopUpStatus.EXPIRED,
        (TopUpStatus.PENDING, TopUpEvent.CANCEL): TopUpStatus.CANCELED,
    },
    initial={"created in live": TopUpStatus.PENDING, "created in test": TopUpStatus.PAID},
)
