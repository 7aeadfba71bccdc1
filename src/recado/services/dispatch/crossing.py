"""Rows that cross from one process to another: as JSON says them, and back."""

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from operator import attrgetter
from typing import Any

from recado.services.dispatch.row import Row

_NAMES = tuple(each.name for each in fields(Row))
_MOMENTS = tuple(n for n, name in enumerate(_NAMES) if name in {"due_at", "expires_at", "repeat_of", "claimed_at"})

packed = attrgetter(*_NAMES)
"""The values of a row, which JSON can say; its moments as text."""


def unpacked(values: list[Any]) -> Row:
    """The row of the values that crossed. Raises TypeError or ValueError for what is none."""
    for n in _MOMENTS:
        if values[n] is not None:
            values[n] = datetime.fromisoformat(values[n])
    return Row(*values)


def unpacked_rows(rows: Sequence[list[Any]]) -> tuple[Row, ...]:
    """As `unpacked`, of each."""
    return tuple([unpacked(each) for each in rows])
