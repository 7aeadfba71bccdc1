"""What the body of an e-mail may hold (C10.2.1)."""

from typing import Any

import orjson
import pytest
from pydantic import ValidationError

from recado.domain.core.errors import Problem
from recado.http.bodies.parsing import parse_json, validate_body
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


@pytest.mark.parametrize(
    ("body", "missing"),
    [
        ({}, ["/to", "", "/subject"]),
        ({"to": "ana@example.com", "text": "It is ready."}, ["/subject"]),
        ({"to": "ana@example.com", "text": "It is ready.", "subject": None}, ["/subject"]),
        ({"to": "ana@example.com", "subject": "Your order", "text": " "}, [""]),
        ({"subject": "Your order", "text": " "}, ["/to", ""]),
        ({"templateId": "etpl_1"}, ["/to"]),
        ({"to": "ana@example.com", "text": "It is ready.", "Subject": "Your order"}, ["/subject"]),
    ],
)
def test_all_that_is_missing_is_named_at_its_place(body: dict[str, Any], missing: list[str]) -> None:
    with pytest.raises(Problem) as caught:
        validate_body(CreateEmail, parse_json(orjson.dumps(body)), 422)
    assert [error.path for error in caught.value.errors] == missing
