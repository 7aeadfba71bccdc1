"""Events of a payments bridge as they come, with what they are read as, and those of another shape with their place."""

from datetime import UTC, datetime
from typing import Any

from recado.channels.core.events import Payment

AT = datetime(2026, 11, 20, 9, 0, 0, 250_000, tzinfo=UTC)
TIME = "2026-11-20T09:00:00.250Z"
PAID: dict[str, Any] = {"kind": "payment", "status": "paid", "reference": "r1", "amountCents": 1_000, "at": TIME}
CANCELED: dict[str, Any] = {"kind": "payment", "status": "canceled", "reference": "r2", "at": TIME}

PAYMENTS = [(PAID, [Payment("r1", "paid", AT, 1_000)]), (CANCELED, [Payment("r2", "canceled", AT, None)])]
_CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"kind": "status"}, "kind"),
    ({"kind": None}, "kind"),
    ({"status": "refunded"}, "status"),
    ({"reference": ""}, "reference"),
    ({"reference": "r" * 65}, "reference"),
    ({"reference": 7}, "reference"),
    ({"at": "2026-11-20T09:00:00"}, "at"),
    ({"at": None}, "at"),
    ({"amountCents": None}, "amountCents"),
    ({"amountCents": -1}, "amountCents"),
    ({"amountCents": 10.5}, "amountCents"),
    ({"amountCents": True}, "amountCents"),
    ({"amountCents": 10**15 + 1}, "amountCents"),
]
MALFORMED: list[tuple[Any, str]] = [(PAID | change, f"events[0].{where}") for change, where in _CHANGES]
