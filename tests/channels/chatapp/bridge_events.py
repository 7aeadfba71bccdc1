"""Events of a bridge as they come, with what they are read as, and those of another shape with their place."""

from datetime import UTC, datetime
from typing import Any

from recado.channels.core.events import Event, FlowNews, Inbound, NumberNews, Preference, Status, TemplateVerdict

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
        TemplateVerdict("rejected", AT, "t-1", reason="too loud"),
    ),
    (
        {"kind": "template", "status": "approved", "at": TIME, "providerTemplateId": "t-1", "category": "utility"},
        TemplateVerdict("approved", AT, "t-1", category="utility"),
    ),
    (
        {"kind": "number", "account": "pn-1", "at": TIME, "status": "flagged", "quality": "red", "tier": "tier_1k"},
        NumberNews("pn-1", AT, "flagged", "red", "tier_1k"),
    ),
    (
        {"kind": "number", "account": "pn-1", "at": TIME, "partnerRemoved": "PARTNER_REMOVED"},
        NumberNews("pn-1", AT, partner_removed="PARTNER_REMOVED"),
    ),
    (
        {"kind": "preference", "account": "pn-1", "phone": "+5511987654321", "stopped": True, "at": TIME},
        Preference("pn-1", "+5511987654321", True, AT),
    ),
    (
        {"kind": "flow", "status": "throttled", "at": TIME, "providerFlowId": "f-1", "account": "pn-1"},
        FlowNews("throttled", AT, "f-1", "pn-1"),
    ),
    (
        {"kind": "flow", "status": "published", "at": TIME, "providerFlowId": "f-1", "businessAccount": "ba-1"},
        FlowNews("published", AT, "f-1", business_account="ba-1"),
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
    ({**INCOMING[11][0], "status": "draft"}, "events[0].status"),
    ({**INCOMING[11][0], "providerFlowId": 3}, "events[0].providerFlowId"),
]

DEEP: Any = {}
for _ in range(40):
    DEEP = {"in": DEEP}
MALFORMED.append(({**INCOMING[5][0], "payload": DEEP}, "events[0].payload"))
