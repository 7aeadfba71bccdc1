"""The command: prepare, send, wait until everything has left, check, report."""

import asyncio
import contextlib
import math
import re
import secrets
import signal
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from typing import Annotated, Any

import typer

from recado.cli.common import Json, print_json, run_async
from recado.cli.errors import CommandError
from recado.domain.core.timestamps import parse_timestamp
from recado.loadtest.api import Api
from recado.loadtest.generator import Generator, Outcomes
from recado.loadtest.preparation import Changes, fill_wallet, prepare
from recado.loadtest.progress import Sending, Settling, shown
from recado.loadtest.report import as_json, print_report
from recado.loadtest.verification import Row, Verification, verify
from recado.loadtest.workload import Sender, Workload

_LIVE = ("svc_live_", "svcs_live_")
_LOOK = 0.5  # seconds between two looks at what is left to go
_FLAT_OUT = 10_000  # messages a second, more than are accepted: what coins are there for without a rate
_EXPLAINED = 3  # messages that did not leave, whose wait is told


def mount(app: typer.Typer) -> None:
    """Add the command."""
    app.command(
        "loadtest",
        epilog="Example: recado loadtest http://127.0.0.1:8080 --token svc_test_… --rate 500 --per-second 500",
    )(loadtest)


def loadtest(
    target: Annotated[str, typer.Argument(metavar="URL", help="Address of the API.")] = "http://127.0.0.1:8080",
    token: Annotated[
        str,
        typer.Option(
            "--token", envvar="RECADO_LOADTEST_TOKEN", help="A test key; without limits: keys create --unlimited."
        ),
    ] = "",
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
        int | None, typer.Option("--per-second", min=1, max=1000, help="Set this rate limit on the numbers first.")
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
    if not re.match(r"https?://[^/]", target):
        raise CommandError(f"{target!r} is no address of an API: give one such as http://127.0.0.1:8080")
    try:
        report = run_async(
            _run(
                target.rstrip("/"),
                token,
                number_ids=number or [],
                count=numbers,
                template_id=template,
                per_second=per_second,
                rate=rate,
                duration=duration,
                connections=connections,
                settle=settle,
            )
        )
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    if json:
        print_json(report)
    else:
        print_report(report)
    return 130 if report["interrupted"] else 0 if report["ok"] else 1


async def _run(
    target: str,
    token: str,
    *,
    number_ids: Sequence[str],
    count: int,
    template_id: str | None,
    per_second: int | None,
    rate: float | None,
    duration: float,
    connections: int,
    settle: float,
) -> dict[str, Any]:
    campaign_id = f"loadtest-{secrets.token_hex(6)}"
    interrupts = Interrupts()  # first of all: what preparation changes is put back, too
    async with Api(target, token) as api, _put_back(Changes(api)) as changes:
        senders = await prepare(
            api, changes, number_ids=number_ids, count=count, template_id=template_id, per_second=per_second
        )
        topped_up = await fill_wallet(api, math.ceil(duration * (rate or _FLAT_OUT)))
        workload = Workload(target, token, campaign_id, senders)
        generator = Generator(target, workload.request, connections=connections, rate=rate)
        started = time.perf_counter()
        async with shown(Sending(generator, duration)):
            await interrupts.until_next(generator.run(duration))
        seconds = time.perf_counter() - started
        outcomes = generator.outcomes
        await interrupts.until_next(_all_left(api, campaign_id, _patience(outcomes, senders, settle)))
        verification = await _verified(api, campaign_id, outcomes, senders)
    return as_json(
        outcomes,
        verification,
        campaign_id=campaign_id,
        seconds=seconds,
        interrupted=interrupts.count > 0,
        topped_up_coins=topped_up,
    )


class Interrupts:
    """Ctrl-C or SIGTERM ends what is under way; between two pieces of work, the command. `count`: how often it came."""

    def __init__(self) -> None:
        self.count = 0
        self._command = asyncio.current_task()
        self._under_way: asyncio.Task[None] | None = None
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self._interrupt)

    async def until_next(self, work: Coroutine[Any, Any, None]) -> None:
        """Do the work until it is done or interrupted."""
        self._under_way = asyncio.ensure_future(work)
        try:
            await asyncio.wait({self._under_way})
        finally:
            task, self._under_way = self._under_way, None
        if not task.cancelled():
            task.result()

    def _interrupt(self) -> None:
        self.count += 1
        ended = self._under_way or self._command
        if ended is not None:
            ended.cancel()


@contextlib.asynccontextmanager
async def _put_back(changes: Changes) -> AsyncIterator[Changes]:
    try:
        yield changes
    finally:
        await changes.put_back()


def _patience(outcomes: Outcomes, senders: Sequence[Sender], settle: float) -> float:
    """Seconds that the numbers need at their rates, when each has its share, and `settle` more."""
    share = len(outcomes.accepted) / len(senders)
    return share / min(sender.per_second for sender in senders) + settle


async def _all_left(api: Api, campaign_id: str, patience: float) -> None:
    """Wait until no message of the run is queued or being sent, or patience is at its end."""
    view = Settling()
    give_up = time.perf_counter() + patience
    async with shown(view):
        while True:
            waiting = 0
            more = False
            for status in ("queued", "sending"):
                page = await api.call(
                    "GET", "/messages", query={"campaignId": campaign_id, "status": status, "limit": "1"}
                )
                waiting += page["total"]
                more |= page.get("totalEstimated", False)
            view.remaining = f"{'more than ' if more else ''}{waiting:,}"
            if not waiting or time.perf_counter() >= give_up:
                return
            await asyncio.sleep(_LOOK)


async def _verified(api: Api, campaign_id: str, outcomes: Outcomes, senders: Sequence[Sender]) -> Verification:
    rows = [_row(item) async for item in api.messages({"campaignId": campaign_id})]
    verification = verify(
        outcomes.accepted,
        rows,
        {sender.number_id: sender.per_second for sender in senders},
        unanswered=outcomes.unanswered,
        repeated_ids=outcomes.repeated_ids,
    )
    for row in [row for row in rows if row.status in ("queued", "sending")][:_EXPLAINED]:
        waiting = (await api.call("GET", f"/messages/{row.id}")).get("waiting", {})
        until = f" until {waiting['until']}" if "until" in waiting else ""
        verification.problems.append(f"{row.id} waits: {waiting.get('reason', 'no reason given')}{until}")
    return verification


def _row(item: Any) -> Row:
    return Row(
        id=item["id"],
        number_id=item["numberId"],
        status=item["status"],
        created_at=parse_timestamp(item["createdAt"]),
        sent_at=parse_timestamp(item["sentAt"]) if item.get("sentAt") else None,
        reason=item["lastError"].partition(":")[0] if item.get("lastError") else None,
    )
