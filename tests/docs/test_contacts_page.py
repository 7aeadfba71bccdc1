"""What docs/contacts.md shows is so."""

import re
from datetime import date
from pathlib import Path

import orjson

from recado.domain.contacts.contact_input import read_new
from recado.domain.core.errors import CODES
from recado.domain.core.events import EVENT_NAMES
from recado.http.routes.contacts.contact_models import ContactQuery, OptOut

PAGE = (Path(__file__).parents[2] / "docs" / "contacts.md").read_text("utf-8")
EXAMPLES = [orjson.loads(text) for text in re.findall(r"-d '(\{.*?\})'", PAGE, re.DOTALL)]


def test_the_contact_of_the_page_is_one() -> None:
    given = read_new(EXAMPLES[0], date(2026, 11, 21))
    assert given.errors == ()
    assert len(given.values) == len(EXAMPLES[0])


def test_the_opt_out_of_the_page_is_one() -> None:
    body = OptOut.model_validate(EXAMPLES[1])
    assert body.model_dump(by_alias=True, exclude_none=True) == EXAMPLES[1]


def test_codes_events_and_filters_of_the_page_exist() -> None:
    words = set(re.findall(r"`([^`\n]+)`", PAGE))
    assert {word for word in words if re.fullmatch(r"[A-Z]+(_[A-Z]+)+", word)} <= set(CODES)
    assert {word for word in words if re.fullmatch(r"contact\.[a-z_]+", word)} <= set(EVENT_NAMES)
    (filters,) = re.findall(r"`GET /contacts` takes (.*?), together", PAGE)
    assert set(re.findall(r"`(\w+)`", filters)) <= {info.alias for info in ContactQuery.model_fields.values()} | {
        "source", "tag", "q",
    }  # fmt: skip
