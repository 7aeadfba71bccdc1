"""The order in which operators see numbers (C34.1)."""

from typing import Any

import pytest

from recado.domain.dispatch.breaker import BreakerState
from recado.domain.messages.message import WaitReason
from recado.domain.ops.trouble import ERRORS_DOUBTED, Trouble, trouble_of
from recado.domain.senders.number import NumberStatus, QualityRating

FINE: dict[str, Any] = {
    "waiting": 10,
    "reason": None,
    "breaker": BreakerState.CLOSED,
    "failing": False,
    "status": NumberStatus.CONNECTED,
    "quality": QualityRating.GREEN,
    "error_rate": 0.0,
    "uncertain": 0,
}


@pytest.mark.parametrize(
    ("changed", "trouble"),
    [
        ({}, Trouble.NONE),
        ({"reason": WaitReason.RATE}, Trouble.NONE),
        ({"reason": WaitReason.SCHEDULED}, Trouble.NONE),
        ({"error_rate": ERRORS_DOUBTED}, Trouble.DOUBTED),
        ({"uncertain": 1}, Trouble.DOUBTED),
        ({"quality": QualityRating.YELLOW}, Trouble.DOUBTED),
        ({"status": NumberStatus.FLAGGED}, Trouble.DOUBTED),
        ({"reason": WaitReason.OPERATOR_PAUSED}, Trouble.HELD),
        ({"reason": WaitReason.DAILY_LIMIT, "uncertain": 1}, Trouble.HELD),
        ({"reason": WaitReason.DAILY_LIMIT, "waiting": 0}, Trouble.NONE),
        ({"reason": WaitReason.NUMBER_STATE}, Trouble.DOWN),
        ({"reason": WaitReason.NUMBER_STATE, "waiting": 0}, Trouble.NONE),
        ({"breaker": BreakerState.HALF_OPEN, "waiting": 0}, Trouble.DOWN),
        ({"failing": True}, Trouble.DOWN),
    ],
)
def test_a_number_is_as_troubled_as_the_worst_of_it(changed: dict[str, Any], trouble: Trouble) -> None:
    assert trouble_of(**FINE | changed) is trouble
