"""The SMTP adapter: e-mails out through a mail server, which reports nothing of what it took (C10.2.13, C29.1)."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from recado.channels.core.provider import (
    Accepted,
    Account,
    Down,
    NoPlace,
    OutboundMessage,
    Outcome,
    Refused,
    Retry,
    Unknown,
)
from recado.channels.core.references import NamedBy
from recado.channels.email.composing import PLACE_WITHIN, TIMEOUT, Composer, quotable_of, unsendable_outcome
from recado.channels.email.smtp.connections import (
    LostStep,
    NoConnection,
    RefusedStep,
    SmtpConnection,
    SmtpConnections,
    SmtpServer,
)
from recado.channels.email.smtp.replies import CLOSING, Step, refused
from recado.channels.http.outbound_guard import Turn
from recado.domain.channels.email import EmailReason
from recado.domain.core.clock import Clock
from recado.domain.core.errors import Unavailable
from recado.domain.email.mime import EmailOnWire, UnsendableEmail

OPENS_WITHIN: Final = 5.0  # seconds: a server that had fewer for its greeting is not held to be out of order


class Smtp:
    """One mail server. `places`: the bound on its connections, shared among organizations; raises `Unavailable`."""

    name = "smtp"
    idempotent = False
    looked_up_by: frozenset[NamedBy] = frozenset()
    paces_pairs = False

    def __init__(
        self,
        server: SmtpServer,
        *,
        composer: Composer,
        places: Turn,
        clock: Clock,
        timeout: float = TIMEOUT,
        place_within: float = PLACE_WITHIN,
        opens_within: float = OPENS_WITHIN,
    ) -> None:
        self._connections = SmtpConnections(server, clock=clock)
        self._composer = composer
        self._places = places
        self._timeout, self._place_within, self._opens_within = timeout, place_within, opens_within

    async def start(self) -> None:
        self._composer.start()
        await self._connections.start()

    async def stop(self) -> None:
        self._composer.stop()
        await self._connections.stop()

    async def send(self, message: OutboundMessage, account: Account, attempt: int) -> Outcome:
        call = _Call()
        try:
            async with asyncio.timeout(self._timeout):
                email = await self._composer.compose(message)
                return await self._in_its_place(email, message, call)
        except UnsendableEmail as unsendable:
            return unsendable_outcome(unsendable)
        except Unavailable:
            return NoPlace()
        except TimeoutError:
            return self._timed_out(call)

    def _timed_out(self, call: "_Call") -> Outcome:
        """A server that opens late is out of order; what one e-mail waits for behind that is no word on the others."""
        if call.step is None:
            return NoPlace()
        if call.step is Step.CONTENT:
            return Unknown()
        opening = call.step is Step.OPENING and call.seconds() >= self._opens_within
        return Down("timeout") if opening else Retry()

    async def _in_its_place(self, email: EmailOnWire, message: OutboundMessage, call: "_Call") -> Outcome:
        async with asyncio.timeout(self._place_within) as waiting, self._places(message.organization_id):
            waiting.reschedule(None)
            try:
                await self._deliver(email, call)
            except NoConnection as none:
                return none.outcome
            except LostStep as lost:
                return Unknown() if lost.step is Step.CONTENT else Down("connect_failed")
            except RefusedStep as refusal:
                return refused(refusal.reply, refusal.step, quotable_of(message))
            except _NotForThisServer as unfit:
                return Refused(unfit.code, unfit.text)
        return Accepted(f"{message.id}@{email.sender.rpartition('@')[2]}")

    async def _deliver(self, email: EmailOnWire, call: "_Call") -> None:
        """On a connection that was kept, and on a new one where that is found to be gone before it knows anything."""
        while True:
            call.begin()
            kept = self._connections.kept()
            connection = kept or await self._connections.open()
            try:
                with self._keeping(connection):
                    _check(email, connection)
                    call.step = Step.SENDER
                    await connection.sender(email)
                    call.step = Step.RECIPIENT
                    await connection.recipient(email)
                    call.step = Step.DATA
                    await connection.data()
                    call.step = Step.CONTENT
                    await connection.content(email)
                    return
            except (LostStep, RefusedStep) as failed:
                if kept is None or not _is_gone(failed):
                    raise

    @contextmanager
    def _keeping(self, connection: SmtpConnection) -> Iterator[None]:
        """Keep the connection for the next e-mail, unless nobody knows any more what is under way on it."""
        try:
            yield
        except (RefusedStep, _NotForThisServer):
            self._connections.keep(connection)
            raise
        except BaseException:
            connection.drop()
            raise
        self._connections.keep(connection)


class _Call:
    """How far a send has come: `step` is None while nobody knows of it."""

    def __init__(self) -> None:
        self.step: Step | None = None
        self._began = 0.0

    def begin(self) -> None:
        """On a connection: what it waited for before is not the server's doing."""
        self.step = Step.OPENING
        self._began = asyncio.get_running_loop().time()

    def seconds(self) -> float:
        """Since it began."""
        return asyncio.get_running_loop().time() - self._began


class _NotForThisServer(Exception):
    """What the server said that it takes, and this e-mail is not."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(code)
        self.code = code
        self.text = text


def _is_gone(failed: LostStep | RefusedStep) -> bool:
    """Whether that says something of the connection, and nothing of the e-mail."""
    return failed.step is Step.SENDER and (isinstance(failed, LostStep) or failed.reply.code == CLOSING)


def _check(email: EmailOnWire, connection: SmtpConnection) -> None:
    if connection.largest is not None and len(email.data) > connection.largest:
        raise _NotForThisServer(
            EmailReason.CONTENT_REJECTED, f"the mail server takes {connection.largest} bytes at most"
        )
    if email.utf8 and not connection.takes_utf8:
        raise _NotForThisServer(EmailReason.INVALID_ADDRESS, "the mail server takes no address outside of ASCII")
