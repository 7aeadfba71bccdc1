"""What is said of payloads that do not fit their message's type (C15.3)."""

from typing import Any

import orjson
import pytest

from recado.domain.core.errors import FieldError, Problem
from recado.http.bodies.parsing import parse_json, validate_body
from recado.http.routes.messages.message_models import CreateMessage


def refused(interactive: dict[str, Any]) -> list[FieldError]:
    body = {
        "numberId": "num_1",
        "to": "+5511987654321",
        "type": "interactive",
        "payload": {"interactive": {"body": "x", **interactive}},
    }
    with pytest.raises(Problem) as caught:
        validate_body(CreateMessage, parse_json(orjson.dumps(body)), 422)
    return list(caught.value.errors)


def test_the_sections_of_a_list_have_ten_rows_together() -> None:
    sections = [{"title": "s", "rows": [{"id": f"{s}.{n}", "title": "t"} for n in range(6)]} for s in range(2)]
    (error,) = refused({"type": "list", "action": {"button": "b", "sections": sections}})
    assert (error.path, error.code) == ("/payload/interactive/action/sections", "TOO_MANY")
    assert error.message == "a list has at most 10 rows in all its sections"


@pytest.mark.parametrize("data", [{"text": "x" * 65_536}, {"numbers": [1e308] * 300}])
def test_what_a_flow_opens_with_has_a_size_as_it_is_stored_with_each_message_of_a_batch(data: dict[str, Any]) -> None:
    (error,) = refused({"type": "flow", "action": {"flowId": "flw_1", "cta": "Go", "data": data}})
    assert (error.path, error.message) == ("/payload/interactive/action/data", "must have at most 64 KiB")


@pytest.mark.parametrize("url", ["https://a..example/", "https://[", "https://example.com:70000/", "https://a b"])
def test_a_button_leads_to_an_address_that_a_program_can_open(url: str) -> None:
    (error,) = refused({"type": "cta_url", "action": {"displayText": "Open", "url": url}})
    assert error.path == "/payload/interactive/action/url"
