"""What callers are told of an e-mail that did not leave (C10.2.4)."""

from dataclasses import fields
from typing import Any

import pytest

from recado.http.routes.email.message_view import refusal_of
from recado.storage.messages.message_reads import Message

MESSAGE_ID = "msg_" + "0" * 21


def failed(code: str) -> Message:
    values: dict[str, Any] = {each.name: None for each in fields(Message) if each.init}
    return Message(**{**values, "id": MESSAGE_ID, "status": "failed", "failure_code": code})


@pytest.mark.parametrize(
    ("failure", "code", "meta"),
    [
        ("opted_out", "CONTACT_OPTED_OUT", {"motivo": "opt_out", "reason": "suppressed"}),
        ("suppressed", "RECIPIENT_SUPPRESSED", {"motivo": "suppressed", "reason": "suppressed"}),
        ("content_rejected", "CONTENT_REJECTED", {"reason": "content_rejected"}),
        ("what_nobody_knows", "DEPENDENCY_FAILED", {"reason": "provider_error"}),
    ],
)
def test_each_refusal_names_the_message_that_failed(failure: str, code: str, meta: dict[str, str]) -> None:
    refusal = refusal_of(failed(failure))
    assert refusal is not None
    assert (refusal.code, refusal.meta) == (code, {**meta, "messageId": MESSAGE_ID})
