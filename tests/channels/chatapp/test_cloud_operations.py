"""The hosted API's operations besides sending: what is asked, how answers are read, and failures of two kinds."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.channels.chatapp.behaviours import Behaviour, breaks_inside, hangs, resets_after_reading, says

from recado.channels.chatapp import cloud_media
from recado.channels.chatapp.cloud import Cloud
from recado.channels.provider import (
    Account,
    NumberHealth,
    ProviderError,
    ProviderTemplate,
    Submission,
    TemplateSubmission,
)

Operation = Callable[[Cloud, Account], Awaitable[Any]]

TEMPLATE = TemplateSubmission(
    id="tpl_000000010000000000001",
    name="ola",
    language="pt-BR",
    category="marketing",
    components=[
        {"type": "header", "payload": {"format": "TEXT", "text": "Para {{1}}", "example": ["Ana"]}},
        {"type": "BODY", "payload": {"text": "Olá {{1}}, {{2}}!", "example": ["Ana", "oi"]}},
        {"type": "FOOTER", "payload": {"text": "Tchau"}},
        {
            "type": "BUTTONS",
            "payload": {
                "buttons": [
                    {"type": "QUICK_REPLY", "text": "Sim"},
                    {"type": "URL", "text": "Ver", "url": "https://a.example/{{1}}"},
                    {"type": "PHONE_NUMBER", "text": "Ligar", "phoneNumber": "+5511900000000"},
                    {"type": "COPY_CODE", "text": "Copiar", "example": ["OFF10"]},
                    {"type": "FLOW", "text": "Abrir", "flowId": "f-1"},
                ]
            },
        },
    ],
)


def replies(*bodies: Any) -> Behaviour:
    """One answer after another, over one or several connections."""
    left = [json.dumps(body).encode() for body in bodies]

    async def behave(connection: Any) -> None:
        while left:
            await connection.read_request()
            await connection.answer(200, left.pop(0))

    return behave


async def chunks_of(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def test_a_template_is_submitted_in_the_words_of_the_api(
    fake_bridge: Any, cloud_to: Any, account: Account
) -> None:
    fake_bridge.behaviour = replies({"id": "594425479261596", "status": "PENDING", "category": "MARKETING"})
    cloud: Cloud = await cloud_to(fake_bridge.url)

    assert await cloud.submit_template(account, TEMPLATE) == Submission("594425479261596")

    (request,) = fake_bridge.requests
    assert (request.method, request.path) == ("POST", "/base/ba-1/message_templates")
    assert request.json == {
        "name": "ola",
        "language": "pt_BR",
        "category": "MARKETING",
        "components": [
            {"type": "HEADER", "format": "TEXT", "text": "Para {{1}}", "example": {"header_text": ["Ana"]}},
            {"type": "BODY", "text": "Olá {{1}}, {{2}}!", "example": {"body_text": [["Ana", "oi"]]}},
            {"type": "FOOTER", "text": "Tchau"},
            {
                "type": "BUTTONS",
                "buttons": [
                    {"type": "QUICK_REPLY", "text": "Sim"},
                    {
                        "type": "URL",
                        "text": "Ver",
                        "url": "https://a.example/{{1}}",
                        "example": ["https://a.example/1"],
                    },
                    {"type": "PHONE_NUMBER", "text": "Ligar", "phone_number": "+5511900000000"},
                    {"type": "COPY_CODE", "example": "OFF10"},
                    {"type": "FLOW", "text": "Abrir", "flow_id": "f-1"},
                ],
            },
        ],
    }


async def test_a_button_s_example_may_be_a_text_as_the_api_has_it(
    fake_bridge: Any, cloud_to: Any, account: Account
) -> None:
    fake_bridge.behaviour = replies({"id": "1"})
    cloud: Cloud = await cloud_to(fake_bridge.url)
    buttons = [
        {"type": "COPY_CODE", "example": "OFF10"},
        {"type": "URL", "text": "Ver", "url": "https://a.example/{{1}}", "example": "https://a.example/7"},
    ]

    await cloud.submit_template(
        account, replace(TEMPLATE, components=[{"type": "BUTTONS", "payload": {"buttons": buttons}}])
    )

    [sent] = fake_bridge.requests[0].json["components"]
    assert [button["example"] for button in sent["buttons"]] == ["OFF10", ["https://a.example/7"]]


async def test_a_media_header_and_a_template_for_codes_take_other_forms(
    fake_bridge: Any, cloud_to: Any, account: Account
) -> None:
    fake_bridge.behaviour = replies({"id": "1"}, {"id": "2"})
    cloud: Cloud = await cloud_to(fake_bridge.url)
    body = {"type": "BODY", "payload": {"text": "{{1}} is your code.", "example": ["1"]}}
    header = {"type": "HEADER", "payload": {"format": "image"}}
    button = {"type": "BUTTONS", "payload": {"buttons": [{"type": "COPY_CODE", "text": "Copy"}]}}

    await cloud.submit_template(
        account, replace(TEMPLATE, components=[header], header_example_url="https://a.example/a.png")
    )
    await cloud.submit_template(account, replace(TEMPLATE, category="authentication", components=[body, button]))

    assert [request.json["components"] for request in fake_bridge.requests] == [
        [{"type": "HEADER", "format": "IMAGE", "example": {"header_handle": ["https://a.example/a.png"]}}],
        [
            {"type": "BODY"},
            {"type": "BUTTONS", "buttons": [{"type": "OTP", "otp_type": "COPY_CODE", "text": "Copy"}]},
        ],
    ]


LISTED = {
    "id": "1",
    "name": "ola",
    "language": "pt_BR",
    "status": "APPROVED",
    "category": "UTILITY",
    "rejected_reason": "NONE",
    "components": [{"type": "BODY", "text": "Olá {{1}}", "example": {"body_text": [["Ana"]]}}],
}


async def test_templates_are_listed_page_after_page_without_those_that_could_not_be_sent(
    fake_bridge: Any, cloud_to: Any, account: Account
) -> None:
    odd = [
        {**LISTED, "parameter_format": "NAMED"},
        {**LISTED, "category": "OTP"},
        {**LISTED, "status": "ARCHIVED"},
        {**LISTED, "components": [{"type": "CAROUSEL", "cards": []}]},
        {**LISTED, "components": [{"type": "HEADER", "format": "LOCATION"}]},
        {**LISTED, "components": [{"type": "BUTTONS", "buttons": [{"type": "CATALOG"}]}]},
    ]
    rejected = {**LISTED, "id": "2", "status": "REJECTED", "rejected_reason": "SCAM", "components": []}
    pages = [
        {"data": [LISTED, *odd], "paging": {"cursors": {"after": "next=1"}, "next": "http://elsewhere.example/"}},
        {"data": [rejected], "paging": {"cursors": {"after": "end"}}},
    ]
    fake_bridge.behaviour = replies(*pages)
    cloud: Cloud = await cloud_to(fake_bridge.url)

    components = [{"type": "BODY", "payload": {"text": "Olá {{1}}", "example": ["Ana"]}}]
    fields = {"name": "ola", "language": "pt-BR", "category": "utility"}
    assert await cloud.list_templates(account) == [
        ProviderTemplate(provider_template_id="1", status="approved", components=components, **fields),
        ProviderTemplate(provider_template_id="2", status="rejected", components=[], rejection_reason="SCAM", **fields),
    ]
    assert [request.path.partition("&after=")[2] for request in fake_bridge.requests] == ["", "next%3D1"]
    assert all(request.path.startswith("/base/ba-1/message_templates?fields=id") for request in fake_bridge.requests)


async def test_a_template_is_deleted_by_name_and_id(fake_bridge: Any, cloud_to: Any, account: Account) -> None:
    fake_bridge.behaviour = replies({"success": True}, {"success": True})
    cloud: Cloud = await cloud_to(fake_bridge.url)

    await cloud.delete_template(account, "ola", "77")
    await cloud.delete_template(account, "ola", None)

    assert [(request.method, request.path) for request in fake_bridge.requests] == [
        ("DELETE", "/base/ba-1/message_templates?name=ola&hsm_id=77"),
        ("DELETE", "/base/ba-1/message_templates?name=ola"),
    ]


NUMBER = {
    "id": "pn-1",
    "verified_name": "Padaria",
    "code_verification_status": "VERIFIED",
    "quality_rating": "YELLOW",
    "status": "FLAGGED",
    "name_status": "AVAILABLE_WITHOUT_REVIEW",
    "throughput": {"level": "HIGH"},
    "whatsapp_business_manager_messaging_limit": "TIER_2K",
    "health_status": {
        "entities": [
            {"entity_type": "PHONE_NUMBER", "can_send_message": "AVAILABLE"},
            {"errors": [{"error_code": 141010, "error_description": "Call +55 11 98765-4321"}, 7]},
            7,
        ]
    },
}
PROFILE = {
    "data": [
        {"about": "Pão", "websites": ["https://a.example", "https://b.example"], "vertical": "UNDEFINED", "email": ""}
    ]
}


async def test_health_is_read_from_the_number_and_its_profile(
    fake_bridge: Any, cloud_to: Any, account: Account
) -> None:
    fake_bridge.behaviour = replies(NUMBER, PROFILE)
    cloud: Cloud = await cloud_to(fake_bridge.url)

    assert await cloud.number_health(account) == NumberHealth(
        verified=True,
        status="flagged",
        quality_rating="yellow",
        messaging_tier="tier_2k",
        name_status="approved",
        verified_name="Padaria",
        per_second=1_000,
        profile={"about": "Pão", "website": "https://a.example"},
        issues=(("141010", "Call ***"),),
    )
    assert [request.path.partition("?")[0] for request in fake_bridge.requests] == [
        "/base/pn-1",
        "/base/pn-1/whatsapp_business_profile",
    ]


@pytest.mark.parametrize(
    ("number", "health"),
    [
        ({}, NumberHealth(verified=False)),
        (
            {"status": "CONNECTED", "code_verification_status": "EXPIRED"},
            NumberHealth(verified=True, status="connected"),
        ),
        ({"status": "PENDING", "code_verification_status": "NOT_VERIFIED"}, NumberHealth(verified=False)),
        ({"status": "BANNED"}, NumberHealth(verified=False, status="disconnected")),
        ({"status": "NEW_WORD", "quality_rating": "BLUE", "name_status": "?"}, NumberHealth(verified=False)),
        ({"quality_rating": "NA", "throughput": None}, NumberHealth(verified=False, quality_rating="unknown")),
        ({"health_status": {"entities": {}}}, NumberHealth(verified=False)),
    ],
)
async def test_words_that_are_not_known_say_nothing(
    number: dict[str, Any], health: NumberHealth, fake_bridge: Any, cloud_to: Any, account: Account
) -> None:
    fake_bridge.behaviour = replies(number, {"data": []})
    cloud: Cloud = await cloud_to(fake_bridge.url)

    assert await cloud.number_health(account) == health


async def test_connecting_subscribes_to_the_account_and_registers_with_the_same_pin_each_time(
    fake_bridge: Any, cloud_to: Any, account: Account
) -> None:
    fake_bridge.behaviour = replies(*[{"success": True}] * 5)
    cloud: Cloud = await cloud_to(fake_bridge.url)

    await cloud.connect(account)
    await cloud.connect(account)
    await cloud.disconnect(account)

    paths = [request.path for request in fake_bridge.requests]
    assert paths == [*["/base/ba-1/subscribed_apps", "/base/pn-1/register"] * 2, "/base/pn-1/deregister"]
    pins = {request.json["pin"] for request in fake_bridge.requests if "pin" in request.json}
    assert len(pins) == 1
    assert len(pins.pop()) == 6


async def test_a_profile_is_written_whole(fake_bridge: Any, cloud_to: Any, account: Account) -> None:
    fake_bridge.behaviour = replies({"success": True})
    cloud: Cloud = await cloud_to(fake_bridge.url)

    await cloud.update_profile(account, {"about": "Pão", "email": "a@b.example", "profilePictureUrl": "https://p"})

    assert fake_bridge.requests[0].json == {
        "messaging_product": "whatsapp",
        "about": "Pão",
        "address": "",
        "email": "a@b.example",
        "websites": [],
    }


# Media ----------------------------------------------------------------------------------------------------------------


async def test_an_upload_is_one_form_of_known_length(fake_bridge: Any, cloud_to: Any, account: Account) -> None:
    fake_bridge.behaviour = replies({"id": "m-1"})
    cloud: Cloud = await cloud_to(fake_bridge.url)
    content = bytes(range(256))

    media_id = await cloud.upload_media(
        account, chunks_of(content), size=256, mime_type="image/png\r\nX: y", filename='a".png'
    )

    (request,) = fake_bridge.requests
    assert (media_id, request.path) == ("m-1", "/base/pn-1/media")
    assert int(request.headers["content-length"]) == len(request.body)
    assert content in request.body
    assert b'filename="a_.png"\r\nContent-Type: image/png__X: y\r\n\r\n' in request.body


@pytest.mark.parametrize(
    ("address", "api", "safe"),
    [
        ("https://media.example/1", "https://graph.example", True),
        ("http://media.example/1", "https://graph.example", False),
        ("http://127.0.0.1:1/1", "http://127.0.0.1:2", True),
        ("http://media.example/1", "http://127.0.0.1:2", False),
        ("https://u:p@media.example/1", "https://graph.example", False),
        ("ftp://media.example/1", "https://graph.example", False),
        ("https://[", "https://graph.example", False),
        ("", "https://graph.example", False),
    ],
)
def test_the_token_goes_to_safe_addresses_only(address: str, api: str, safe: bool) -> None:
    from yarl import URL

    if safe:
        assert str(cloud_media.download_address(address, URL(api))) == address
    else:
        with pytest.raises(ProviderError, match="malformed_answer"):
            cloud_media.download_address(address, URL(api))


async def test_media_that_breaks_off_or_is_refused_says_so(fake_bridge: Any, cloud_to: Any, account: Account) -> None:
    about = {"url": f"{fake_bridge.url}/m-1/content", "mime_type": "image/png", "file_size": 100}
    answers = [json.dumps(about).encode(), b"", json.dumps(about).encode(), b""]

    async def behave(connection: Any) -> None:
        while True:
            request = await connection.read_request()
            body = answers.pop(0)
            if not request.path.endswith("content"):
                await connection.answer(200, body)
            elif answers:
                await connection.answer(403, b"")
            else:
                connection.writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
                await connection.writer.drain()
                connection.writer.close()
                return

    fake_bridge.behaviour = behave
    cloud: Cloud = await cloud_to(fake_bridge.url)

    with pytest.raises(ProviderError, match="status 403"):
        async with cloud.open_media(account, "m-1"):
            pass
    async with cloud.open_media(account, "m-1") as media:
        with pytest.raises(ProviderError, match="broke off"):
            assert [chunk async for chunk in media.chunks] == []


# Failures -------------------------------------------------------------------------------------------------------------

OPERATIONS: dict[str, Operation] = {
    "number_health": lambda cloud, account: cloud.number_health(account),
    "update_profile": lambda cloud, account: cloud.update_profile(account, {"about": "Pão"}),
    "connect": lambda cloud, account: cloud.connect(account),
    "disconnect": lambda cloud, account: cloud.disconnect(account),
    "submit_template": lambda cloud, account: cloud.submit_template(account, TEMPLATE),
    "delete_template": lambda cloud, account: cloud.delete_template(account, "ola", None),
    "list_templates": lambda cloud, account: cloud.list_templates(account),
    "upload_media": lambda cloud, account: cloud.upload_media(
        account, chunks_of(b"x"), size=1, mime_type="image/png", filename="f"
    ),
}


def error(code: int, status: int = 400, **more: Any) -> Behaviour:
    return says(status, json.dumps({"error": {"message": "+55 11 98765-4321, number-token", "code": code, **more}}))


FAILURES: list[tuple[Behaviour, str, str]] = [
    (error(100), "refused", "provider_error"),
    (error(131047), "refused", "window_closed"),
    (error(132001, 404), "refused", "template_unavailable"),
    (error(139999), "refused", "provider_error"),
    (error(139999, is_transient=True), "unreachable", "no_answer"),
    (error(190, 401), "unreachable", "unauthorized"),
    (error(10, 403), "unreachable", "forbidden"),
    (error(368, 403), "unreachable", "account_blocked"),
    (error(100, error_subcode=33), "unreachable", "not_found"),
    (error(131000, 500), "unreachable", "try_later"),
    (error(80007, 429), "unreachable", "try_later"),
    (says(401), "unreachable", "unauthorized"),
    (says(404), "unreachable", "not_found"),
    (says(422), "refused", "provider_error"),
    (says(500), "unreachable", "no_answer"),
    (says(302, "", "Location: http://127.0.0.1:9/\r\n"), "unreachable", "no_answer"),
    (says(200, "["), "unreachable", "malformed_answer"),
    (says(200, "[]"), "unreachable", "malformed_answer"),
    (resets_after_reading, "unreachable", "no_answer"),
    (hangs, "unreachable", "no_answer"),
    (breaks_inside("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", False), "unreachable", "malformed_answer"),
]


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
@pytest.mark.parametrize(("behaviour", "kind", "code"), FAILURES)
async def test_a_failed_operation_says_whether_it_may_be_tried_again(
    operation: Operation,
    behaviour: Behaviour,
    kind: str,
    code: str,
    fake_bridge: Any,
    cloud_to: Any,
    account: Account,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cloud_media, "UPLOAD_TIMEOUT", 0.15)
    fake_bridge.behaviour = behaviour
    cloud: Cloud = await cloud_to(fake_bridge.url, timeout=0.15 if behaviour is hangs else 5.0)

    with pytest.raises(ProviderError) as failure:
        await operation(cloud, account)

    assert (failure.value.kind, failure.value.code) == (kind, code)
    for personal in ("98765", "number-token", "app-secret"):
        assert personal not in str(failure.value) + caplog.text


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
@pytest.mark.parametrize(
    "change", [{"access_token": None}, {"phone_number_id": "a/../b", "business_account_id": "?x=1"}]
)
async def test_an_account_that_cannot_be_addressed_is_told_without_a_call(
    operation: Operation, change: dict[str, Any], fake_bridge: Any, cloud_to: Any, account: Account
) -> None:
    cloud: Cloud = await cloud_to(fake_bridge.url)

    with pytest.raises(ProviderError):
        await operation(cloud, replace(account, **change))

    assert fake_bridge.requests == []


@pytest.mark.parametrize(
    "answer",
    [
        {"data": {}},
        {"data": [7]},
        {"data": [{**LISTED, "id": 7}]},
        {"data": [{**LISTED, "components": "all"}]},
        {"data": [LISTED], "paging": {"next": "x"}},
    ],
)
async def test_a_list_of_another_shape_is_malformed(
    answer: Any, fake_bridge: Any, cloud_to: Any, account: Account
) -> None:
    fake_bridge.behaviour = replies(answer)
    cloud: Cloud = await cloud_to(fake_bridge.url)

    with pytest.raises(ProviderError, match="malformed_answer"):
        await cloud.list_templates(account)
