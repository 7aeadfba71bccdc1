"""Flows at the hosted API: made, published, deprecated (C19)."""

from typing import Any

import orjson
import pytest
from tests.channels.chatapp.cloud_answers import FLOW, replies

from recado.channels.chatapp.cloud import Cloud
from recado.channels.core.errors import ProviderError
from recado.channels.core.provider import Account


async def test_a_flow_is_made_published_and_deprecated_in_the_words_of_the_api(
    fake_bridge: Any, cloud_to: Any, account: Account
) -> None:
    fake_bridge.behaviour = replies(
        {"id": "6627390910", "success": True, "validation_errors": []}, {"success": True}, {"success": True}
    )
    cloud: Cloud = await cloud_to(fake_bridge.url)

    assert await cloud.create_flow(account, FLOW) == "6627390910"
    await cloud.publish_flow(account, "6627390910")
    await cloud.deprecate_flow(account, "6627390910")

    made, published, deprecated = fake_bridge.requests
    assert {(request.method, request.path) for request in fake_bridge.requests} == {
        ("POST", "/base/ba-1/flows"), ("POST", "/base/6627390910/publish"), ("POST", "/base/6627390910/deprecate"),
    }  # fmt: skip
    body = made.json
    assert orjson.loads(body.pop("flow_json")) == FLOW.content
    assert body == {"name": FLOW.name, "categories": ["SURVEY"]}
    assert (published.json, deprecated.json) == ({}, {})


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ({"error": "INVALID_PROPERTY", "message": "Call +55 11 98765-4321"}, "Call ***"),
        ({"error": "INVALID_PROPERTY"}, "INVALID_PROPERTY"),
        ("?", "the provider finds faults in it"),
    ],
)
async def test_a_flow_with_faults_is_refused(
    fault: Any, text: str, fake_bridge: Any, cloud_to: Any, account: Account
) -> None:
    fake_bridge.behaviour = replies({"id": "6627390910", "success": False, "validation_errors": [fault]})
    cloud: Cloud = await cloud_to(fake_bridge.url)

    with pytest.raises(ProviderError) as failure:
        await cloud.create_flow(account, FLOW)
    assert (failure.value.kind, failure.value.text) == ("refused", text)


@pytest.mark.parametrize(("status", "done"), [("DEPRECATED", True), ("PUBLISHED", False), (None, False)])
async def test_a_refusal_to_deprecate_is_none_where_the_flow_is_deprecated(
    status: str | None, done: bool, fake_bridge: Any, cloud_to: Any, account: Account
) -> None:
    refusal = {"error": {"code": 100, "message": "the flow is not published"}}
    fake_bridge.behaviour = replies(refusal, {"id": "6627390910", "status": status})
    cloud: Cloud = await cloud_to(fake_bridge.url)

    if done:
        await cloud.deprecate_flow(account, "6627390910")
    else:
        with pytest.raises(ProviderError, match="refused"):
            await cloud.deprecate_flow(account, "6627390910")
    assert [(each.method, each.path) for each in fake_bridge.requests] == [
        ("POST", "/base/6627390910/deprecate"), ("GET", "/base/6627390910?fields=status"),
    ]  # fmt: skip
