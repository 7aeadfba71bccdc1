"""What a journey uses is what its trigger and its sends work with, and nothing that they ignore."""

from typing import Any

import pytest
from tests.domain.journeys.definitions import EMAIL_TEMPLATE, LIST, NUMBER, SEGMENT, TEMPLATE, document

from recado.domain.journeys.uses import uses_of

WHOLE = document()


def used(**trigger: str) -> list[str]:
    return uses_of(trigger, WHOLE["passos"])


def test_what_its_trigger_and_its_sends_work_with_each_once_and_in_order() -> None:
    sends = [EMAIL_TEMPLATE, NUMBER, TEMPLATE]
    assert used(tipo="lista", listId=LIST) == sorted([LIST, *sends])
    assert used(tipo="segmento", segmentId=SEGMENT) == sorted([SEGMENT, *sends])
    assert uses_of({"tipo": "api"}, WHOLE["passos"] * 2) == sends


@pytest.mark.parametrize("tipo", [None, "api", "evento"])
def test_a_trigger_of_another_kind_uses_none(tipo: str | None) -> None:
    kind = {} if tipo is None else {"tipo": tipo}
    assert uses_of({**kind, "listId": LIST, "segmentId": SEGMENT}, []) == []


def test_a_trigger_uses_only_what_its_kind_is_about() -> None:
    both = {"listId": LIST, "segmentId": SEGMENT}
    assert uses_of({"tipo": "lista", **both}, []) == [LIST]
    assert uses_of({"tipo": "segmento", **both}, []) == [SEGMENT]
    assert uses_of({"tipo": "segmento", "listId": LIST}, []) == []


@pytest.mark.parametrize(
    "fields", [{"tipo": "fim"}, {"tipo": "enviar"}, {"tipo": "enviar", "canal": "sms"}, {"tipo": "webhook"}]
)
def test_a_step_of_another_kind_uses_none(fields: dict[str, Any]) -> None:
    assert uses_of({}, [{"id": "a", "templateId": TEMPLATE, "numberId": NUMBER, "webhookId": "wbh_x", **fields}]) == []


def test_a_mail_leaves_from_no_number() -> None:
    mail = {"id": "a", "tipo": "enviar", "canal": "email", "templateId": EMAIL_TEMPLATE, "numberId": NUMBER}
    assert uses_of({}, [mail]) == [EMAIL_TEMPLATE]
