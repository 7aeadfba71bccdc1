"""The simulated provider as a mail server: it takes e-mails, and their people act through the public addresses in them.

A mail server reports nothing, so that what a recipient does is the local part of its address, with any `+label` before
the `@`, as at the mailbox simulator (C29.4). It goes to the public addresses in the e-mail, and to no others.
"""

import asyncio
import re
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from html import unescape
from typing import Any, Final, cast
from urllib.parse import urlsplit

import aiohttp
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from recado.simulator.behaviour import Given
from recado.simulator.record import Record, Request, recipient_hash

MOST_BYTES: Final = 16 * 1024 * 1024  # of an e-mail
MOST_ACTS: Final = 1_000  # under way; what comes on top happens not at all
ACT_SECONDS: Final = 10.0
PERSON: Final = {"User-Agent": "Mozilla/5.0 (recado simulator)"}

OPEN, CLICK, UNSUBSCRIBE = "open", "click", "unsubscribe"
ACTS: Final = {"open": (OPEN,), "click": (OPEN, CLICK), "unsubscribe": (UNSUBSCRIBE,), "complaint": (UNSUBSCRIBE,)}
"""What the person at a local part does. Whoever complains is only heard where that is a click on "unsubscribe"."""
REFUSED: Final = {"bounce": "550 5.1.1 no such mailbox", "suppressionlist": "550 5.1.1 the address is suppressed"}

_LINKS: Final = {
    OPEN: re.compile(r'<img src="([^"]+/o/[A-Za-z0-9_-]+\.gif)"'),
    CLICK: re.compile(r'href="?([^"\s>]+/l/[0-9A-Za-z]{8})(?=["\s>])'),
}
_UNSUBSCRIBE: Final = re.compile(r"<(https?://[^>]+/u/[A-Za-z0-9_-]+)>")


class MailServer:
    """`password`: of every user; None: any will do, and none. `record`: where e-mails are noted, while there is one.

    `act_after`: seconds from the final dot to what its person does.
    """

    def __init__(
        self,
        *,
        password: str | None,
        record: Callable[[], Record | None],
        new_id: Callable[[], str],
        act_after: float,
        tell: Callable[[str], None],
    ) -> None:
        self._password = password
        self._record = record
        self._new_id = new_id
        self._act_after = act_after
        self._tell = tell
        self._server: asyncio.Server | None = None
        self._peers: set[_Peer] = set()
        self._acts: set[asyncio.Task[None]] = set()
        self._session: aiohttp.ClientSession | None = None
        self.port = 0

    async def start(self, host: str, port: int) -> None:
        self._session = aiohttp.ClientSession(headers=PERSON, timeout=aiohttp.ClientTimeout(total=ACT_SECONDS))
        self._server = await asyncio.get_running_loop().create_server(self._peer, host, port, backlog=1024)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """What people would still have done, they do not."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
        for peer in list(self._peers):
            peer.close()
        for act in list(self._acts):
            act.cancel()
        await asyncio.gather(*self._acts, return_exceptions=True)
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _peer(self) -> "_Peer":
        return _Peer(self, self._peers, password=self._password)

    # What aiosmtpd calls ----------------------------------------------------------------------------------------------

    async def handle_MAIL(  # noqa: N802 - as aiosmtpd has it
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self._password is not None and not session.authenticated:
            return "530 5.7.0 a login is needed"
        envelope.mail_from = address
        envelope.mail_options.extend(options)
        return "250 2.1.0 ok"

    async def handle_RCPT(  # noqa: N802 - as aiosmtpd has it
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        refusal = REFUSED.get(_kind_of(address))
        if refusal is not None:
            self._note(envelope.mail_from or "", address, Given.REFUSED)
            return refusal
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 ok"

    async def handle_DATA(  # noqa: N802 - as aiosmtpd has it
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        provider_id = ""
        for address in envelope.rcpt_tos:
            provider_id = self._note(envelope.mail_from or "", address, Given.ACCEPTED)
            acts = ACTS.get(_kind_of(address), ())
            if acts and len(self._acts) < MOST_ACTS:
                act = asyncio.get_running_loop().create_task(self._act(cast("bytes", envelope.content), acts))
                self._acts.add(act)
                act.add_done_callback(self._acts.discard)
        return f"250 2.0.0 queued as {provider_id}"

    def _note(self, sender: str, address: str, given: Given) -> str:
        """Answers the id under which it is on the record."""
        now, found = datetime.now(UTC), self._new_id()
        request = Request(
            id=found,
            at=now,
            number=sender.rpartition("@")[2],
            outcome=given,
            idempotency_key=None,
            recipient=recipient_hash(address),
            provider_message_id=found if given.processed else None,
            referenced=False,
            protocol="smtp",
        )
        record = self._record()
        if record is not None:
            record.add(request)
            record.answered(request, now)
        return found

    async def _act(self, content: bytes, acts: tuple[str, ...]) -> None:
        await asyncio.sleep(self._act_after)
        email: EmailMessage = cast("Any", message_from_bytes(content, policy=cast("Any", policy.default)))
        for act in acts:
            address = address_of(email, act)
            if address is None:
                self._tell(f"an e-mail has nothing to {act}")
                continue
            session = self._session
            if session is None:
                return
            ask = session.post if act == UNSUBSCRIBE else session.get
            more: dict[str, Any] = {"data": {"List-Unsubscribe": "One-Click"}} if act == UNSUBSCRIBE else {}
            try:
                async with ask(address, allow_redirects=False, **more) as answer:
                    if answer.status >= 400:
                        self._tell(f"{act} of an e-mail was answered with {answer.status}")
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
                self._tell(f"{act} of an e-mail failed ({type(error).__name__}): does the service run?")


class _Peer(SMTP):
    """One connection. `among`: all of them."""

    def __init__(self, handler: MailServer, among: "set[_Peer]", *, password: str | None) -> None:
        def known(server: SMTP, session: Session, envelope: Envelope, mechanism: str, given: Any) -> AuthResult:
            fits = password is None or (isinstance(given, LoginPassword) and given.password == password.encode())
            return AuthResult(success=fits, handled=False)

        super().__init__(
            handler,
            hostname="simulator",
            ident="recado simulator",
            data_size_limit=MOST_BYTES,
            enable_SMTPUTF8=True,
            authenticator=known,
            auth_require_tls=False,  # the service speaks in the clear to this machine only
            loop=asyncio.get_running_loop(),
        )
        self._among = among

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._among.add(self)
        super().connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        self._among.discard(self)
        super().connection_lost(error)

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()


def address_of(email: EmailMessage, act: str) -> str | None:
    """Where a person goes for an act; None where the e-mail has no such address."""
    if act == UNSUBSCRIBE:
        found = _UNSUBSCRIBE.search(str(email["List-Unsubscribe"] or ""))
    else:
        body = None
        with suppress(LookupError, ValueError):  # of a charset that is none
            part = email.get_body(("html",))
            body = None if part is None else str(part.get_content())
        found = None if body is None else _LINKS[act].search(body)
    address = None if found is None else unescape(found[1])
    return address if address is not None and urlsplit(address).scheme in ("http", "https") else None


def _kind_of(address: str) -> str:
    return address.rpartition("@")[0].partition("+")[0].lower()
