"""`If-Match` and `If-None-Match` (C6.3). Revisions are whole numbers: `"7"`."""

import re

from recado.domain.core.errors import Problem
from recado.http.api.call import ANY_REVISION, Call
from recado.http.wire.reply import Reply

_TAG = re.compile(r'\s*(W/)?"([^"]*)"\s*(?:,|$)')


def read_if_match(call: Call) -> None:
    """Leave in `call.if_match` what the caller accepts. A tag of another form matches nothing."""
    header = call.headers.get("If-Match")
    if header is None:
        return
    if header.strip() == "*":
        call.if_match = ANY_REVISION
    else:
        call.if_match = _revisions(header, weak=False)


def has_if_match(call: Call) -> bool:
    """Whether the caller asks for a version."""
    return "If-Match" in call.headers


def no_version() -> Problem:
    """Return the 412 of a create: there is no current version, and so any `If-Match` fails."""
    return Problem(
        "VERSION_MISMATCH", "If-Match cannot be used here: the record does not exist yet. Leave the header out."
    )


def not_modified(call: Call, reply: Reply) -> bool:
    """Whether the caller of a GET already holds the revision in `reply`."""
    header = call.headers.get("If-None-Match")
    if header is None or reply.revision is None or reply.status != 200:
        return False
    return header.strip() == "*" or reply.revision in _revisions(header, weak=True)


def _revisions(header: str, *, weak: bool) -> tuple[int, ...]:
    found = []
    position = 0
    while match := _TAG.match(header, position):
        if match.end() == position:
            break
        position = match.end()
        # A weak tag never satisfies If-Match (strong comparison), but does If-None-Match.
        if match[2].isascii() and match[2].isdecimal() and len(match[2]) <= 18 and (weak or match[1] is None):
            found.append(int(match[2]))
    return tuple(found)
