"""The figures at the end of a load test, and what they come to in words."""

from collections.abc import Mapping
from typing import Any

from recado.domain.core.counting import counted
from recado.loadtest.generator import Outcomes
from recado.loadtest.percentiles import percentiles
from recado.loadtest.series import series
from recado.loadtest.verification import Verification


def as_json(
    outcomes: Outcomes,
    verification: Verification,
    *,
    campaign_id: str,
    mix: Mapping[str, int],
    seconds: float,
    interrupted: bool = False,
    topped_up_coins: int = 0,
) -> dict[str, Any]:
    """Return the whole report; latencies in milliseconds, times to sent in seconds. `mix`: shares by channel."""
    latencies = {name: round(value * 1_000, 3) for name, value in percentiles(outcomes.latencies).items()}
    to_sent = {name: round(value, 3) for name, value in percentiles(verification.seconds_to_sent).items()}
    return {
        "campaignId": campaign_id,
        "mix": dict(mix),
        "seconds": round(seconds, 3),
        "requests": outcomes.requested,
        "accepted": len(outcomes.accepted),
        "acceptedPerSecond": round(len(outcomes.accepted) / seconds, 1) if seconds else 0.0,
        "acceptLatencyMs": latencies,
        "refusals": dict(outcomes.refusals.most_common()),
        "unanswered": outcomes.unanswered,
        "left": verification.left,
        "secondsToSent": to_sent,
        "numbers": [
            {"numberId": each.number_id, "perSecond": each.per_second, "left": each.left, "busiestSecond": each.peak}
            for each in verification.numbers
        ],
        "series": series(outcomes, verification),
        "toppedUpCoins": topped_up_coins,
        "interrupted": interrupted,
        "ok": not verification.problems,
        "problems": verification.problems,
    }


def summary(report: Mapping[str, Any]) -> str:
    """The run in one line."""
    mix = ", ".join(f"{share} {channel}" for channel, share in report["mix"].items())
    return (
        f"{counted(report['requests'], 'request')} in {report['seconds']:.1f} s: {report['accepted']:,} accepted "
        f"({report['acceptedPerSecond']:,.0f}/s), {sum(report['refusals'].values()):,} refused, "
        f"{report['unanswered']:,} without an answer; {report['left']:,} left{f' ({mix})' if ',' in mix else ''}"
    )


def verdict(report: Mapping[str, Any]) -> str:
    """What the check at the end found."""
    if report["ok"]:
        return "Everything that was accepted left once, within its number's rate."
    return f"{counted(len(report['problems']), 'thing is', 'things are')} wrong, above all: {report['problems'][0]}"
