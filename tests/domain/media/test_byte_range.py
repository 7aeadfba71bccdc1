"""`Range` in every form."""

import pytest

from recado.domain.core.errors import Problem
from recado.domain.media.byte_range import BytePart, asked_part


@pytest.mark.parametrize(
    ("header", "part"),
    [
        ("bytes=0-0", BytePart(0, 1)),
        ("bytes=0-99", BytePart(0, 100)),
        ("bytes=10-", BytePart(10, 90)),
        ("bytes=90-1000", BytePart(90, 10)),
        ("bytes=-5", BytePart(95, 5)),
        ("bytes=-500", BytePart(0, 100)),
        (" bytes= 1 - 2 ", BytePart(1, 2)),
        (None, None),
        ("", None),
        ("bytes=", None),
        ("bytes=-", None),
        ("bytes=5-2", None),
        ("bytes=0-1,3-4", None),
        ("items=0-1", None),
        ("bytes=a-b", None),
        ("bytes=+1-2", None),
        ("bytes=١-٢", None),
        (f"bytes=0-{10**30}", None),
    ],
)
def test_one_range_is_understood_and_what_is_none_is_ignored(header: str | None, part: BytePart | None) -> None:
    assert asked_part(header, 100) == part


@pytest.mark.parametrize("header", ["bytes=100-", "bytes=100-200", "bytes=-0", "bytes=999999999999999999-"])
def test_a_range_outside_is_refused_with_the_size(header: str) -> None:
    with pytest.raises(Problem) as refused:
        asked_part(header, 100)
    assert (refused.value.code, refused.value.headers["Content-Range"]) == ("RANGE_NOT_SATISFIABLE", "bytes */100")
