"""The sandbox's people write (C29.4)."""

from typing import Any

import pytest

from recado.domain.core.ids import NUMBER, lowest_id

PHONE = "+5511987654321"


async def test_an_inbound_message_opens_the_window(mail: Any) -> None:
    assert (await mail.refusal(mail.text())).code == "WINDOW_CLOSED"
    came = await mail.api.post(
        "/v2/sandbox/inbound", {"numberId": mail.number_id, "from": "+55 11 8765-4321", "text": "hello"}
    )
    assert came.status == 202
    inbound = (await mail.api.get(f"/messages/{came.body['messageId']}")).body
    assert (inbound["direction"], inbound["status"], inbound["to"]) == ("inbound", "delivered", PHONE)
    assert inbound["payload"] == {"text": {"body": "hello"}}
    assert (await mail.api.post("/messages", mail.text(priority="critical"))).status == 201


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"text": ...}, "VALIDATION_ERROR"),
        ({"from": "hello"}, "PHONE_INVALID"),
        ({"numberId": "num_1"}, "REFERENCE_NOT_FOUND"),
        ({"media": {"mimeType": "image/png", "dataBase64": "aGVsbG8="}}, "VALIDATION_ERROR"),  # a text as well
        ({"text": ..., "media": {"mimeType": "image/png", "dataBase64": "?"}}, "VALIDATION_ERROR"),
        (
            {"text": ..., "media": {"mimeType": "image/png", "dataBase64": "aGVsbG8="}, "channel": "sms"},
            "MEDIA_NOT_FOUND",
        ),
        ({"quoted": "msg_000000000000000000000"}, "REFERENCE_NOT_FOUND"),
        ({"channel": "push"}, "VALIDATION_ERROR"),
        ({"numberId": ...}, "VALIDATION_ERROR"),
    ],
)
async def test_a_bad_simulation_is_refused(mail: Any, changes: dict[str, Any], code: str) -> None:
    body = {"numberId": mail.number_id, "from": PHONE, "text": "hello", **changes}
    answer = await mail.api.post("/v2/sandbox/inbound", {k: v for k, v in body.items() if v is not ...})
    assert (answer.status, answer.code) == (422, code)
    assert await mail.stored() == 0


async def test_a_message_that_is_yet_to_come_has_no_version(mail: Any) -> None:
    body = {"numberId": mail.number_id, "from": PHONE, "text": "hello"}
    guarded = await mail.api.post("/v2/sandbox/inbound", body, headers={"If-Match": "*"})
    assert (guarded.status, guarded.code) == (412, "VERSION_MISMATCH")
    assert await mail.stored() == 0


async def test_the_simulation_does_not_exist_with_a_live_key(mail: Any) -> None:
    body = {"numberId": mail.number_id, "from": PHONE, "text": "hello"}
    for sent in (body, {}):
        assert (await mail.api.post("/v2/sandbox/inbound", sent, env="live")).status == 404
    other = {**body, "numberId": lowest_id(NUMBER, mail.api.clock.now())}
    assert (await mail.api.post("/v2/sandbox/inbound", other)).code == "REFERENCE_NOT_FOUND"
