"""The simulated provider as an SMS centre: takes submits over SMPP, and brings receipts until they are taken (C29.1).

It draws the same fates as over HTTP. A lost answer is one that never comes, or an unbind in its place. Since nothing in
SMPP names the sender's own id, a request is recorded under the centre's.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final, cast

from recado.channels.core.events import ReportStatus
from recado.channels.sms.smpp.framing import Framer
from recado.channels.sms.smpp.pdu import (
    HEADER,
    HEADER_LENGTH,
    RESPONSE,
    Bind,
    BindResponse,
    Body,
    Command,
    MalformedPdu,
    Nothing,
    Pdu,
    ShortMessage,
    Tag,
    Taken,
    decode,
    encode,
)
from recado.channels.sms.smpp.statuses import CommandStatus
from recado.channels.sms.smpp.texts import part_of
from recado.simulator.behaviour import Given, Plan, Receipt
from recado.simulator.record import Mark, Record, Request, recipient_hash

MOST_UNANSWERED: Final = 100  # receipts that wait for their answer on a connection
TRY_AGAIN_AFTER: Final = 0.5  # seconds, for a receipt that was not taken
EARLY_SECONDS: Final = 1.0  # how long an answer waits for its early receipt to be taken
UNBIND: Final = "unbind"
"""The kind of note that tells of one: `id` of the request in whose place it came, and `at`."""

_BINDS: Final = (Command.BIND_TRANSCEIVER, Command.BIND_RECEIVER, Command.BIND_TRANSMITTER)
_REFUSALS: Final = {
    "recipient_unreachable": CommandStatus.INVALID_DESTINATION,
    "policy_blocked": CommandStatus.REJECTED,
}
_STATES: Final[dict[ReportStatus, tuple[str, int]]] = {"delivered": ("DELIVRD", 2), "failed": ("UNDELIV", 5)}
_ODD_TEXTS: Final = (b"", b"stat:DELIVRD", b"id: stat:", b"\xff\x00id", b"id:1 stat:NEVER")


@dataclass(frozen=True, slots=True, kw_only=True)
class OddReceipts:
    """Shares of all receipts, 0 to 1, beside which another one comes: of an id that nobody has, or malformed."""

    unknown: float = 0.0
    malformed: float = 0.0


@dataclass(eq=False, slots=True)
class _Delivery:
    """A receipt on its way. `mark` None: nobody needs to take it; `taken`: what waits until it is."""

    body: ShortMessage
    tlvs: tuple[tuple[int, bytes], ...]
    mark: Mark | None = None
    taken: "asyncio.Future[None] | None" = None


class SmppCentre:
    """`password` None: every one is welcome; `record`: where requests are noted, while there is one."""

    def __init__(
        self,
        *,
        password: str | None,
        seed: int,
        odd: OddReceipts,
        record: Callable[[], Record | None],
        plan: Callable[[], Plan],
        new_id: Callable[[], str],
    ) -> None:
        self.password = password
        self._odd = odd
        self._chance = random.Random(seed)  # noqa: S311 - a simulation, repeatable on purpose
        self._record = record
        self._plan = plan
        self._new_id = new_id
        self._server: asyncio.Server | None = None
        self._links: list[_Link] = []
        self._waiting: deque[_Delivery] = deque()
        self._timers: set[asyncio.TimerHandle] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        self._server = await asyncio.get_running_loop().create_server(lambda: _Link(self), host, port, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """What is still to come is in the record, and `resume` takes it up again."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        for timer in self._timers:
            timer.cancel()
        for link in list(self._links):
            link.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def pending(self) -> int:
        """Receipts that are due and that nobody has taken yet."""
        return len(self._waiting) + sum(len(link.unanswered) for link in self._links)

    def resume(self, left: Iterable[tuple[Request, int]]) -> None:
        """Receipts of an earlier life: those that are due leave at once."""
        now = datetime.now(UTC)
        for request, place in left:
            passed = (now - request.at).total_seconds()
            delivery = _receipt(request, place)
            if delivery is not None:
                self._later(max(0.0, request.delays[place] - passed), partial(self._bring, delivery))

    # Submits ----------------------------------------------------------------------------------------------------------

    def submitted(self, link: "_Link", pdu: Pdu, body: ShortMessage) -> None:
        plan = self._plan()
        given_id = self._new_id() if plan.given.processed else None
        receipts = tuple(_of_sms(plan.receipts)) if body.registered_delivery & 1 else ()
        part, parts = part_of(body)
        request = Request(
            id=given_id or self._new_id(),
            at=datetime.now(UTC),
            number=body.source_addr,
            outcome=plan.given,
            idempotency_key=None,
            recipient=recipient_hash(f"+{body.destination_addr}"),
            provider_message_id=given_id,
            receipts=tuple(receipt.status for receipt in receipts),
            referenced=False,
            delays=tuple(receipt.delay for receipt in receipts),
            code=next((receipt.code for receipt in receipts if receipt.code is not None), None),
            protocol="smpp",
            part=part,
            parts=parts,
        )
        record = self._record()
        if record is None:
            return
        record.add(request)
        # Without a pause nothing of it needs a task: most simulations have none.
        if not plan.latency and not plan.early:
            self._answer(link, pdu, plan, request)
            self._report(request)
        else:
            task = asyncio.get_running_loop().create_task(self._answer_later(link, pdu, plan, request))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _answer_later(self, link: "_Link", pdu: Pdu, plan: Plan, request: Request) -> None:
        await asyncio.sleep(plan.latency)
        early = plan.early and bool(request.delays)
        if early:
            taken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            delivery = _receipt(request, 0)
            if delivery is not None:
                delivery.taken = taken
                self._bring(delivery)
                await asyncio.wait([taken], timeout=EARLY_SECONDS)
        self._answer(link, pdu, plan, request)
        self._report(request, first=1 if early else 0)

    def _answer(self, link: "_Link", pdu: Pdu, plan: Plan, request: Request) -> None:
        record = self._record()
        if plan.given is Given.LOST:
            if not plan.hang and link.open:
                if record is not None:
                    record.note(UNBIND, {"id": request.id, "at": datetime.now(UTC)})
                link.unbind()
            return
        if record is not None and link.open:
            record.answered(request, datetime.now(UTC))
        link.answer(pdu, _status(plan), Taken(request.provider_message_id or ""))

    def _report(self, request: Request, first: int = 0) -> None:
        for place in range(first, len(request.delays)):
            delivery = _receipt(request, place)
            if delivery is not None:
                self._later(request.delays[place], partial(self._bring, delivery))
                if self._chance.random() < self._odd.unknown:
                    self._later(request.delays[place], partial(self._bring, _of_nobody()))
                if self._chance.random() < self._odd.malformed:
                    self._later(request.delays[place], partial(self._bring, self._malformed()))

    def _malformed(self) -> _Delivery:
        return _Delivery(ShortMessage(esm_class=4, short_message=self._chance.choice(_ODD_TEXTS)), ())

    # Receipts ---------------------------------------------------------------------------------------------------------

    def taken(self, delivery: _Delivery) -> None:
        record = self._record()
        if record is not None and delivery.mark is not None:
            record.taken([delivery.mark])
        if delivery.taken is not None and not delivery.taken.done():
            delivery.taken.set_result(None)

    def not_taken(self, deliveries: Iterable[_Delivery]) -> None:
        """Bring them again, those that somebody needs to take."""
        for delivery in deliveries:
            if delivery.mark is not None:
                self._later(TRY_AGAIN_AFTER, partial(self._bring, delivery))

    def bring_waiting(self) -> None:
        """As many as the connections bear, those with fewest first."""
        while self._waiting:
            links = [link for link in self._links if link.receives and len(link.unanswered) < MOST_UNANSWERED]
            if not links:
                return
            min(links, key=lambda link: len(link.unanswered)).bring(self._waiting.popleft())

    def _bring(self, delivery: _Delivery) -> None:
        self._waiting.append(delivery)
        self.bring_waiting()

    def _later(self, seconds: float, action: Callable[[], None]) -> None:
        if self._server is None:
            return

        def act() -> None:
            self._timers.discard(timer)
            action()

        timer = asyncio.get_running_loop().call_later(seconds, act)
        self._timers.add(timer)

    # Connections ------------------------------------------------------------------------------------------------------

    def opened(self, link: "_Link") -> None:
        self._links.append(link)

    def ended(self, link: "_Link") -> None:
        if link in self._links:
            self._links.remove(link)
        self.not_taken(link.unanswered.values())
        link.unanswered.clear()


class _Link(asyncio.Protocol):
    """A connection of somebody who sends. `unanswered`: receipts by their sequence number."""

    def __init__(self, centre: SmppCentre) -> None:
        self._centre = centre
        self._framer = Framer()
        self._transport: asyncio.Transport | None = None
        self._sequence = 0
        self._bound: Command | None = None
        self._out: list[bytes] = []
        self.unanswered: dict[int, _Delivery] = {}

    @property
    def open(self) -> bool:
        """Whether what is written now still leaves."""
        return self._transport is not None and not self._transport.is_closing()

    @property
    def receives(self) -> bool:
        return self._bound in (Command.BIND_TRANSCEIVER, Command.BIND_RECEIVER)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)  # uvloop's is one in all but its class
        self._centre.opened(self)

    def connection_lost(self, exc: Exception | None) -> None:
        self._bound = None
        self._centre.ended(self)

    def data_received(self, data: bytes) -> None:
        for octets in self._framer.feed(data):
            try:
                self._read(decode(octets))
            except MalformedPdu as error:
                self._write(HEADER.pack(HEADER_LENGTH, Command.GENERIC_NACK, error.status, error.sequence))
        if self._framer.broken:
            self.close()

    def _read(self, pdu: Pdu) -> None:
        body = pdu.body
        if isinstance(body, Bind) and pdu.command in _BINDS:
            known = self._centre.password is None or body.password == self._centre.password
            self.answer(pdu, CommandStatus.OK if known else CommandStatus.INVALID_PASSWORD, BindResponse("simulator"))
            if known:
                self._bound = pdu.command
                self._centre.bring_waiting()
        elif pdu.command == Command.SUBMIT_SM and isinstance(body, ShortMessage):
            if self._bound in (Command.BIND_TRANSCEIVER, Command.BIND_TRANSMITTER):
                self._centre.submitted(self, pdu, body)
            else:
                self.answer(pdu, CommandStatus.WRONG_BIND_STATE)
        elif pdu.command == Command.DELIVER_SM_RESP:
            delivery = self.unanswered.pop(pdu.sequence, None)
            if delivery is not None:
                self._centre.taken(delivery) if pdu.status == CommandStatus.OK else self._centre.not_taken([delivery])
                self._centre.bring_waiting()
        elif pdu.command == Command.ENQUIRE_LINK:
            self.answer(pdu, CommandStatus.OK)
        elif pdu.command == Command.UNBIND:
            self.answer(pdu, CommandStatus.OK)
            self.close()
        elif pdu.command == Command.UNBIND_RESP:
            self.close()
        elif not pdu.command & RESPONSE:
            self._write(HEADER.pack(HEADER_LENGTH, Command.GENERIC_NACK, CommandStatus.INVALID_COMMAND, pdu.sequence))

    def answer(self, pdu: Pdu, status: int, body: Body = Nothing()) -> None:  # noqa: B008 - a frozen value
        command = Command(pdu.command | RESPONSE)
        if status != CommandStatus.OK or isinstance(body, Nothing):
            self._write(HEADER.pack(HEADER_LENGTH, command, status, pdu.sequence))
        else:
            self._write(encode(Pdu(command=command, sequence=pdu.sequence, body=body)))

    def bring(self, delivery: _Delivery) -> None:
        self.unanswered[self._next()] = delivery
        pdu = Pdu(command=Command.DELIVER_SM, sequence=self._sequence, body=delivery.body, tlvs=delivery.tlvs)
        self._write(encode(pdu))

    def unbind(self) -> None:
        """Take leave in the middle: what is submitted meanwhile is answered no more."""
        self._bound = None
        self._write(HEADER.pack(HEADER_LENGTH, Command.UNBIND, CommandStatus.OK, self._next()))

    def close(self) -> None:
        if self._transport is not None:
            self._flush()
            self._transport.close()

    def _next(self) -> int:
        self._sequence += 1
        return self._sequence

    def _write(self, octets: bytes) -> None:
        if not self._out:
            asyncio.get_running_loop().call_soon(self._flush)
        self._out.append(octets)

    def _flush(self) -> None:
        if self._out and self._transport is not None and not self._transport.is_closing():
            self._transport.write(b"".join(self._out))
        self._out.clear()


def _of_sms(receipts: Iterable[Receipt]) -> Iterator[Receipt]:
    """Nobody knows of an SMS whether it was read."""
    return (receipt for receipt in receipts if receipt.status in _STATES)


def _status(plan: Plan) -> CommandStatus:
    match plan.given:
        case Given.SLOW_DOWN:
            return CommandStatus.THROTTLED if plan.status == 429 else CommandStatus.QUEUE_FULL
        case Given.REFUSED:
            return _REFUSALS.get(plan.code or "", CommandStatus.PERMANENT_ERROR)
        case Given.FAILED:
            return CommandStatus.UNKNOWN_ERROR
    return CommandStatus.OK


def _receipt(request: Request, place: int) -> _Delivery | None:
    """The receipt at its place: in both forms, as many SMS centres write it."""
    if request.provider_message_id is None:
        return None
    word, state = _STATES[cast("ReportStatus", request.receipts[place])]
    done = request.at + timedelta(seconds=request.delays[place])
    text = (
        f"id:{request.provider_message_id} sub:001 dlvrd:001 submit date:{request.at:%y%m%d%H%M} "
        f"done date:{done:%y%m%d%H%M} stat:{word} err:000 text:"
    )
    named = request.provider_message_id.encode() + b"\0"
    tlvs = ((Tag.RECEIPTED_MESSAGE_ID, named), (Tag.MESSAGE_STATE, bytes((state,))))
    return _Delivery(
        ShortMessage(source_addr="", esm_class=4, short_message=text.encode()),
        tlvs,
        (request.provider_message_id, place),
    )


def _of_nobody() -> _Delivery:
    return _Delivery(ShortMessage(esm_class=4, short_message=b"id:nobody's stat:DELIVRD err:000"), ())
