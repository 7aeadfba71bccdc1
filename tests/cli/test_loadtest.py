"""What `recado loadtest` is asked for, and what it prints for people."""

import sys
from pathlib import Path

import pytest

from recado.cli.loadtest import print_report
from recado.cli.program import main
from recado.cli.report_file import painter_for
from recado.loadtest.generator import Outcomes
from recado.loadtest.report import as_json
from recado.loadtest.verification import NumberFigures, Verification


def test_people_read_refusals_top_ups_and_problems(capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = Outcomes()
    outcomes.requested = 2
    outcomes.record(201, b'{"id":"msg_000000000000000000001","status":"queued"}', 0.002, 0.0)
    outcomes.record(429, b'{"code":"RATE_LIMITED"}', 0.001, 0.0)
    verification = Verification(1, [0.1], [0.1], [NumberFigures("num_1", 80, 1, 1)], ["1 message is missing"])

    print_report(
        as_json(
            outcomes, verification, campaign_id="run-1", mix={"chatapp": 1}, seconds=2.0, topped_up_coins=90_000
        )
    )  # fmt: skip

    shown = capsys.readouterr().out
    assert "2 requests in 2.0 s: 1 accepted" in shown
    assert "429 RATE_LIMITED" in shown
    assert "num_1: 1 left, at most 1 within a second, of 80" in shown
    assert "90,000 coins were added to the test wallet" in shown
    assert "WRONG 1 message is missing" in shown


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--mix", "chatapp=80,fax=20"], "--mix fax is not known: it is one of chatapp, sms"),
        (["--mix", "chatapp=80,sms"], "--mix '' is no whole number of 1 to 1,000: give one"),
        (["--mix", "chatapp=0"], "--mix '0' is no whole number"),
        (["--mix", "sms=1,sms=2"], "--mix names sms twice"),
        (["--mix", "sms=1", "--channel", "sms"], "--channel and --mix exclude each other"),
        (["--per-second", "quick"], "--per-second 'quick' is no whole number"),
        (["--per-second", "1001"], "--per-second '1001' is no whole number"),
        (["--per-second", "sms=50"], "--per-second names sms, on which nothing is sent"),
        (["--report", "run.pdf"], "the name run.pdf does not tell what the report is to be: end it in .html or .png"),
        (["--report", "nowhere/run.html"], "there is no folder nowhere: make it"),
    ],
)
def test_what_it_cannot_do_is_one_line_before_anything_is_sent(
    capsys: pytest.CaptureFixture[str], options: list[str], told: str
) -> None:
    assert main(["loadtest", "http://127.0.0.1:1", "--token", "svc_test_x", *options]) == 1
    printed = capsys.readouterr().err
    assert printed.startswith(f"recado: {told}")
    assert printed.count("\n") == 1


def test_a_png_without_its_library_is_told_before_anything_is_sent(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delitem(sys.modules, "recado.loadtest.chart_png", raising=False)
    monkeypatch.setitem(sys.modules, "PIL", None)
    options = ["--token", "svc_test_x", "--report", str(tmp_path / "run.png")]
    assert main(["loadtest", "http://127.0.0.1:1", *options]) == 1
    assert "a PNG needs Pillow: install it with \"pip install 'recado[png]'\"" in capsys.readouterr().err
    assert painter_for(tmp_path / "run.html") is not None
