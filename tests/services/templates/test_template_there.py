"""Whether two templates show a person the same (C11.3)."""

from typing import Any

import pytest

from recado.services.templates.template_there import same_content

BODY = {"type": "BODY", "payload": {"text": "Hello {{1}}!", "example": ["Ana"]}}
HEADER = {"type": "HEADER", "payload": {"text": "Hi"}}
URL = {"type": "URL", "text": "See", "url": "https://a.example/{{1}}"}


def buttons(*given: Any) -> dict[str, Any]:
    return {"type": "BUTTONS", "payload": {"buttons": list(given)}}


@pytest.mark.parametrize(
    ("ours", "theirs", "same"),
    [
        ([BODY], [{"type": "body", "payload": {"text": "Hello {{1}}!"}}], True),
        ([HEADER, BODY], [{"type": "HEADER", "payload": {"format": "text", "text": "Hi"}}, BODY], True),
        ([buttons(URL)], [buttons({**URL, "type": "url", "example": "https://a.example/1"})], True),
        ([BODY], [{"type": "BODY", "payload": {"text": "Hello {{1}}."}}], False),
        ([BODY], [BODY, HEADER], False),
        ([HEADER], [{"type": "HEADER", "payload": {"format": "IMAGE"}}], False),
        ([buttons(URL)], [buttons({**URL, "url": "https://b.example/{{1}}"})], False),
        ([buttons(URL)], [buttons(URL, URL)], False),
        ([{"type": "BODY"}], [{"type": "BODY", "payload": None}], True),
    ],
)
def test_examples_and_the_case_of_kinds_do_not_matter(ours: Any, theirs: Any, same: bool) -> None:
    assert same_content(ours, theirs) is same
    assert same_content(theirs, ours) is same
