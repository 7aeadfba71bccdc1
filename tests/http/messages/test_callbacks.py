"""Callbacks: a signature, then a stored body, then the answer (C29.5)."""

from datetime import timedelta
from typing import Any

from recado.channels.signing import PROVIDER_SIGNATURE, signature, signing_key
from recado.http.routes.callbacks import LARGEST

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


async def test_a_callback_of_another_hand_is_not_stored(mail: Any) -> None:
    body = b'{"events": []}'
    for headers in ({}, signed(mail, b"{}"), signed(mail, body, ahead=-301), signed(mail, body, ahead=301)):
        answer = await mail.api.post(CALLBACK, raw=body, headers=headers, token="")
        assert (answer.status, answer.code) == (401, "INVALID_SIGNATURE")
    for path in ("/v2/callbacks/chatapp/sandbox", "/v2/callbacks/sms/bridge"):
        assert (await mail.api.post(path, raw=body, headers=signed(mail, body), token="")).status == 404
    large = b" " * (LARGEST + 1)
    assert (await mail.api.post(CALLBACK, raw=large, headers=signed(mail, large), token="")).status == 413
    assert mail.callbacks == []
