"""A whole load test: prepare, send, wait until everything has left, check, report."""

import asyncio
import contextlib
import math
import secrets
import signal
import time
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from recado.domain.core.timestamps import parse_timestamp
from recado.loadtest.api import Api
from recado.loadtest.channels import CHANNELS, CHATAPP
from recado.loadtest.generator import Generator, Outcomes
from recado.loadtest.preparation import Changes, fill_wallet, prepare
from recado.loadtest.progress import SendingView, SettlingView, shown
from recado.loadtest.report import as_json
from recado.loadtest.verification import ListedMessage, Verification, verify
from recado.loadtest.workload import MixedWorkload, Sender, Workload

_LOOK = 0.5  # seconds between two looks at what is left to go
_FLAT_OUT = 10_000  # messages a second, more than are accepted: what coins are there for without a rate
_EXPLAINED = 3  # messages that did not leave, whose wait is told


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTestOptions:
    """`mix`: the share of each channel; `rate`: requests a second, None: flat out; `duration`, `settle`: seconds.

    `per_second`: by channel, a limit to set first. `number_ids`, `numbers`, `template_id`: of the channel with numbers.
    """

    target: str
    token: str = field(repr=False)
    mix: Mapping[str, int] = field(default_factory=lambda: {CHATAPP: 1})
    number_ids: Sequence[str] = ()
    numbers: int = 1
    template_id: str | None = None
    per_second: Mapping[str, int] = field(default_factory=dict)
    rate: float | None = None
    duration: float = 10.0
    connections: int = 64
    settle: float = 60.0


async def run_load_test(options: LoadTestOptions) -> dict[str, Any]:
    """Return the report. Raises LoadTestError, and CancelledError at a signal before anything was sent."""
    campaign_id = f"loadtest-{secrets.token_hex(6)}"
    interrupts = Interrupts()  # first of all: what preparation changes is put back, too
    async with Api(options.target, options.token) as api, _put_back(Changes(api)) as changes:
        senders = {channel: await _senders(api, changes, channel, options) for channel in options.mix}
        messages = options.duration * (options.rate or _FLAT_OUT)
        topped_up = await fill_wallet(
            api, {channel: math.ceil(messages * share) for channel, share in _shares(options.mix).items()}
        )
        workload = MixedWorkload(
            [
                (Workload(options.target, options.token, campaign_id, senders[channel], CHANNELS[channel]), share)
                for channel, share in options.mix.items()
            ]
        )
        generator = Generator(options.target, workload.request, connections=options.connections, rate=options.rate)
        started = time.perf_counter()
        async with shown(SendingView(generator, options.duration)):
            await interrupts.until_next(generator.run(options.duration))
        seconds = time.perf_counter() - started
        outcomes = generator.outcomes
        await interrupts.until_next(_all_left(api, campaign_id, _patience(outcomes, senders, options)))
        verification = await _verified(api, campaign_id, outcomes, [each for some in senders.values() for each in some])
    return as_json(
        outcomes,
        verification,
        campaign_id=campaign_id,
        mix=options.mix,
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


def _shares(mix: Mapping[str, int]) -> dict[str, float]:
    """The part of each channel in all messages."""
    return {channel: share / sum(mix.values()) for channel, share in mix.items()}


async def _senders(api: Api, changes: Changes, channel: str, options: LoadTestOptions) -> list[Sender]:
    numbered = CHANNELS[channel].body is None or len(options.mix) == 1  # alone, it says that it takes none
    return await prepare(
        api,
        changes,
        channel=channel,
        number_ids=options.number_ids if numbered else (),
        count=options.numbers if numbered else 1,
        template_id=options.template_id if numbered else None,
        per_second=options.per_second.get(channel),
    )


def _patience(outcomes: Outcomes, senders: Mapping[str, Sequence[Sender]], options: LoadTestOptions) -> float:
    """Seconds that the senders need at their rates, when each has its share, and `settle` more."""
    longest = 0.0
    for channel, share in _shares(options.mix).items():
        paces = [sender.per_second for sender in senders[channel] if sender.per_second is not None]
        if paces:
            longest = max(longest, len(outcomes.accepted) * share / len(senders[channel]) / min(paces))
    return longest + options.settle


async def _all_left(api: Api, campaign_id: str, patience: float) -> None:
    """Wait until no message of the run is queued or being sent, or patience is at its end."""
    view = SettlingView()
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
        {sender.name: sender.per_second for sender in senders},
        unanswered=outcomes.unanswered,
        repeated_ids=outcomes.repeated_ids,
    )
    for row in [row for row in rows if row.status in ("queued", "sending")][:_EXPLAINED]:
        waiting = (await api.call("GET", f"/messages/{row.id}")).get("waiting", {})
        until = f" until {waiting['until']}" if "until" in waiting else ""
        verification.problems.append(f"{row.id} waits: {waiting.get('reason', 'no reason given')}{until}")
    return verification


def _row(item: Any) -> ListedMessage:
    return ListedMessage(
        id=item["id"],
        sender=item.get("numberId", item["channel"]),
        status=item["status"],
        created_at=parse_timestamp(item["createdAt"]),
        sent_at=parse_timestamp(item["sentAt"]) if item.get("sentAt") else None,
        reason=item["lastError"].partition(":")[0] if item.get("lastError") else None,
    )
