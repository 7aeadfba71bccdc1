"""Cursors: where the next page of a list begins, signed, and bound to the list that it came from (C5.4)."""

import hmac
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

import orjson

from recado.domain.core.base64url import base64url, from_base64url
from recado.domain.core.errors import Problem

_VERSION: Final = 1
_SIGNATURE_BYTES: Final = 16
_SCOPE_BYTES: Final = 8
_PAGING: Final = frozenset({"limit", "cursor"})


class CursorSigner:
    """Writes and reads cursors with one key (32 bytes or more); they never expire."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = key

    def encode(self, k: list[Any], scope_hash: bytes) -> str:
        """The cursor after the row with order key `k` (JSON values, its id last) in the list of `scope_hash`."""
        return self._sign(orjson.dumps({"v": _VERSION, "k": k, "s": scope_hash.hex()}))

    def decode(self, text: str, scope_hash: bytes) -> list[Any]:
        """The order key in a cursor of this list.

        Problem 400 `INVALID_CURSOR` when it was altered, or comes from another list, filter, organization or
        environment.
        """
        try:
            payload = from_base64url(text.partition(".")[0])
        except ValueError:
            raise _invalid() from None
        # The whole text is compared, so that one cursor has one spelling.
        if not text.isascii() or not hmac.compare_digest(self._sign(payload), text):
            raise _invalid()
        content = orjson.loads(payload)
        if content["v"] != _VERSION or content["s"] != scope_hash.hex():
            raise _invalid()
        key: list[Any] = content["k"]
        return key

    def _sign(self, payload: bytes) -> str:
        signature = hmac.digest(self._key, payload, "sha256")[:_SIGNATURE_BYTES]
        return f"{base64url(payload)}.{base64url(signature)}"


def cursor_scope(organization_id: str, env: str, operation: str, filters: Mapping[str, Any]) -> bytes:
    """The 8 bytes that name a list: organization, environment, operation and every parameter that narrows it.

    `limit` and `cursor` are left out, and so are parameters that are None. Values are JSON values, times, enumerations
    or sets.
    """
    narrowing = {name: value for name, value in filters.items() if name not in _PAGING and value is not None}
    text = orjson.dumps([organization_id, env, operation, narrowing], default=sorted, option=orjson.OPT_SORT_KEYS)
    return sha256(text).digest()[:_SCOPE_BYTES]


def _invalid() -> Problem:
    return Problem(
        "INVALID_CURSOR", "The cursor does not belong to this list with these filters: begin again without cursor."
    )
