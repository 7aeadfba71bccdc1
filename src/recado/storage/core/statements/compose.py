"""Puts a query together from the named fragments of a `.sql` file, for lists whose filters vary.

Fragments name their values (`:number_id`); values travel as bind parameters only, never as text of the query.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from recado.storage.core.statements.sql import numbered


def compose(text: str, values: Mapping[str, Any], before: Sequence[Any] = ()) -> tuple[str, list[Any]]:
    """The query with `$1`, `$2`, … in place of its names, and the values in that order.

    A name may stand several times; values that are not named are left out. KeyError for a name without value. `before`:
    arguments that a part of the text numbers already; they come first.
    """
    query, names = numbered(text, len(before))
    return query, [*before, *(values[name] for name in names)]
