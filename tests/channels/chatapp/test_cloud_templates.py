"""Templates at the hosted API: handed in, edited, listed and deleted."""

from dataclasses import replace
from typing import Any

import pytest
from tests.captured import capture_logs
from tests.channels.chatapp.cloud_answers import LISTED, TEMPLATE, replies

from recado.channels.chatapp import cloud as cloud_module
from recado.channels.chatapp.cloud import Cloud
from recado.channels.core.errors import ProviderError
from recado.channels.core.provider import (
    Account,
    ProviderTemplate,
    Submission,
)
from recado.engine.clock import VirtualClock


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


@pytest.mark.parametrize(
    ("held", "sent"),
    [
        ({"category": "MARKETING", "id": "77"}, {"components"}),
        ({"category": "UTILITY", "id": "77"}, {"category", "components"}),
    ],
)
async def test_a_template_that_is_there_already_is_edited(
    held: dict[str, Any], sent: set[str], fake_bridge: Any, cloud_to: Any, account: Account
) -> None:
    fake_bridge.behaviour = replies(held, {"success": True})
    cloud: Cloud = await cloud_to(fake_bridge.url)

    assert await cloud.submit_template(account, replace(TEMPLATE, provider_template_id="77")) == Submission("77")

    asked, edited = fake_bridge.requests
    assert (asked.method, asked.path) == ("GET", "/base/77?fields=category")
    assert (edited.method, edited.path) == ("POST", "/base/77")
    assert set(edited.json) == sent


async def test_a_template_that_was_deleted_there_is_made_anew(
    fake_bridge: Any, cloud_to: Any, account: Account
) -> None:
    async def behave(connection: Any) -> None:
        await connection.read_request()
        await connection.answer(400, b'{"error": {"code": 100, "error_subcode": 33, "message": "no such object"}}')
        await connection.read_request()
        await connection.answer(200, b'{"id": "78", "status": "PENDING"}')

    fake_bridge.behaviour = behave
    cloud: Cloud = await cloud_to(fake_bridge.url)

    assert await cloud.submit_template(account, replace(TEMPLATE, provider_template_id="77")) == Submission("78")
    assert fake_bridge.requests[1].path == "/base/ba-1/message_templates"


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        ({"status": "APPROVED", "category": "UTILITY"}, ("approved", "utility")),
        ({"status": "REJECTED", "category": 7}, ("rejected", None)),
        ({"status": "APPROVED"}, ("approved", None)),
        ({"status": "ARCHIVED"}, None),
        ({"status": ["APPROVED"]}, None),
        ({}, None),
    ],
)
async def test_a_review_that_took_no_time_ends_with_the_answer(
    answer: dict[str, Any], verdict: tuple[str, str | None] | None, fake_bridge: Any, cloud_to: Any, account: Account
) -> None:
    fake_bridge.behaviour = replies({"id": "1", **answer})
    cloud: Cloud = await cloud_to(fake_bridge.url)

    taken = await cloud.submit_template(account, TEMPLATE)

    told = [(each.after_seconds, each.event.status, each.event.category) for each in taken.followups]
    assert told == ([] if verdict is None else [(0.0, *verdict)])
    assert taken.provider_template_id == "1"


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


async def test_templates_are_listed_page_after_page_without_those_that_could_not_be_sent(
    fake_bridge: Any, cloud_to: Any, account: Account
) -> None:
    odd = [
        {**LISTED, "parameter_format": "NAMED"},
        {**LISTED, "category": "OTP"},
        {**LISTED, "status": "LOCKED"},
        {**LISTED, "components": [{"type": "CAROUSEL", "cards": []}]},
        {**LISTED, "components": [{"type": "HEADER", "format": "LOCATION"}]},
        {**LISTED, "components": [{"type": "BUTTONS", "buttons": [{"type": "CATALOG"}]}]},
    ]
    rejected = {**LISTED, "id": "2", "status": "REJECTED", "rejected_reason": "SCAM", "components": []}
    archived = {**LISTED, "id": "3", "status": "ARCHIVED", "components": []}
    pages = [
        {"data": [LISTED, *odd], "paging": {"cursors": {"after": "next=1"}, "next": "http://elsewhere.example/"}},
        {"data": [rejected, archived], "paging": {"cursors": {"after": "end"}}},
    ]
    fake_bridge.behaviour = replies(*pages)
    cloud: Cloud = await cloud_to(fake_bridge.url)

    components = [{"type": "BODY", "payload": {"text": "Olá {{1}}", "example": ["Ana"]}}]
    fields = {"name": "ola", "language": "pt-BR", "category": "utility"}
    assert await cloud.list_templates(account) == [
        ProviderTemplate(provider_template_id="1", status="approved", components=components, **fields),
        ProviderTemplate(provider_template_id="2", status="rejected", components=[], rejection_reason="SCAM", **fields),
        ProviderTemplate(provider_template_id="3", status="paused", components=[], **fields),
    ]
    assert [request.path.partition("&after=")[2] for request in fake_bridge.requests] == ["", "next%3D1"]
    assert all(request.path.startswith("/base/ba-1/message_templates?fields=id") for request in fake_bridge.requests)


async def test_a_template_that_cannot_be_read_costs_no_other(fake_bridge: Any, cloud_to: Any, account: Account) -> None:
    bad: list[Any] = [{**LISTED, "id": []}, {**LISTED, "components": 7}, None]
    fake_bridge.behaviour = replies({"data": [*bad, LISTED]})
    cloud: Cloud = await cloud_to(fake_bridge.url)

    with capture_logs() as logs:
        assert [each.name for each in await cloud.list_templates(account)] == ["ola"]
    assert [(each["count"], each["first"]) for each in logs if each["event"] == "templates_left_out"] == [
        (3, "data[0].id")
    ]


async def test_a_list_is_read_in_turns_that_others_have_too(
    fake_bridge: Any, cloud_to: Any, account: Account, clock: VirtualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    rests: list[float] = []

    async def sleep(seconds: float) -> None:
        rests.append(seconds)

    monkeypatch.setattr(clock, "sleep", sleep)
    fake_bridge.behaviour = replies({"data": [LISTED] * 30})
    cloud: Cloud = await cloud_to(fake_bridge.url)
    assert len(await cloud.list_templates(account)) == 30
    assert rests == [0] * 30


async def test_a_list_that_never_ends_is_read_up_to_so_many_bytes(
    fake_bridge: Any, cloud_to: Any, account: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cloud_module, "_LONGEST_LIST", 50_000)
    page = {
        "data": [{**LISTED, "more": "x" * 10_000}],
        "paging": {"cursors": {"after": "a"}, "next": "http://a.example/"},
    }
    fake_bridge.behaviour = replies(*[page] * 10)
    cloud: Cloud = await cloud_to(fake_bridge.url)
    with pytest.raises(ProviderError) as failure:
        await cloud.list_templates(account)
    assert (failure.value.kind, failure.value.code) == ("unreachable", "malformed_answer")
    assert len(fake_bridge.requests) == 5


async def test_a_template_is_deleted_by_name_and_id(fake_bridge: Any, cloud_to: Any, account: Account) -> None:
    fake_bridge.behaviour = replies({"success": True}, {"success": True})
    cloud: Cloud = await cloud_to(fake_bridge.url)

    await cloud.delete_template(account, "ola", "77")
    await cloud.delete_template(account, "ola", None)

    assert [(request.method, request.path) for request in fake_bridge.requests] == [
        ("DELETE", "/base/ba-1/message_templates?name=ola&hsm_id=77"),
        ("DELETE", "/base/ba-1/message_templates?name=ola"),
    ]
