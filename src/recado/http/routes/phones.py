"""Phones in bodies: canonical, or refused with the place where they stand (C2.4)."""

from recado.domain.errors import FieldError, Problem
from recado.domain.phones import canonical_phone


def phone_at(path: str, text: str) -> str:
    """Return `text` in canonical form; PHONE_INVALID (422) that points at `path`, a JSON pointer."""
    try:
        return canonical_phone(text)
    except Problem as problem:
        error = FieldError(path, problem.code, problem.detail)
        raise Problem(problem.code, problem.detail, errors=[error]) from None
