"""The form that each message takes in the words of the hosted API, and what has none."""

from dataclasses import replace
from typing import Any

import pytest
from tests.channels.behaviours import (
    says,
)
from tests.channels.chatapp.cloud_answers import TAKEN

from recado.channels.chatapp.cloud import Cloud
from recado.channels.core.provider import (
    Accepted,
    Account,
    OutboundMessage,
    Refused,
    TemplateContent,
)

TEMPLATE = [
    {"type": "HEADER", "payload": {"format": "VIDEO"}},
    {"type": "BODY", "payload": {"text": "Olá {{1}}, {{2}}!"}},
    {
        "type": "buttons",
        "payload": {
            "buttons": [
                {"type": "QUICK_REPLY", "text": "Sim"},
                {"type": "URL", "text": "Ver", "url": "https://a.example/{{1}}"},
                {"type": "COPY_CODE", "text": "Copiar"},
            ]
        },
    },
]
CODE = [
    {"type": "BODY", "payload": {"text": "{{1}} is your code."}},
    {"type": "BUTTONS", "payload": {"buttons": [{"type": "URL", "url": "https://p.example/otp?code=otp{{1}}"}]}},
]
FLOW_BUTTON = [
    {"type": "BODY", "payload": {"text": "Tell us."}},
    {
        "type": "BUTTONS",
        "payload": {"buttons": [{"type": "QUICK_REPLY", "text": "No"}, {"type": "FLOW", "text": "Yes", "flowId": "f"}]},
    },
]


def text_parameter(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


def a_template(payload: Any = None, **content: Any) -> dict[str, Any]:
    fields = {"name": "ola", "category": "utility", "language": "pt-BR", "components": (), **content}
    return {"type": "template", "payload": payload, "template": TemplateContent(**fields)}


OUTGOING: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"type": "text", "text": {"body": "the secret of the house", "preview_url": False}}),
    (
        {"payload": {"text": {"body": "b", "previewUrl": True}}},
        {"type": "text", "text": {"body": "b", "preview_url": True}},
    ),
    (
        {"type": "media", "payload": {"kind": "image", "media": {"id": "m-1", "caption": "c", "filename": "f"}}},
        {"type": "image", "image": {"id": "m-1", "caption": "c"}},
    ),
    (
        {"type": "media", "payload": {"kind": "document", "media": {"id": "m-1", "caption": "c", "filename": "f"}}},
        {"type": "document", "document": {"id": "m-1", "caption": "c", "filename": "f"}},
    ),
    (
        {"type": "media", "payload": {"kind": "audio", "media": {"id": "m-1", "voice": True, "caption": "c"}}},
        {"type": "audio", "audio": {"id": "m-1", "voice": True}},
    ),
    (
        {"type": "media", "payload": {"kind": "sticker", "media": {"id": "m-1"}}},
        {"type": "sticker", "sticker": {"id": "m-1"}},
    ),
    (
        {
            "type": "interactive",
            "payload": {
                "interactive": {
                    "type": "button",
                    "header": {"text": "h"},
                    "body": "b",
                    "footer": "f",
                    "action": {"buttons": [{"id": "1", "title": "Sim"}]},
                }
            },
        },
        {
            "type": "interactive",
            "interactive": {
                "type": "button",
                "header": {"type": "text", "text": "h"},
                "body": {"text": "b"},
                "footer": {"text": "f"},
                "action": {"buttons": [{"type": "reply", "reply": {"id": "1", "title": "Sim"}}]},
            },
        },
    ),
    (
        {
            "type": "interactive",
            "payload": {
                "interactive": {
                    "type": "list",
                    "header": {"media": {"id": "m-1"}},
                    "body": "b",
                    "action": {
                        "button": "Ver",
                        "sections": [{"title": "s", "rows": [{"id": "1", "title": "t", "description": "d"}]}],
                    },
                }
            },
        },
        {
            "type": "interactive",
            "interactive": {
                "type": "list",
                "header": {"type": "image", "image": {"id": "m-1"}},
                "body": {"text": "b"},
                "action": {
                    "button": "Ver",
                    "sections": [{"title": "s", "rows": [{"id": "1", "title": "t", "description": "d"}]}],
                },
            },
        },
    ),
    (
        {
            "type": "interactive",
            "payload": {
                "interactive": {
                    "type": "cta_url",
                    "body": "b",
                    "action": {"displayText": "Ver", "url": "https://a.example"},
                }
            },
        },
        {
            "type": "interactive",
            "interactive": {
                "type": "cta_url",
                "body": {"text": "b"},
                "action": {"name": "cta_url", "parameters": {"display_text": "Ver", "url": "https://a.example"}},
            },
        },
    ),
    (
        a_template(),
        {"type": "template", "template": {"name": "ola", "language": {"code": "pt_BR"}}},
    ),
    (
        a_template(
            components=TEMPLATE,
            variables=["Ana", "oi"],
            payload={
                "header": {"media": {"id": "m-1"}},
                "buttons": [
                    {"index": 2, "parameter": "CODE"},
                    {"index": 0, "parameter": "yes"},
                    {"index": 1, "parameter": "42"},
                ],
            },
        ),
        {
            "type": "template",
            "template": {
                "name": "ola",
                "language": {"code": "pt_BR"},
                "components": [
                    {"type": "header", "parameters": [{"type": "video", "video": {"id": "m-1"}}]},
                    {"type": "body", "parameters": [text_parameter("Ana"), text_parameter("oi")]},
                    {
                        "type": "button",
                        "sub_type": "quick_reply",
                        "index": "0",
                        "parameters": [{"type": "payload", "payload": "yes"}],
                    },
                    {"type": "button", "sub_type": "url", "index": "1", "parameters": [text_parameter("42")]},
                    {
                        "type": "button",
                        "sub_type": "copy_code",
                        "index": "2",
                        "parameters": [{"type": "coupon_code", "coupon_code": "CODE"}],
                    },
                ],
            },
        },
    ),
    (
        a_template(payload={"header": {"text": "h"}}, components=[]),
        {
            "type": "template",
            "template": {
                "name": "ola",
                "language": {"code": "pt_BR"},
                "components": [{"type": "header", "parameters": [text_parameter("h")]}],
            },
        },
    ),
    *(
        (
            a_template(payload=payload, components=FLOW_BUTTON),
            {
                "type": "template",
                "template": {
                    "name": "ola",
                    "language": {"code": "pt_BR"},
                    "components": [
                        {
                            "type": "button",
                            "sub_type": "flow",
                            "index": "1",
                            "parameters": [{"type": "action", "action": {"flow_token": token}}],
                        }
                    ],
                },
            },
        )
        for payload, token in [({}, "unused"), ({"buttons": [{"index": 1, "parameter": "A-1"}]}, "A-1")]
    ),
    *(
        (
            {
                "type": "interactive",
                "payload": {
                    "interactive": {
                        "type": "flow",
                        "body": "b",
                        "action": {"flowId": "flw_1", "cta": "Go", "providerFlowId": "662", **action},
                    }
                },
            },
            {
                "type": "interactive",
                "interactive": {
                    "type": "flow",
                    "body": {"text": "b"},
                    "action": {
                        "name": "flow",
                        "parameters": {
                            "flow_message_version": "3",
                            "flow_id": "662",
                            "flow_cta": "Go",
                            "flow_action": "navigate",
                            **opened,
                        },
                    },
                },
            },
        )
        for action, opened in [
            ({"screen": "ASK"}, {"flow_action_payload": {"screen": "ASK"}}),
            (
                {"screen": "ASK", "data": {"name": "Ana"}},
                {"flow_action_payload": {"screen": "ASK", "data": {"name": "Ana"}}},
            ),
        ]
    ),
    (
        a_template(category="authentication", components=CODE, variables=["123456"]),
        {
            "type": "template",
            "template": {
                "name": "ola",
                "language": {"code": "pt_BR"},
                "components": [
                    {"type": "body", "parameters": [text_parameter("123456")]},
                    {"type": "button", "sub_type": "url", "index": "0", "parameters": [text_parameter("123456")]},
                ],
            },
        },
    ),
]


@pytest.mark.parametrize(("fields", "content"), OUTGOING)
async def test_a_message_takes_the_form_of_the_api(
    fields: dict[str, Any],
    content: dict[str, Any],
    fake_bridge: Any,
    cloud_to: Any,
    message: OutboundMessage,
    account: Account,
) -> None:
    fake_bridge.behaviour = says(200, TAKEN)
    cloud: Cloud = await cloud_to(fake_bridge.url + "/v9.0")

    assert await cloud.send(replace(message, **fields), account, 1) == Accepted("p-1")

    (request,) = fake_bridge.requests
    assert (request.method, request.path) == ("POST", "/base/v9.0/pn-1/messages")
    assert request.headers["authorization"] == "Bearer number-token"
    assert request.json == {
        "messaging_product": "whatsapp",
        "recipient_type": "individual",
        "to": "+5511987654321",
        "biz_opaque_callback_data": message.id,
        **content,
    }


@pytest.mark.parametrize(
    ("to", "field"),
    [
        ("+5511987654321", "to"),
        ("BR.1502576394655843", "recipient"),
        ("US.ENT.11815799212886844830", "recipient"),
        ("BR.", "to"),
        ("bra.1", "to"),
    ],
)
async def test_a_recipient_is_a_phone_or_a_user_id(
    to: str, field: str, fake_bridge: Any, cloud_to: Any, message: OutboundMessage, account: Account
) -> None:
    fake_bridge.behaviour = says(200, TAKEN)
    cloud: Cloud = await cloud_to(fake_bridge.url)

    await cloud.send(replace(message, to=to), account, 1)

    body = fake_bridge.requests[0].json
    assert body[field] == to
    assert {"to", "recipient"} & set(body) == {field}


@pytest.mark.parametrize(
    "fields",
    [
        {"payload": None},
        {"payload": {"text": "b"}},
        {"type": "media", "payload": {"kind": "image"}},
        {"type": "interactive", "payload": {"interactive": {"type": "flow", "body": "b", "action": {}}}},
        {"type": "telepathy"},
        {"type": "template", "payload": None},
    ],
)
async def test_what_has_no_form_is_refused_without_a_call(
    fields: dict[str, Any], fake_bridge: Any, cloud_to: Any, message: OutboundMessage, account: Account
) -> None:
    cloud: Cloud = await cloud_to(fake_bridge.url)

    outcome = await cloud.send(replace(message, **fields), account, 1)

    assert isinstance(outcome, Refused)
    assert outcome.code == "provider_error"
    assert fake_bridge.requests == []
