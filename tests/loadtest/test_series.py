"""A load test second by second."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.loadtest.generator import Outcomes
from recado.loadtest.series import MOST_POINTS, series
from recado.loadtest.verification import Verification

moments = st.lists(st.floats(0, 5_000), max_size=40)


@given(accepted=moments, refused=moments, sent=moments)
def test_every_message_is_in_one_point(accepted: list[float], refused: list[float], sent: list[float]) -> None:
    outcomes = Outcomes()
    for number, at in enumerate(accepted):
        outcomes.record(201, b'{"id":"msg_%021d"}' % number, 0.25, at)
    for at in refused:
        outcomes.record(429, b"", 0.25, at)
    points = series(outcomes, Verification(sent_at=sent))
    width = points[1]["second"] if len(points) > 1 else 1
    assert 1 <= len(points) <= MOST_POINTS
    assert [point["second"] for point in points] == [width * number for number in range(len(points))]
    for name, given_ in (("accepted", accepted), ("refused", refused), ("sent", sent)):
        assert sum(point[name] for point in points) * width == pytest.approx(
            len(given_), abs=0.001 * width * len(points)
        )
    for point in points:
        assert point["acceptLatencyMs"] == (
            dict.fromkeys(("p50", "p95", "p99"), 250.0) if point["accepted"] else {}
        )  # fmt: skip
