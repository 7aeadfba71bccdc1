"""Connections to a mail server: each is opened with TLS and a login, used for one e-mail after the other, and kept."""

import asyncio
import ssl
from dataclasses import dataclass, field
from typing import Final, cast

import structlog
from aiosmtplib import (
    SMTP,
    SMTPConnectResponseError,
    SMTPException,
    SMTPResponseException,
    SMTPServerDisconnected,
    SMTPTimeoutError,
)
from aiosmtplib.response import SMTPResponse

from recado.channels.core.provider import Down, Outcome
from recado.channels.email.smtp.replies import SmtpReply, Step, refused
from recado.domain.core.clock import Clock
from recado.domain.core.log_rate import LogRate
from recado.domain.email.mime import EmailOnWire

log = structlog.get_logger()

IDLE_SECONDS: Final = 20.0  # after which a connection is not used again: servers close one soon after
MOST_EMAILS: Final = 100  # through one connection: some servers let no more through


@dataclass(frozen=True, slots=True, kw_only=True)
class SmtpServer:
    """Where a mail server is, and how one speaks to it.

    `tls`: from the first byte on; `starttls`: after a greeting in the clear. Neither is for a server on this machine
    only. `name`: what we call ourselves there. `ca_file`: the certificates that
    vouch for the server's; None: those that the system trusts.
    """

    host: str
    port: int
    tls: bool
    starttls: bool
    name: str
    user: str | None = None
    password: str = field(default="", repr=False)
    ca_file: str | None = None


class NoConnection(Exception):
    """None could be opened; `outcome`: what that says of the e-mail."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(type(outcome).__name__)
        self.outcome = outcome


class LostStep(Exception):
    """The connection broke, or no answer came in time, while a step was under way."""

    def __init__(self, step: Step) -> None:
        super().__init__(step.name)
        self.step = step


class RefusedStep(Exception):
    """The server did not take a step."""

    def __init__(self, reply: SmtpReply, step: Step) -> None:
        super().__init__(step.name)
        self.reply = reply
        self.step = step


class SmtpConnection:
    """One connection. `used`: e-mails that it was given; `idle_since`: by the monotonic clock.

    `unfinished`: the server still holds a part of the last one, which it is to forget before the next one.
    """

    def __init__(self, client: SMTP) -> None:
        self._client = client
        self.used = 0
        self.idle_since = 0.0
        self.unfinished = False

    @property
    def usable(self) -> bool:
        return self._client.is_connected and self.used < MOST_EMAILS

    @property
    def largest(self) -> int | None:
        """Bytes that the server takes at most, where it says so."""
        said = self._client.esmtp_extensions.get("size", "")
        return int(said) if said.isascii() and said.isdigit() and len(said) < 19 and int(said) else None

    @property
    def takes_utf8(self) -> bool:
        return self._client.supports_extension("smtputf8")

    async def sender(self, email: EmailOnWire) -> None:
        """MAIL. Raises `RefusedStep` and `LostStep`, as what follows does."""
        if self.unfinished:
            await self._ask(Step.SENDER, b"RSET")
        self.unfinished = True
        options = [b"SIZE=%d" % len(email.data)] if self._client.supports_extension("size") else []
        if email.utf8:
            options.append(b"SMTPUTF8")
        self.used += 1
        await self._ask(Step.SENDER, b"MAIL", b"FROM:<" + email.sender.encode() + b">", *options)

    async def recipient(self, email: EmailOnWire) -> None:
        await self._ask(Step.RECIPIENT, b"RCPT", b"TO:<" + email.recipient.encode() + b">")

    async def data(self) -> None:
        await self._ask(Step.DATA, b"DATA")

    async def content(self, email: EmailOnWire) -> SmtpReply:
        """All of it, with the dot that ends it. Whoever gets `LostStep` cannot know whether the server took it."""
        protocol = self._client.protocol
        if protocol is None:  # closed since the server asked for it
            raise LostStep(Step.DATA)
        # No line begins with a dot but those of this protocol.
        data = email.data.replace(b"\r\n.", b"\r\n..")
        try:
            protocol.write(data + b".\r\n")
            answer = await protocol.read_response()
        except (SMTPException, OSError):
            self.drop()
            raise LostStep(Step.CONTENT) from None
        self.unfinished = False  # whatever it says
        reply = SmtpReply(answer.code, answer.message)
        if not 200 <= reply.code < 300:
            if 400 <= reply.code < 600:
                raise RefusedStep(reply, Step.CONTENT)
            self.drop()
            raise LostStep(Step.CONTENT)
        return reply

    def close(self) -> None:
        """Let go of one that nothing is under way on."""
        self._client.close()

    def drop(self) -> None:
        """Let go of one whose server may not even read what was written: at once."""
        transport = self._client.transport
        if transport is not None:
            cast("asyncio.Transport", transport).abort()  # uvloop's is one in all but its class
        self._client.close()

    async def _ask(self, step: Step, *words: bytes) -> None:
        try:
            answer = await self._client.execute_command(*words)
        except SMTPResponseException as error:  # what came is no reply
            self.drop()
            raise RefusedStep(SmtpReply(error.code, ""), step) from None
        except (SMTPException, OSError):
            self.drop()
            raise LostStep(step) from None
        if not _is_taken(answer, step):
            raise RefusedStep(SmtpReply(answer.code, answer.message), step)


def _is_taken(answer: SMTPResponse, step: Step) -> bool:
    return answer.code == 354 if step is Step.DATA else 200 <= answer.code < 300


class SmtpConnections:
    """Those to one server that are not in use, the latest first. How many there are, whoever takes them bounds."""

    def __init__(self, server: SmtpServer, *, clock: Clock) -> None:
        self._server = server
        self._clock = clock
        self._idle: list[SmtpConnection] = []
        self._tls: ssl.SSLContext | None = None
        self._open = False
        self._log_rate = LogRate()

    async def start(self) -> None:
        """Raises OSError for a file of certificates that is none."""
        if self._tls is None and (self._server.tls or self._server.starttls):
            self._tls = await asyncio.to_thread(ssl.create_default_context, cafile=self._server.ca_file)
        self._open = True

    async def stop(self) -> None:
        self._open = False
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def kept(self) -> SmtpConnection | None:
        """One that was used before; None where there is none that one would use again."""
        oldest = self._clock.monotonic() - IDLE_SECONDS
        while self._idle:
            connection = self._idle.pop()
            if connection.usable and connection.idle_since > oldest:
                return connection
            connection.close()
        return None

    def keep(self, connection: SmtpConnection) -> None:
        """For the next one; nothing may be under way on it."""
        if not self._open or not connection.usable:
            connection.close()
            return
        connection.idle_since = self._clock.monotonic()
        self._idle.append(connection)

    async def open(self) -> SmtpConnection:
        """A new one; raises `NoConnection`."""
        if not self._open:
            raise NoConnection(Down("stopped"))
        server = self._server
        client = SMTP(
            hostname=server.host,
            port=server.port,
            local_hostname=server.name,
            use_tls=server.tls,
            start_tls=server.starttls,
            tls_context=self._tls,
            timeout=None,  # whoever sends has one deadline for all
        )
        step = Step.OPENING
        try:
            await client.connect()
            await client.ehlo()
            if server.user is not None:
                step = Step.LOGIN
                await client.login(server.user, server.password)
        except asyncio.CancelledError:
            client.close()
            raise
        except Exception as error:  # noqa: BLE001 - whatever it was, nothing of an e-mail was told
            client.close()
            outcome = _failure(error, step)
            self._tell(outcome, error)
            raise NoConnection(outcome) from None
        return SmtpConnection(client)

    def _tell(self, outcome: Outcome, error: Exception) -> None:
        """What the server said may quote us: only its kind, and how it was understood, is logged."""
        code = outcome.code if isinstance(outcome, Down) else type(outcome).__name__
        left_out = self._log_rate.admits(code, self._clock.monotonic())
        if left_out is not None:
            at = {"host": self._server.host, "port": self._server.port}
            log.warning("smtp_connection_failed", **at, code=code, error=type(error).__name__, left_out=left_out)


def _failure(error: Exception, step: Step) -> Outcome:
    cause = error.__cause__ or error
    if isinstance(cause, ssl.SSLError) or isinstance(error, ssl.SSLError):
        return Down("tls_failed")
    if isinstance(error, SMTPConnectResponseError | SMTPResponseException):
        return refused(SmtpReply(error.code, error.message), step)
    if isinstance(error, SMTPServerDisconnected | SMTPTimeoutError | OSError):
        return Down("connect_failed")
    # STARTTLS, or a login, that the server does not offer: it must not be given anything in the clear.
    return Down("tls_failed" if step is Step.OPENING else "unauthorized")
