"""One `Range` of bytes in a request (C8.3.4). Pure."""

import re
from typing import NamedTuple

from recado.domain.core.errors import Problem

_one_range = re.compile(r"bytes=[ \t]*(\d{0,18})[ \t]*-[ \t]*(\d{0,18})[ \t]*", re.ASCII).fullmatch


class BytePart(NamedTuple):
    """Bytes from `first` on, `length` of them."""

    first: int
    length: int


def asked_part(header: str | None, size: int) -> BytePart | None:
    """The part of `size` bytes that a `Range` names; None: all of it, for a header that is absent, or of a form that is
    not known, or that names several parts.

    Raises RANGE_NOT_SATISFIABLE (416) for one that lies outside.
    """
    found = None if header is None else _one_range(header.strip())
    if found is None or found.groups() == ("", ""):
        return None
    first, last = found.groups()
    if not first:
        length = min(int(last), size)
        part = BytePart(size - length, length)
    else:
        if last and int(last) < int(first):
            return None  # no range at all (RFC 9110, 14.1.1)
        part = BytePart(int(first), min(int(last) if last else size, size - 1) - int(first) + 1)
    if part.length <= 0 or part.first >= size:
        raise Problem(
            "RANGE_NOT_SATISFIABLE",
            f"The media has {size:,} bytes: the Range lies outside of them.",
            headers={"Content-Range": f"bytes */{size}"},
        )
    return part
