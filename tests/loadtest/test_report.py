"""The figures of a load test."""

from recado.loadtest.generator import Outcomes
from recado.loadtest.percentiles import percentiles
from recado.loadtest.report import as_json, summary, verdict
from recado.loadtest.verification import NumberFigures, Verification


def test_percentiles_are_values_that_occurred() -> None:
    figures = percentiles(range(1, 1001))

    assert figures == {"p50": 500, "p90": 900, "p95": 950, "p99": 990, "p999": 999, "max": 1000}
    assert percentiles([7.0]) == dict.fromkeys(figures, 7.0)
    assert percentiles([]) == {}


def outcomes() -> Outcomes:
    found = Outcomes()
    found.requested = 4
    found.record(201, b'{"id":"msg_000000000000000000001","status":"queued"}', 0.002, 0.1)
    found.record(201, b'{"status": "queued", "id": "msg_000000000000000000002"}', 0.004, 0.2)
    found.record(429, b'{"code":"RATE_LIMITED"}', 0.001, 0.3)
    found.record(502, b"<html>", 0.001, 1.4)
    return found


def test_answers_are_counted_by_what_they_say() -> None:
    found = outcomes()

    assert list(found.accepted) == ["msg_000000000000000000001", "msg_000000000000000000002"]
    assert found.refusals == {"429 RATE_LIMITED": 1, "502": 1}
    assert list(found.latencies) == [0.002, 0.004]
    assert found.repeated_ids == 0

    found.record(201, b'{"id":"msg_000000000000000000001"}', 0.002, 1.5)
    assert found.repeated_ids == 1


def test_the_report_holds_rates_latencies_refusals_and_the_verdict() -> None:
    figures = [NumberFigures("num_1", 80, 2, 2)]
    verification = Verification(2, [0.1, 0.3], [0.1, 1.2], figures, ["1 message is missing"])

    report = as_json(outcomes(), verification, campaign_id="run-1", mix={"chatapp": 80, "sms": 20}, seconds=2.0)

    assert (report["requests"], report["accepted"], report["acceptedPerSecond"]) == (4, 2, 1.0)
    assert report["acceptLatencyMs"]["max"] == 4.0
    assert report["secondsToSent"]["max"] == 0.3
    assert report["numbers"] == [{"numberId": "num_1", "perSecond": 80, "left": 2, "busiestSecond": 2}]
    assert report["ok"] is False
    assert [(each["accepted"], each["refused"], each["sent"]) for each in report["series"]] == [(2, 1, 1), (0, 1, 1)]
    assert summary(report).endswith("2 left (80 chatapp, 20 sms)")
    assert verdict(report) == "1 thing is wrong, above all: 1 message is missing"
