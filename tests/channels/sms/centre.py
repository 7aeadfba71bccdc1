"""An SMS centre on a real socket that does what a test tells it."""

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field

from recado.channels.sms.smpp.framing import Framer
from recado.channels.sms.smpp.pdu import RESPONSE, BindResponse, Command, Pdu, ShortMessage, Taken, decode, encode


class Link(asyncio.Protocol):
    """A connection that the centre accepted; what it got is in `got`, in its order."""

    def __init__(self, centre: "Centre") -> None:
        self.centre = centre
        self.framer = Framer()
        self.got: list[Pdu] = []
        self.bound = False
        self.lost = asyncio.get_running_loop().create_future()
        self.sequence = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.centre.links.append(self)
        self.centre.noted()

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(None)
        self.centre.noted()

    def data_received(self, data: bytes) -> None:
        for octets in self.framer.feed(data):
            pdu = decode(octets)
            self.got.append(pdu)
            self.centre.got.append(pdu)
            self.centre.react(self, pdu)
        self.centre.noted()

    def write(self, octets: bytes) -> None:
        self.transport.write(octets)

    def answer(self, pdu: Pdu, status: int = 0, message_id: str = "") -> None:
        body = pdu.body
        match pdu.command:
            case Command.BIND_TRANSCEIVER:
                body = BindResponse("centre")
                self.bound = status == 0
            case Command.SUBMIT_SM | Command.DATA_SM:
                body = Taken(message_id)
        answer = Pdu(command=Command(pdu.command | RESPONSE), status=status, sequence=pdu.sequence, body=body)
        self.write(encode(answer))

    def bring(self, body: ShortMessage, tlvs: tuple[tuple[int, bytes], ...] = ()) -> int:
        """Bring a delivery; its sequence number."""
        self.sequence += 1
        self.write(encode(Pdu(command=Command.DELIVER_SM, sequence=self.sequence, body=body, tlvs=tlvs)))
        return self.sequence

    def ask(self, command: Command) -> int:
        """Ask something without a body; the sequence number."""
        self.sequence += 1
        self.write(encode(Pdu(command=command, sequence=self.sequence)))
        return self.sequence

    def answers(self, command: Command) -> list[tuple[int, int]]:
        """Sequence number and status of what we answered with."""
        return [(pdu.sequence, pdu.status) for pdu in self.got if pdu.command == command]


React = Callable[[Link, Pdu], None]


@dataclass
class Centre:
    """`submitted`: what it does with a submit; `binds`: with a bind; `asked`: with whatever else asks."""

    submitted: React = lambda link, pdu: link.answer(pdu, message_id=f"id-{len(link.centre.submits)}")
    binds: React = lambda link, pdu: link.answer(pdu)
    asked: React = lambda link, pdu: link.answer(pdu)
    links: list[Link] = field(default_factory=list)
    got: list[Pdu] = field(default_factory=list)
    port: int = 0
    tls: ssl.SSLContext | None = None
    _server: asyncio.Server | None = None
    _waiting: list[tuple[Callable[[], bool], "asyncio.Future[None]"]] = field(default_factory=list)

    @property
    def submits(self) -> list[ShortMessage]:
        return [pdu.body for pdu in self.got if pdu.command == Command.SUBMIT_SM and isinstance(pdu.body, ShortMessage)]

    @property
    def link(self) -> Link:
        """The connection that was made last."""
        return self.links[-1]

    async def start(self) -> None:
        self._server = await asyncio.get_running_loop().create_server(
            lambda: Link(self), "127.0.0.1", self.port, ssl=self.tls
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
            for link in self.links:
                link.transport.abort()

    def react(self, link: Link, pdu: Pdu) -> None:
        if pdu.command & RESPONSE:
            return
        if pdu.command == Command.SUBMIT_SM:
            self.submitted(link, pdu)
        elif pdu.command == Command.BIND_TRANSCEIVER:
            self.binds(link, pdu)
        else:
            self.asked(link, pdu)

    def noted(self) -> None:
        """Something came: whoever waits looks again."""
        for holds, waiting in self._waiting:
            if not waiting.done() and holds():
                waiting.set_result(None)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something that the centre sees holds."""
        if not holds():
            waiting = asyncio.get_running_loop().create_future()
            self._waiting.append((holds, waiting))
            await asyncio.wait_for(waiting, 10)

    async def settled(self) -> None:
        """Wait until whatever we had written by now has come: our answer to a question comes behind it."""
        asked, link = self.link.ask(Command.ENQUIRE_LINK), self.link
        await self.until(lambda: (asked, 0) in link.answers(Command.ENQUIRE_LINK_RESP))
