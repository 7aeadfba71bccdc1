"""A mail server of aiosmtpd, and adapters that send through it."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session
from tests.channels.conftest import a_message
from tests.channels.email.certificates import Authority

from recado.channels.core.provider import Account, OutboundMessage, Outcome
from recado.channels.email.composing import CONTENT, Composer
from recado.channels.email.smtp.connections import SmtpServer
from recado.channels.email.smtp.smtp import Smtp
from recado.channels.http.outbound_guard import Turn
from recado.domain.email.content import EmailContent
from recado.engine.clock import VirtualClock

ACCOUNT = Account(sender_id="snd_1", organization_id="org_1", env="live", provider_id="mail", owner="mail")
USER, PASSWORD = "recado", "pass-5d1"

VERBS = ("EHLO", "STARTTLS", "AUTH", "MAIL", "RCPT", "DATA", "RSET")
"""What a server reacts to; besides, `CONNECT` is its greeting, and `CONTENT` its answer to the final dot."""

React = Callable[["Peer"], Awaitable[str | None] | str | None]
"""What happens at a verb: what is answered; None: as always."""


@dataclass(eq=False)
class MailServer:
    """`at`: by the verb, what happens there. `taken`: the e-mails, each with its envelope. `port` 0: any free one."""

    options: dict[str, Any] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    at: dict[str, React] = field(default_factory=dict)
    taken: list[Envelope] = field(default_factory=list)
    heard: list[str] = field(default_factory=list)  # the verbs, of all connections
    peers: "list[Peer]" = field(default_factory=list)
    released: asyncio.Event = field(default_factory=asyncio.Event)
    stalled: asyncio.Event = field(default_factory=asyncio.Event)
    port: int = 0

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: Peer(self), "127.0.0.1", self.port, ssl=self.tls)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        self.released.set()
        self._server.close()
        for peer in self.peers:
            peer.close()
        await self._server.wait_closed()
        # Each connection has a task, which outlives it.
        serving = [peer.serving for peer in self.peers if peer.serving is not None]
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    @property
    def open(self) -> int:
        return sum(peer.is_open for peer in self.peers)

    async def hang(self, peer: "Peer") -> str:
        self.stalled.set()
        await self.released.wait()
        return "421 4.3.2 released"


class Peer(SMTP):
    """One connection, on the side of the server."""

    def __init__(self, server: MailServer) -> None:
        self.server = server
        self._greeted = False
        super().__init__(
            _Handler(self),
            hostname="mail.example",
            ident="a test",
            loop=asyncio.get_running_loop(),
            authenticator=_authenticate,
            **server.options,
        )
        for verb in VERBS:
            self._smtp_methods[verb] = partial(self._reacting, verb, self._smtp_methods[verb])
        server.peers.append(self)

    @property
    def serving(self) -> "asyncio.Task[None] | None":
        """What reads from its connection."""
        return self._handler_coroutine

    @property
    def is_open(self) -> bool:
        return self.transport is not None and not self.transport.is_closing()

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        assert isinstance(self.transport, asyncio.Transport)
        self.transport.abort()

    async def push(self, status: str | bytes) -> None:
        if not self._greeted:
            self._greeted = True
            status = await self.reaction("CONNECT") or status
        await super().push(status)

    async def reaction(self, verb: str) -> str | None:
        self.server.heard.append(verb)
        react = self.server.at.get(verb)
        found = None if react is None else react(self)
        return await found if isinstance(found, Awaitable) else found

    async def _reacting(self, verb: str, as_always: Callable[[str | None], Awaitable[None]], arg: str | None) -> None:
        answer = await self.reaction(verb)
        await (as_always(arg) if answer is None else self.push(answer))


class _Handler:
    def __init__(self, peer: Peer) -> None:
        self._peer = peer

    async def handle_DATA(  # noqa: N802 - as aiosmtpd has it
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        answer = await self._peer.reaction("CONTENT")
        if answer is None:
            self._peer.server.taken.append(envelope)
        return answer or "250 2.0.0 queued as 4XyZ"


def _authenticate(server: SMTP, session: Session, envelope: Envelope, mechanism: str, given: Any) -> AuthResult:
    known = isinstance(given, LoginPassword) and (given.login, given.password) == (USER.encode(), PASSWORD.encode())
    return AuthResult(success=known, handled=False)


@pytest.fixture
async def mail_server() -> AsyncIterator[MailServer]:
    server = MailServer({"enable_SMTPUTF8": True})
    await server.start()
    yield server
    await server.stop()


@pytest.fixture
def free() -> Turn:
    """Places for everybody."""
    return lambda _: nullcontext()


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


Made = Callable[..., Awaitable[Smtp]]


@pytest.fixture
async def made(clock: VirtualClock) -> AsyncIterator[Made]:
    """Makes adapters at a port, and stops them."""
    adapters: list[Smtp] = []

    async def make(
        port: int, *, places: Turn | None = None, timeout: float = 15.0, opens_within: float = 0.0, **server: Any
    ) -> Smtp:
        adapter = Smtp(
            SmtpServer(
                **{"host": "127.0.0.1", "tls": False, "starttls": False, "name": "recado.test", **server}, port=port
            ),
            composer=Composer(clock=clock, turn=lambda _: nullcontext()),
            places=places or (lambda _: nullcontext()),
            clock=clock,
            timeout=timeout,
            opens_within=opens_within,
        )
        adapters.append(adapter)
        await adapter.start()
        return adapter

    yield make
    for adapter in adapters:
        await adapter.stop()


def an_email(to: str = "ana@example.com", **content: Any) -> OutboundMessage:
    given = {"from_address": "news@example.com", "subject": "The secret of the house", "text": "Hi", **content}
    return a_message(channel="email", to=to, sender_id="snd_1", payload=None, details={CONTENT: EmailContent(**given)})


def sending(adapter: Any, to: str = "ana@example.com", **content: Any) -> "asyncio.Task[Outcome]":
    task: asyncio.Task[Outcome] = asyncio.create_task(adapter.send(an_email(to, **content), ACCOUNT, 1))
    return task
