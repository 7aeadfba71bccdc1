"""What comes in from a bridge: one table of events, strict shapes, and signatures."""

from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.channels.chatapp import bridge_callbacks
from recado.channels.chatapp.bridge import Bridge
from recado.channels.provider import (
    Event,
    Inbound,
    MalformedCallback,
    NumberStatus,
    Preference,
    Status,
    TemplateStatus,
    event_from_json,
    event_to_json,
)
from recado.channels.signing import signature, signing_key

AT = datetime(2026, 11, 20, 9, 0, 0, 250_000, tzinfo=UTC)
TIME = "2026-11-20T09:00:00.250Z"

INCOMING: list[tuple[dict[str, Any], Event]] = [
    (
        {"kind": "status", "status": "delivered", "at": TIME, "reference": "msg_1", "providerMessageId": "p-1"},
        Status("delivered", AT, "p-1", "msg_1"),
    ),
    (
        {
            "kind": "status",
            "status": "read",
            "at": "2026-11-20T06:00:00.250-03:00",
            "providerMessageId": "p",
            "account": "a",
        },
        Status("read", AT, "p", None, None, "a"),
    ),
    (
        {"kind": "status", "status": "failed", "at": TIME, "reference": "msg_1", "code": "expired"},
        Status("failed", AT, None, "msg_1", "expired"),
    ),
    (
        {"kind": "status", "status": "failed", "at": TIME, "reference": "msg_1", "code": "E-9"},
        Status("failed", AT, None, "msg_1", "provider_error"),
    ),
    (
        {"kind": "status", "status": "failed", "at": TIME, "reference": "msg_1", "providerMessageId": None},
        Status("failed", AT, None, "msg_1", "provider_error"),
    ),
    (
        {
            "kind": "inbound",
            "account": "pn-1",
            "from": "+5511987654321",
            "at": TIME,
            "type": "text",
            "payload": {"text": {"body": "a\0b"}, "raw\0": [1, None, True, 0.5]},
            "providerMessageId": "in-1",
            "quoted": "p-1",
        },
        Inbound(
            "pn-1",
            "+5511987654321",
            AT,
            "text",
            {"text": {"body": "a\ufffdb"}, "raw\ufffd": [1, None, True, 0.5]},
            "in-1",
            "p-1",
        ),
    ),
    (
        {"kind": "template", "status": "rejected", "at": TIME, "providerTemplateId": "t-1", "reason": "too loud"},
        TemplateStatus("rejected", AT, "t-1", reason="too loud"),
    ),
    (
        {"kind": "template", "status": "approved", "at": TIME, "providerTemplateId": "t-1", "category": "utility"},
        TemplateStatus("approved", AT, "t-1", category="utility"),
    ),
    (
        {"kind": "number", "account": "pn-1", "at": TIME, "status": "flagged", "quality": "red", "tier": "tier_1k"},
        NumberStatus("pn-1", AT, "flagged", "red", "tier_1k"),
    ),
    (
        {"kind": "number", "account": "pn-1", "at": TIME, "partnerRemoved": "PARTNER_REMOVED"},
        NumberStatus("pn-1", AT, partner_removed="PARTNER_REMOVED"),
    ),
    (
        {"kind": "preference", "account": "pn-1", "phone": "+5511987654321", "stopped": True, "at": TIME},
        Preference("pn-1", "+5511987654321", True, AT),
    ),
]

A_STATUS = INCOMING[0][0]

MALFORMED: list[tuple[Any, str]] = [
    (7, "events[0]"),
    ([], "events[0]"),
    ({}, "events[0].kind"),
    ({**A_STATUS, "kind": ["flow"]}, "events[0].kind"),
    ({**A_STATUS, "kind": "gossip"}, "events[0].kind"),
    ({**A_STATUS, "status": "seen"}, "events[0].status"),
    ({**A_STATUS, "status": {}}, "events[0].status"),
    ({**A_STATUS, "at": None}, "events[0].at"),
    ({**A_STATUS, "at": 1_763_629_200}, "events[0].at"),
    ({**A_STATUS, "at": "2026-11-20T09:00:00"}, "events[0].at"),
    ({**A_STATUS, "at": "2026-02-30T09:00:00Z"}, "events[0].at"),
    ({**A_STATUS, "at": "0001-01-01T00:00:00+14:00"}, "events[0].at"),
    ({**A_STATUS, "at": "9999-12-31T23:59:59-14:00"}, "events[0].at"),
    ({**A_STATUS, "reference": ""}, "events[0].reference"),
    ({**A_STATUS, "reference": "m" * 65}, "events[0].reference"),
    ({**A_STATUS, "reference": "msg_\0"}, "events[0].reference"),
    ({**A_STATUS, "providerMessageId": 12}, "events[0].providerMessageId"),
    ({"kind": "status", "status": "read", "at": TIME}, "events[0].providerMessageId"),
    ({**INCOMING[5][0], "payload": "text"}, "events[0].payload"),
    ({**INCOMING[5][0], "from": None}, "events[0].from"),
    ({**INCOMING[5][0], "type": "sticker"}, "events[0].type"),
    ({**INCOMING[6][0], "status": "draft"}, "events[0].status"),
    ({**INCOMING[8][0], "quality": "blue"}, "events[0].quality"),
    ({**INCOMING[10][0], "stopped": 1}, "events[0].stopped"),
]

DEEP: Any = {}
for _ in range(40):
    DEEP = {"in": DEEP}


@pytest.mark.parametrize(("json", "event"), INCOMING)
def test_an_event_of_the_protocol_is_read(json: dict[str, Any], event: Event) -> None:
    assert bridge_callbacks.events(orjson.dumps({"events": [json]})) == [event]


@pytest.mark.parametrize(("json", "event"), INCOMING)
def test_an_event_survives_its_row(json: dict[str, Any], event: Event) -> None:
    row = event_to_json(event)

    assert event_from_json(orjson.loads(orjson.dumps(row))) == event
    assert row["kind"] == json["kind"]
    assert None not in row.values()


@pytest.mark.parametrize(("item", "where"), [*MALFORMED, ({**INCOMING[5][0], "payload": DEEP}, "events[0].payload")])
def test_an_event_of_another_shape_is_refused_by_its_place_and_the_others_are_kept(item: Any, where: str) -> None:
    body = orjson.dumps({"events": [item, A_STATUS]})

    with pytest.raises(MalformedCallback) as refusal:
        bridge_callbacks.events(body)

    assert refusal.value.where == where
    assert refusal.value.events == (INCOMING[0][1],)


@pytest.mark.parametrize(
    "body", [b"", b"{", b"null", b"[]", b'"events"', b"{}", b'{"events": {}}', b'{"events": null}', b"\xff"]
)
def test_a_body_of_another_shape_is_refused_whole(body: bytes) -> None:
    with pytest.raises(MalformedCallback) as refusal:
        bridge_callbacks.events(body)

    assert refusal.value.events == ()


def test_events_keep_their_order_and_those_of_other_channels_are_passed_over() -> None:
    body = orjson.dumps(
        {"events": [INCOMING[1][0], {"kind": "flow", "id": "f"}, INCOMING[0][0], {"kind": "payment"}, INCOMING[1][0]]}
    )

    assert bridge_callbacks.events(body) == [INCOMING[1][1], INCOMING[0][1], INCOMING[1][1]]


def test_no_events_are_no_error() -> None:
    assert bridge_callbacks.events(b'{"events": []}') == []


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
# Near misses: a true event of which some fields were replaced by anything.
NEAR = st.builds(
    lambda event, changes: {**event, **changes},
    st.sampled_from([json for json, _ in INCOMING]),
    st.dictionaries(st.sampled_from(sorted({name for json, _ in INCOMING for name in json})), JSON, max_size=3),
)


@given(
    st.binary(max_size=200)
    | JSON.map(orjson.dumps)
    | st.lists(NEAR | JSON).map(lambda items: orjson.dumps({"events": items}))
)
def test_whatever_a_callback_holds_it_is_read_or_refused_as_malformed(body: bytes) -> None:
    try:
        events = bridge_callbacks.events(body)
    except MalformedCallback as refusal:
        events = list(refusal.events)
    for event in events:
        stored = orjson.dumps(event_to_json(event))
        assert b"\\u0000" not in stored, "PostgreSQL would refuse the row"
        assert event_from_json(orjson.loads(stored)) is not None


def test_a_printed_event_holds_nobody_s_number_or_words() -> None:
    printed = repr([event for _, event in INCOMING])

    assert "87654321" not in printed
    assert "body" not in printed


async def test_a_callback_is_believed_by_its_signature_alone(bridge_to: Any, fake_bridge: Any) -> None:
    bridge: Bridge = await bridge_to(fake_bridge.url)
    body = orjson.dumps({"events": [A_STATUS]})
    key = signing_key("whsec_c2VjcmV0IG9mIHRoZSBicmlkZ2U=")
    signed = {"x-svc-provider-signature": signature([key], body, AT)}

    assert bridge.verify_callback(signed, body, AT)
    assert bridge.verify_callback({"X-SVC-Provider-Signature": signature([b"old", key], body, AT)}, body, AT)
    assert not bridge.verify_callback(signed, body + b" ", AT)
    assert not bridge.verify_callback(signed, body, AT + timedelta(seconds=301))
    assert not bridge.verify_callback({}, body, AT)
    assert bridge.parse_callback(signed, body) == [INCOMING[0][1]]
