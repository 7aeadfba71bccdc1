"""Whether a field condition holds, read once, on arrival (C9.4.3).

As in segments, a number is never equal to a text. A field that holds nothing makes every operator false, but
`nao_existe` and `diferente`.
"""

from datetime import datetime
from typing import TypeGuard
from zoneinfo import ZoneInfo

from recado.domain.audience.segment import Scalar
from recado.domain.core.timestamps import format_timestamp
from recado.domain.journeys.field_values import FieldValue, iso_moment
from recado.domain.journeys.graph import FieldOperator


def field_holds(held: FieldValue, operator: FieldOperator, value: Scalar | None, zone: ZoneInfo) -> bool:
    """Compare what a field holds with the condition's `value`. `zone`: in which dates without an offset are meant."""
    match operator:
        case FieldOperator.EXISTE:
            return held is not None
        case FieldOperator.NAO_EXISTE:
            return held is None
        case FieldOperator.IGUAL:
            return _equal(held, value)
        case FieldOperator.DIFERENTE:
            return not _equal(held, value)
        case FieldOperator.CONTEM:
            return _contains(held, value)
        case FieldOperator.MAIOR:
            return _order(held, value, zone) > 0
        case FieldOperator.MENOR:
            return _order(held, value, zone) < 0


def _equal(held: FieldValue, value: Scalar | None) -> bool:
    if isinstance(held, tuple):
        return any(_equal(each, value) for each in held)
    if isinstance(held, datetime):
        held = format_timestamp(held)
    if isinstance(held, str) and isinstance(value, str):
        return held.casefold() == value.casefold()
    if held is None or isinstance(held, bool) is not isinstance(value, bool):
        return False
    return held == value


def _contains(held: FieldValue, value: Scalar | None) -> bool:
    if isinstance(held, tuple):
        return _equal(held, value)
    return isinstance(held, str) and isinstance(value, str) and value.casefold() in held.casefold()


def _order(held: FieldValue, value: Scalar | None, zone: ZoneInfo) -> int:
    """Above zero where what is held is the greater, below where it is the less; zero, too, for what has no order."""
    if _is_number(held) and _is_number(value):
        return (held > value) - (held < value)
    first, second = iso_moment(held, zone), iso_moment(value, zone)
    if first is None or second is None:
        return 0
    # Not as they are: times of one zone compare by what its clock shows, which may come twice.
    gap = first.timestamp() - second.timestamp()
    return (gap > 0) - (gap < 0)


def _is_number(value: FieldValue) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
