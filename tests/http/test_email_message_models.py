"""What the body of an e-mail may hold (C10.2.1)."""

from typing import Any

import pytest
from pydantic import ValidationError

from recado.http.routes.email.message_models import CreateEmail

MIB = 1024 * 1024
PLAIN: dict[str, Any] = {"to": "ana@example.com", "subject": "Your order", "text": "It is ready."}


@pytest.mark.parametrize(
    "changes",
    [
        {}, {"html": "x" * MIB, "text": None}, {"text": "x" * (MIB // 4)}, {"subject": "é" * 255},
        {"text": "{{" * 6_000}, {"from": '"Silva, Ana" <ana@example.com>'}, {"campaignId": "a.b:c-d_1"},
        {"templateId": "etpl_1", "text": None, "subject": None}, {"templateId": "etpl_1", "text": "  "},
    ],
)  # fmt: skip
def test_what_is_well_formed_is_taken(changes: dict[str, Any]) -> None:
    assert CreateEmail.model_validate(PLAIN | changes).to == "ana@example.com"


@pytest.mark.parametrize(
    "changes",
    [
        {"html": "x" * (MIB + 1)}, {"html": "é" * (MIB // 2 + 1)}, {"text": "x" * (MIB // 4 + 1)},
        {"subject": "x" * 256}, {"from": "Ana"}, {"from": f"<{'a' * 250}@b.co>"},
        {"from": "a@b.c\r\nBcc: d@e.f"}, {"to": "a@b.c\nBcc: d@e.f"},
        {"to": "Ana <a@b.c>"}, {"text": ""}, {"campaignId": "x" * 65}, {"variables": {"n": None}}, {"tracking": "yes"},
        {"variables": {f"v{n}": 1 for n in range(101)}},
    ],
)  # fmt: skip
def test_what_is_not_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        CreateEmail.model_validate(PLAIN | changes)
