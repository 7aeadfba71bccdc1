"""Which of the known names someone meant who wrote another one."""

from collections.abc import Collection
from difflib import get_close_matches

_MOST_COMPARED = 50  # names
_LONGEST_COMPARED = 40  # characters


def closest(name: str, known: Collection[str]) -> str | None:
    """Return the one of the `known` names that is like `name`; None when there is none, or there are too many."""
    if len(name) > _LONGEST_COMPARED or len(known) > _MOST_COMPARED:
        return None
    found = get_close_matches(name, sorted(known), n=1, cutoff=0.7)
    return found[0] if found else None
