"""Phones in bodies, and what stands for one: canonical, or refused with the place where they stand (C2.4)."""

from collections.abc import Callable

from recado.domain.channels.address import AddressKind, given, is_user_id
from recado.domain.channels.policies import given_recipient
from recado.domain.core.errors import FieldError, Problem
from recado.domain.core.phones import canonical_phone


def searched_phone(text: str, *, bad_status: int = 400) -> str:
    """Return `text` of the query parameter `phone` in canonical form; INVALID_PARAMETER, or VALIDATION_ERROR for 422.

    `bad_status`: that of a bad parameter of the operation (C4.3.2).
    """
    # A plus of a query string that was not escaped arrives as a blank.
    try:
        return canonical_phone("+" + text[1:] if text.startswith(" ") else text)
    except Problem as problem:
        error = FieldError("phone", problem.code, problem.detail)
        code = "INVALID_PARAMETER" if bad_status == 400 else "VALIDATION_ERROR"
        raise Problem(code, problem.detail, errors=[error]) from None


def searched_recipient(text: str) -> str:
    """As `searched_phone`, or a user id of the chat app (C28.6)."""
    return text.strip() if is_user_id(text.strip()) else searched_phone(text)


def phone_at(path: str, text: str) -> str:
    """Return `text` in canonical form; PHONE_INVALID (422) that points at `path`, a JSON pointer."""
    return _at(path, lambda: canonical_phone(text))


def recipient_at(path: str, channel: str, text: str) -> str:
    """A recipient of a channel of phones: one, or what stands for it there (C28.6); else as `phone_at`."""
    return _at(path, lambda: given_recipient(channel, text))


def user_id_at(path: str, text: str) -> str:
    """Return `text` as a user id of the chat app (C28.6); VALIDATION_ERROR (422) that points at `path`."""
    return _at(path, lambda: given(text, (AddressKind.SCOPED_USER,)))


def _at(path: str, read: Callable[[], str]) -> str:
    try:
        return read()
    except Problem as problem:
        error = FieldError(path, problem.code, problem.detail)
        raise Problem(problem.code, problem.detail, errors=[error]) from None
