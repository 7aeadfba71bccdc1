"""What a process has in memory of a number crosses a link as it is (C34.2)."""

from datetime import UTC, datetime, timedelta

import orjson

from recado.actors.ops.live_number import LiveNumber, live_of, said_of
from recado.domain.dispatch.breaker import BreakerState
from recado.domain.dispatch.gates import Hold
from recado.domain.messages.message import WaitReason
from recado.domain.ops.sender_activity import SenderActivity, SenderFailure
from recado.engine.child import State
from recado.engine.failure import Failure

NOW = datetime(2026, 3, 10, tzinfo=UTC)
MINUTE = 29_000_000


def test_all_of_it_crosses() -> None:
    activity = SenderActivity(MINUTE)
    activity.left(MINUTE, 12)
    activity.fell(MINUTE + 1, SenderFailure(NOW, "msg_1", "rejected"), late=True)
    hold = Hold(WaitReason.NO_CONNECTION, NOW + timedelta(seconds=5))
    live = LiveNumber(
        State.BACKING_OFF, 3, Failure(NOW, "ValueError", "lane.py:1"), True, -1.5, 80, 4_000, 7, BreakerState.OPEN,
        hold, [None, hold, None], NOW, 9, 8, activity.lately(MINUTE + 1), {"rejected": 1}, activity.hour,
    )  # fmt: skip
    for each in (live, LiveNumber()):
        crossed = live_of(orjson.loads(orjson.dumps(said_of(each))))
        assert [getattr(crossed, name) or None for name in LiveNumber.__slots__] == [
            getattr(each, name) or None for name in LiveNumber.__slots__
        ]
