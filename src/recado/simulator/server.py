"""The simulated provider's HTTP side: takes requests, records them, answers as planned, and sends receipts."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
from aiohttp import web

from recado.channels.chatapp.cloud_messages import PRODUCT
from recado.channels.core.signing import signing_key
from recado.domain.channels.address import is_user_id
from recado.simulator import cloud_webhooks
from recado.simulator.behaviour import Behaviour, Given, Plan, Receipt
from recado.simulator.cloud_api import CloudApi, CloudError, json_answer
from recado.simulator.cloud_state import CloudState
from recado.simulator.control import Control
from recado.simulator.mail_server import MailServer
from recado.simulator.operations import Operations
from recado.simulator.options import SimulatorOptions
from recado.simulator.outbox import CallbackOutbox
from recado.simulator.record import Protocol, Record, Request, notes, read_record, recipient_hash, unsent
from recado.simulator.reports import Reports
from recado.simulator.smpp_centre import SmppCentre
from recado.simulator.upload_forms import TooLong, read_form

HANG_SECONDS = 60.0  # longer than any sender waits

_BRIDGE_OPERATIONS = frozenset(
    {
        "send",
        "connect",
        "disconnect",
        "number_health",
        "update_profile",
        "submit_template",
        "delete_template",
        "list_templates",
        "create_flow",
        "publish_flow",
        "deprecate_flow",
        "upload_media",
        "open_media",
    }
)
_TOO_FAST = (130429, 80007)
_NO_REQUEST = (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, ValueError, AssertionError)


class Simulator:
    """One simulated provider; `start()` and `stop()` are safe to call twice.

    A further life on the same record goes on where the last one ended: numbers, templates and flows of the hosted
    API are as they were, and receipts that nobody has taken are sent, some of them once more.
    """

    def __init__(self, options: SimulatorOptions, *, tell: Callable[[str], None] = lambda line: None) -> None:
        self._options = options
        self._tell = tell
        self._record: Record | None = None
        self._outbox = CallbackOutbox(
            signing_key(options.secret),
            app_secret=signing_key(options.app_secret or options.secret),
            gather_seconds=options.gather_seconds,
            tell=tell,
            noted=lambda marks: self._record.taken(marks) if self._record else None,
        )
        self._state = CloudState(lambda kind, value: self._record.note(kind, value) if self._record else None)
        self._reports = Reports(self._outbox, self._state.metadata_of)
        self._operations = Operations(self._report_later)
        self._cloud = CloudApi(self._state, self._tell_cloud, self._later)
        self._control = Control(
            self._state,
            self._cloud,
            tell=self._tell_cloud,
            tell_bridge=lambda event: self._report_later(0.0, None, orjson.dumps(event)),
            later=self._later,
            new_id=self._new_id,
        )
        self._behaviour = self._behaviour_after(0)
        self._smpp: SmppCentre | None = None
        self._smtp: MailServer | None = None
        self._runner: web.ServerRunner | None = None
        self._life = f"{time.time_ns():x}"  # provider ids are unique over restarts
        self._count = 0
        self._sent: dict[str, str] = {}  # by idempotency key: the provider's id of what was sent
        self.url = ""

    @property
    def pending(self) -> int:
        """Receipts that are due and that nobody has taken yet."""
        return self._outbox.pending + (self._smpp.pending if self._smpp is not None else 0)

    @property
    def smpp_port(self) -> int:
        """Where it listens as an SMS centre; 0: nowhere."""
        return self._smpp.port if self._smpp is not None else 0

    @property
    def smtp_port(self) -> int:
        """Where it listens as a mail server; 0: nowhere."""
        return self._smtp.port if self._smtp is not None else 0

    async def start(self) -> None:
        if self._runner is not None:
            return
        path = self._options.record
        earlier = path.exists()
        self._record = Record(path)
        await self._outbox.start()
        self._runner = web.ServerRunner(
            web.Server(self._handle, access_log=None), handle_signals=False, shutdown_timeout=0.5
        )
        try:
            await self._runner.setup()
            if self._options.smpp is not None:
                self._smpp = self._smpp_centre()
                await self._smpp.start(*self._options.smpp)
            if self._options.smtp is not None:
                self._smtp = self._mail_server()
                await self._smtp.start(*self._options.smtp)
            if earlier:
                self._resume(path)
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
        smpp, self._smpp = self._smpp, None
        if smpp is not None:
            await smpp.stop()
        smtp, self._smtp = self._smtp, None
        if smtp is not None:
            await smtp.stop()
        await self._outbox.stop()
        if self._record is not None:
            self._record.close()
            self._record = None

    def _resume(self, path: Path) -> None:
        requests = read_record(path)
        self._behaviour = self._behaviour_after(len(requests))
        for request in requests:
            self._remember(request)
        self._state.restore(notes(path))
        self._cloud.resume()
        left = unsent(path)
        self._reports.resume(left)
        if self._smpp is not None:
            self._smpp.resume((request, place) for request, place in left if request.protocol == "smpp")

    def _smpp_centre(self) -> SmppCentre:
        options = self._options
        return SmppCentre(
            password=options.token,
            seed=options.seed,
            odd=options.odd_receipts,
            record=lambda: self._record,
            plan=lambda: self._behaviour.plan(),
            new_id=self._new_id,
        )

    def _mail_server(self) -> MailServer:
        options = self._options
        return MailServer(
            password=options.token,
            record=lambda: self._record,
            new_id=self._new_id,
            act_after=options.receipt_delay,
            tell=self._tell,
        )

    def _behaviour_after(self, begun: int) -> Behaviour:
        options = self._options
        return Behaviour(
            options.shares,
            seed=options.seed,
            latency=options.latency,
            receipt_delay=options.receipt_delay,
            codes=options.codes,
            begun=begun,
        )

    # Requests ---------------------------------------------------------------------------------------------------------

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        segments = [segment for segment in request.path.split("/") if segment] or [""]
        protocol = self._options.protocol
        if segments[0] == "control":
            return await self._handle_control(request, segments[1:])
        if protocol == "bridge" or (protocol == "both" and segments[-1] in _BRIDGE_OPERATIONS):
            return await self._handle_bridge(request, segments[-1])
        return await self._handle_cloud(request, segments)

    async def _handle_control(self, request: web.BaseRequest, segments: list[str]) -> web.Response:
        if request.method != "POST":
            return json_answer({"message": "only POST"}, 405)
        if not self._lets_in(request):
            return json_answer({"message": "unknown bearer"}, 401)
        try:
            what, which = segments[0], segments[1] if len(segments) > 1 else ""
            return json_answer(self._control.handle(what, which, orjson.loads(await request.read())))
        except (*_NO_REQUEST, IndexError) as error:
            return json_answer({"message": f"not understood: {error}"}, 400)

    async def _handle_bridge(self, request: web.BaseRequest, operation: str) -> web.StreamResponse:
        if request.method != "POST":
            return json_answer({"code": "provider_error", "message": "only POST"}, 405)
        if not self._lets_in(request):
            return json_answer({"code": "provider_error", "message": "unknown bearer"}, 401)
        try:
            if operation == "upload_media":
                return await self._take_media(request)
            body = orjson.loads(await request.read())
            if operation == "open_media":
                return self._give_media(str(body["mediaRef"]))
            if operation != "send":
                status, answer = self._operations.answer(operation, body)
                return json_answer(answer, status)
            address = body.get("callbackUrl") or self._options.callback_url
            sent = _Send("bridge", str(body["id"]), str(body["account"]), str(body["to"]), address)
        except _NO_REQUEST:
            return json_answer({"code": "provider_error", "message": "not a request of the protocol"}, 400)
        key = request.headers.get("Idempotency-Key", "")
        if (first := self._sent.get(key)) is not None and self._record is not None:
            self._record.note("repeat", {"id": key, "providerMessageId": first})
            return json_answer({"providerMessageId": first})
        return await self._send(request, sent, self._behaviour.plan())

    async def _take_media(self, request: web.BaseRequest) -> web.Response:
        try:
            form = await read_form(request)
        except TooLong:
            return json_answer({"code": "media_invalid", "message": "too long"}, 422)
        said = orjson.loads(form.fields["request"])
        if not form.content or len(form.content) != said["size"]:
            return json_answer({"code": "media_invalid", "message": "not as long as was said"}, 422)
        media = self._state.store_media(bytes(form.content), str(said["mimeType"]), datetime.now(UTC))
        return json_answer({"mediaId": media.id})

    def _give_media(self, media_id: str) -> web.Response:
        media = self._state.media(media_id)
        if media is None:
            return json_answer({"code": "provider_error", "message": "no such media"}, 410)
        return web.Response(body=media.content, headers={"Content-Type": media.mime_type})

    async def _handle_cloud(self, request: web.BaseRequest, segments: list[str]) -> web.StreamResponse:
        try:
            if len(request.headers.get("Authorization", "")) <= len("Bearer "):
                raise CloudError(190, "no access token")
            if request.method == "POST" and segments[-1] == "messages" and len(segments) > 1:
                return await self._cloud_message(request, segments[-2], orjson.loads(await request.read()))
            return await self._cloud.answer(request, self.url, segments)
        except CloudError as error:
            return error.answer()
        except _NO_REQUEST:
            return CloudError(100, "not a request of the API").answer()

    def _lets_in(self, request: web.BaseRequest) -> bool:
        token = self._options.token
        return token is None or request.headers.get("Authorization") == f"Bearer {token}"

    async def _cloud_message(self, request: web.BaseRequest, number: str, body: dict[str, Any]) -> web.StreamResponse:
        if body["messaging_product"] != PRODUCT:
            raise CloudError(100, "messaging_product is required")
        if "status" in body:  # an inbound message was read
            return json_answer({"success": True})
        to = str(body.get("to") or body["recipient"]).removeprefix("+")
        reference = body.get("biz_opaque_callback_data")
        sent = _Send("cloud", reference and str(reference), number, to, self._options.cloud_callback_url)
        told = self._control.error_for(number)
        coded = Plan(given=Given.CODED, latency=0.0, error=told) if told is not None else self._behaviour.coded()
        plan = coded or self._behaviour.plan()
        if plan.given is not Given.CODED:
            try:
                self._cloud.check(number, body)
            except CloudError as error:
                plan = Plan(given=Given.REFUSED, latency=plan.latency, error=error.code)
        return await self._send(request, sent, plan)

    async def _send(self, request: web.BaseRequest, sent: "_Send", plan: Plan) -> web.StreamResponse:
        provider_id = self._new_id() if plan.given.processed else None
        receipts = plan.receipts
        if receipts and sent.protocol == "cloud":  # it tells of the hand-over too
            receipts = (Receipt(0.0, "sent"), *receipts)
        assert self._record is not None  # noqa: S101 - set before the server listens
        received = Request(
            id=sent.id or provider_id or self._new_id(),
            at=datetime.now(UTC),
            number=sent.number,
            outcome=plan.given,
            idempotency_key=request.headers.get("Idempotency-Key"),
            recipient=recipient_hash(sent.to),
            provider_message_id=provider_id,
            receipts=tuple(receipt.status for receipt in receipts),
            referenced=plan.referenced,
            delays=tuple(receipt.delay for receipt in receipts),
            code=next((receipt.code for receipt in receipts if receipt.code is not None), None),
            callback=sent.callback_url,
            protocol=sent.protocol,
        )
        self._record.add(received)
        self._remember(received)
        if plan.latency:
            await asyncio.sleep(plan.latency)
        if provider_id is not None:
            to = sent.to if sent.to.isdigit() or is_user_id(sent.to) else None
            await self._reports.begin(received, early=plan.early, to=to)
        if plan.status:
            if self._record is not None:  # a simulator that is stopping answers what it has, unrecorded
                self._record.answered(received, datetime.now(UTC))
            return self._answer(plan, received, sent)
        return await self._lose(request, plan)

    def _remember(self, sent: Request) -> None:
        """What an idempotent bridge answers a repeat with, from the moment at which the message is on its record."""
        if self._options.idempotent and sent.idempotency_key and sent.provider_message_id:
            self._sent[sent.idempotency_key] = sent.provider_message_id

    def _answer(self, plan: Plan, received: Request, sent: "_Send") -> web.Response:
        if sent.protocol == "cloud":
            return self._cloud_answer(plan, received, sent)
        if plan.given is Given.ACCEPTED:
            return json_answer({"providerMessageId": received.provider_message_id}, plan.status)
        if plan.given is Given.SLOW_DOWN:
            return json_answer({}, plan.status, {"Retry-After": str(self._options.retry_after)})
        return json_answer({"code": plan.code, "message": "as the simulation has it"}, plan.status)

    def _cloud_answer(self, plan: Plan, received: Request, sent: "_Send") -> web.Response:
        if plan.given is Given.ACCEPTED:
            person = {"wa_id": sent.to} if sent.to.isdigit() else {"user_id": sent.to}
            message = {"id": received.provider_message_id, "message_status": "accepted"}
            return json_answer(
                {
                    "messaging_product": PRODUCT,
                    "contacts": [{"input": sent.to, **person}],
                    "messages": [message],
                }
            )
        if plan.given is Given.FAILED:
            return web.Response(status=plan.status)
        if plan.given is Given.SLOW_DOWN:
            return CloudError(_TOO_FAST[plan.status == 503]).answer(self._options.retry_after)
        return CloudError(plan.error or cloud_webhooks.CODES[plan.code or ""]).answer()

    async def _lose(self, request: web.BaseRequest, plan: Plan) -> web.Response:
        if plan.hang:
            await asyncio.sleep(HANG_SECONDS)
        if request.transport is not None:
            request.transport.abort()
        return web.Response()

    # Events -----------------------------------------------------------------------------------------------------------

    def _new_id(self) -> str:
        self._count += 1
        return f"sim_{self._life}_{self._count}"

    def _later(self, seconds: float, action: Callable[[], None]) -> object:
        return asyncio.get_running_loop().call_later(seconds, action)

    def _report_later(self, delay: float, url: str | None, event: bytes) -> None:
        address = url or self._options.callback_url
        if address is not None:
            self._later(delay, lambda: self._outbox.put(address, event))

    def _tell_cloud(self, entry: cloud_webhooks.Entry) -> None:
        address = self._options.cloud_callback_url
        if address is not None:
            self._outbox.put(address, orjson.dumps(entry), protocol="cloud")


@dataclass(frozen=True, slots=True)
class _Send:
    """What of a send matters here. `id`: the sender's own, where it gave one."""

    protocol: Protocol
    id: str | None
    number: str
    to: str
    callback_url: str | None
