"""What Prometheus scrapes (C34.1): figures of the whole program. No label says whose they are, and none grows.

Nothing is measured for it: whoever does something counts it in an integer, and these are read when somebody asks.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from prometheus_client import CONTENT_TYPE_LATEST

from recado.actors.dispatch.lane_context import LaneContext
from recado.actors.ops.kept import Kept
from recado.actors.ops.process_figures import BatchFigures, ProcessFigures
from recado.actors.ops.provider_states import ProviderState
from recado.actors.webhooks.webhook_dispatcher import WebhookDispatcher
from recado.domain.channels.policies import POLICIES
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.domain.dispatch.breaker import BreakerState
from recado.domain.messages.message import CLASSES as PRIORITIES
from recado.domain.messages.message import FailureCode
from recado.domain.push.message import REFUSALS
from recado.engine.process.loop_watch import BOUNDS as LAG_BOUNDS
from recado.engine.process.loop_watch import LoopWatch
from recado.engine.supervisor import Supervisor
from recado.http.api.call import Call
from recado.http.api.request_figures import BOUNDS as REQUEST_BOUNDS
from recado.http.api.request_figures import CLASSES, RequestFigures
from recado.http.api.route import Access, Route
from recado.http.callers.rate_limits import ANONYMOUS
from recado.http.middleware.scraping import Scrapers
from recado.http.routes.ops.exposition import Exposition, Family, counter, gauge, histogram
from recado.http.wire.reply import Reply
from recado.services.ops.activity import Activity
from recado.storage.core.connections.batch import COMMIT_BOUNDS
from recado.storage.core.connections.postgres import Database
from recado.storage.ops.ops import Backlogs, QueueTotals
from recado.storage.ops.scope import INSTALLATION, Scope

_CODES: Final = (
    frozenset(map(str, FailureCode)) | {str(code) for each in POLICIES.values() for code in each.refusals} | REFUSALS
)
OTHER: Final = "other"
"""Stands for codes that are neither of C15.4 nor a provider's refusal on the channel."""
_OWN: Final = "own"  # of gateways of which each number has one
PATIENCE = 5.0  # seconds that a scrape waits for the database; Prometheus itself waits for ten, by default

V = TypeVar("V")


class FrontCounts(NamedTuple):
    """Fronts that take requests, and how many should; how often one was begun again; frames that never went; how often
    the process that has the actors was begun again.
    """

    running: int
    wanted: int
    restarts: int
    dropped: int
    owner_restarts: int = 0


def no_fronts() -> FrontCounts:
    """Those of a service of one process."""
    return FrontCounts(0, 0, 0, 0)


async def no_others() -> Sequence[ProcessFigures]:
    """No other process sends."""
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """Those who count. `refused`: holds that wallets did not cover; `restarts`: by the kind of what was restarted.

    `postponed`: callbacks that stand aside; `fronts`: processes beside this one that take requests; `others`: figures
    of those that send; `batches`: of all; `queues`, `backlogs`: what the database is asked for, now and then.
    """

    clock: Clock
    requests: RequestFigures
    activity: Activity
    context: LaneContext
    push: Callable[[], Iterable[ProviderState]]
    root: Supervisor
    batches: BatchFigures
    restarts: Counter[str]
    webhooks: WebhookDispatcher
    refused: Callable[[], int]
    postponed: Callable[[], int]
    fronts: Callable[[], FrontCounts] = no_fronts
    others: Callable[[], Awaitable[Sequence[ProcessFigures]]] = no_others
    database: Database
    loop: LoopWatch
    queues: Kept[Scope, Sequence[QueueTotals]]
    backlogs: Kept[Scope, Backlogs]


class Metrics:
    """Collects what was counted."""

    def __init__(self, measured: Measured) -> None:
        self._measured = measured
        self._exposition = Exposition()

    async def text(self) -> bytes:
        """In the format of Prometheus. What the database does not answer is left out: the rest is wanted then most."""
        measured = self._measured
        queues, backlogs, figures = await asyncio.gather(
            _answered(measured.queues.get(INSTALLATION)),
            _answered(measured.backlogs.get(INSTALLATION)),
            self._figures(),
        )
        found = [*self._requests(), *self._messages()]
        if queues is not None:
            found += self._queues(queues)
        found += [*self._gateways(figures), *self._batchers(figures), *self._actors(figures), *self._webhooks()]
        if backlogs is not None:
            found += _backlogs(backlogs)
        answers = queues is not None and backlogs is not None
        found += [gauge("recado_database_answers", "Whether the database answers", (), {(): int(answers)})]
        found += self._rest()
        return await self._exposition.text(found)

    def _requests(self) -> Iterator[Family]:
        called = list(self._measured.requests.all())
        answers: dict[tuple[str, ...], float] = {
            (method, path, name): count
            for method, path, figures in called
            for name, count in zip(CLASSES, figures.statuses, strict=True)
            if count
        }
        yield counter("recado_http_requests", "Answers to requests", ("method", "route", "status"), answers)
        yield histogram(
            "recado_http_request_seconds", "How long they took, without a body that is sent piece by piece",
            ("method", "route"), REQUEST_BOUNDS,
            (((method, path), figures.counts, figures.seconds) for method, path, figures in called),
        )  # fmt: skip

    def _messages(self) -> Iterator[Family]:
        activity = self._measured.activity
        yield counter("recado_messages_accepted", "Messages accepted", ("channel",), _labelled(activity.accepted))
        yield counter("recado_messages_sent", "Messages that a provider took", ("channel",), _labelled(activity.sent))
        failed: Counter[tuple[str, ...]] = Counter()
        for (channel, code), count in activity.failed.items():
            failed[channel, code if code in _CODES else OTHER] += count
        yield counter("recado_messages_failed", "Messages that failed", ("channel", "code"), failed)
        yield counter(
            "recado_wallet_holds_refused", "Messages that a wallet did not cover", (), {(): self._measured.refused()}
        )

    def _queues(self, queues: Sequence[QueueTotals]) -> Iterator[Family]:
        names = [priority.value for priority in PRIORITIES]
        waiting: Counter[tuple[str, ...]] = Counter()
        oldest: dict[tuple[str, ...], float] = {}
        now = self._measured.clock.now()
        for each in queues:
            key = (each.channel, names[each.klass])
            waiting[(*key, each.reason)] += each.messages
            if each.oldest_due is not None:
                oldest[key] = max(oldest.get(key, 0.0), (now - each.oldest_due).total_seconds())
        labels = ("channel", "class", "reason")
        yield gauge("recado_queue_messages", "Messages that have not left, by what holds them", labels, waiting)
        yield gauge("recado_queue_oldest_seconds", "For how long the oldest message is due", labels[:2], oldest)

    async def _figures(self) -> ProcessFigures:
        """What this process and those beside it that send have in memory; who does not answer in time is left out."""
        measured = self._measured
        figures = await ProcessFigures.of(measured.context, measured.root)
        for others in await measured.others():
            figures.add(others)
        return figures

    def _gateways(self, figures: ProcessFigures) -> list[Family]:
        context, now = self._measured.context, self._measured.clock.monotonic()
        tokens: dict[tuple[str, ...], float] = {}
        in_flight: dict[tuple[str, ...], float] = {}
        broken: dict[tuple[str, ...], float] = {}
        for account, of_all in figures.accounts.items():
            key: tuple[str, ...] = (*account, _OWN)
            tokens[key], in_flight[key], broken[key] = of_all
        for failover in context.failovers.values():
            for gateway in failover.gateways:
                key = (gateway.channel, gateway.env, gateway.name)
                tokens[key] = gateway.pacer.tokens(now)
                in_flight[key] = gateway.in_flight
                broken[key] = int(gateway.breaker.state is not BreakerState.CLOSED)
        for service in self._measured.push():
            key = (service.channel, service.env, service.provider)
            in_flight[key] = service.in_flight
            broken[key] = service.troubled
        labels = ("channel", "env", "gateway")
        return [
            gauge("recado_gateway_tokens", "Messages that may leave at once; own: of all numbers", labels, tokens),
            gauge("recado_gateway_calls_in_flight", "Calls to providers under way", labels, in_flight),
            gauge("recado_gateway_circuits_open", "Circuits that are not closed", labels, broken),
        ]

    def _batchers(self, figures: ProcessFigures) -> Iterator[Family]:
        committed = list(self._measured.batches.all())
        waiting: dict[tuple[str, ...], float] = {(name,): count for name, count in figures.waiting.items()}
        yield gauge("recado_batch_rows_waiting", "Rows that are not committed yet", ("batch",), waiting)
        rows: dict[tuple[str, ...], float] = {(name,): count for name, count, _, _ in committed}
        yield counter("recado_batch_rows", "Rows committed", ("batch",), rows)
        yield histogram(
            "recado_batch_commit_seconds", "How long a batch took to commit", ("batch",), COMMIT_BOUNDS,
            (((name,), commits, seconds) for name, _, seconds, commits in committed),
        )  # fmt: skip

    def _actors(self, figures: ProcessFigures) -> Iterator[Family]:
        shown = (
            ("recado_actors", "Actors in memory"),
            ("recado_mailbox_messages", "Messages in their mailboxes"),
            ("recado_mailbox_deepest", "Messages in the fullest mailbox"),
        )
        for place, (name, text) in enumerate(shown):
            yield gauge(name, text, ("kind",), {(kind,): each[place] for kind, each in figures.actors.items()})
        yield counter("recado_restarts", "Restarts", ("kind",), _labelled(self._measured.restarts))

    def _webhooks(self) -> Iterator[Family]:
        dispatcher = self._measured.webhooks
        attempts: dict[tuple[str, ...], int] = {
            ("delivered",): dispatcher.delivered,
            ("failed",): dispatcher.not_delivered,
        }
        yield counter("recado_webhook_attempts", "Attempts to deliver", ("outcome",), attempts)
        yield gauge("recado_webhook_calls_in_flight", "Attempts under way", (), {(): dispatcher.queue.calls})

    def _rest(self) -> Iterator[Family]:
        measured = self._measured
        yield gauge("recado_callbacks_postponed", "Callbacks that stand aside", (), {(): measured.postponed()})
        pools = {(name,): pool.places for name, pool in measured.database.pools.items()}
        places: dict[tuple[str, ...], int] = {key: each.places for key, each in pools.items()}
        taken: dict[tuple[str, ...], int] = {key: each.taken for key, each in pools.items()}
        yield gauge("recado_database_places", "Connections that a pool has at most", ("pool",), places)
        yield gauge("recado_database_places_taken", "Connections in use", ("pool",), taken)
        fronts = measured.fronts()
        yield gauge(
            "recado_fronts", "Processes beside the one that sends, which take requests", (), {(): fronts.running}
        )
        yield gauge("recado_fronts_wanted", "How many such processes there should be", (), {(): fronts.wanted})
        yield counter(
            "recado_front_restarts", "Such processes that ended and were begun again", (), {(): fronts.restarts}
        )
        yield counter(
            "recado_owner_restarts", "How often the process that sends died and was begun again, where several serve",
            (), {(): fronts.owner_restarts},
        )  # fmt: skip
        yield counter(
            "recado_front_frames_dropped", "What they and the one that sends did not tell one another: nobody "
            "read it", (), {(): fronts.dropped},
        )  # fmt: skip
        loop = measured.loop
        yield histogram(
            "recado_event_loop_lag_seconds", "How late the event loop runs what is due", (), LAG_BOUNDS,
            [((), loop.counts, loop.seconds)],
        )  # fmt: skip


async def _answered(asked: Awaitable[V]) -> V | None:
    """None: the database is away, or does not answer in time."""
    try:
        async with asyncio.timeout(PATIENCE):
            return await asked
    except (Unavailable, TimeoutError):
        return None


def _backlogs(backlogs: Backlogs) -> Iterator[Family]:
    yield gauge("recado_webhook_backlog", "Deliveries that are not settled", (), {(): backlogs.deliveries})
    yield gauge("recado_callbacks_waiting", "Callbacks that are not processed", (), {(): backlogs.callbacks})
    yield gauge(
        "recado_callbacks_large_waiting", "Those over 64 KiB of them, which a process reads one by one", (),
        {(): backlogs.large_callbacks},
    )  # fmt: skip


def _labelled(counts: Mapping[str, int]) -> dict[tuple[str, ...], int]:
    return {(name,): count for name, count in counts.items()}


def metrics_routes(metrics: Metrics, *, token: str | None) -> tuple[Route, ...]:
    """`token`: whoever shows it may scrape; None: whoever is on this machine."""
    scrapers = Scrapers(token)

    async def scrape(call: Call) -> Reply:
        scrapers.let_in(call.client_ip, call.headers)
        return Reply(200, await metrics.text(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return (
        Route(
            method="GET", path="/metrics", handler=scrape, operation_id="getMetrics",
            summary="Figures for Prometheus", tag="Service", access=Access.PUBLIC, rate_class=ANONYMOUS, probe=True,
            responses={200: None}, response_types={200: "text/plain"},
            errors=("UNAUTHORIZED", "SERVICE_UNAVAILABLE"),
            description="For this machine alone; with `RECADO_METRICS_TOKEN` for whoever shows that token.",
        ),
    )  # fmt: skip
