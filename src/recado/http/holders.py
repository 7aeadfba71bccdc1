"""Who holds a unique value that is taken: named in `meta` only to a caller who may read the record (C12.1)."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from recado.domain.errors import Problem
from recado.http.call import Call

READ: Final = "contacts:read"  # of contacts, lists and segments


@contextmanager
def holder_for_readers(call: Call) -> Iterator[None]:
    """Take the holder out of a refusal when the caller may not read it."""
    try:
        yield
    except Problem as problem:
        if problem.code.endswith("_TAKEN") and not call.can(READ):
            problem.meta = {}
        raise
