"""The SMPP adapter: messages out in the windows of its binds, and what the SMS centre brings on them (C29.1, C29.2).

A receipt, or a message of a person, is answered only when it is stored: until then the SMS centre keeps it, and brings
it again after a crash of ours. So nothing is lost, and what comes twice is a normal thing. An answer that comes too
late for its send is told as a report of that message, which then waits no longer in uncertainty.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

import orjson
import structlog

from recado.channels.core.adapters import Sink
from recado.channels.core.bridge.bridge_callbacks import EVENTS
from recado.channels.core.event_json import EVENT, event_to_json
from recado.channels.core.events import CallbackEvent, Event, Inbound, NotTaken
from recado.channels.core.events import Status as Report
from recado.channels.core.provider import (
    Accepted,
    Account,
    Down,
    NoPlace,
    OutboundMessage,
    Outcome,
    Refused,
    Retry,
    SlowDown,
    Unknown,
)
from recado.channels.core.reading import Shape, read_body
from recado.channels.core.references import NamedBy
from recado.channels.core.refusals import codes_of
from recado.channels.http.answer import Lost, NotSent
from recado.channels.sms.smpp.arrivals import Arrival, SmppArrivals
from recado.channels.sms.smpp.connection import (
    Answer,
    Answered,
    Crowded,
    Label,
    SmppConnection,
    Transmission,
)
from recado.channels.sms.smpp.delivery_receipts import MessageIds, canonical_id, is_receipt, read_receipt
from recado.channels.sms.smpp.pdu import DataMessage, Pdu, ShortMessage
from recado.channels.sms.smpp.repeated_texts import RepeatedTexts
from recado.channels.sms.smpp.session import SmppLogin, SmppSession, SmppTimes
from recado.channels.sms.smpp.statuses import CommandStatus, outcome_of
from recado.channels.sms.smpp.submits import Segments, Submits, source_address
from recado.channels.sms.smpp.texts import Alphabet, text_of
from recado.domain.channels.sms import SMS
from recado.domain.core.clock import Clock
from recado.domain.core.log_rate import LogRate

log = structlog.get_logger()

PLACE_WITHIN: Final = 5.0  # seconds that a message waits for its places in a window, of those that it has in all
PAUSE: Final = 1.0  # seconds until parts that were refused for now are tried again, and after a failure to store
STORED_WITHIN: Final = 2.0  # seconds, of what is being stored when the service stops
_LONGEST_ID: Final = 255  # characters

_FOR_NOW: Final = (SlowDown, NoPlace, Retry, Down)
_NOT_TAKEN = Shape[NotTaken](NotTaken)


@dataclass(frozen=True, slots=True, kw_only=True)
class SmppOptions:
    """How one SMS centre wants it. `source`: whom messages come from; empty: it knows.

    `binds`: connections; `window`: submits without answer on each.
    """

    binds: int = 1
    window: int = 50
    source: str = ""
    alphabet: Alphabet = "gsm7"
    message_ids: MessageIds = "text"
    wide_reference: bool = False
    times: SmppTimes = field(default_factory=SmppTimes)


class Smpp:
    """One gateway. `account`: what it is called where messages and their reports are told together."""

    name = "smpp"
    idempotent = False
    looked_up_by = frozenset({NamedBy.THEIR_ID})
    paces_pairs = False

    def __init__(
        self,
        login: SmppLogin,
        options: SmppOptions,
        *,
        account: str,
        segments: Segments,
        clock: Clock,
        chance: Random,
    ) -> None:
        self._account = account
        self._clock = clock
        self._ids: MessageIds = options.message_ids
        self._alphabet: Alphabet = options.alphabet
        self._source = source_address(options.source)
        self._patience = options.times.answer
        self._submits = Submits(segments, alphabet=options.alphabet, wide_reference=options.wide_reference)
        self._arrivals = SmppArrivals()
        self._sessions = [
            SmppSession(
                login,
                clock=clock,
                chance=chance,
                window=options.window,
                times=options.times,
                changed=self._changed,
                delivered=self._arrivals.bring,
                late=self._answered_late,
                may_read=self._arrivals.may_read,
            )
            for _ in range(options.binds)
        ]
        self._waiting: asyncio.Future[None] | None = None  # for the first bind, or its failure
        self._life = f"{chance.getrandbits(64):016x}"  # ids of messages from people are unique over restarts
        self._received = 0
        self._repeated = RepeatedTexts()
        self._log_rate = LogRate()

    @property
    def binds(self) -> int:
        """How many there are now."""
        return sum(session.bound is not None for session in self._sessions)

    async def start(self) -> None:
        for session in self._sessions:
            await session.start()

    async def stop(self) -> None:
        await asyncio.gather(*(session.stop() for session in self._sessions))

    # Out --------------------------------------------------------------------------------------------------------------

    async def send(self, message: OutboundMessage, account: Account, attempt: int) -> Outcome:
        try:
            text = ((message.payload or {}).get("text") or {}).get("body") or ""
            own = (message.details or {}).get("from")  # the dedicated sender of an organization
            source = self._source if own is None else source_address(own)
            bodies = self._submits.bodies(message.id, source, message.to, text)
        except ValueError as error:
            return Refused("provider_error", str(error))
        begun = self._clock.monotonic()
        answer_by = begun + self._patience
        label = Label(message.id, alone=len(bodies) == 1)
        outcomes = await self._submit(Transmission(bodies, begun + PLACE_WITHIN, answer_by, label))
        while (left := _worth_another_try(outcomes)) and self._clock.monotonic() + PAUSE < answer_by:
            await self._clock.sleep(PAUSE)
            last = label if left[-1] == len(bodies) - 1 else None
            again = await self._submit(Transmission([bodies[place] for place in left], answer_by, answer_by, last))
            for place, outcome in zip(left, again, strict=True):
                outcomes[place] = outcome
        label.incomplete = any(isinstance(each, _FOR_NOW) for each in outcomes)
        return _of_all(outcomes)

    async def _submit(self, transmission: Transmission) -> list[Outcome]:
        """Submit parts on one connection; on another one where that was lost before any of them had left."""
        while True:
            connection = self._roomiest()
            if connection is None:
                try:
                    connection = await self._connection()
                except _NoConnection as error:
                    return [Down(error.code)] * len(transmission.bodies)
            answered = [await answer for answer in connection.submit(transmission)]
            if not isinstance(answered[0], NotSent):
                return [self._outcome(each) for each in answered]

    async def _connection(self) -> SmppConnection:
        """The one with most room; raises `_NoConnection`. While nobody knows whether there is one, it waits."""
        while (found := self._roomiest()) is None:
            failures = [session.failure for session in self._sessions if session.failure is not None]
            if len(failures) == len(self._sessions):
                raise _NoConnection(failures[0])
            if self._waiting is None:
                self._waiting = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._waiting)
        return found

    def _roomiest(self) -> SmppConnection | None:
        found: SmppConnection | None = None
        for session in self._sessions:
            bound = session.bound
            if bound is not None and bound.usable and (found is None or bound.room > found.room):
                found = bound
        return found

    def _changed(self) -> None:
        """A bind was made, or failed."""
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.set_result(None)

    def _outcome(self, answered: Answered) -> Outcome:
        if isinstance(answered, NotSent):
            return Down("connect_failed")
        if isinstance(answered, Lost):
            return Unknown()
        if isinstance(answered, Crowded):  # our window is full: the SMS centre refused nothing, and no one pauses
            return NoPlace()
        status, body = answered
        if status != CommandStatus.OK:
            return outcome_of(status)
        message_id = self._taken_id(body)
        # Taken without a readable id: saying "failed" could make somebody send it again.
        return Unknown() if message_id is None else Accepted(message_id)

    def _taken_id(self, body: bytes) -> str | None:
        """The id in the answer to a submit, also where its NUL is missing; None where there is none."""
        message_id = canonical_id(body.partition(b"\0")[0].decode("latin-1"), self._ids, receipt=False)
        return message_id if 0 < len(message_id) <= _LONGEST_ID else None

    # In ---------------------------------------------------------------------------------------------------------------

    async def run(self, sink: Sink) -> None:
        """Give what comes to `sink`, many at a time, as `parse_callback` reads it; never returns.

        What `sink` returns for is stored, and answered; what it raises for the SMS centre brings again.
        """
        while True:
            await self._arrivals.filled.wait()
            taking = asyncio.get_running_loop().create_task(self._take_in(sink))
            try:
                taken = await asyncio.shield(taking)
            except asyncio.CancelledError:
                # What is being stored is answered too: a message of a person that came again could not be told from
                # another one with the same text.
                await asyncio.wait([taking], timeout=STORED_WITHIN)
                taking.cancel()
                raise
            if not taken:
                await self._clock.sleep(PAUSE)

    async def _take_in(self, sink: Sink) -> bool:
        """Store what has come, as much as goes at once, and answer it; False when it was not stored."""
        block = self._arrivals.take()
        status = CommandStatus.TEMPORARY_ERROR
        texts: list[tuple[Arrival, str]] = []  # with the ids under which they are stored
        try:
            events: list[Event | NotTaken] = [*block.reports]
            for arrival in block.deliveries:
                event = self._event(arrival.pdu)
                if event is not None:
                    events.append(event)
                if isinstance(event, Inbound):
                    texts.append((arrival, event.provider_message_id))
            if events:
                await sink(orjson.dumps({EVENTS: [event_to_json(event) for event in events]}))
            status = CommandStatus.OK
        except Exception as error:  # noqa: BLE001 - whatever kept it from being stored: it is brought again
            log.warning("smpp_not_stored", count=len(block.deliveries), error=type(error).__name__)
        finally:
            if status == CommandStatus.OK:
                self._arrivals.stored(block)
            else:
                self._arrivals.not_stored(block)
        for connection, pdu in block.deliveries:
            connection.answer(pdu, status)
        now = self._clock.monotonic()
        for (connection, pdu), known in texts:
            if status != CommandStatus.OK or connection.closed.done():
                self._repeated.unanswered(pdu, known, now)
        return status == CommandStatus.OK

    @staticmethod
    def parse_callback(headers: Mapping[str, str], body: bytes) -> Sequence[CallbackEvent]:
        """The events of what `run` gave; raises `MalformedCallback`."""
        return read_body(body, EVENTS, _read)

    def _answered_late(self, label: Label, answer: Answer | None) -> None:
        """The answer to the last part of a message whose outcome is unknown by now; None: none is waited for.

        As in time: without one of its parts a message is not named by the last one, and it goes back to the queue only
        where nothing of it left.
        """
        if answer is None:
            self._drop("smpp_answer_given_up", "too many")
            return
        outcome, message_id, now = self._outcome(answer), label.message_id, self._clock.now()
        if isinstance(outcome, Accepted):
            if not label.incomplete:
                taken = outcome.provider_message_id
                self._arrivals.report(Report("sent", now, taken, message_id, account=self._account))
        elif isinstance(outcome, Refused):
            self._arrivals.report(NotTaken(message_id, now, outcome.code))
        elif isinstance(outcome, _FOR_NOW) and label.alone:
            self._arrivals.report(NotTaken(message_id, now, spent=isinstance(outcome, Retry)))

    def _event(self, pdu: Pdu) -> Event | None:
        """What a delivery tells, at the moment of its arrival: the dates in receipts have no zone."""
        body = pdu.body
        assert isinstance(body, ShortMessage | DataMessage)  # noqa: S101 - the connection passes on no other
        if is_receipt(pdu):
            receipt = read_receipt(pdu, self._ids)
            if receipt is None or receipt.status is None:
                self._drop("smpp_receipt_of_no_use", "no id" if receipt is None else "no status")
                return None
            return Report(
                receipt.status,
                self._clock.now(),
                receipt.message_id,
                code=receipt.code,
                account=self._account,
                receipt=receipt.told,
            )
        text = text_of(pdu, self._alphabet)
        if text is None or not body.source_addr:
            self._drop("smpp_message_dropped", "no text" if text is None else "no sender")
            return None
        known = self._repeated.id_of(pdu, self._clock.monotonic())
        if known is None:
            self._received += 1
            known = f"smpp_{self._life}_{self._received}"
        return Inbound(
            body.destination_addr or self._account,  # which may be one organization's own sender
            body.source_addr,
            self._clock.now(),
            "text",
            {"text": {"body": text}},
            known,
        )

    def _drop(self, event: str, reason: str) -> None:
        """Tell that something which came was dropped: not each time, for whoever sends it could fill the disk."""
        left_out = self._log_rate.admits(f"{event} {reason}", self._clock.monotonic())
        if left_out is not None:
            log.info(event, account=self._account, reason=reason, left_out=left_out)


def _read(item: object) -> Sequence[CallbackEvent]:
    if isinstance(item, dict) and item.get("kind") == "notTaken":
        return (_NOT_TAKEN.read(item),)
    return (EVENT.read(item, context=codes_of(SMS)),)


class _NoConnection(Exception):
    """`code`: of a `Down`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def _worth_another_try(outcomes: Sequence[Outcome]) -> list[int]:
    """The parts that were refused for now, where others may have left and none was refused for good.

    The message cannot go back to the queue then: what has left would leave again.
    """
    if not any(isinstance(each, Accepted | Unknown) for each in outcomes):
        return []
    if any(isinstance(each, Refused) for each in outcomes):
        return []
    return [place for place, each in enumerate(outcomes) if isinstance(each, _FOR_NOW)]


def _of_all(outcomes: Sequence[Outcome]) -> Outcome:
    """What a message comes to by its parts: the id of the last one is its own.

    Where the last one was taken, its receipt says what became of the message, also of one with an earlier part in
    doubt: without that id the receipt would be nobody's.
    """
    refused = next((each for each in outcomes if isinstance(each, Refused)), None)
    if refused is not None:
        return refused
    if not any(isinstance(each, Accepted | Unknown) for each in outcomes):
        return outcomes[0]
    if isinstance(outcomes[-1], Accepted) and all(isinstance(each, Accepted | Unknown) for each in outcomes):
        return outcomes[-1]
    return Unknown()
