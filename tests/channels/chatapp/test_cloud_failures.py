"""Operations of the hosted API that fail: each says whether it may be tried again, and none holds personal data."""

import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from tests.channels.chatapp.behaviours import Behaviour, breaks_inside, hangs, resets_after_reading, says
from tests.channels.chatapp.cloud_answers import LISTED, TEMPLATE, chunks_of, replies

from recado.channels.chatapp import cloud_media
from recado.channels.chatapp.cloud import Cloud
from recado.channels.provider import (
    Account,
    ProviderError,
)

Operation = Callable[[Cloud, Account], Awaitable[Any]]
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
