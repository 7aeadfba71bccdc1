"""What SES reports, and who brings it (C29.2, C29.5)."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from tests.channels.email.sns_messages import (
    CERTIFICATE,
    KEY,
    NOW,
    SUBSCRIBE,
    TOPIC,
    body,
    certificate_of,
    confirmation,
    envelope,
)

from recado.channels.core.errors import MalformedCallback
from recado.channels.core.events import Status
from recado.channels.email.composing import Composer
from recado.channels.email.ses.reports import TAG, events_of
from recado.channels.email.ses.ses import FETCH_AGAIN_AFTER, MOST_KEYS, Ses, SesOptions
from recado.channels.email.ses.sns import LARGEST_ENVELOPE, SnsHosts
from recado.channels.http.answer import Answer, NotSent
from recado.channels.http.outbound_guard import Turn
from recado.config.settings import Settings
from recado.domain.core.errors import Problem
from recado.engine.clock import SystemClock, VirtualClock
from recado.http.api.call import Call
from recado.http.bodies.body_workers import BodyWorkers
from recado.http.routes.inbound.callbacks import PREPARING, PREPARING_OF_ONE, CallbackOperations
from recado.storage.core.shares.fair_threads import FairThreads
from recado.storage.core.turn import others_run

NODE = Path(__file__).parents[2] / "node"
MESSAGE = "msg_0000000100000000000a1"
AT = "2026-11-20T11:59:30.123Z"
MOMENT = datetime(2026, 11, 20, 11, 59, 30, 123_000, tzinfo=UTC)
MAIL = {
    "timestamp": "2026-11-20T11:59:00.000Z",
    "messageId": "0100-ses",
    "source": "news@example.com",
    "destination": ["ana@example.com"],
    "tags": {TAG: [MESSAGE], "ses:configuration-set": ["recado"]},
}


def report(kind: str, **details: Any) -> str:
    return json.dumps({"eventType": kind, "mail": MAIL, **details})


def bounce(type_: str, kind: str) -> str:
    recipients = [{"emailAddress": "ana@example.com", "diagnosticCode": "smtp; 550 5.1.1 no such user"}]
    told = {"bounceType": type_, "bounceSubType": kind, "bouncedRecipients": recipients, "timestamp": AT}
    return report("Bounce", bounce=told)


def complaint(**details: Any) -> str:
    return report("Complaint", complaint={"timestamp": AT, **details})


@pytest.mark.parametrize(
    ("message", "status", "code"),
    [
        (report("Delivery", delivery={"timestamp": AT, "smtpResponse": "250 ok"}), "delivered", None),
        (bounce("Permanent", "General"), "bounced", "invalid_address"),
        (bounce("Permanent", "NoEmail"), "bounced", "invalid_address"),
        (bounce("Permanent", "Suppressed"), "bounced", "suppressed"),
        (bounce("Permanent", "OnAccountSuppressionList"), "bounced", "suppressed"),
        (bounce("Transient", "General"), "bounced", "provider_error"),
        (bounce("Transient", "MailboxFull"), "bounced", "mailbox_full"),
        (bounce("Transient", "MessageTooLarge"), "bounced", "provider_error"),
        (bounce("Transient", "ContentRejected"), "bounced", "provider_error"),
        (bounce("Transient", "AttachmentRejected"), "bounced", "provider_error"),
        (bounce("Undetermined", "Undetermined"), "bounced", "provider_error"),
        (complaint(complaintFeedbackType="abuse"), "complained", None),
        (complaint(complaintSubType=None), "complained", None),
        (complaint(complaintSubType="OnAccountSuppressionList"), "bounced", "suppressed"),
    ],
)
def test_a_report_becomes_an_event(message: str, status: Any, code: str | None) -> None:
    assert events_of(message) == (Status(status, MOMENT, "0100-ses", MESSAGE, code),)


@pytest.mark.parametrize(
    ("message", "status", "code"),
    [
        (report("Send", send={}), "sent", None),
        (report("Reject", reject={"reason": "Bad content"}), "failed", "content_rejected"),
        (report("Rendering Failure", failure={"errorMessage": "x"}), "failed", "provider_error"),
    ],
)
def test_a_report_without_a_time_has_that_of_the_message(message: str, status: Any, code: str | None) -> None:
    at = datetime(2026, 11, 20, 11, 59, tzinfo=UTC)
    assert events_of(message) == (Status(status, at, "0100-ses", MESSAGE, code),)


@pytest.mark.parametrize(
    "message",
    [
        report("DeliveryDelay", deliveryDelay={"timestamp": AT, "delayType": "MailboxFull"}),
        report("Open", open={"timestamp": AT}),
        report("Click", click={"timestamp": AT}),
        report("Subscription", subscription={"timestamp": AT}),
        complaint(complaintFeedbackType="not-spam"),
        json.dumps({"message": "Successfully validated SNS topic for Amazon SES event publishing."}),
    ],
)
def test_what_changes_nothing_is_passed_over(message: str) -> None:
    assert events_of(message) == ()


def test_a_report_of_the_older_kind_and_without_tags_is_known_by_its_own_id() -> None:
    mail = {name: value for name, value in MAIL.items() if name != "tags"}
    told = {"notificationType": "Delivery", "mail": mail, "delivery": {"timestamp": AT}}
    assert events_of(json.dumps(told)) == (Status("delivered", MOMENT, "0100-ses", None, None),)


@pytest.mark.parametrize(
    "message",
    [
        "", "x", "7", "[]", "null",
        json.dumps({"eventType": "Delivery"}),
        json.dumps({"eventType": "Delivery", "mail": []}),
        json.dumps({"eventType": "Delivery", "mail": {**MAIL, "messageId": 7}, "delivery": {"timestamp": AT}}),
        report("Delivery", delivery={"timestamp": "yesterday"}),
        report("Delivery", delivery={"timestamp": 7}),
    ],
)  # fmt: skip
def test_what_is_no_report_is_malformed(message: str) -> None:
    with pytest.raises(MalformedCallback) as malformed:
        events_of(message)
    assert "ana@" not in str(malformed.value)


@pytest.mark.parametrize("tags", [None, [], {TAG: MESSAGE}, {TAG: []}, {TAG: [7]}, {TAG: ["x" * 65]}, {}])
def test_odd_tags_name_no_message(tags: Any) -> None:
    told = {"eventType": "Delivery", "mail": {**MAIL, "tags": tags}, "delivery": {"timestamp": AT}}
    (event,) = events_of(json.dumps(told))
    assert isinstance(event, Status)
    assert event.reference is None


# Who brings it --------------------------------------------------------------------------------------------------------


class Sns:
    """What is at the addresses of SNS. `asked`: those that somebody fetched."""

    def __init__(self) -> None:
        self.there: dict[str, bytes] = {CERTIFICATE: certificate_of(KEY), SUBSCRIBE: b"<ConfirmSubscriptionResponse/>"}
        self.asked: list[str] = []
        self.answers = asyncio.Event()
        self.answers.set()

    async def request(self, method: str, url: Any, headers: Any) -> Answer | NotSent:
        assert method == "GET"
        self.asked.append(str(url))
        await self.answers.wait()
        found = self.there.get(str(url))
        return NotSent() if found is None else Answer(200, None, found, True)

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


@pytest.fixture
def sns() -> Sns:
    return Sns()


@pytest.fixture
def ses(sns: Sns, clock: VirtualClock, free: Turn) -> Ses:
    options = SesOptions(
        region="eu-west-1", access_key_id="AKID", secret_access_key="secret", topic=TOPIC, configuration_set="recado"
    )
    return Ses(options, composer=Composer(clock=clock, turn=free), places=free, clock=clock, http=sns)  # type: ignore[arg-type]


async def verified(ses: Ses, told: dict[str, Any], at: datetime = NOW) -> bool:
    for each in ses.envelopes_in(body(told))[0]:
        await ses.prepare_callback(each)
    return ses.verify_callback({}, body(told), at)


@pytest.mark.parametrize("version", ["1", "2"])
@pytest.mark.parametrize("subject", [None, "Amazon SES Email Event Notification"])
async def test_an_envelope_of_our_topic_is_verified(ses: Ses, version: str, subject: str | None) -> None:
    told = envelope(orjson.loads(bounce("Permanent", "General")), version=version, Subject=subject)
    assert await verified(ses, told)
    assert ses.parse_callback({}, body(told)) == (Status("bounced", MOMENT, "0100-ses", MESSAGE, "invalid_address"),)


@pytest.mark.node
async def test_sns_validator_believes_the_same_envelopes(ses: Ses) -> None:
    """Those of these tests are signed as SNS signs: software from other hands says so."""
    node = shutil.which("node")
    if node is None or not (NODE / "node_modules" / "sns-validator").exists():
        pytest.skip("sns-validator for Node.js is not installed: `make test` installs it where nodejs and npm are")
    good = [
        made(version=version, **changes)
        for version in ("1", "2")
        for made, changes in ((envelope, {}), (envelope, {"Subject": "Olá"}), (confirmation, {}))
    ]
    bad = [{**each, "Message": "another"} for each in good]
    process = await asyncio.create_subprocess_exec(
        node, str(NODE / "sns.mjs"), stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    given = {"envelopes": good + bad, "certificate": certificate_of(KEY).decode()}
    output, _ = await process.communicate(orjson.dumps(given))
    theirs = [error is None for error in orjson.loads(output)]
    assert theirs == [True] * len(good) + [False] * len(bad)
    assert [await verified(ses, each) for each in good + bad] == theirs


async def test_a_certificate_is_fetched_once(ses: Ses, sns: Sns) -> None:
    assert await verified(ses, envelope("1"))
    assert await verified(ses, envelope("2"))
    assert sns.asked == [CERTIFICATE]


async def test_without_its_certificate_nothing_is_verified(ses: Ses) -> None:
    assert not ses.verify_callback({}, body(envelope()), NOW)


@pytest.mark.parametrize("field", ["Message", "MessageId", "Timestamp", "TopicArn", "Type", "Subject", "Signature"])
async def test_whatever_is_changed_or_taken_away_is_found_out(ses: Ses, field: str) -> None:
    told = envelope("x", Subject="y")
    assert await verified(ses, told)
    for changed in ({**told, field: told[field] + "x"}, {name: told[name] for name in told if name != field}):
        assert not await verified(ses, changed)


async def test_another_key_a_version_that_is_not_the_signatures_and_another_topic_are_refused(
    ses: Ses, sns: Sns
) -> None:
    assert await verified(ses, envelope())
    assert not await verified(ses, envelope(key=generate_private_key(65_537, 2_048)))
    assert not await verified(ses, {**envelope(version="1"), "SignatureVersion": "2"})
    assert not await verified(ses, {**envelope(version="1"), "SignatureVersion": "3"})
    assert not await verified(ses, envelope(TopicArn=TOPIC.replace("123456789012", "999999999999")))
    assert sns.asked == [CERTIFICATE]


@pytest.mark.parametrize("age", [timedelta(days=1, seconds=1), -timedelta(minutes=16)])
async def test_an_envelope_of_another_day_is_refused(ses: Ses, age: timedelta) -> None:
    assert await verified(ses, envelope())
    assert not await verified(ses, envelope(), NOW + age)


class Route:
    """Where callbacks come in. `taken`: what was stored."""

    def __init__(self, ses: Ses) -> None:
        self.workers = BodyWorkers(SystemClock(), processes=1)
        self.taken: list[bytes] = []
        sources = {("email", "ses"): ses}
        self._operations = CallbackOperations(sources, self._take, FairThreads("callbacks"), self.workers)

    async def _take(self, channel: str, adapter: str, raw: bytes, headers: Any) -> None:
        assert (channel, adapter) == ("email", "ses")
        self.taken.append(raw)

    async def receive(self, raw: bytes, ip: str = "192.0.2.1") -> str:
        call = SimpleNamespace(
            path={"channel": "email", "adapter": "ses"}, headers={}, raw_body=raw, now=NOW, client_ip=ip
        )
        try:
            return str((await self._operations.receive(cast("Call", call))).status)
        except Problem as refused:
            return refused.code


@pytest.fixture
async def route(ses: Ses) -> AsyncIterator[Route]:
    made = Route(ses)
    yield made
    await made.workers.stop()


async def test_the_route_asks_for_the_certificate_and_stores_what_is_verified(route: Route) -> None:
    assert await route.receive(body(envelope())) == "200"
    for forged in (envelope(key=generate_private_key(65_537, 2_048)), {**envelope(), "Message": "other"}):
        assert await route.receive(body(forged)) == "INVALID_SIGNATURE"
    assert route.taken == [body(envelope())]
    assert route.workers.idle == 0


async def test_the_largest_that_sns_sends_is_taken_and_what_anybody_sends_is_read_in_a_process(route: Route) -> None:
    largest = body(envelope('"' * 256 * 1024))
    assert await route.receive(largest) == "200"
    assert await route.receive(b"[" + b"0," * 8 * 1024 + b"0]") == "INVALID_SIGNATURE"
    assert await route.receive(b" " * (LARGEST_ENVELOPE + 1)) == "BODY_TOO_LARGE"
    assert (route.taken, route.workers.idle) == ([largest], 1)


async def test_few_of_an_address_and_of_all_wait_for_a_certificate_and_nobody_for_that_of_another(
    route: Route, sns: Sns, clock: VirtualClock
) -> None:
    sns.answers.clear()
    raw, other = body(envelope()), body(envelope(SigningCertURL=CERTIFICATE.replace("01d088a6", "ffffffff")))
    waiting = []
    async with asyncio.timeout(60):
        for number in range(PREPARING // PREPARING_OF_ONE):
            ip = f"192.0.2.{number}"
            waiting += [asyncio.create_task(route.receive(raw, ip)) for _ in range(PREPARING_OF_ONE)]
            await others_run()
            assert await route.receive(raw, ip) == "SERVICE_UNAVAILABLE"
            if not number:
                assert await route.receive(other, "198.51.100.1") == "SERVICE_UNAVAILABLE"
        assert await route.receive(raw, "198.51.100.1") == "SERVICE_UNAVAILABLE"
        assert (sns.asked, any(task.done() for task in waiting)) == ([CERTIFICATE], False)
        sns.answers.set()
        assert set(await asyncio.gather(*waiting)) == {"200"}
    assert await route.receive(raw, "198.51.100.1") == "200"
    # One whose certificate was not fetched may be ours: SNS sends it again, which it does not after a 401.
    assert await route.receive(other) == "SERVICE_UNAVAILABLE"
    assert sns.asked == [CERTIFICATE]
    sns.there[CERTIFICATE.replace("01d088a6", "ffffffff")] = certificate_of(KEY)
    await clock.advance(FETCH_AGAIN_AFTER)
    assert await route.receive(other) == "200"


BAD_ADDRESSES = [
    "http://sns.eu-west-1.amazonaws.com/x.pem",
    "https://sns.eu-west-1.amazonaws.com.evil.example/x.pem",
    "https://evil.example/sns.eu-west-1.amazonaws.com/x.pem",
    "https://sns.eu-west-1.amazonaws.com@evil.example/x.pem",
    "https://user@sns.eu-west-1.amazonaws.com/x.pem",
    "https://sns.eu-west-1.amazonaws.com:8443/x.pem",
    "https://sns.eu-west-1.amazonaws.com:x/x.pem",
    "https://sns.a.b.amazonaws.com/x.pem",
    "https://sns..amazonaws.com/x.pem",
    "https://s3.eu-west-1.amazonaws.com/x.pem",
    "https://sns.eu-west-1.amazonaws.com/x.pem?a=b",
    "https://sns.eu-west-1.amazonaws.com/x.pem#x",
    "https://sns.eu-west-1.amazonaws.com/x.txt",
    "https://sns.eu-west-1.amazonaws.com\\@evil.example/x.pem",
    "https://sns.eu-west-1.amazonaws.com\n.evil.example/x.pem",
    "https://sns.eu-west-1.ámazonaws.com/x.pem",
    "https://[::1]/x.pem",
    "https:///x.pem",
    "//sns.eu-west-1.amazonaws.com/x.pem",
    f"https://sns.eu-west-1.amazonaws.com/{'x' * 2_048}.pem",
    "",
]


@pytest.mark.parametrize("url", BAD_ADDRESSES)
async def test_no_certificate_is_fetched_from_elsewhere(ses: Ses, sns: Sns, url: str) -> None:
    sns.there[url] = certificate_of(KEY)
    assert not await verified(ses, envelope(SigningCertURL=url))
    assert sns.asked == []


@pytest.mark.parametrize("label", ["us-east-1", "us-gov-west-1", "ap-southeast-2", "us-iso-east-1"])
def test_a_region_stands_for_a_star(label: str) -> None:
    assert SnsHosts("sns.*.amazonaws.com").has(f"https://sns.{label}.amazonaws.com/x.pem", ".pem")


@pytest.mark.parametrize(
    "label",
    [
        "s3", "s3-eu-west-1", "s3-website-us-east-1", "s3-website.eu-west-1", "s3.eu-west-1", "s3-accelerate",
        "s3-external-1", "s3-us-gov-west-1", "s3-fips-us-gov-west-1", "execute-api", "elb", "eu-west-1.evil", "",
    ],
)  # fmt: skip
def test_no_bucket_of_that_name_is_a_host_of_sns(label: str) -> None:
    for pattern in ("sns.*.amazonaws.com", Settings.model_fields["ses_certificate_hosts"].default):
        assert not SnsHosts(pattern).has(f"https://sns.{label}.amazonaws.com/x.pem", ".pem")


def test_a_pattern_is_a_host_or_one_with_a_region() -> None:
    assert SnsHosts("sns.*.amazonaws.com").has(CERTIFICATE, ".pem")
    assert SnsHosts("sns.eu-west-1.amazonaws.com").has(CERTIFICATE.replace("sns.", "SNS."), ".pem")
    assert not SnsHosts("sns.us-east-1.amazonaws.com").has(CERTIFICATE, ".pem")
    assert not SnsHosts("sns.eu-west-1.amazonaws.com").has(CERTIFICATE.replace("amazonaws", "amazonawsx"), ".pem")


@pytest.mark.parametrize("certificate", [b"", b"x", certificate_of(KEY, until=NOW - timedelta(seconds=1))])
async def test_a_certificate_of_no_use_verifies_nothing(ses: Ses, sns: Sns, certificate: bytes) -> None:
    sns.there[CERTIFICATE] = certificate
    assert not await verified(ses, envelope())


async def test_certificates_are_fetched_one_a_second_and_so_many_kept(ses: Ses, sns: Sns, clock: VirtualClock) -> None:
    urls = [CERTIFICATE.replace("01d088a6", f"{number:08x}") for number in range(MOST_KEYS + 1)]
    sns.there.update(dict.fromkeys(urls, certificate_of(KEY)))
    assert await verified(ses, envelope(SigningCertURL=urls[0]))
    assert not await verified(ses, envelope(SigningCertURL=urls[1]))
    for url in urls[1:]:
        await clock.advance(FETCH_AGAIN_AFTER)
        assert await verified(ses, envelope(SigningCertURL=url))
    assert not ses.verify_callback({}, body(envelope(SigningCertURL=urls[0])), NOW)


async def test_a_subscription_of_our_topic_is_confirmed_and_reports_nothing(ses: Ses, sns: Sns) -> None:
    assert await verified(ses, confirmation())
    assert sns.asked == [CERTIFICATE, SUBSCRIBE]
    assert ses.parse_callback({}, body(confirmation())) == ()


@pytest.mark.parametrize(
    "told",
    [
        confirmation(TopicArn=TOPIC + "x"),
        confirmation(key=generate_private_key(65_537, 2_048)),
        {**confirmation(), "Token": "another"},
        *(confirmation(SubscribeURL=url) for url in BAD_ADDRESSES[:6]),
    ],
)
async def test_no_other_subscription_is_confirmed(ses: Ses, sns: Sns, told: dict[str, Any]) -> None:
    await verified(ses, told)
    assert set(sns.asked) <= {CERTIFICATE}


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"null", b"{}", b'{"Type": "Notification"}', b"\xff"])
async def test_what_is_no_envelope_is_refused(ses: Ses, sns: Sns, raw: bytes) -> None:
    assert ses.envelopes_in(raw)[0] == []
    assert not ses.verify_callback({}, raw, NOW)
    assert sns.asked == []
    with pytest.raises(MalformedCallback):
        ses.parse_callback({}, raw)
