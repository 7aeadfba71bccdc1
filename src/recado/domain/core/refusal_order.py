"""Which of two refusals is told: what a body cannot say comes before a version, and a state comes after that (C2.6)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from recado.domain.core.errors import Problem

_AFTER_VERSION: Final = frozenset({402, 409, 412, 502})


def comes_after_version(refusal: Problem) -> bool:
    """Whether it is of a state, a balance, or a provider."""
    return refusal.status in _AFTER_VERSION


@contextmanager
def body_first(check: Callable[[], None]) -> Iterator[None]:
    """Do what the block does, then `check` the version: that comes before a state which the block refuses, too.

    For a transaction: what the block has written goes with the refusal.
    """
    try:
        yield
    except Problem as refusal:
        if comes_after_version(refusal):
            check()
        raise
    check()
