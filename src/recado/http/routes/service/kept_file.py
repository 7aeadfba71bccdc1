"""A file that does not change while the process runs, as it is sent: whole, compressed, or known already."""

import gzip
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from recado.http.api.call import Call
from recado.http.wire.reply import Reply


@dataclass(frozen=True, slots=True)
class KeptFile:
    """Its bytes, the same compressed, and the headers that both share."""

    plain: bytes
    packed: bytes
    headers: dict[str, str]

    @classmethod
    def of(cls, content: bytes, content_type: str, cached: str, more: Mapping[str, str] = {}) -> Self:
        """`cached`: the `Cache-Control`; `more`: headers beside those of every file."""
        headers = {
            "Content-Type": content_type,
            "Cache-Control": cached,
            "ETag": f'"{hashlib.sha256(content).hexdigest()[:16]}"',
            "Vary": "Accept-Encoding",
            "X-Content-Type-Options": "nosniff",
            **more,
        }
        return cls(content, gzip.compress(content, mtime=0), headers)

    def reply(self, call: Call) -> Reply:
        """The file in the form that the caller takes, or 304 to one that has it."""
        if self.headers["ETag"] in call.headers.get("If-None-Match", ""):
            return Reply(304, headers=self.headers)
        if "gzip" in call.headers.get("Accept-Encoding", ""):
            return Reply(200, self.packed, headers={**self.headers, "Content-Encoding": "gzip"})
        return Reply(200, self.plain, headers=self.headers)
