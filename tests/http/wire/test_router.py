"""Paths to operations."""

from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recado.http.api.router import Router, ids_are_formed

ROUTES = [
    ("GET", "/messages", "list"),
    ("POST", "/messages", "create"),
    ("POST", "/messages/bulk", "bulk"),
    ("GET", "/messages/{id}", "get"),
    ("POST", "/messages/{id}/archive", "archive"),
    ("GET", "/numbers/{id}/usage", "usage"),
    ("GET", "/numbers/new/usage/{day}", "day"),
    ("GET", "/", "root"),
]
ROUTER = Router(ROUTES)
PATTERNS = {operation: path for _, path, operation in ROUTES}


def find(method: str, path: str) -> tuple[str | None, dict[str, str]] | None:
    found = ROUTER.find(path)
    return None if found is None else (found[0].get(method), dict(found[1]))


@pytest.mark.parametrize(
    ("method", "path", "expected"),
    [
        ("GET", "/messages", ("list", {})),
        ("POST", "/messages", ("create", {})),
        ("PUT", "/messages", (None, {})),
        ("GET", "/messages/msg_1", ("get", {"id": "msg_1"})),
        ("POST", "/messages/bulk", ("bulk", {})),
        ("POST", "/messages/a/archive", ("archive", {"id": "a"})),
        ("GET", "/messages/a%2Fb%20%C3%A4", ("get", {"id": "a/b ä"})),
        ("GET", "/numbers/new/usage", ("usage", {"id": "new"})),
        ("GET", "/numbers/new/usage/1", ("day", {"day": "1"})),
        ("GET", "/", ("root", {})),
    ],
)
def test_a_path_leads_to_its_operations(method: str, path: str, expected: object) -> None:
    assert find(method, path) == expected


@pytest.mark.parametrize(
    "path",
    ["", "/messages/", "/messages//", "//messages", "/Messages", "/messages/a/b", "/messages/a/archive/", "/numbers",
     "/numbers/a", "/messages/%ff", "/messages/%00", "/messages/\udcff", "/numbers//usage"],
)  # fmt: skip
def test_other_paths_lead_nowhere(path: str) -> None:
    assert find("GET", path) is None


@given(st.text(max_size=30))
def test_a_path_that_leads_somewhere_is_its_pattern_with_the_parameters_in_it(path: str) -> None:
    for tried in (path, "/messages/" + path, f"/messages/{path}/archive"):
        found = ROUTER.find(tried)
        if found is not None:
            operations, parameters = found
            (pattern,) = {PATTERNS[operation] for operation in operations.values()}
            assert pattern.format(**parameters) == unquote(tried)


def test_two_operations_at_one_place_are_refused() -> None:
    with pytest.raises(ValueError, match="two operations for GET /a"):
        Router([("GET", "/a", 1), ("GET", "/a", 2)])
    with pytest.raises(ValueError, match="other names"):
        Router([("GET", "/a/{id}", 1), ("POST", "/a/{other}", 2)])


def test_ids_in_paths_have_a_form() -> None:
    assert ids_are_formed({"id": "msg_"}, {"id": "msg_" + "a" * 21, "other": "x"})
    assert not ids_are_formed({"id": "msg_"}, {"id": "msg_" + "a" * 20})
    assert not ids_are_formed({"id": "msg_"}, {"id": "num_" + "a" * 21})
