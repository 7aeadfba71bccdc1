"""Addresses of stored files that open for a while, whoever has them: what they say is signed (C30.4). Pure."""

import hmac
from datetime import datetime
from hashlib import sha256
from typing import Final
from urllib.parse import quote, urlencode

from recado.domain.core.base64url import base64url

_PURPOSE: Final = b"recado stored files"


class SignedLinks:
    """`base_url`: of the service; `key`: of the installation, from which one for this alone is made."""

    def __init__(self, base_url: str, key: bytes) -> None:
        self._base = base_url
        self._key = hmac.new(key, _PURPOSE, sha256).digest()

    def url(self, key: str, content_type: str, disposition: str, expires: int) -> str:
        """`expires`: seconds since 1970."""
        said = {"exp": str(expires), "ct": content_type, "cd": disposition}
        signature = self._signature(key, *said.values())
        return f"{self._base}/storage/{quote(key)}?{urlencode({**said, 'sig': signature})}"

    def opens(self, key: str, exp: str, content_type: str, disposition: str, signature: str, now: datetime) -> bool:
        """Whether the address is ours, and its time not over."""
        right = self._signature(key, exp, content_type, disposition)
        given = signature.encode("utf-8", "replace")
        return hmac.compare_digest(right.encode(), given) and exp.isdecimal() and now.timestamp() < int(exp)

    def _signature(self, key: str, exp: str, content_type: str, disposition: str) -> str:
        signed = "\n".join((key, exp, content_type, disposition)).encode("utf-8", "surrogatepass")
        return base64url(hmac.new(self._key, signed, sha256).digest())
