"""`recado loadtest`: sends messages through the API as a caller would, and checks what became of each (C35)."""

import asyncio
import re
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Column, Table

from recado.cli.api_calls import address_of
from recado.cli.common import Json, print_json, print_whole, run_async
from recado.cli.errors import CommandError
from recado.cli.report_file import painter_for
from recado.cli.unreachable import unreachable
from recado.domain.core.counting import counted
from recado.loadtest.channels import CHANNELS, CHATAPP
from recado.loadtest.errors import ApiUnreachable, LoadTestError
from recado.loadtest.percentiles import SHARES
from recado.loadtest.report import summary, verdict
from recado.loadtest.run import LoadTestOptions, run_load_test

_LIVE = ("svc_live_", "svcs_live_")
_MOST = 1_000  # of a share, and messages a second of a number


def mount(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "loadtest",
        epilog="Example: recado loadtest http://127.0.0.1:8080 --token svc_test_… --rate 500 --per-second 500 "
        "--mix chatapp=80,sms=20 --report load.html",
    )(loadtest)


def loadtest(
    target: Annotated[str, typer.Argument(metavar="URL", help="Address of the API.")] = "http://127.0.0.1:8080",
    token: Annotated[
        str,
        typer.Option(
            "--token", envvar="RECADO_LOADTEST_TOKEN", help="A test key; without limits: keys create --unlimited."
        ),
    ] = "",
    channel: Annotated[
        str | None,
        typer.Option("--channel", metavar="NAME", help=f"One of {', '.join(CHANNELS)}.", show_default=CHATAPP),
    ] = None,
    mix: Annotated[
        str | None, typer.Option("--mix", metavar="SHARES", help="Several channels: chatapp=80,sms=20 is four to one.")
    ] = None,
    number: Annotated[
        list[str] | None, typer.Option("--number", metavar="ID", help="Send through this number; repeatable.")
    ] = None,
    numbers: Annotated[
        int, typer.Option("--numbers", min=1, max=500, help="How many connected numbers to use; missing ones are made.")
    ] = 1,
    template: Annotated[
        str | None, typer.Option("--template", metavar="ID", help="An approved template of the number.")
    ] = None,
    per_second: Annotated[
        str | None,
        typer.Option(
            "--per-second",
            metavar="RATE",
            help="Set this rate limit on the numbers first. Of sms: the pace that its gateway has; it is not set. By "
            "channel: chatapp=200,sms=50.",
        ),
    ] = None,
    rate: Annotated[
        float | None, typer.Option("--rate", min=0.1, help="Requests a second.", show_default="flat out")
    ] = None,
    duration: Annotated[float, typer.Option("--duration", min=0.1, help="Seconds to send.")] = 10.0,
    connections: Annotated[int, typer.Option("--connections", min=1, max=10_000, help="Connections kept open.")] = 64,
    settle: Annotated[
        float,
        typer.Option("--settle", min=0, help="Seconds to wait for the last messages, beyond what the rates explain."),
    ] = 60.0,
    live_really_send: Annotated[
        bool, typer.Option("--live-really-send", help="Take a live key: real people get the messages, and it costs.")
    ] = False,
    report_file: Annotated[
        Path | None,
        typer.Option("--report", metavar="FILE", help="Write a plot of the run there: .html, or .png (recado\\[png])."),
    ] = None,
    json: Json = False,
) -> int:
    """Send messages and check that everything accepted left once, within its number's rate.

    Exit status 1 when that check fails. Refused requests are counted by code and are no failure. Ctrl-C (or SIGTERM)
    ends the sending, and once more the waiting, and reports what was done until then. With --per-second, the perDay of
    the numbers is raised too; both are put back. A test wallet is topped up by the coins that it lacks for the run.
    """
    if not token:
        raise CommandError("--token is missing: 'recado keys create --env test --scopes all --unlimited' makes one")
    if token.startswith(_LIVE) and not live_really_send:
        raise CommandError(
            "this is a live key: its messages reach real people and cost coins. Take a test key, or say "
            "--live-really-send"
        )
    target = address_of(target)
    if channel is not None and mix is not None:
        raise CommandError("--channel and --mix exclude each other: leave one out")
    chosen = _by_channel("--mix", mix) if mix is not None else {_known("--channel", channel or CHATAPP): 1}
    paint = None if report_file is None else painter_for(report_file)
    options = LoadTestOptions(
        target=target,
        token=token,
        mix=chosen,
        number_ids=number or [],
        numbers=numbers,
        template_id=template,
        per_second=_paces(per_second, list(chosen)),
        rate=rate,
        duration=duration,
        connections=connections,
        settle=settle,
    )
    try:
        report = run_async(run_load_test(options))
    except ApiUnreachable as missed:
        raise unreachable(missed.url, missed.error) from None
    except LoadTestError as error:
        raise CommandError(str(error)) from None
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    if json:
        print_json(report)
    else:
        print_report(report)
    if report_file is not None and paint is not None:
        report_file.write_bytes(paint(report))
        if not json:
            print(f"wrote {report_file}")
    return 130 if report["interrupted"] else 0 if report["ok"] else 1


def _known(option: str, channel: str) -> str:
    if channel not in CHANNELS:
        raise CommandError(f"{option} {channel} is not known: it is one of {', '.join(CHANNELS)}")
    return channel


def _count(option: str, text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,4}", text) or not 1 <= int(text) <= _MOST:
        raise CommandError(f"{option} {text!r} is no whole number of 1 to {_MOST:,}: give one")
    return int(text)


def _by_channel(option: str, text: str) -> dict[str, int]:
    """`chatapp=80,sms=20`. CommandError for what is none."""
    found: dict[str, int] = {}
    for part in text.split(","):
        channel, _, count = part.strip().partition("=")
        if _known(option, channel) in found:
            raise CommandError(f"{option} names {channel} twice: name each channel once")
        found[channel] = _count(option, count)
    return found


def _paces(text: str | None, channels: list[str]) -> dict[str, int]:
    """The rate limit of each channel: one for all, or each its own."""
    if text is None:
        return {}
    if "=" not in text:
        return dict.fromkeys(channels, _count("--per-second", text))
    found = _by_channel("--per-second", text)
    strange = sorted(found.keys() - set(channels))
    if strange:
        raise CommandError(
            f"--per-second names {strange[0]}, on which nothing is sent: leave it out, or add it to --mix"
        )
    return found


def print_report(report: dict[str, Any]) -> None:
    """Print the report for people."""
    console = Console(soft_wrap=True)
    console.print(summary(report), highlight=False)
    table = Table(*(Column(name, no_wrap=True) for name in ("", *(name for name, _ in SHARES))), box=None)
    for title, unit, key in (("accepted after", "ms", "acceptLatencyMs"), ("sent after", "s", "secondsToSent")):
        if report[key]:
            table.add_row(title, *(f"{report[key][name]:,.2f} {unit}" for name, _ in SHARES))
    print_whole(table)
    for code, count in report["refusals"].items():
        console.print(f"refused {count:,} with {code}", highlight=False)
    for number in report["numbers"]:
        limit = "" if number["perSecond"] is None else f", of {number['perSecond']}"
        pace = f"at most {number['busiestSecond']} within a second{limit}"
        console.print(f"{number['numberId']}: {number['left']:,} left, {pace}", highlight=False)
    if report["toppedUpCoins"]:
        coins = counted(report["toppedUpCoins"], "coin was", "coins were")
        console.print(f"{coins} added to the test wallet for this run", highlight=False)
    if report["interrupted"]:
        console.print("[bold yellow]Interrupted:[/] the check covers what was done until then.")
    for problem in report["problems"]:
        console.print(f"[bold red]WRONG[/] {problem}", highlight=False)
    if report["ok"]:
        console.print(f"[green]{verdict(report)}[/]", highlight=False)
