"""The catalogue of problems (C4)."""

import pytest

from recado.domain.core.errors import (
    CODES,
    KINDS,
    FieldError,
    Problem,
    Unavailable,
    conflict,
    not_found,
    problem_slug,
    validation_error,
)

# First code of each status in C4.2: the one that equals its kind, where the status has such a code.
GENERIC = {
    400: "BAD_REQUEST",
    401: "UNAUTHORIZED",
    402: "PAYMENT_REQUIRED",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    409: "CONFLICT",
    422: "VALIDATION_ERROR",
    429: "RATE_LIMITED",
    500: "INTERNAL_ERROR",
    502: "DEPENDENCY_FAILED",
    503: "SERVICE_UNAVAILABLE",
}


@pytest.mark.parametrize(("status", "code"), GENERIC.items())
def test_the_generic_code_of_a_status_is_its_kind(status: int, code: str) -> None:
    assert (CODES[code].status, CODES[code].kind) == (status, code)


def test_every_code_has_the_kind_of_its_status_and_a_title_of_its_own() -> None:
    for entry in CODES.values():
        assert entry.kind == KINDS[entry.status]
        assert entry.title == entry.title.strip()
        assert not entry.title.endswith(".")
    assert len({entry.title for entry in CODES.values()}) == len(CODES)


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        ("METHOD_NOT_ALLOWED", 405, "BAD_REQUEST"),
        ("BODY_TOO_LARGE", 413, "BAD_REQUEST"),
        ("UNSUPPORTED_MEDIA_TYPE", 415, "BAD_REQUEST"),
        ("RANGE_NOT_SATISFIABLE", 416, "BAD_REQUEST"),
        ("VERSION_MISMATCH", 412, "PRECONDITION_FAILED"),
        ("IDEMPOTENCY_KEY_REUSED", 422, "VALIDATION_ERROR"),
        ("IDEMPOTENCY_IN_PROGRESS", 409, "CONFLICT"),
        ("PROVIDER_TIMEOUT", 502, "DEPENDENCY_FAILED"),
        ("TOO_MANY_ATTEMPTS", 429, "RATE_LIMITED"),
        ("DATA_DO_CONSENTIMENTO_NO_FUTURO", 422, "VALIDATION_ERROR"),
    ],
)
def test_a_code_stands_under_its_status(code: str, status: int, kind: str) -> None:
    problem = Problem(code, "x")
    assert (problem.status, problem.kind, problem.title) == (status, kind, CODES[code].title)


def test_a_code_may_answer_under_the_status_of_its_operation() -> None:
    problem = Problem("AUDIENCE_INVALID", "x", status=400)
    assert (problem.status, problem.kind) == (400, "BAD_REQUEST")


def test_an_unknown_code_is_a_defect() -> None:
    with pytest.raises(KeyError):
        Problem("NO_SUCH_CODE", "x")


def test_at_most_fifty_fields_are_reported() -> None:
    problem = validation_error([FieldError(f"/{index}", "REQUIRED", "x") for index in range(60)])
    assert len(problem.errors) == 50
    assert problem.detail == "60 invalid fields: /0 x; /1 x; /2 x; 57 more."


def test_one_bad_field_is_told_in_the_detail() -> None:
    assert validation_error([FieldError("/to", "REQUIRED", "The recipient is missing.")]).detail == (
        "The recipient is missing."
    )


def test_small_constructors_carry_their_meta() -> None:
    assert not_found().status == 404
    assert conflict("LIMIT_REACHED", "x", limit=250).meta == {"limit": 250}


def test_unavailable_names_a_time_to_come_back() -> None:
    assert Unavailable().headers == {"Retry-After": "1"}
    assert Unavailable(retry_after=0).headers == {"Retry-After": "1"}
    assert Unavailable("x", retry_after=7).headers == {"Retry-After": "7"}
    assert Unavailable().status == 503


def test_a_problem_type_is_the_code_in_lower_case_with_hyphens() -> None:
    assert problem_slug("IDEMPOTENCY_KEY_REUSED") == "idempotency-key-reused"
