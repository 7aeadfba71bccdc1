"""Nothing is told in the clear, nor to a server for which nobody vouches (C29.1)."""

import ssl
from collections.abc import Callable
from datetime import timedelta

import pytest
from tests.captured import capture_logs
from tests.channels.email.certificates import NOW, Authority
from tests.channels.email.conftest import PASSWORD, USER, Made, MailServer, sending

from recado.channels.core.provider import Accepted, Down
from recado.domain.core.log_rate import QUIET
from recado.engine.clock import VirtualClock

Context = Callable[[Authority], ssl.SSLContext]


@pytest.mark.parametrize("implicit", [True, False])
async def test_an_email_leaves_over_tls_after_a_login(authority: Authority, made: Made, implicit: bool) -> None:
    context = authority.server("127.0.0.1")
    server = MailServer({} if implicit else {"tls_context": context}, tls=context if implicit else None)
    # aiosmtpd knows only TLS that it began itself.
    server.options |= {"auth_require_tls": not implicit}
    await server.start()
    adapter = await made(
        server.port, tls=implicit, starttls=not implicit, ca_file=str(authority.file), user=USER, password=PASSWORD
    )
    assert isinstance(await sending(adapter), Accepted)
    assert server.heard[:1] == ["CONNECT"]
    assert ("STARTTLS" in server.heard) is not implicit
    assert "AUTH" in server.heard
    await server.stop()


@pytest.mark.parametrize(
    "context",
    [
        lambda authority: authority.server("mail.example"),
        lambda authority: authority.server("127.0.0.1", until=NOW - timedelta(days=1)),
    ],
    ids=["another host", "expired"],
)
@pytest.mark.parametrize("implicit", [True, False])
async def test_a_certificate_that_does_not_verify_is_told_nothing(
    authority: Authority, made: Made, context: Context, implicit: bool
) -> None:
    made_context = context(authority)
    server = MailServer({} if implicit else {"tls_context": made_context}, tls=made_context if implicit else None)
    await server.start()
    adapter = await made(
        server.port, tls=implicit, starttls=not implicit, ca_file=str(authority.file), user=USER, password=PASSWORD
    )
    assert await sending(adapter) == Down("tls_failed")
    assert not {"AUTH", "MAIL"} & set(server.heard)
    await server.stop()


async def test_nobody_vouches_for_an_authority_of_ones_own(authority: Authority, made: Made) -> None:
    server = MailServer({"tls_context": authority.server("127.0.0.1")})
    await server.start()
    assert await sending(await made(server.port, starttls=True)) == Down("tls_failed")
    assert "MAIL" not in server.heard
    await server.stop()


async def test_a_server_without_starttls_is_told_nothing(
    mail_server: MailServer, authority: Authority, made: Made
) -> None:
    adapter = await made(mail_server.port, starttls=True, ca_file=str(authority.file), user=USER, password=PASSWORD)
    assert await sending(adapter) == Down("tls_failed")
    assert not {"AUTH", "MAIL"} & set(mail_server.heard)


@pytest.mark.parametrize(("reply", "code"), [("454 4.7.0 not now", "connect_failed"), ("501 5.5.4 what", "forbidden")])
async def test_a_server_that_refuses_starttls_is_told_nothing(
    authority: Authority, made: Made, reply: str, code: str
) -> None:
    server = MailServer({"tls_context": authority.server("127.0.0.1")})
    server.at["STARTTLS"] = lambda peer: reply
    await server.start()
    assert await sending(await made(server.port, starttls=True, ca_file=str(authority.file))) == Down(code)
    assert "MAIL" not in server.heard
    await server.stop()


async def test_what_is_said_before_tls_is_no_part_of_it(authority: Authority, made: Made) -> None:
    """Whoever sits between could put replies there, which would be taken for the server's."""
    server = MailServer({"tls_context": authority.server("127.0.0.1")})
    server.at["STARTTLS"] = lambda peer: "220 2.0.0 go\r\n250 2.0.0 injected"
    await server.start()
    found = await sending(await made(server.port, starttls=True, ca_file=str(authority.file), timeout=1.0))
    assert isinstance(found, Down)
    assert "MAIL" not in server.heard
    await server.stop()


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (None, Down("unauthorized")),
        ("535 5.7.8 wrong", Down("unauthorized")),
        ("534 5.7.9 too weak", Down("unauthorized")),
        ("454 4.7.0 not now", Down("connect_failed")),
    ],
)
async def test_a_login_that_fails_is_told_apart(made: Made, reply: str | None, outcome: Down) -> None:
    server = MailServer({"auth_require_tls": False})
    if reply is not None:
        server.at["AUTH"] = lambda peer: reply
    await server.start()
    assert await sending(await made(server.port, user=USER, password="wrong")) == outcome
    assert "MAIL" not in server.heard
    await server.stop()


async def test_why_there_is_no_connection_is_logged_now_and_then_without_a_secret(
    made: Made, clock: VirtualClock
) -> None:
    server = MailServer({"auth_require_tls": False})
    server.at["AUTH"] = lambda peer: "535 5.7.8 hunter2 is wrong"
    await server.start()
    adapter = await made(server.port, user=USER, password="hunter2")
    with capture_logs() as logs:
        for _ in range(3):
            await sending(adapter)
        await clock.advance(QUIET)
        await sending(adapter)
    told = [(line["event"], line["code"], line["port"], line["left_out"]) for line in logs]
    assert told == [("smtp_connection_failed", "unauthorized", server.port, left_out) for left_out in (0, 2)]
    assert "hunter2" not in str(logs)
    await server.stop()


async def test_a_login_that_is_not_offered_fails(made: Made, mail_server: MailServer) -> None:
    assert await sending(await made(mail_server.port, user=USER, password=PASSWORD)) == Down("unauthorized")
    assert "MAIL" not in mail_server.heard
