"""What a send through SES comes to (C29.2), and whether it sends from a domain (C10.4): with moto's SES, and with
servers that answer as SES documents it."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import nullcontext
from typing import Any
from urllib.parse import unquote

import boto3
import pytest
from moto.server import ThreadedMotoServer
from moto.ses.models import ses_backends
from tests.channels.behaviours import Behaviour, closes_after_reading, hangs, resets_after_reading, says
from tests.channels.conftest import NOW
from tests.channels.email.conftest import sending
from tests.channels.email.sns_messages import TOPIC
from tests.channels.peer import Connection, FakeBridge, Request
from tests.domain.email.test_mime import read
from tests.program import free_port

from recado.channels.core.errors import NothingDoneError, ProviderError
from recado.channels.core.provider import Accepted, Down, NoPlace, Outcome, Refused, SlowDown, Unknown
from recado.channels.email.composing import Composer
from recado.channels.email.ses.reports import TAG
from recado.channels.email.ses.ses import Ses, SesOptions
from recado.domain.email.sender import MOST_PARENTS, DnsRecord, SenderLook
from recado.engine.clock import VirtualClock
from recado.storage.core.shares.fair_places import FairPlaces

ONCE = "Content-Type: application/json\r\nConnection: close\r\n"  # the next test has a connection of its own
TAKEN = says(200, '{"MessageId": "0100-ses"}', ONCE)
BRIEF = 2.0  # seconds, of a send that is to run out of time
REGION = "eu-west-1"
SECRET = "wJalrXUtnFEMI"


def adapter_at(url: str, clock: VirtualClock, **options: Any) -> Ses:
    turn = options.pop("places", lambda _: nullcontext())
    return Ses(
        SesOptions(
            region=REGION, access_key_id="AKID12345", secret_access_key=SECRET, topic=TOPIC, configuration_set="recado",
            endpoint=url,
        ),
        composer=Composer(clock=clock, turn=lambda _: nullcontext()),
        places=turn,
        clock=clock,
        **options,
    )  # fmt: skip


@pytest.fixture
def moto() -> Iterator[str]:
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    url = f"http://{host}:{port}"
    client = boto3.client("ses", REGION, endpoint_url=url, aws_access_key_id="AKID12345", aws_secret_access_key=SECRET)
    client.verify_email_identity(EmailAddress="news@example.com")
    client.close()
    yield url
    server.stop()


async def test_motos_ses_gets_the_email_as_it_was_made(moto: str, clock: VirtualClock) -> None:
    adapter = adapter_at(moto, clock)
    await adapter.start()
    found = await sending(adapter, to="ana@example.com", subject="Olá", html="<p>Oi")
    sent = ses_backends["123456789012"][REGION].sent_messages[-1]
    assert found == Accepted(sent.id)
    message = read(sent.raw_data.encode())
    assert (sent.source, message["subject"], message["to"]) == ("news@example.com", "Olá", "ana@example.com")
    assert isinstance(await sending(adapter, from_address="eve@example.com"), Refused)
    await adapter.stop()
    assert await sending(adapter) == Down("stopped")


@pytest.fixture(scope="module")
async def made() -> AsyncIterator[tuple[FakeBridge, Ses]]:
    """An adapter, and where it sends: to make one takes a second, for all that its library reads."""
    peer = FakeBridge(TAKEN)
    await peer.start()
    adapter = adapter_at(peer.url, VirtualClock(NOW), timeout=BRIEF)
    await adapter.start()
    yield peer, adapter
    await adapter.stop()
    await peer.stop()


@pytest.fixture
def peer(made: tuple[FakeBridge, Ses]) -> FakeBridge:
    made[0].requests.clear()
    return made[0]


@pytest.fixture
def ses(made: tuple[FakeBridge, Ses]) -> Ses:
    return made[1]


def error(status: int, code: str, text: str = "") -> Behaviour:
    return says(status, json.dumps({"message": text}), f"x-amzn-ErrorType: {code}\r\n{ONCE}")


async def test_a_request_names_the_message_and_what_makes_reports(peer: FakeBridge, ses: Ses) -> None:
    peer.behaviour = TAKEN
    assert await sending(ses, to="ana@bücher.example") == Accepted("0100-ses")
    (request,) = peer.requests
    told: Any = request.json
    assert told["EmailTags"] == [{"Name": TAG, "Value": "msg_0000000100000000000a1"}]
    assert told["ConfigurationSetName"] == "recado"
    assert told["Destination"] == {"ToAddresses": ["ana@xn--bcher-kva.example"]}
    assert told["FromEmailAddress"] == "news@example.com"
    assert request.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKID12345/")
    assert SECRET not in str(request)


NOT_THIS_IDENTITY = (
    "User `arn:aws:iam::123456789012:user/recado' is not authorized to perform `ses:SendEmail' on resource "
    "`arn:aws:ses:eu-west-1:123456789012:identity/news@example.com'"
)


def refusal(text: str) -> Refused:
    return Refused("provider_error", text)


@pytest.mark.parametrize(
    ("behaviour", "outcome"),
    [
        (error(429, "TooManyRequestsException"), SlowDown()),
        (error(400, "LimitExceededException", "Daily message quota exceeded"), SlowDown()),
        (error(400, "ThrottlingException"), SlowDown()),
        (error(503, "ServiceUnavailable"), SlowDown()),
        (error(400, "AccountSuspendedException"), Down("account_blocked")),
        (error(400, "SendingPausedException"), Down("account_blocked")),
        (error(404, "NotFoundException", "Configuration set"), Down("not_found")),
        (error(403, "InvalidClientTokenId"), Down("unauthorized")),
        (error(403, "SignatureDoesNotMatch"), Down("unauthorized")),
        (error(403, "AccessDeniedException", "not authorized to perform `ses:SendEmail'"), Down("unauthorized")),
        (error(403, "AccessDeniedException", NOT_THIS_IDENTITY), refusal("AccessDeniedException of the identity")),
        (error(500, "InternalFailure"), Unknown()),
        (error(408, "RequestTimeout"), Unknown()),
        (error(302, "Moved"), Unknown()),
        (says(200, "{}", ONCE), Unknown()),
        (says(200, "[", ONCE), Unknown()),
        (resets_after_reading, Unknown()),
        (closes_after_reading, Unknown()),
        (hangs, Unknown()),
    ],
)
async def test_an_answer_says_what_becomes_of_the_email(
    peer: FakeBridge, ses: Ses, behaviour: Behaviour, outcome: Outcome
) -> None:
    peer.behaviour = behaviour
    assert await sending(ses) == outcome
    assert len(peer.requests) == 1


@pytest.mark.parametrize(
    ("code", "text", "reason"),
    [
        ("MessageRejected", "Address blacklisted.", "content_rejected"),
        ("MessageRejected", "Email address is not verified. Identities: news@example.com", "provider_error"),
        ("BadRequestException", "Illegal address", "invalid_address"),
        ("BadRequestException", "Missing final '@domain'", "invalid_address"),
        ("BadRequestException", "Invalid EmailTag", "provider_error"),
        ("MailFromDomainNotVerifiedException", "Mail from news@example.com is not verified", "provider_error"),
        ("Whatever", "The secret of the house; ana@example.com", "provider_error"),
    ],
)
async def test_a_refusal_says_why_and_repeats_nothing_personal(
    peer: FakeBridge, ses: Ses, code: str, text: str, reason: str
) -> None:
    peer.behaviour = error(400, code, text)
    found = await sending(ses)
    assert isinstance(found, Refused)
    assert found.code == reason
    assert code in found.text
    assert "@example" not in found.text
    assert "house" not in found.text


async def test_who_finds_no_place_says_nothing_of_ses_and_where_nobody_is_there_is_no_connection(
    clock: VirtualClock,
) -> None:
    places = FairPlaces(1, most_waiting=0)
    adapter = adapter_at(f"http://127.0.0.1:{free_port()}", clock, places=places.place)
    await adapter.start()
    async with places.place("org_000000000000000000001"):
        assert await sending(adapter) == NoPlace()
    assert await sending(adapter) == Down("connect_failed")
    await adapter.stop()
    assert SECRET not in repr(adapter_at("http://x", clock)._options)


async def test_motos_ses_is_told_a_domain_once_and_takes_it_back(moto: str, clock: VirtualClock) -> None:
    adapter = adapter_at(moto, clock)
    await adapter.start()
    there = ses_backends["123456789012"][REGION].email_identities
    assert await adapter.identity("example.org", "org") == NOT_KNOWN
    assert "example.org" not in there  # to look makes nothing
    assert await adapter.make("example.org", "org") == SenderLook((), False)
    assert await adapter.identity("example.org", "org") == SenderLook((), False)
    there["example.org"].verified_for_sending_status = True
    assert await adapter.identity("example.org", "org") == SenderLook((), True)
    assert await adapter.identity("news.mail.example.org", "org") == SenderLook((), True)
    await adapter.remove("example.org", "org")
    await adapter.remove("example.org", "org")  # gone is gone
    assert "example.org" not in there
    await adapter.stop()


SENDS = SenderLook((), True)
NOT_KNOWN = SenderLook((), False, untold=True)
MISSING = error(404, "NotFoundException")
DENIED = error(403, "AccessDeniedException", "not authorized to perform `ses:GetEmailIdentity'")
DKIM = {"Status": "PENDING", "SigningAttributesOrigin": "AWS_SES", "Tokens": ["a", "b"]}
NO_ANSWERS = [error(429, "TooManyRequestsException"), error(500, "InternalFailure"), closes_after_reading, hangs]


def identity(*, verified: bool = False, **dkim: Any) -> Behaviour:
    told = {"IdentityType": "DOMAIN", "VerifiedForSendingStatus": verified, "DkimAttributes": {**DKIM, **dkim}}
    return says(200, json.dumps(told), ONCE)


def names(peer: FakeBridge, answers: dict[str, Behaviour]) -> None:
    """The identities that are there, and how each answers; all others are missing."""

    async def of_name(connection: Connection) -> None:
        request = await connection.read_request()
        await answers.get(named(request), MISSING)(ReadAlready(connection, request))

    peer.requests.clear()
    peer.behaviour = of_name


class ReadAlready(Connection):
    """A connection whose only request was read."""

    def __init__(self, connection: Connection, request: Request) -> None:
        super().__init__(connection.server, connection.reader, connection.writer)
        self._requests = iter([request])

    async def read_request(self) -> Request:
        for request in self._requests:
            return request
        raise asyncio.IncompleteReadError(b"", None)


def named(request: Request) -> str:
    return unquote(request.path).rpartition("/")[2]


def asked(peer: FakeBridge) -> list[str]:
    assert {request.method for request in peer.requests} == {"GET"}
    return [named(request) for request in peer.requests]


def records(*keys: str, found: bool = False) -> tuple[DnsRecord, ...]:
    return tuple(
        DnsRecord("CNAME", f"{key}._domainkey.example.com", f"{key}.dkim.amazonses.com", found) for key in keys
    )


@pytest.mark.parametrize(
    ("behaviour", "keys", "found", "proven"),
    [
        (identity(), "ab", False, False),
        (identity(verified=True, Status="SUCCESS"), "ab", True, True),
        (identity(SigningAttributesOrigin="EXTERNAL"), "", False, False),
        (identity(Tokens=None), "", False, False),
    ],
)
async def test_an_identity_wants_the_records_of_its_keys(
    peer: FakeBridge, ses: Ses, behaviour: Behaviour, keys: str, found: bool, proven: bool
) -> None:
    names(peer, {"example.com": behaviour})
    assert await ses.identity("example.com", "org") == SenderLook(records(*keys, found=found), proven)
    assert asked(peer) == ["example.com"]


@pytest.mark.parametrize(
    ("there", "name", "address", "look", "looked"),
    [
        ("news@example.com", "example.com", "news@Example.com", SENDS, ["example.com", "news@example.com"]),
        ("news@example.com", "example.com", "News@example.com", NOT_KNOWN, ["example.com", "News@example.com"]),
        ("news@example.com", "example.com", None, NOT_KNOWN, ["example.com"]),
        ("example.com", "a.b.example.com", None, SENDS, ["a.b.example.com", "b.example.com", "example.com"]),
        ("com", "example.com", None, NOT_KNOWN, ["example.com"]),
        ("nobody", "example.com", "josé@example.com", NOT_KNOWN, ["example.com"]),
    ],
)  # fmt: skip
async def test_ses_sends_where_an_exact_address_or_a_domain_above_is_verified(
    peer: FakeBridge, ses: Ses, there: str, name: str, address: str | None, look: SenderLook, looked: list[str]
) -> None:
    names(peer, {there: identity(verified=True)})
    assert await ses.identity(name, "org", address=address) == look
    assert asked(peer) == looked


async def test_a_domain_above_makes_up_for_one_that_waits_for_its_records(peer: FakeBridge, ses: Ses) -> None:
    names(peer, {"a.example.com": identity(), "example.com": identity(verified=True)})
    assert await ses.identity("a.example.com", "org") == SenderLook((), True)
    names(peer, {"example.com": identity(), "com": identity(verified=True)})
    assert await ses.identity("example.com", "org") == SenderLook(records("a", "b"), False)


async def test_of_many_labels_so_many_domains_are_asked_for(peer: FakeBridge, ses: Ses) -> None:
    names(peer, {})
    await ses.identity("a." * 60 + "example.com", "org")
    assert len(peer.requests) == 1 + MOST_PARENTS
    assert asked(peer)[-1] == "example.com"


async def test_an_access_key_that_may_only_send_is_no_verdict_on_a_sender(peer: FakeBridge, ses: Ses) -> None:
    peer.behaviour = DENIED
    assert await ses.identity("example.com", "org") is None


async def test_an_access_key_that_may_not_ask_for_what_covers_a_domain_is_no_verdict_and_shows_the_records(
    peer: FakeBridge, ses: Ses
) -> None:
    names(peer, {"example.com": identity(), "news@example.com": DENIED})
    look = await ses.identity("example.com", "org", address="news@example.com")
    assert look == SenderLook(records("a", "b"), None)
    names(peer, {"b.example.com": DENIED, "example.com": identity(verified=True)})
    assert await ses.identity("a.b.example.com", "org") == SenderLook((), True)
    names(peer, {"example.com": DENIED})
    assert await ses.identity("a.example.com", "org") == SenderLook((), None)  # and nothing is told


@pytest.mark.parametrize("behaviour", NO_ANSWERS)
@pytest.mark.parametrize("name", ["a.example.com", "example.com"])
async def test_where_ses_does_not_tell_nothing_is_known_of_a_sender(
    peer: FakeBridge, ses: Ses, behaviour: Behaviour, name: str
) -> None:
    names(peer, {name: behaviour})
    with pytest.raises(ProviderError) as caught:
        await ses.identity("a.example.com", "org")
    assert caught.value.kind == "unreachable"


@pytest.mark.parametrize(
    ("behaviour", "outcome"),
    [
        (identity(), SenderLook(records("a", "b"), False)),
        (error(400, "AlreadyExistsException"), None),
        (DENIED, None),
        (error(429, "TooManyRequestsException"), NothingDoneError),
        (error(400, "BadRequestException"), NothingDoneError),
        (error(500, "InternalFailure"), ProviderError),
        (closes_after_reading, ProviderError),
        (hangs, ProviderError),
    ],
)
async def test_what_ses_answers_to_a_new_domain_says_whether_it_was_made(
    peer: FakeBridge, ses: Ses, behaviour: Behaviour, outcome: Any
) -> None:
    peer.behaviour = behaviour
    try:
        told: Any = await ses.make("example.com", "org")
    except ProviderError as failed:
        told = type(failed)
    assert told == outcome
    (request,) = peer.requests
    assert (request.method, request.json) == ("POST", {"EmailIdentity": "example.com"})


@pytest.mark.parametrize("behaviour", [*NO_ANSWERS, DENIED])
async def test_a_domain_that_ses_does_not_take_back_is_not_removed(
    peer: FakeBridge, ses: Ses, behaviour: Behaviour
) -> None:
    peer.behaviour = behaviour
    with pytest.raises(ProviderError):
        await ses.remove("example.com", "org")


def test_the_place_of_an_identity_is_the_account_of_the_topic(clock: VirtualClock) -> None:
    assert adapter_at("http://127.0.0.1:1", clock).place == "eu-west-1:123456789012"
