"""What tests of the hosted API's operations ask and are answered: a template, how it is listed, bodies one by one."""

import json
from collections.abc import AsyncIterator
from typing import Any

from tests.channels.behaviours import Behaviour

from recado.channels.core.provider import (
    FlowDefinition,
    TemplateSubmission,
)

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


FLOW = FlowDefinition(
    "Survey flw_000000010000000000001",
    ["SURVEY"],
    {"version": "6.2", "screens": [{"id": "ASK", "title": "Olá?", "terminal": True}]},
)


def replies(*bodies: Any) -> Behaviour:
    """One answer after another, over one or several connections; one that has an `error` refuses."""
    left = [json.dumps(body).encode() for body in bodies]

    async def behave(connection: Any) -> None:
        while left:
            await connection.read_request()
            body = left.pop(0)
            await connection.answer(400 if body.startswith(b'{"error"') else 200, body)

    return behave


async def chunks_of(content: bytes) -> AsyncIterator[bytes]:
    yield content


LISTED = {
    "id": "1",
    "name": "ola",
    "language": "pt_BR",
    "status": "APPROVED",
    "category": "UTILITY",
    "rejected_reason": "NONE",
    "components": [{"type": "BODY", "text": "Olá {{1}}", "example": {"body_text": [["Ana"]]}}],
}
TAKEN = '{"messaging_product": "x", "contacts": [{"input": "1", "wa_id": "1"}], "messages": [{"id": "p-1"}]}'
