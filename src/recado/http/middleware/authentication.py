"""From the `Authorization` header to a principal (C3.1). The credentials themselves are known to others."""

import hmac
from typing import Protocol

from recado.domain.core.errors import Problem
from recado.http.callers.principal import ADMINISTRATOR, Principal

_LONGEST_TOKEN = 256
_PREFIX = "Bearer "


class Authenticator(Protocol):
    """Knows the credentials, and remembers for a few seconds those it has seen."""

    def peek(self, token: str) -> Principal | None:
        """Return who holds `token` when that is known and valid without waiting."""

    async def authenticate(self, token: str) -> Principal | Problem:
        """Return who holds `token`; else return or raise the 401. May raise Unavailable."""


def unauthorized(detail: str, code: str = "UNAUTHORIZED") -> Problem:
    """Return a 401 with its challenge."""
    return Problem(code, detail, headers={"WWW-Authenticate": "Bearer"})


def bearer_token(header: str | None) -> str:
    """Return the token in an `Authorization` header; 401 when it is absent or of another form."""
    if header is None:
        raise unauthorized("The Authorization header is missing. Send: Authorization: Bearer <API key>.")
    if header.startswith(_PREFIX):
        token = header[len(_PREFIX) :]
    else:
        scheme, _, token = header.partition(" ")
        if scheme.lower() != "bearer":
            token = ""
    token = token.strip()
    if not token or not token.isascii() or len(token) > _LONGEST_TOKEN:
        raise unauthorized("The Authorization header must have the form: Bearer <API key>.")
    return token


async def authenticate(authenticator: Authenticator, token: str) -> Principal:
    """Return who holds `token`; raises the 401 with its challenge, or Unavailable."""
    try:
        found = await authenticator.authenticate(token)
    except Problem as problem:
        found = problem
    if isinstance(found, Principal):
        return found
    if found.status == 401 and "WWW-Authenticate" not in found.headers:
        found.headers = {**found.headers, "WWW-Authenticate": "Bearer"}
    raise found


class Administrator:
    """The installation's administrator, known by one token; without a token there is none (C3.1)."""

    def __init__(self, token: str | None) -> None:
        self._token = token.encode() if token else None

    @property
    def exists(self) -> bool:
        """Whether this installation has an administrator."""
        return self._token is not None

    def is_shown(self, header: str | None) -> bool:
        """Whether an `Authorization` header holds the administrator's token; another is somebody else's to look at."""
        if self._token is None:
            return False
        try:
            token = bearer_token(header)
        except Problem:
            return False
        return hmac.compare_digest(token.encode(), self._token)

    def authenticate(self, token: str) -> Principal:
        """Return the administrator; 401 for any other token."""
        if self._token is None or not hmac.compare_digest(token.encode(), self._token):
            raise unauthorized(
                "This operation needs the token of the administrator, the setting RECADO_ADMIN_TOKEN of the "
                "installation; an API key cannot call it."
            )
        return ADMINISTRATOR
