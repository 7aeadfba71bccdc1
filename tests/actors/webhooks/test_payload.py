"""What deliveries of message events say (C23.5, C23.6): the moment of the event, not of what happened since."""

from dataclasses import fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from recado.domain.channels.policies import POLICIES
from recado.domain.core.events import EVENT_NAMES
from recado.domain.core.ids import EVENT, MESSAGE, lowest_id
from recado.services.webhooks.webhook_payload import envelope
from recado.services.webhooks.webhook_samples import sample_of
from recado.storage.core.crypto import KeyRing, Tampered
from recado.storage.webhooks.deliveries import Told
from recado.storage.webhooks.sealed_phones import sealed

RING = KeyRing({"k1": b"k" * 32})
AT = datetime(2026, 11, 20, 12, tzinfo=UTC)
NOTHING = Told(**{field.name: None for field in fields(Told)})  # type: ignore[arg-type]
READ = replace(
    NOTHING,
    event_id=lowest_id(EVENT, AT + timedelta(seconds=9)),
    env="live",
    type="message.sent",
    channel="chatapp",
    message_id=lowest_id(MESSAGE, AT),
    test=False,
    direction="outbound",
    message_type="text",
    recipient="+5511987654321",
    sender_id="num_1",
    campaign_id="spring",
    metadata='{"order": "A-1"}',
    provider_message_id="wamid.1",
    sent_at=AT + timedelta(seconds=1),
    delivered_at=AT + timedelta(seconds=2),
    read_at=AT + timedelta(seconds=3),
    message_attempts=1,
)


def said(told: Told, *, unmasked: bool = False) -> Any:
    return orjson.loads(envelope(told, "org_1", unmasked=RING if unmasked else None))


def test_the_envelope_is_compact_and_in_order() -> None:
    body = envelope(READ, "org_1", unmasked=None)
    assert body.startswith(b'{"id":"evt_')
    assert list(said(READ)) == ["id", "type", "env", "organizationId", "createdAt", "apiVersion", "data"]
    assert said(READ)["createdAt"] == "2026-11-20T12:00:09.000Z"


@pytest.mark.parametrize(
    ("event", "moments"),
    [
        ("message.sent", ["sentAt"]),
        ("message.delivered", ["sentAt", "deliveredAt"]),
        ("message.read", ["sentAt", "deliveredAt", "readAt"]),
    ],
)
def test_an_event_has_the_status_and_moments_of_its_name(event: str, moments: list[str]) -> None:
    data = said(replace(READ, type=event))["data"]
    assert data["status"] == event.partition(".")[2]
    assert [name for name in data if name.endswith("At") and name != "createdAt"] == moments
    assert data["metadata"] == {"order": "A-1"}
    assert data["to"] == "+55*******4321"
    assert (data["numberId"], data["campaignId"], data["providerMessageId"]) == ("num_1", "spring", "wamid.1")
    assert said(replace(READ, type=event), unmasked=True)["data"]["to"] == "+5511987654321"


def test_whose_a_message_is_stands_between_its_number_and_its_campaign() -> None:
    known = replace(READ, contact_id="cnt_1", contact_external_id="shop-7")
    data = said(known)["data"]
    assert (data["contactId"], data["contactExternalId"]) == ("cnt_1", "shop-7")
    references = [name for name in data if name in ("numberId", "contactId", "contactExternalId", "campaignId")]
    assert references == ["numberId", "contactId", "contactExternalId", "campaignId"]
    assert "contactExternalId" not in said(replace(known, contact_external_id=None))["data"]


def test_a_failure_says_why_also_when_it_was_taken_back() -> None:
    failed = replace(READ, type="message.failed", read_at=None, failed_at=AT, message_error="policy_blocked: no")
    data = said(failed)["data"]
    assert (data["lastError"], data["attempts"], data["failedAt"]) == (
        "policy_blocked: no", 1, "2026-11-20T12:00:00.000Z",
    )  # fmt: skip
    assert "deliveredAt" not in data
    back = said(replace(failed, failed_at=None, message_error=None))
    assert back["data"]["lastError"].startswith("outcome_unknown: ")
    assert back["data"]["failedAt"] == back["createdAt"]


def test_what_was_received_comes_with_its_content() -> None:
    received = replace(
        READ, type="message.received", direction="inbound", sent_at=None, read_at=None, metadata=None,
        payload='{"text": {"body": "Olá"}}',
    )  # fmt: skip
    data = said(received)["data"]
    assert (data["status"], data["payload"], data["metadata"]) == ("delivered", {"text": {"body": "Olá"}}, {})
    assert "Olá".encode() in envelope(received, "org_1", unmasked=None)


def test_what_was_received_names_its_contact_and_what_it_answers() -> None:
    told = '{"contact": {"id": "cnt_1", "created": true}, "inReplyTo": "msg_1"}'
    received = replace(READ, type="message.received", direction="inbound", payload="{}", data=told)
    data = said(received)["data"]
    assert (data["contact"], data["inReplyTo"]) == ({"id": "cnt_1", "created": True}, "msg_1")


def test_stored_data_is_passed_on_with_phones_masked() -> None:
    stored = replace(
        NOTHING,
        event_id=READ.event_id,
        env="test",
        type="contact.created",
        test=False,
        data='{"phone": "+5511987654321"}',
    )
    assert said(stored)["data"] == {"phone": "+55*******4321"}
    assert said(stored, unmasked=True)["data"] == {"phone": "+5511987654321"}
    assert said(replace(stored, data='{"a": 1}', test=True))["test"] is True


def test_phones_are_stored_encrypted_and_shown_where_they_stood_to_who_may_see_them() -> None:
    data = {"id": "cnt_1", "phone": "+5511987654321", "tags": []}
    at_rest = sealed(data, RING, organization_id="org_1", event_id=READ.event_id)
    text = orjson.dumps(at_rest).decode()
    assert "987654321" not in text
    told = replace(NOTHING, event_id=READ.event_id, env="test", type="contact.created", test=False, data=text)
    assert list(said(told)["data"].items()) == list({**data, "phone": "+55*******4321"}.items())
    assert list(said(told, unmasked=True)["data"].items()) == list(data.items())
    with pytest.raises(Tampered):  # put into another event
        said(replace(told, event_id=lowest_id(EVENT, AT)), unmasked=True)


@pytest.mark.parametrize("event", EVENT_NAMES)
def test_every_event_has_an_example(event: str) -> None:
    example = sample_of(event)
    assert example
    assert "status" not in example or not event.endswith("failed") or example["status"] == "failed"


@pytest.mark.parametrize(
    ("event", "more", "told"),
    [
        ("sms.delivered", {}, {"deliveredAt": "2026-11-20T12:00:02.000Z"}),
        ("sms.undelivered", {"failed_at": AT, "failure_code": "blacklisted"}, {"reason": "blacklisted"}),
        ("sms.undelivered", {}, {"reason": "indeterminate", "failedAt": "2026-11-20T12:00:09.000Z"}),
        ("sms.failed", {"failed_at": AT, "failure_code": "opted_out"}, {"reason": "abandoned"}),
    ],
)
def test_an_sms_tells_its_route_and_size_and_in_place_of_an_error_its_reason(
    event: str, more: dict[str, Any], told: dict[str, str]
) -> None:
    sms = replace(READ, type=event, channel="sms", sender_id="sms:live:otp", details={"route": "otp"}, units=2, **more)
    data = said(sms)["data"]
    assert (data["route"], data["segments"], data["region"]) == ("otp", 2, "BR")
    assert data.items() >= told.items()
    assert not {"numberId", "lastError", "attempts", "readAt"} & set(data)


def test_a_click_in_an_sms_tells_the_link_and_the_status_of_then() -> None:
    click = {"status": "delivered", "url": "https://a.example/", "clickedAt": "2026-11-20T12:00:08.000Z"}
    stored = orjson.dumps({**click, "firstClick": True}).decode()
    data = said(replace(READ, type="sms.clicked", channel="sms", details={"route": "otp"}, data=stored))["data"]
    assert data.items() >= {**click, "firstClick": True, "deliveredAt": "2026-11-20T12:00:02.000Z"}.items()
    assert not {"route", "readAt"} & set(data)
    before = orjson.dumps({**click, "status": "sent"}).decode()
    assert "deliveredAt" not in said(replace(READ, type="sms.clicked", channel="sms", data=before))["data"]


def test_an_open_tells_the_moment_and_what_its_channel_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = replace(
        POLICIES["sms"], channel="email", tells=lambda status, facts: {"subject": facts.details["subject"]}
    )
    monkeypatch.setitem(POLICIES, "email", policy)  # type: ignore[arg-type]
    told = {"status": "bounced", "openedAt": "2026-11-20T12:00:08.000Z", "firstOpen": True}
    opened = replace(
        READ, type="email.opened", channel="email", recipient="ana@example.com", details={"subject": "Hi"},
        failed_at=AT, data=orjson.dumps(told).decode(),
    )  # fmt: skip
    data = said(opened)["data"]
    assert data.items() >= {**told, "subject": "Hi", "sentAt": "2026-11-20T12:00:01.000Z"}.items()
    assert (data["deliveredAt"], data["failedAt"]) == ("2026-11-20T12:00:02.000Z", "2026-11-20T12:00:00.000Z")
    assert not {"readAt", "url"} & set(data)
    assert "ana@" not in data["to"]


def test_an_sms_that_came_in_tells_its_text_alone() -> None:
    received = replace(
        READ, type="sms.received", channel="sms", direction="inbound", payload='{"text": {"body": "Olá"}}',
        data='{"contact": null}',
    )  # fmt: skip
    data = said(received)["data"]
    assert (data["status"], data["text"]) == ("delivered", "Olá")
    assert not {"payload", "contact", "route"} & set(data)
