"""E-mails through the SMTP adapter, beside a bare client with as many connections, and how many a core makes.

Both send to the npm package's mail server.
"""

import asyncio
import shutil
import statistics
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import aiosmtplib
import uvloop

from bench.harness import ROOT, Figure, Say, against
from recado.channels.core.provider import Accepted, Account, OutboundMessage
from recado.channels.email.composing import CONTENT, Composer
from recado.channels.email.smtp.connections import SmtpServer
from recado.channels.email.smtp.smtp import Smtp
from recado.domain.email.content import EmailContent
from recado.domain.email.mime import Origin, compose
from recado.domain.email.rendering import EmailPart, EmailParts, Value
from recado.engine.clock import SystemClock
from recado.services.email.sendable import SendableTemplate
from recado.storage.core.shares.fair_places import FairPlaces

CONNECTIONS = 10
EMAILS = 3_000  # in a round
ROUNDS = 3
LEAST = 0.8
MADE = 1_000  # in a round
ENOUGH = 5_000  # a second
BYTES = 30 * 1024
VARIABLES = 20
ACCOUNT = Account(sender_id="snd_1", organization_id="org_1", env="live", provider_id="mail", owner="mail")
ORIGIN = Origin("msg_0000000100000000000a1", "org_1", datetime(2026, 11, 26, tzinfo=UTC))
SHORT = EmailContent(
    from_address="news@example.com", from_name="News", subject="Your order", text="Hello, Ana, your order is ready."
)


async def run(say: Say) -> list[Figure]:
    node = shutil.which("node")
    if node is None or not (ROOT / "tests" / "node" / "node_modules" / "smtp-server").exists():
        raise RuntimeError("the mail server of tests/node is not installed: `make test-tools` installs it")
    async with _server(node) as port:
        ours, bare = await asyncio.to_thread(uvloop.run, _rounds(port, say))  # on the loop of the service
    say("e-mails rendered and made")
    return [
        against(f"E-mails over SMTP, {CONNECTIONS} connections", ours, bare, "/s", LEAST),
        _made("E-mails of 30 KB with 20 variables rendered and made", "cafe", text="Hello {{v0}}"),
        _made("– outside of ASCII", "café", text="Olá {{v0}}"),
        _made("– – with a text made of the HTML", "café", text=None),
    ]


async def _rounds(port: int, say: Say) -> tuple[list[float], list[float]]:
    """E-mails a second of each round, ours and those of the bare client."""
    ours: list[float] = []
    bare: list[float] = []
    async with _adapter(port) as adapter:
        for turn in range(ROUNDS):
            say(f"e-mails over SMTP, round {turn + 1} of {ROUNDS}")
            bare.append(await _bare(port))
            ours.append(await _through(adapter))
    return ours, bare


@asynccontextmanager
async def _server(node: str) -> AsyncIterator[int]:
    process = await asyncio.create_subprocess_exec(
        node, str(ROOT / "tests" / "node" / "mail.mjs"), "--quick", stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        yield int(await process.stdout.readline())
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def _adapter(port: int) -> AsyncIterator[Smtp]:
    clock = SystemClock()
    places = FairPlaces(CONNECTIONS, each=CONNECTIONS, most_waiting=EMAILS)
    adapter = Smtp(
        SmtpServer(host="127.0.0.1", port=port, tls=False, starttls=False, name="[127.0.0.1]"),
        composer=Composer(clock=clock, turn=places.place),
        places=places.place,
        clock=clock,
    )
    await adapter.start()
    try:
        yield adapter
    finally:
        await adapter.stop()


async def _through(adapter: Smtp) -> float:
    """E-mails a second, made of messages as the service hands them over."""
    left = iter(range(EMAILS))

    async def send() -> None:
        for number in left:
            message = OutboundMessage(
                id=f"msg_{number:021}",
                organization_id="org_1",
                env="live",
                channel="email",
                sender_id="snd_1",
                to=f"ana{number}@example.com",
                type="email",
                details={CONTENT: SHORT},
            )
            if not isinstance(await adapter.send(message, ACCOUNT, 1), Accepted):
                raise RuntimeError("an e-mail was not taken")

    began = time.perf_counter()
    await asyncio.gather(*(send() for _ in range(CONNECTIONS)))
    return EMAILS / (time.perf_counter() - began)


async def _bare(port: int) -> float:
    """E-mails a second of the library alone, which sends the same bytes each time."""
    left = iter(range(EMAILS))
    data = compose(SHORT, "ana@example.com", ORIGIN).data

    async def send() -> None:
        async with aiosmtplib.SMTP(hostname="127.0.0.1", port=port, start_tls=False, timeout=15) as client:
            for _ in left:
                await client.sendmail("news@example.com", ["ana@example.com"], data)

    began = time.perf_counter()
    await asyncio.gather(*(send() for _ in range(CONNECTIONS)))
    return EMAILS / (time.perf_counter() - began)


def _made(path: str, word: str, *, text: str | None) -> Figure:
    parts = {EmailPart.SUBJECT: "Hello {{v0}}", EmailPart.HTML: _html(word), EmailPart.TEXT: text}
    template = SendableTemplate.of(EmailParts(parts, {f"v{number}": None for number in range(VARIABLES)}), BYTES)
    rates = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for number in range(MADE):
            values: dict[str, Value] = {f"v{each}": f"value {number} {each}" for each in range(VARIABLES)}
            rendered = template.parts.render(values)
            content = EmailContent(
                from_address="news@example.com",
                from_name="News",
                subject=rendered.subject,
                html=rendered.html,
                text=rendered.text,
                text_source=template.text_source(values),
            )
            compose(content, "ana@example.com", ORIGIN)
        rates.append(MADE / (time.process_time() - began))
    rate = statistics.median(rates)
    return Figure(path, f"{rate:,.0f} /s", target=f"≥ {ENOUGH:,} /s", met=rate >= ENOUGH)


def _html(word: str) -> str:
    """Of the length, as a newsletter is written: rows of a table with styles, each variable once in so many."""
    return "<html><body><table>" + "".join(_rows(word)) + "</table></body></html>"


def _rows(word: str) -> Iterator[str]:
    length, number = 0, 0
    while length < BYTES:
        value = f"{{{{v{number % VARIABLES}}}}}"
        row = f'<tr><td style="padding: 10px; font-family: sans-serif">{word} {value} {word} e pão</td></tr>\n'
        row = row if word != "cafe" else row.replace("pão", "pao")
        yield row
        length, number = length + len(row), number + 1
