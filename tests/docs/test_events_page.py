"""What docs/events.md shows is so."""

import re
from pathlib import Path
from urllib.parse import parse_qs

import orjson

from recado.domain.core.errors import CODES
from recado.http.bodies.parsing import QueryParser
from recado.http.routes.events.customer_event_models import CustomerEventIn, CustomerEventOut, CustomerEventQuery

PAGE = (Path(__file__).parents[2] / "docs" / "events.md").read_text("utf-8")


def test_the_event_of_the_page_is_one_and_its_answer_repeats_it() -> None:
    (sent,) = [orjson.loads(text) for text in re.findall(r"-d '(\{.*?\})'", PAGE, re.DOTALL)]
    (shown,) = [orjson.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]
    body = CustomerEventIn.model_validate(sent)
    assert body.model_dump(by_alias=True, exclude_unset=True) == sent
    answer = CustomerEventOut.model_validate(shown)
    assert answer.model_dump(by_alias=True, exclude_unset=True).keys() == shown.keys()
    assert {name: shown[name] for name in sent.keys() & shown.keys()} == {
        name: value for name, value in sent.items() if name in shown
    }


def test_the_list_of_the_page_can_be_asked_for() -> None:
    (query,) = re.findall(r"/v2/events\?(\S+)\"", PAGE)
    asked = QueryParser(CustomerEventQuery, 400).parse(query, [])
    assert {name for name, value in asked.model_dump(by_alias=True, exclude_unset=True).items() if value} == set(
        parse_qs(query)
    )


def test_codes_and_limits_of_the_page_are_those_in_force() -> None:
    words = set(re.findall(r"`([^`\n]+)`", PAGE))
    assert {word for word in words if re.fullmatch(r"[A-Z]+(_[A-Z]+)+", word)} <= set(CODES)
    window = CustomerEventIn.model_fields["attribution_window_hours"]
    (most,) = [bound.le for bound in window.metadata if hasattr(bound, "le")]
    assert f"({window.default}, or up to {most})" in PAGE
