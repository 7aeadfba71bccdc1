"""What `recado loadtest` prints for people."""

import pytest

from recado.cli.loadtest import print_report
from recado.loadtest.generator import Outcomes
from recado.loadtest.report import as_json
from recado.loadtest.verification import NumberFigures, Verification


def test_people_read_refusals_top_ups_and_problems(capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = Outcomes()
    outcomes.requested = 2
    outcomes.record(201, b'{"id":"msg_000000000000000000001","status":"queued"}', 0.002)
    outcomes.record(429, b'{"code":"RATE_LIMITED"}', 0.001)
    verification = Verification(1, [0.1], [NumberFigures("num_1", 80, 1, 1)], ["1 message is missing"])

    print_report(as_json(outcomes, verification, campaign_id="run-1", seconds=2.0, topped_up_coins=90_000))

    shown = capsys.readouterr().out
    assert "2 requests in 2.0 s: 1 accepted" in shown
    assert "429 RATE_LIMITED" in shown
    assert "num_1: 1 left, at most 1 within a second, of 80" in shown
    assert "90,000 coins were added to the test wallet" in shown
    assert "WRONG 1 message is missing" in shown
