"""Callbacks: a signature, then a stored body, then the answer (C29.5)."""

from datetime import timedelta
from typing import Any

import pytest

from recado.channels.chatapp import cloud_callbacks
from recado.channels.chatapp.bridge import Bridge
from recado.channels.core.signing import PROVIDER_SIGNATURE, signature, signing_key
from recado.http.routes.inbound.callbacks import LARGEST

SECRET = "whsec_c2VjcmV0IG9mIHRoZSBicmlkZ2U="
CALLBACK = "/v2/callbacks/chatapp/bridge"


def signed(mail: Any, body: bytes, *, ahead: float = 0) -> dict[str, str]:
    at = mail.api.clock.now() + timedelta(seconds=ahead)
    return {PROVIDER_SIGNATURE: signature([signing_key(SECRET)], body, at)}


async def test_a_signed_callback_is_stored_and_answered(mail: Any) -> None:
    body = b'{"events": []}'
    answer = await mail.api.post(CALLBACK, raw=body, headers=signed(mail, body), token="")
    assert (answer.status, answer.body) == (200, {})
    assert mail.callbacks == [("chatapp", "bridge", body)]


async def test_a_callback_is_kept_with_its_content_type_and_what_its_adapter_names(
    mail: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = b'{"events": []}'
    headers = {**signed(mail, body), "Content-Type": "application/json", "X-Kind": "k", "X-Other": "o"}
    await mail.api.post(CALLBACK, raw=body, headers=headers, token="")
    assert mail.kept == [{"Content-Type": "application/json"}]
    monkeypatch.setattr(Bridge, "read_with", ("X-Kind", "X-Absent"))
    await mail.api.post(CALLBACK, raw=body, headers=headers, token="")
    assert mail.kept[1] == {"Content-Type": "application/json", "X-Kind": "k"}


async def test_a_callback_of_another_hand_is_not_stored(mail: Any) -> None:
    body = b'{"events": []}'
    for headers in ({}, signed(mail, b"{}"), signed(mail, body, ahead=-301), signed(mail, body, ahead=360)):
        answer = await mail.api.post(CALLBACK, raw=body, headers=headers, token="")
        assert (answer.status, answer.code) == (401, "INVALID_SIGNATURE")
    for path in ("/v2/callbacks/chatapp/sandbox", "/v2/callbacks/sms/bridge"):
        assert (await mail.api.post(path, raw=body, headers=signed(mail, body), token="")).status == 404
        assert (await mail.api.post(path, raw=b" " * (LARGEST + 1), token="")).status == 404  # whatever the body is
    large = b" " * (LARGEST + 1)
    assert (await mail.api.post(CALLBACK, raw=large, headers=signed(mail, large), token="")).status == 413
    assert mail.callbacks == []


CLOUD = "/v2/callbacks/chatapp/cloud"


async def test_the_hosted_api_s_callback_is_known_by_its_own_signature(mail: Any) -> None:
    body = b'{"entry": []}'
    signature = cloud_callbacks.signature(b"app-secret", body)
    answer = await mail.api.post(CLOUD, raw=body, headers={"X-Hub-Signature-256": signature}, token="")
    assert (answer.status, answer.body) == (200, {})
    answer = await mail.api.post(CLOUD, raw=body + b" ", headers={"X-Hub-Signature-256": signature}, token="")
    assert (answer.status, answer.code) == (401, "INVALID_SIGNATURE")
    assert mail.callbacks == [("chatapp", "cloud", body)]


async def test_who_knows_the_verify_token_gets_the_challenge_back(mail: Any) -> None:
    query = "?hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token="
    answer = await mail.api.get(f"{CLOUD}{query}verify-me-7f", token="")
    assert (answer.status, answer.body) == (200, 1158201444)
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("hub.mode=subscribe&hub.challenge=1&hub.verify_token=verify-me-7", 401),
        ("hub.mode=subscribe&hub.challenge=1&hub.verify_token=", 401),
        ("hub.mode=unsubscribe&hub.challenge=1&hub.verify_token=verify-me-7f", 401),
        ("hub.mode=subscribe&hub.verify_token=verify-me-7f", 400),
        ("", 400),
    ],
)
async def test_whoever_does_not_know_the_verify_token_learns_nothing(mail: Any, query: str, status: int) -> None:
    assert (await mail.api.get(f"{CLOUD}?{query}", token="")).status == status


async def test_only_the_hosted_api_asks_before_it_calls(mail: Any) -> None:
    query = "?hub.mode=subscribe&hub.challenge=1&hub.verify_token=verify-me-7f"
    assert (await mail.api.get(f"{CALLBACK}{query}", token="")).status == 404
