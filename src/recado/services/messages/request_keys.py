"""Whether an Idempotency-Key still belongs to what its first request made (C6.2)."""

from datetime import datetime

from recado.domain.core.errors import Problem
from recado.storage.core.idempotency import RETENTION
from recado.storage.messages.messages import Bound


def still_bound(bound: Bound, fingerprint: bytes | None, now: datetime) -> bool:
    """False when its day has passed: the key is free. Problem 422 when another request used it."""
    if now - bound.created_at >= RETENTION:
        return False
    if bound.fingerprint != fingerprint:
        raise Problem(
            "IDEMPOTENCY_KEY_REUSED",
            "This Idempotency-Key was used with another request: use a new key for each new request.",
        )
    return True
