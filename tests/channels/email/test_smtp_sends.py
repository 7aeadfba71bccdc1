"""What a send through a mail server comes to, whatever the server does (C10.2.13, C29.2). The server is aiosmtpd's."""

import asyncio
import threading
from contextlib import nullcontext
from typing import Any, cast

import pytest
from tests.channels.email.conftest import ACCOUNT, Made, MailServer, Peer, an_email, sending
from tests.domain.email.emails import lines_of
from tests.domain.email.test_mime import read
from tests.waiting import until

from recado.channels.core.provider import (
    Accepted,
    Down,
    NoPlace,
    Outcome,
    Refused,
    Retry,
    SlowDown,
    Unknown,
)
from recado.channels.email.composing import MOST_TAGS, SHORT, Composer
from recado.channels.email.smtp.connections import IDLE_SECONDS, MOST_EMAILS
from recado.domain.email.dkim import DkimKey
from recado.engine.clock import VirtualClock
from recado.storage.core.shares.fair_places import FairPlaces

SOON = 1.0  # seconds, of a send that is to run out of time: what comes before takes a part of it
TAKEN = Accepted("msg_0000000100000000000a1@example.com")


async def test_the_server_gets_the_email_as_it_was_made(mail_server: MailServer, made: Made) -> None:
    adapter = await made(mail_server.port)
    assert await sending(adapter, to="Ana@Example.COM", text="Hi\n.\n..dots\nFrom here", html="<p>Hi") == TAKEN
    (taken,) = mail_server.taken
    assert (taken.mail_from, taken.rcpt_tos) == ("news@example.com", ["Ana@example.com"])
    assert isinstance(taken.content, bytes)
    message = read(taken.content)
    plain = message.get_body(("plain",))
    assert plain is not None
    assert message["subject"] == "The secret of the house"
    assert lines_of(plain.get_content()) == ["Hi", ".", "..dots", "From here"]


@pytest.mark.parametrize(
    ("verb", "reply", "outcome"),
    [
        ("CONNECT", "421 4.3.2 going down", Down("unavailable")),
        ("CONNECT", "421 4.7.0 too many connections", SlowDown()),
        ("CONNECT", "450 4.3.1 busy", SlowDown()),
        ("CONNECT", "554 5.7.1 go away", Down("forbidden")),
        ("EHLO", "421 4.3.2 going down", Down("unavailable")),
        ("EHLO", "550 5.7.1 go away", Down("forbidden")),
        ("MAIL", "421 4.4.5 too busy", SlowDown()),
        ("MAIL", "450 4.7.1 later", Retry()),
        ("MAIL", "451 4.3.0 error", Retry()),
        ("MAIL", "452 4.3.1 no room", SlowDown()),
        ("MAIL", "530 5.7.0 log in first", Down("unauthorized")),
        ("MAIL", "550 5.7.1 not your address", "provider_error"),
        ("MAIL", "552 5.3.4 too long", "content_rejected"),
        ("MAIL", "553 5.1.8 no such sender", "provider_error"),
        ("RCPT", "421 4.7.28 rate limited", SlowDown()),
        ("RCPT", "450 4.2.0 greylisted", Retry()),
        ("RCPT", "450 4.7.28 rate limited", SlowDown()),
        ("RCPT", "451 later", Retry()),
        ("RCPT", "451 4.3.2 greylisted", Retry()),
        ("RCPT", "421 4.3.2 going down", SlowDown()),
        ("RCPT", "452 4.3.1 no room", SlowDown()),
        ("MAIL", "451 4.3.2 not now", SlowDown()),
        ("RCPT", "452 4.2.2 mailbox full", Retry()),
        ("RCPT", "550 no such user", "invalid_address"),
        ("RCPT", "550 5.1.1 no such user", "invalid_address"),
        ("RCPT", "550 5.1.2 no such domain", "invalid_address"),
        ("RCPT", "550 5.2.1 disabled", "invalid_address"),
        ("RCPT", "550 5.7.1 relaying denied", "provider_error"),
        ("RCPT", "552 5.2.2 mailbox full", "provider_error"),
        ("RCPT", "553 5.1.3 bad address", "invalid_address"),
        ("RCPT", "554 no", "provider_error"),
        ("DATA", "451 later", Retry()),
        ("DATA", "503 5.5.1 no recipients", "provider_error"),
        ("DATA", "554 no valid recipients", "content_rejected"),
        ("DATA", "250 odd", Down("protocol")),
        ("CONTENT", "421 4.3.0 going down", SlowDown()),
        ("CONTENT", "451 4.3.0 error", Retry()),
        ("CONTENT", "452 4.3.1 no room", SlowDown()),
        ("CONTENT", "454 4.7.0 later", Retry()),
        ("CONTENT", "550 5.1.1 no such user", "invalid_address"),
        ("CONTENT", "550 5.7.1 spam", "content_rejected"),
        ("CONTENT", "550 spam", "content_rejected"),
        ("CONTENT", "552 5.3.4 too long", "content_rejected"),
        ("CONTENT", "554 5.6.0 malformed", "content_rejected"),
        ("CONTENT", "554 5.3.0 broken", "provider_error"),
        ("CONTENT", "354 odd", Unknown()),
        ("CONTENT", "words", Unknown()),
        ("MAIL", "words", Down("protocol")),
    ],
)
async def test_a_reply_says_what_becomes_of_the_email(
    mail_server: MailServer, made: Made, verb: str, reply: str, outcome: Outcome | str
) -> None:
    mail_server.at[verb] = lambda peer: reply
    found = await sending(await made(mail_server.port))
    if isinstance(outcome, str):
        assert found == Refused(outcome, " ".join(reply.split()))
    else:
        assert found == outcome
    assert not mail_server.taken


@pytest.mark.parametrize(
    ("verb", "outcome"),
    [
        ("CONNECT", Down("unavailable")),
        ("EHLO", Down("unavailable")),
        ("RCPT", Down("protocol")),
        ("CONTENT", Unknown()),
    ],
)
@pytest.mark.parametrize("reply", ["250 " + "x" * 2_000_000, "250-x\r\n" * 300_000 + "250 x"], ids=["line", "lines"])
async def test_a_reply_without_end_is_not_read_to_it(
    mail_server: MailServer, made: Made, verb: str, outcome: Outcome, reply: str
) -> None:
    mail_server.at[verb] = lambda peer: reply
    assert await sending(await made(mail_server.port)) == outcome


async def test_a_refusal_repeats_nothing_personal(mail_server: MailServer, made: Made) -> None:
    mail_server.at["RCPT"] = lambda peer: "550 5.1.1 <ana@example.com>: no such user; The secret of the house"
    assert await sending(await made(mail_server.port)) == Refused(
        "invalid_address", "550 5.1.1 <***>: no such user; ***"
    )


@pytest.mark.parametrize(
    ("verb", "outcome"),
    [
        ("CONNECT", Down("timeout")),
        ("EHLO", Down("timeout")),
        ("MAIL", Retry()),
        ("RCPT", Retry()),
        ("DATA", Retry()),
        ("CONTENT", Unknown()),
    ],
)
async def test_a_server_that_stalls_is_down_before_an_email_and_leaves_only_what_it_had_whole_in_doubt(
    mail_server: MailServer, made: Made, verb: str, outcome: Outcome
) -> None:
    mail_server.at[verb] = mail_server.hang
    assert await sending(await made(mail_server.port, timeout=SOON)) == outcome
    assert verb in mail_server.heard


async def test_a_server_that_had_no_time_to_open_is_not_down(mail_server: MailServer, made: Made) -> None:
    mail_server.at["EHLO"] = mail_server.hang
    adapter = await made(mail_server.port, timeout=SOON, opens_within=2 * SOON)  # the rest went for the content
    assert await sending(adapter) == Retry()


async def test_a_server_that_stalls_at_a_second_connection_is_down(mail_server: MailServer, made: Made) -> None:
    adapter = await made(mail_server.port, timeout=SOON)
    assert await sending(adapter) == TAKEN
    mail_server.at["MAIL"] = lost_once(mail_server, None)
    mail_server.at["EHLO"] = mail_server.hang
    assert await sending(adapter) == Down("timeout")


@pytest.mark.parametrize("verb", ["CONNECT", "EHLO", "MAIL", "RCPT", "DATA", "CONTENT"])
async def test_a_connection_that_breaks_leaves_only_what_was_told_whole_in_doubt(
    mail_server: MailServer, made: Made, verb: str
) -> None:
    mail_server.at[verb] = lambda peer: peer.abort()
    found = await sending(await made(mail_server.port))
    assert found == (Unknown() if verb == "CONTENT" else Down("connect_failed"))
    assert mail_server.heard.count("CONNECT") == 1  # nothing is tried again by itself


async def test_nobody_there_is_a_failure_to_connect(mail_server: MailServer, made: Made) -> None:
    await mail_server.stop()
    assert await sending(await made(mail_server.port)) == Down("connect_failed")


# Connections ----------------------------------------------------------------------------------------------------------


async def test_emails_one_after_the_other_share_a_connection(mail_server: MailServer, made: Made) -> None:
    adapter = await made(mail_server.port)
    for _ in range(3):
        assert await sending(adapter) == TAKEN
    assert mail_server.heard.count("CONNECT") == 1


@pytest.mark.parametrize("verb", ["RCPT", "DATA"])
async def test_a_refused_email_is_forgotten_before_the_next_one(mail_server: MailServer, made: Made, verb: str) -> None:
    adapter = await made(mail_server.port)
    mail_server.at[verb] = lambda peer: "550 5.1.1 no such user"
    assert isinstance(await sending(adapter), Refused)
    del mail_server.at[verb]
    assert await sending(adapter, to="leo@example.com") == TAKEN
    assert mail_server.heard.count("CONNECT") == 1
    assert [each.rcpt_tos for each in mail_server.taken] == [["leo@example.com"]]


def lost_once(server: MailServer, reply: str | None) -> Any:
    """At MAIL of the first connection only."""

    def react(peer: Peer) -> str | None:
        if server.peers[0] is not peer:
            return None
        if reply is None:
            peer.abort()
        return reply

    return react


@pytest.mark.parametrize("reply", [None, "421 4.4.2 too long idle"])
async def test_a_kept_connection_that_is_gone_costs_nothing(
    mail_server: MailServer, made: Made, reply: str | None
) -> None:
    adapter = await made(mail_server.port)
    assert await sending(adapter) == TAKEN
    mail_server.at["MAIL"] = lost_once(mail_server, reply)
    assert await sending(adapter) == TAKEN
    assert mail_server.heard.count("CONNECT") == 2


async def test_a_connection_that_the_server_closed_meanwhile_is_not_used(mail_server: MailServer, made: Made) -> None:
    adapter = await made(mail_server.port)
    assert await sending(adapter) == TAKEN
    mail_server.peers[0].close()
    assert await sending(adapter) == TAKEN
    assert len(mail_server.taken) == 2


async def test_a_connection_that_rested_long_is_not_used_again(
    mail_server: MailServer, made: Made, clock: VirtualClock
) -> None:
    adapter = await made(mail_server.port)
    assert await sending(adapter) == TAKEN
    await clock.advance(IDLE_SECONDS)
    assert await sending(adapter) == TAKEN
    assert mail_server.heard.count("CONNECT") == 2


async def test_a_connection_has_so_many_emails_and_no_more(mail_server: MailServer, made: Made) -> None:
    adapter = await made(mail_server.port)
    for _ in range(MOST_EMAILS + 1):
        assert await sending(adapter) == TAKEN
    assert mail_server.heard.count("CONNECT") == 2


async def test_connections_are_no_more_than_their_places(mail_server: MailServer, made: Made) -> None:
    most = 0

    def count(peer: Peer) -> None:
        nonlocal most
        most = max(most, mail_server.open)

    mail_server.at["CONTENT"] = cast("Any", count)
    adapter = await made(mail_server.port, places=FairPlaces(3, each=3, most_waiting=100).place)
    assert await asyncio.gather(*(sending(adapter) for _ in range(20))) == [TAKEN] * 20
    assert most == 3
    assert mail_server.heard.count("CONNECT") == 3


async def test_who_finds_no_place_says_nothing_of_the_server(mail_server: MailServer, made: Made) -> None:
    adapter = await made(mail_server.port, timeout=SOON, places=FairPlaces(1, most_waiting=1).place)
    mail_server.at["MAIL"] = mail_server.hang
    first, second = sending(adapter), sending(adapter)
    await mail_server.stalled.wait()
    assert await sending(adapter) == NoPlace()  # one waits already
    assert await second in (NoPlace(), Retry())
    assert await first == Retry()


async def test_a_send_that_is_cancelled_leaves_its_connection_to_nobody(mail_server: MailServer, made: Made) -> None:
    adapter = await made(mail_server.port)
    mail_server.at["RCPT"] = mail_server.hang
    task = sending(adapter)
    await mail_server.stalled.wait()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    del mail_server.at["RCPT"]
    assert await sending(adapter, to="leo@example.com") == TAKEN
    assert mail_server.heard.count("CONNECT") == 2


async def test_a_stopped_adapter_sends_nothing(mail_server: MailServer, made: Made) -> None:
    adapter = await made(mail_server.port)
    assert await sending(adapter) == TAKEN
    await adapter.stop()
    await adapter.stop()
    assert await sending(adapter) == Down("stopped")


# What the server says of itself ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{"data_size_limit": 1_000}])
async def test_an_email_beyond_the_servers_limit_is_not_told(made: Made, options: dict[str, Any]) -> None:
    server = MailServer(options)
    await server.start()
    adapter = await made(server.port)
    assert await sending(adapter, text="x" * 2_000) == Refused(
        "content_rejected", "the mail server takes 1000 bytes at most"
    )
    assert await sending(adapter) == TAKEN
    await server.stop()


async def test_an_address_outside_of_ascii_needs_a_server_that_takes_it(made: Made, mail_server: MailServer) -> None:
    plain = MailServer()
    await plain.start()
    found = await sending(await made(plain.port), to="josé@bücher.example")
    assert found == Refused("invalid_address", "the mail server takes no address outside of ASCII")
    assert "MAIL" not in plain.heard
    await plain.stop()
    assert await sending(await made(mail_server.port), to="josé@bücher.example") == TAKEN
    (taken,) = mail_server.taken
    assert (taken.rcpt_tos, taken.smtp_utf8) == (["josé@xn--bcher-kva.example"], True)


@pytest.mark.parametrize(("to", "code"), [("ana@", "invalid_address"), ("ana\r\nDATA@example.com", "invalid_address")])
async def test_what_is_no_address_is_refused_before_anything_is_told(
    mail_server: MailServer, made: Made, to: str, code: str
) -> None:
    found = await sending(await made(mail_server.port), to=to)
    assert isinstance(found, Refused)
    assert found.code == code
    assert not mail_server.heard


# Making it ------------------------------------------------------------------------------------------------------------


class ThreadsKey:
    """A key that says where it signs."""

    def __init__(self) -> None:
        self.threads: list[str] = []

    def sign(self, *_: Any) -> tuple[str, bytes]:
        self.threads.append(threading.current_thread().name)
        return "DKIM-Signature", b"v=1"


async def test_a_long_email_is_made_in_a_thread_and_a_short_one_at_once(clock: VirtualClock) -> None:
    key = ThreadsKey()
    composer = Composer(clock=clock, turn=lambda _: nullcontext(), key=cast("DkimKey", key))
    composer.start()
    await composer.compose(an_email(text="x" * SHORT))
    await composer.compose(an_email(text="x" * (SHORT + 1)))
    composer.stop()
    assert [name.split("_")[0] for name in key.threads] == [threading.current_thread().name, "email"]


async def test_a_text_of_html_that_is_all_tags_is_made_in_a_thread(clock: VirtualClock) -> None:
    key = ThreadsKey()
    composer = Composer(clock=clock, turn=lambda _: nullcontext(), key=cast("DkimKey", key))
    composer.start()
    tags = "<br>" * MOST_TAGS
    await composer.compose(an_email(html=tags, text=None))
    await composer.compose(an_email(html=tags + "<br>", text="Hi"))
    await composer.compose(an_email(html=tags + "<br>", text=None))
    composer.stop()
    own = threading.current_thread().name
    assert [name.split("_")[0] for name in key.threads] == [own, own, "email"]


async def test_long_emails_of_one_organization_wait_for_each_other(
    mail_server: MailServer, clock: VirtualClock
) -> None:
    places = FairPlaces(2, each=1, most_waiting=1)
    composer = Composer(clock=clock, turn=places.place)
    composer.start()
    async with places.place("org_000000000000000000001"):
        waiting = asyncio.create_task(composer.compose(an_email(text="x" * SHORT * 2)))
        other = an_email(text="y" * SHORT * 2)
        other.organization_id = "org_2"
        assert b"yyy" in (await composer.compose(other)).data
        assert not waiting.done()
    assert b"xxx" in (await waiting).data
    composer.stop()


class SlowKey:
    """A key that signs when it is told to."""

    def __init__(self) -> None:
        self.told = threading.Event()

    def sign(self, *_: Any) -> tuple[str, bytes]:
        self.told.wait(30)
        return "DKIM-Signature", b"v=1"


async def test_who_goes_away_waits_for_no_thread_whose_turn_goes_on(clock: VirtualClock) -> None:
    key, places = SlowKey(), FairPlaces(1, most_waiting=1)
    composer = Composer(clock=clock, turn=places.place, key=cast("DkimKey", key))
    composer.start()
    try:
        made = asyncio.create_task(composer.compose(an_email(text="x" * SHORT * 2)))
        await until(lambda: places.taken == 1, "it has its turn")
        await asyncio.sleep(0)
        made.cancel()
        await asyncio.wait({made}, timeout=5)
        assert made.cancelled()
        await asyncio.sleep(0.3)
        assert places.taken == 1
    finally:
        key.told.set()
    await until(lambda: places.taken == 0, "its turn is over")
    composer.stop()


def test_an_account_says_nothing_of_a_message() -> None:
    assert "secret" not in repr(an_email()) + repr(ACCOUNT)
