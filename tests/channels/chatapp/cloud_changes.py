"""Changes as the hosted API reports them, what is read in each, and changes that have no such shape."""

from datetime import UTC, datetime
from typing import Any

import orjson

from recado.channels.chatapp import cloud_callbacks
from recado.channels.core.events import Event, Inbound, Preference, Status

SECONDS = 1_795_165_200
AT = datetime.fromtimestamp(SECONDS, UTC)
METADATA = {"display_phone_number": "5511900000000", "phone_number_id": "pn-1"}
CONTACTS = [{"profile": {"name": "Ana"}, "wa_id": "5511987654321", "user_id": "BR.77"}]
A_STATUS = {"id": "p-1", "status": "delivered", "timestamp": str(SECONDS), "recipient_id": "5511987654321"}
A_MESSAGE = {"from": "5511987654321", "from_user_id": "BR.77", "id": "in-1", "timestamp": str(SECONDS)}


def change(field: str, value: Any) -> dict[str, Any]:
    return {"field": field, "value": value}


def status(**changes: Any) -> dict[str, Any]:
    return change("messages", {"metadata": METADATA, "statuses": [{**A_STATUS, **changes}]})


def message(type_: str, **content: Any) -> dict[str, Any]:
    value = {"metadata": METADATA, "contacts": CONTACTS, "messages": [{**A_MESSAGE, "type": type_, **content}]}
    return change("messages", value)


def template(field: str, **value: Any) -> dict[str, Any]:
    return change(field, {"message_template_id": 594425479261596, "message_template_name": "ola", **value})


def number(field: str, **value: Any) -> dict[str, Any]:
    return change(field, {"display_phone_number": "5511900000000", **value})


def flow(**value: Any) -> dict[str, Any]:
    return change("flows", {"event": "FLOW_STATUS_CHANGE", "message": "Survey", "flow_id": "6627390910", **value})


def preference(**changes: Any) -> dict[str, Any]:
    item = {
        "wa_id": "5511987654321",
        "category": "marketing_messages",
        "value": "stop",
        "detail": "User requested to stop marketing messages",
        "timestamp": SECONDS,
    }
    return change("user_preferences", {"metadata": METADATA, "user_preferences": [{**item, **changes}]})


def body_of(*changes: Any) -> bytes:
    entry = {"id": "waba-1", "time": SECONDS, "changes": list(changes)}
    return orjson.dumps({"object": cloud_callbacks.OBJECT, "entry": [entry]})


def arrived(type_: str, payload: dict[str, Any], **more: Any) -> Inbound:
    return Inbound("pn-1", "5511987654321", AT, type_, payload, "in-1", profile_name="Ana", user_id="BR.77", **more)


def raw(body: str, **content: Any) -> dict[str, Any]:
    return {"text": {"body": body}, "raw": content}


PLACE = {"latitude": -23.5, "longitude": -46.6, "name": "Padaria", "address": "Rua A, 1"}
INCOMING: list[tuple[dict[str, Any], list[Event]]] = [
    (status(), [Status("delivered", AT, "p-1", None, None, "pn-1")]),
    (status(status="sent", biz_opaque_callback_data="msg_1"), [Status("sent", AT, "p-1", "msg_1", None, "pn-1")]),
    (status(status="read", timestamp=SECONDS), [Status("read", AT, "p-1", None, None, "pn-1")]),
    (status(status="played"), [Status("read", AT, "p-1", None, None, "pn-1")]),
    (status(status="deleted"), []),
    (status(biz_opaque_callback_data="x" * 65), [Status("delivered", AT, "p-1", None, None, "pn-1")]),
    (status(biz_opaque_callback_data=["msg_1"]), [Status("delivered", AT, "p-1", None, None, "pn-1")]),
    (
        status(status="failed", errors=[{"code": 131026, "title": "Message undeliverable"}]),
        [Status("failed", AT, "p-1", None, "recipient_unreachable", "pn-1")],
    ),
    (
        status(status="failed", errors=[{"code": 131050}]),
        [Status("failed", AT, "p-1", None, "opted_out", "pn-1"), Preference("pn-1", "5511987654321", True, AT)],
    ),
    (
        status(status="failed", errors=[{"code": 131050}], recipient_id=None),
        [Status("failed", AT, "p-1", None, "opted_out", "pn-1")],
    ),
    (
        status(status="failed", errors=[{"code": 131050}], recipient_id=None, recipient_user_id="BR.77"),
        [Status("failed", AT, "p-1", None, "opted_out", "pn-1"), Preference("pn-1", "BR.77", True, AT)],
    ),
    (status(status="failed"), [Status("failed", AT, "p-1", None, "provider_error", "pn-1")]),
    (status(status="failed", errors=["?"]), [Status("failed", AT, "p-1", None, "provider_error", "pn-1")]),
    (message("text", text={"body": "a\0b"}), [arrived("text", {"text": {"body": "a\ufffdb"}})]),
    (
        message("text", text={"body": "sim"}, context={"from": "5511900000000", "id": "p-1"}),
        [arrived("text", {"text": {"body": "sim"}}, quoted="p-1")],
    ),
    (
        message("text", text={"body": "sim"}, context={"forwarded": True}),
        [arrived("text", {"text": {"body": "sim"}})],
    ),
    *(
        (message("text", text={"body": "sim"}, context=odd), [arrived("text", {"text": {"body": "sim"}})])
        for odd in ({"id": 7}, {"id": ""}, {"id": "p" * 257}, {"id": "\0"}, ["p-1"], "p-1")
    ),
    (
        change("messages", {"metadata": METADATA, "contacts": "Ana", "statuses": [A_STATUS]}),
        [Status("delivered", AT, "p-1", None, None, "pn-1")],
    ),
    (
        message("image", image={"id": "m-1", "mime_type": "image/jpeg", "sha256": "s", "caption": "c"}),
        [
            arrived(
                "media",
                {"kind": "image", "media": {"caption": "c", "mime_type": "image/jpeg", "mimeType": "image/jpeg"}},
                media_ref="m-1",
            )
        ],
    ),
    (
        message("audio", audio={"id": "m-1", "mime_type": "Audio/OGG; codecs=opus", "voice": True}),
        [
            arrived(
                "media",
                {
                    "kind": "audio",
                    "media": {"mime_type": "Audio/OGG; codecs=opus", "mimeType": "audio/ogg", "voice": True},
                },
                media_ref="m-1",
            )
        ],
    ),
    (
        message("document", document={"id": "m-1", "filename": "f.pdf"}),
        [arrived("media", {"kind": "document", "media": {"filename": "f.pdf"}}, media_ref="m-1")],
    ),
    (
        message("interactive", interactive={"type": "button_reply", "button_reply": {"id": "1", "title": "Sim"}}),
        [arrived("interactive", {"interactive": {"type": "button_reply", "id": "1", "title": "Sim"}})],
    ),
    (
        message("interactive", interactive={"type": "list_reply", "list_reply": {"id": "1", "description": "d"}}),
        [arrived("interactive", {"interactive": {"type": "list_reply", "id": "1", "description": "d"}})],
    ),
    (
        message("interactive", interactive={"type": "nfm_reply", "nfm_reply": {"response_json": "{}"}}),
        [
            arrived(
                "text",
                raw("", kind="interactive", interactive={"type": "nfm_reply", "nfm_reply": {"response_json": "{}"}}),
            )
        ],
    ),
    (
        message("button", button={"payload": "yes", "text": "Sim"}),
        [arrived("interactive", {"interactive": {"type": "button", "payload": "yes", "text": "Sim"}})],
    ),
    (
        message("location", location=PLACE),
        [arrived("text", raw("Padaria, Rua A, 1", kind="location", location=PLACE))],
    ),
    (
        message("location", location={"latitude": 1.5, "longitude": 2}),
        [arrived("text", raw("1.5, 2", kind="location", location={"latitude": 1.5, "longitude": 2}))],
    ),
    (
        message("contacts", contacts=[{"name": {"formatted_name": "Bia"}}, {"phones": []}]),
        [arrived("text", raw("Bia", kind="contacts", contacts=[{"name": {"formatted_name": "Bia"}}, {"phones": []}]))],
    ),
    (
        message("reaction", reaction={"message_id": "p-1", "emoji": "👍"}),
        [arrived("text", raw("👍", kind="reaction", reaction={"message_id": "p-1", "emoji": "👍"}))],
    ),
    (
        message("unsupported", errors=[{"code": 131051}]),
        [arrived("text", raw("", kind="unsupported", errors=[{"code": 131051}]))],
    ),
    (message("hologram"), [arrived("text", raw("", kind="hologram"))]),
    (message("system", system={"type": "user_changed_number"}), []),
    (
        change(
            "messages",
            {
                "metadata": METADATA,
                "contacts": [{"profile": {"name": " "}, "user_id": "BR.77"}],
                "messages": [
                    {"from_user_id": "BR.77", "id": "i", "timestamp": "1", "type": "text", "text": {"body": "b"}}
                ],
            },
        ),
        [Inbound("pn-1", "BR.77", datetime.fromtimestamp(1, UTC), "text", {"text": {"body": "b"}}, "i")],
    ),
]
MALFORMED: list[tuple[Any, str]] = [
    (7, "entry[0].changes[0]"),
    ({}, "entry[0].changes[0].field"),
    ({"field": "messages"}, "entry[0].changes[0].value"),
    (change("messages", {}), "entry[0].changes[0].value.metadata"),
    (change("messages", {"metadata": {}}), "entry[0].changes[0].value.metadata.phone_number_id"),
    (change("messages", {"metadata": METADATA, "statuses": {}}), "entry[0].changes[0].value.statuses"),
    (status(id=None), "entry[0].changes[0].value.statuses[0].id"),
    (status(status=7), "entry[0].changes[0].value.statuses[0].status"),
    (status(timestamp="soon"), "entry[0].changes[0].value.statuses[0].timestamp"),
    (status(timestamp="²"), "entry[0].changes[0].value.statuses[0].timestamp"),
    (status(timestamp=-1), "entry[0].changes[0].value.statuses[0].timestamp"),
    (status(timestamp=True), "entry[0].changes[0].value.statuses[0].timestamp"),
    (status(timestamp=10**12), "entry[0].changes[0].value.statuses[0].timestamp"),
    (status(status="failed", errors={}), "entry[0].changes[0].value.statuses[0].errors"),
    (message("text"), "entry[0].changes[0].value.messages[0].text"),
    (message("text", text={"body": 7}), "entry[0].changes[0].value.messages[0].text.body"),
    (message("image", image={"mime_type": "image/png"}), "entry[0].changes[0].value.messages[0].image.id"),
    (message("button", button="yes"), "entry[0].changes[0].value.messages[0].button"),
    (change("message_template_status_update", {"event": "APPROVED"}), "entry[0].changes[0].value.message_template_id"),
    (flow(new_status=7), "entry[0].changes[0].value.new_status"),
    (flow(flow_id=None, new_status="BLOCKED"), "entry[0].changes[0].value.flow_id"),
    (number("phone_number_quality_update"), "entry[0].changes[0].value.event"),
    (
        change("account_update", {"event": "PARTNER_REMOVED", "waba_info": {}}),
        "entry[0].changes[0].value.waba_info.waba_id",
    ),
    (preference(wa_id=None), "entry[0].changes[0].value.user_preferences[0].user_id"),
    (preference(wa_id="5511\0"), "entry[0].changes[0].value.user_preferences[0].wa_id"),
]
