"""The simulated provider's HTTP side: takes requests, records them, answers as planned, and sends receipts."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from recado.channels.events import Status, event_to_json
from recado.channels.signing import signing_key
from recado.cli.simulator.behaviour import Behaviour, Given, Plan, Receipt, Shares
from recado.cli.simulator.operations import Operations
from recado.cli.simulator.outbox import GATHER_SECONDS, Outbox
from recado.cli.simulator.record import Record, Request, recipient_hash

EARLY_SECONDS = 1.0  # how long an answer waits for its early receipt to be taken
HANG_SECONDS = 60.0  # longer than any sender waits


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorOptions:
    """`latency`, `receipt_delay`: medians in seconds; `retry_after`: seconds; `port` 0 = any free one."""

    record: Path
    secret: str = field(repr=False)
    token: str | None = field(default=None, repr=False)  # None: every bearer is welcome
    host: str = "127.0.0.1"
    port: int = 0
    seed: int = 1
    callback_url: str | None = None  # for sends that name none
    shares: Shares = field(default_factory=Shares)
    latency: float = 0.0
    receipt_delay: float = 0.2
    retry_after: int = 1
    gather_seconds: float = GATHER_SECONDS


class Simulator:
    """One simulated provider; `start()` and `stop()` are safe to call twice."""

    def __init__(self, options: SimulatorOptions, *, tell: Callable[[str], None] = lambda line: None) -> None:
        self._options = options
        self._behaviour = Behaviour(
            options.shares, seed=options.seed, latency=options.latency, receipt_delay=options.receipt_delay
        )
        self._outbox = Outbox(signing_key(options.secret), gather_seconds=options.gather_seconds, tell=tell)
        self._operations = Operations(self._report_later)
        self._record: Record | None = None
        self._runner: web.ServerRunner | None = None
        self._life = f"{time.time_ns():x}"  # provider ids are unique over restarts
        self._count = 0
        self.url = ""

    @property
    def pending(self) -> int:
        """Receipts that are due and that nobody has taken yet."""
        return self._outbox.pending

    async def start(self) -> None:
        if self._runner is not None:
            return
        self._record = Record(self._options.record)
        await self._outbox.start()
        self._runner = web.ServerRunner(
            web.Server(self._handle, access_log=None), handle_signals=False, shutdown_timeout=0.5
        )
        try:
            await self._runner.setup()
            await web.TCPSite(self._runner, self._options.host, self._options.port, backlog=4096).start()
        except BaseException:
            await self.stop()
            raise
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    async def stop(self) -> None:
        runner, self._runner = self._runner, None
        if runner is not None:
            await runner.cleanup()
        await self._outbox.stop()
        if self._record is not None:
            self._record.close()
            self._record = None

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method != "POST":
            return _json(405, {"code": "provider_error", "message": "only POST"})
        token = self._options.token
        if token is not None and request.headers.get("Authorization") != f"Bearer {token}":
            return _json(401, {"code": "provider_error", "message": "unknown bearer"})
        raw = await request.read()
        operation = request.path.rsplit("/", 1)[-1]
        try:
            body = orjson.loads(raw)
            if operation != "send":
                return _json(*self._operations.answer(operation, body))
            sent = _Send(str(body["id"]), str(body["account"]), str(body["to"]), body.get("callbackUrl"))
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
            return _json(400, {"code": "provider_error", "message": "not a request of the protocol"})
        return await self._send(request, sent)

    async def _send(self, request: web.BaseRequest, sent: "_Send") -> web.StreamResponse:
        plan = self._behaviour.plan()
        provider_id: str | None = None
        if plan.given.processed:
            self._count += 1
            provider_id = f"sim_{self._life}_{self._count}"
        assert self._record is not None  # noqa: S101 - set before the server listens
        received = Request(
            sent.id,
            datetime.now(UTC),
            sent.number,
            plan.given,
            request.headers.get("Idempotency-Key"),
            recipient_hash(sent.to),
            provider_id,
            tuple(receipt.status for receipt in plan.receipts),
            plan.referenced,
        )
        self._record.add(received)
        if plan.latency:
            await asyncio.sleep(plan.latency)
        if provider_id is not None:
            await self._report(plan, sent, provider_id)
        if plan.status:
            if self._record is not None:  # a simulator that is stopping answers what it has, unrecorded
                self._record.answered(received, datetime.now(UTC))
            return self._answer(plan, provider_id)
        return await self._lose(request, plan)

    async def _report(self, plan: Plan, sent: "_Send", provider_id: str) -> None:
        """Set the receipts in motion; returns when the early one has been taken, or nearly so."""
        for index, receipt in enumerate(plan.receipts):
            event = _status(receipt, provider_id, sent.id if plan.referenced else None, sent.number)
            address = sent.callback_url or self._options.callback_url
            if index == 0 and plan.early and address is not None:
                taken = asyncio.get_running_loop().create_future()
                self._outbox.put(address, event, taken)
                await asyncio.wait([taken], timeout=EARLY_SECONDS)
            else:
                self._report_later(receipt.delay, address, event)

    def _report_later(self, delay: float, url: str | None, event: bytes) -> None:
        address = url or self._options.callback_url
        if address is not None:
            asyncio.get_running_loop().call_later(delay, self._outbox.put, address, event)

    def _answer(self, plan: Plan, provider_id: str | None) -> web.Response:
        if plan.given is Given.ACCEPTED:
            return _json(plan.status, {"providerMessageId": provider_id})
        if plan.given is Given.SLOW_DOWN:
            return _json(plan.status, {}, {"Retry-After": str(self._options.retry_after)})
        return _json(plan.status, {"code": plan.code, "message": "as the simulation has it"})

    async def _lose(self, request: web.BaseRequest, plan: Plan) -> web.Response:
        if plan.hang:
            await asyncio.sleep(HANG_SECONDS)
        if request.transport is not None:
            request.transport.abort()
        return web.Response()


@dataclass(frozen=True, slots=True)
class _Send:
    """What of a send matters here."""

    id: str
    number: str
    to: str
    callback_url: str | None


def _status(receipt: Receipt, provider_id: str, reference: str | None, number: str) -> bytes:
    at = datetime.now(UTC) + timedelta(seconds=receipt.delay)
    event = Status(receipt.status, at, provider_id, reference, receipt.code, number)
    return orjson.dumps(event_to_json(event))


def _json(status: int, document: dict[str, Any], headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(status=status, body=orjson.dumps(document), headers=headers, content_type="application/json")
