"""The simulated mail server before the SMTP adapter: what it takes, and what its people do with it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from tests.channels.conftest import a_message
from tests.waiting import until

from recado.channels.core.provider import Accepted, Account, Down, Outcome, Refused
from recado.channels.email.composing import CONTENT, Composer
from recado.channels.email.smtp.connections import SmtpServer
from recado.channels.email.smtp.smtp import Smtp
from recado.domain.email.content import EmailContent
from recado.engine.clock import SystemClock
from recado.simulator.behaviour import Given
from recado.simulator.options import SimulatorOptions
from recado.simulator.record import read_record, recipient_hash
from recado.simulator.server import Simulator

ACCOUNT = Account(sender_id="mail", organization_id="org_1", env="live", provider_id="mail", owner="mail")
LINK, IMAGE, LEAVE = "/l/AbCd1234", "/o/token-1.gif", "/u/token-2"


class Public:
    """The service's public routes: who came, and with which body."""

    def __init__(self) -> None:
        self.came: list[tuple[str, str, str]] = []
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._come)
        self.server = TestServer(app)

    async def _come(self, request: web.Request) -> web.Response:
        self.came.append((request.method, request.path, await request.text()))
        if request.path.startswith("/l/"):
            return web.Response(status=302, headers={"Location": str(self.server.make_url("/elsewhere"))})
        return web.Response()

    def url(self, path: str) -> str:
        return str(self.server.make_url(path))


@pytest.fixture
async def public() -> AsyncIterator[Public]:
    found = Public()
    await found.server.start_server()
    yield found
    await found.server.close()


@pytest.fixture
async def simulator(tmp_path: Path) -> AsyncIterator[Simulator]:
    options: dict[str, Any] = {"record": tmp_path / "mail.jsonl", "secret": "s", "token": "right"}
    found = Simulator(SimulatorOptions(smtp=("127.0.0.1", 0), receipt_delay=0.0, **options))
    await found.start()
    yield found
    await found.stop()


async def sent(
    simulator: Simulator, public: Public, to: str, password: str = "right", *, tracked: bool = True
) -> Outcome:
    """Through the adapter of the service."""
    server = SmtpServer(
        host="127.0.0.1", port=simulator.smtp_port, tls=False, starttls=False, name="recado.test", user="u",
        password=password,
    )  # fmt: skip
    clock = SystemClock()
    adapter = Smtp(
        server,
        composer=Composer(clock=clock, turn=lambda _: nullcontext()),
        places=lambda _: nullcontext(),
        clock=clock,
    )
    html = f'<p>Olá</p><a href="{public.url(LINK)}">x</a><img src="{public.url(IMAGE)}" width="1">'
    content = EmailContent(
        from_address="news@shop.example", subject="Hi", html=html if tracked else '<a href="https://example.com/">x</a>',
        headers=(("List-Unsubscribe", f"<{public.url(LEAVE)}>"),) if tracked else (),
    )  # fmt: skip
    await adapter.start()
    try:
        return await adapter.send(
            a_message(channel="email", to=to, sender_id="mail", payload=None, details={CONTENT: content}), ACCOUNT, 1
        )
    finally:
        await adapter.stop()


@pytest.mark.parametrize(
    ("local", "acts"),
    [
        ("open", [("GET", IMAGE, "")]),
        ("Click+a", [("GET", IMAGE, ""), ("GET", LINK, "")]),
        ("unsubscribe", [("POST", LEAVE, "List-Unsubscribe=One-Click")]),
        ("complaint", [("POST", LEAVE, "List-Unsubscribe=One-Click")]),
    ],
)
async def test_the_local_part_says_what_its_person_does(
    simulator: Simulator, public: Public, local: str, acts: list[tuple[str, str, str]]
) -> None:
    """A link is not followed further than the service."""
    assert isinstance(await sent(simulator, public, f"{local}@shop.example"), Accepted)
    await until(lambda: len(public.came) >= len(acts), "the person acts")
    assert public.came == acts


async def test_what_it_takes_and_what_it_refuses_is_on_the_record(
    simulator: Simulator, public: Public, tmp_path: Path
) -> None:
    assert isinstance(await sent(simulator, public, "ana@shop.example"), Accepted)
    assert isinstance(refused := await sent(simulator, public, "bounce+1@shop.example"), Refused)
    assert refused.code == "invalid_address"
    record = read_record(tmp_path / "mail.jsonl")
    assert [(each.protocol, each.number, each.outcome) for each in record] == [
        ("smtp", "shop.example", Given.ACCEPTED),
        ("smtp", "shop.example", Given.REFUSED),
    ]
    assert record[0].recipient == recipient_hash("ana@shop.example")
    assert record[0].answered_at is not None
    assert [each.provider_message_id for each in record] == [record[0].id, None]
    assert b"ana" not in (tmp_path / "mail.jsonl").read_bytes()
    assert public.came == []


async def test_an_email_with_nothing_to_open_is_told_and_harms_nothing(public: Public, tmp_path: Path) -> None:
    told: list[str] = []
    options = SimulatorOptions(
        record=tmp_path / "r", secret="s", smtp=("127.0.0.1", 0), receipt_delay=0.0, token="right"
    )
    simulator = Simulator(options, tell=told.append)
    await simulator.start()
    try:
        assert isinstance(await sent(simulator, public, "click@shop.example", tracked=False), Accepted)
        await until(lambda: len(told) == 2, "it is told")
    finally:
        await simulator.stop()
    assert told == ["an e-mail has nothing to open", "an e-mail has nothing to click"]
    assert public.came == []


async def test_only_its_password_lets_in(simulator: Simulator, public: Public) -> None:
    assert await sent(simulator, public, "ana@shop.example", "wrong") == Down("unauthorized")


async def test_a_stop_ends_what_is_under_way(tmp_path: Path, public: Public) -> None:
    options = SimulatorOptions(
        record=tmp_path / "r", secret="s", smtp=("127.0.0.1", 0), receipt_delay=3_600.0, token="right"
    )
    simulator = Simulator(options)
    await simulator.start()
    assert isinstance(await sent(simulator, public, "open@shop.example"), Accepted)
    async with asyncio.timeout(60):
        await simulator.stop()
    assert public.came == []
