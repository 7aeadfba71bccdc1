"""The figures at the end of a load test, for people and for programs."""

import math
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Column, Table

from recado.cli.common import print_whole
from recado.domain.core.counting import counted
from recado.loadtest.generator import Outcomes
from recado.loadtest.verification import Verification

_SHARES = (("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99), ("p999", 0.999), ("max", 1.0))


def percentiles(values: Sequence[float]) -> dict[str, float]:
    """Return the values below which the shares lie (nearest rank), and the greatest; empty without values."""
    ordered = sorted(values)
    if not ordered:
        return {}
    return {name: ordered[math.ceil(share * len(ordered)) - 1] for name, share in _SHARES}


def as_json(
    outcomes: Outcomes,
    verification: Verification,
    *,
    campaign_id: str,
    seconds: float,
    interrupted: bool = False,
    topped_up_coins: int = 0,
) -> dict[str, Any]:
    """Return the whole report; latencies in milliseconds, times to sent in seconds."""
    latencies = {name: round(value * 1_000, 3) for name, value in percentiles(outcomes.latencies).items()}
    to_sent = {name: round(value, 3) for name, value in percentiles(verification.seconds_to_sent).items()}
    return {
        "campaignId": campaign_id,
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
        "toppedUpCoins": topped_up_coins,
        "interrupted": interrupted,
        "ok": not verification.problems,
        "problems": verification.problems,
    }


def print_report(report: dict[str, Any]) -> None:
    """Print the report for people."""
    console = Console(soft_wrap=True)
    console.print(
        f"{counted(report['requests'], 'request')} in {report['seconds']:.1f} s: {report['accepted']:,} accepted "
        f"({report['acceptedPerSecond']:,.0f}/s), {sum(report['refusals'].values()):,} refused, "
        f"{report['unanswered']:,} without an answer; {report['left']:,} left",
        highlight=False,
    )
    table = Table(*(Column(name, no_wrap=True) for name in ("", *(name for name, _ in _SHARES))), box=None)
    for title, unit, key in (("accepted after", "ms", "acceptLatencyMs"), ("sent after", "s", "secondsToSent")):
        if report[key]:
            table.add_row(title, *(f"{report[key][name]:,.2f} {unit}" for name, _ in _SHARES))
    print_whole(table)
    for code, count in report["refusals"].items():
        console.print(f"refused {count:,} with {code}", highlight=False)
    for number in report["numbers"]:
        pace = f"at most {number['busiestSecond']} within a second, of {number['perSecond']}"
        console.print(f"{number['numberId']}: {number['left']:,} left, {pace}", highlight=False)
    if report["toppedUpCoins"]:
        coins = counted(report["toppedUpCoins"], "coin was", "coins were")
        console.print(f"{coins} added to the test wallet for this run", highlight=False)
    if report["interrupted"]:
        console.print("[bold yellow]Interrupted:[/] the check covers what was done until then.")
    for problem in report["problems"]:
        console.print(f"[bold red]WRONG[/] {problem}", highlight=False)
    if report["ok"]:
        console.print("[green]Everything that was accepted left once, within its number's rate.[/]", highlight=False)
