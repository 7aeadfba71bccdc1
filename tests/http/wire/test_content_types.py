"""Which media types are JSON."""

import pytest

from recado.domain.core.errors import Problem
from recado.http.bodies.parsing import require_json


def said_of(content_type: str | None) -> tuple[str, int] | None:
    try:
        require_json(content_type)
    except Problem as problem:
        return problem.code, problem.status
    return None


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "application/json; charset=utf-8",
        "Application/JSON;Charset=UTF-8",
        'application/json; charset="utf-8"',
    ],
)
def test_json_is_recognised(content_type: str) -> None:
    assert said_of(content_type) is None


@pytest.mark.parametrize(
    "content_type",
    [None, "", "text/plain", "application/jsonp", "application/json; charset=latin-1", "multipart/form-data", "json"],
)
def test_another_content_type_is_refused(content_type: str | None) -> None:
    assert said_of(content_type) == ("UNSUPPORTED_MEDIA_TYPE", 415)
