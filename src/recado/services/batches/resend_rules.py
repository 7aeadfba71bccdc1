"""Which of many failed messages can be sent again, and why the others cannot (C15.4).

What only one channel asks of them is in its own rules (`channel_batches.py`).
"""

from collections.abc import Sequence
from typing import Any, Final

from recado.domain.messages.message import MessageStatus
from recado.services.batches.batch_rules import LeftOut
from recado.services.batches.channel_batches import Misfit
from recado.services.messages.acceptance_rules import REFUSED
from recado.storage.messages.resends import Old

NOT_FOUND: Final = "NOT_FOUND"
UNCERTAIN: Final = "OUTCOME_UNKNOWN"
RECIPIENT_MISSING: Final = "RECIPIENT_MISSING"
WINDOW_CLOSED: Final = "WINDOW_CLOSED"

_TEXTS: Final = {
    **REFUSED,
    "INVALID_STATE": "Only an outbound message that failed less than 12 months ago can be sent again.",
    "ALREADY_REPLACED": "The message was sent again before.",
    UNCERTAIN: "The message may have left: its outcome is unknown.",
    RECIPIENT_MISSING: "Its recipient was deleted with its contact.",
    WINDOW_CLOSED: "The recipient has not written to this number in the last 24 hours.",
}


def not_again(code: str) -> Misfit:
    """Why a message of any channel is not sent again, by its code."""
    return Misfit(code, _TEXTS[code])


def skip(left_out: LeftOut, path: str, why: Misfit, message_id: str) -> None:
    """Count a message that is not sent again."""
    left_out.add(path, why.code, f"{message_id}: {why.message}")


def reason_to_skip(old: Old, *, first_id: str, include_uncertain: bool) -> str | None:
    """Why `old` is not sent again, whatever its channel says. `first_id`: older ones have lost their content (C32)."""
    if old.direction != "outbound" or old.status != MessageStatus.FAILED or old.id < first_id:
        return "INVALID_STATE"
    if old.replaced_by is not None:
        return "ALREADY_REPLACED"
    if old.uncertain and not include_uncertain:
        return UNCERTAIN
    if old.recipient_hash is None:
        return RECIPIENT_MISSING
    return None


def common(values: Sequence[Any]) -> tuple[Any, list[Any] | None]:
    """One value for all, or None and each its own."""
    first = values[0] if values else None
    return (first, None) if all(value == first for value in values) else (None, list(values))
